// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_crew.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/number.h"
#include "base/text/option.h"
#include "base/text/text.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/link_arguments.h"
#include "cli/plan/catalog_price.h"
#include "host/address.h"
#include "host/identity/authority.h"
#include "host/system/free_port.h"
#include "launch/local/child.h"
#include "peer/links.h"
#include "peer/spelling.h"
#include "peer/token_file.h"
#include "peer/values.h"
#include "train/run/run_fields.h"
#include "train/run/run_file_yaml.h"

namespace tw::cli {
namespace {

using launch::Variable;

constexpr std::int64_t kProgramTokenLasts_s = 30LL * 86400;
constexpr peer::Spelling kOption = peer::Spelling::command_line;
constexpr peer::Spelling kSetting = peer::Spelling::python;  // KEY=VALUE

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

Status check(const RunPlan& plan) {
  const RunArguments& arguments = plan.arguments;
  const peer::LinkOptions& links = arguments.links;
  if (arguments.words.empty())
    return Error{"nothing to run; write the command after --, as in: tw run --peers 2 -- python3 train.py"};
  if (!arguments.run_file.empty() && !std::filesystem::exists(arguments.run_file))
    return Error{fmt::format("{}: no such file; a command comes after --", arguments.run_file)};
  if (plan.peers + plan.joins > 1 && !links.id.empty())
    return Error{
        fmt::format("--id {}: goes with one process, and there are {}", links.id, plan.peers + plan.joins)};
  return Unit{};
}

/// A number, or one for each accelerator.
Status count_peers(RunPlan& plan) {
  if (plan.arguments.peers == "gpus") {
    TW_TRY(auto gpus, launch::find_visible_gpus(launch::GpuSources::of_this_machine()));
    plan.gpus = std::move(gpus);
    plan.peers = plan.gpus.ids.size();
    return Unit{};
  }
  TW_TRY(const auto peers,
         parse_count("--peers", plan.arguments.peers, {.least = 1, .most = launch::kMaxLocalPeers}));
  plan.peers = peers;
  return Unit{};
}

/// Takes the rounds of --join, which are the script's, from the addresses.
Result<std::vector<Round>> take_rounds(std::vector<std::string>& joins) {
  std::vector<Round> rounds;
  for (const std::string& text : joins) {
    if (!host::parse_address(text) && text.find_first_not_of("0123456789") != std::string::npos)
      return Error{fmt::format("--join {}: expected HOST:PORT, or ROUND from 1 on", text)};
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) continue;
    TW_TRY(const auto round, parse_count("--join", text, {.least = 1}));
    rounds.push_back(round);
  }
  std::erase_if(joins, [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  });
  return rounds;
}

/// What an option of the script asks for. Its victims are among `all` processes.
template <class Fault>
Result<std::vector<Fault>> faults_of(const char* option, const std::vector<std::string>& texts,
                                     Result<Fault> (*parse)(const std::string&), std::uint64_t all) {
  std::vector<Fault> faults;
  for (const std::string& text : texts) {
    TW_TRY(const auto fault, parse(text));
    if (fault.victim && fault.victim->value > all)
      return Error{fmt::format("{0} {1}: there are peers 1 to {2}, for example {0} {2}@{3}", option, text,
                               all, fault.round)};
    faults.push_back(fault);
  }
  return faults;
}

Status read_script(RunPlan& plan) {
  TW_TRY(auto rounds, take_rounds(plan.arguments.links.join));
  plan.joins = rounds.size();
  const std::uint64_t all = plan.peers + plan.joins;
  if (all > launch::kMaxLocalPeers)
    return Error{
        fmt::format("--join: {} peers and {} joining ones are more than the {} that one machine may run",
                    plan.peers, plan.joins, launch::kMaxLocalPeers)};
  TW_TRY(auto kills, faults_of("--kill", plan.arguments.kill, launch::parse_kill, all));
  TW_TRY(auto stops, faults_of("--stop", plan.arguments.stop, launch::parse_stop, all));
  plan.script = launch::Script(std::move(kills), std::move(rounds), std::move(stops));
  return Unit{};
}

void in_silence(const std::string&) {}  // the peers warn

/// Whether peers of a run that goes on elsewhere are named.
bool names_others(const peer::LinkOptions& links) {
  if (!links.join.empty() || links.rejoin) return true;
  if (links.token.empty()) return false;
  const auto token = peer::read_token("--token", links.token, in_silence);
  return token && std::ranges::any_of(token.value().addresses,
                                      [&](const std::string& address) { return address != links.listen; });
}

/// KEY and VALUE of --set, as a program reads them.
Result<std::pair<std::string, std::string>> setting_in(const std::string& text) {
  TW_TRY(const auto setting, parse_setting(text));
  return std::pair(train::whole_run_key(trimmed(setting.first)), std::string(trimmed(setting.second)));
}

/// KEY=VALUE;KEY=VALUE of TRADEWIND_SET.
Result<std::string> settings_text(const std::vector<std::string>& settings) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : settings) {
    TW_TRY(auto setting, setting_in(text));
    pairs.push_back(std::move(setting));
    if (text.find(';') != std::string::npos)
      return Error{fmt::format("--set {}: a value of a program's run cannot hold a ;", text)};
  }
  const std::string twice = train::given_twice(pairs);
  if (!twice.empty()) return Error{"--set: " + twice};
  return fmt::format("{}", fmt::join(settings, ";"));
}

/// A setting by itself: the program may add what it goes together with. The message begins with it.
Status check_setting(const std::string& text) {
  TW_TRY(const auto setting, setting_in(text));
  const auto& [key, value] = setting;
  if (const train::RunField* field = train::find_run_field(key)) {
    train::RunOptions scratch;
    const std::string complaint =
        train::assign(*field, given_word(value, std::filesystem::current_path()), scratch);
    return complaint.empty() ? Status(Unit{}) : Error{fmt::format("{}: {}", text, complaint)};
  }
  TW_TRY(const bool is_of_program, peer::ProgramSettings().take(key, value));
  if (is_of_program) return Unit{};
  if (peer::find_link_field(key) == nullptr && peer::replacement_of(key).empty())
    return Error{fmt::format("{}: {}", text, peer::unknown_setting(key).message)};
  peer::LinkOptions links;
  TW_TRY(peer::assign(links, key, value, kSetting));
  return peer::check_links(links, kSetting);
}

/// Whether a peer knows which of an option and --set counts where they differ (bind/environment.h).
bool has_precedence(const peer::LinkOptions& options, std::string_view key) {
  return key == "progress" || (options.rejoin && (key == "anew" || key == "no_rejoin"));
}

/// The options and those of --set, each of which was checked by itself.
Result<peer::LinkOptions> with_settings(const RunArguments& arguments) {
  peer::LinkOptions all = arguments.links;
  for (const std::string& text : arguments.set) {
    TW_TRY(const auto setting, setting_in(text));
    const auto& [key, value] = setting;
    const peer::LinkField* field = peer::find_link_field(key);
    if (field == nullptr || has_precedence(arguments.links, key)) continue;
    peer::LinkOptions alone;
    TW_TRY(peer::assign(alone, key, value, kSetting));
    const std::string before = peer::value_of(*field, arguments.links);
    if (!before.empty() && before != peer::value_of(*field, alone))
      return Error{fmt::format("--set {}: given twice, also as {}; leave one of them out", text,
                               peer::is_flag(*field) ? peer::spelled_flag(kOption, key)
                                                     : peer::spelled(kOption, key).with(before))};
    if (before.empty()) TW_TRY(peer::assign(all, key, value, kSetting));
  }
  return all;
}

/// With --rejoin, a file may be missing yet: a script before the program may fetch it again.
Status check_token(const peer::LinkOptions& links) {
  if (!links.run_folder.empty()) TW_TRY(peer::read_folder_token("--run", links.run_folder, in_silence));
  std::error_code error;
  const bool may_come =
      links.rejoin && links.token.starts_with('@') && !std::filesystem::exists(links.token.substr(1), error);
  if (!links.token.empty() && !may_come) TW_TRY(peer::read_token("--token", links.token, in_silence));
  return Unit{};
}

/// An option that stands in --set is one of the crew's, as if it stood by itself. A flag that is off stays
/// there: no variable says that.
Result<RunArguments> with_options_of_set(const RunArguments& arguments) {
  RunArguments all = arguments;
  TW_TRY(all.links, with_settings(arguments));
  std::erase_if(all.set, [&](const std::string& text) {
    const auto setting = setting_in(text);
    const std::string& key = setting.value().first;
    const peer::LinkField* field = peer::find_link_field(key);
    return field != nullptr && !has_precedence(arguments.links, key) &&
           !peer::value_of(*field, all.links).empty();
  });
  return all;
}

/// What the program will refuse, whatever settings of its own it adds. links: without the rounds of --join.
Status check_values(const RunArguments& arguments) {
  TW_TRY(peer::check_links(arguments.links, kOption, catalog_price));
  TW_TRY(check_token(arguments.links));
  if (!arguments.run_file.empty()) TW_TRY(train::check_run_file(arguments.run_file));
  return Unit{};
}

/// Threads for each process where the user says nothing: more of them than cores stand in each other's way.
std::string threads_of_each(const RunPlan& plan) {
  if (!plan.arguments.threads.empty()) return plan.arguments.threads;
  const std::uint64_t processes = plan.peers + plan.joins;
  if (processes == 1) return "";
  const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::to_string(std::max<std::uint64_t>(1, cores / processes));
}

/// Variables that are the same for all processes.
Result<std::vector<Variable>> common(const RunPlan& plan) {
  const RunArguments& arguments = plan.arguments;
  std::vector<Variable> all = variables_of(arguments.links);
  TW_TRY(const auto settings, settings_text(arguments.set));
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) all.emplace_back(name, value);
  };
  add("TRADEWIND_RUN", arguments.run_file);
  add("TRADEWIND_SET", settings);
  add("TRADEWIND_THREADS", arguments.threads);
  if (!is_set("OMP_NUM_THREADS")) add("OMP_NUM_THREADS", threads_of_each(plan));
  // The user's own folders go first.
  const std::filesystem::path beside = std::filesystem::path(launch::own_path()).parent_path() / "python";
  const char* const path = std::getenv("PYTHONPATH");
  if (std::filesystem::exists(beside / "tradewind"))
    add("PYTHONPATH", (path == nullptr || *path == '\0' ? "" : std::string(path) + ":") + beside.string());
  if (!is_set("PYTHONUNBUFFERED")) add("PYTHONUNBUFFERED", "1");  // a killed process has printed what it said
  return all;
}

/// Variables of process `number`. Peers of one run on this machine: the first one listens where the others
/// find it, at `meeting`; empty: they join a run that is there, or it is alone.
std::vector<Variable> environment_of(std::uint64_t number, const RunPlan& plan,
                                     const std::vector<Variable>& common, const std::string& meeting) {
  const std::string listen = peer::variable_of("listen"), watch = peer::variable_of("watch");
  const peer::LinkOptions& links = plan.arguments.links;
  std::vector<Variable> one = common;
  std::erase_if(one, [&](const Variable& variable) {
    return number > 1 && (variable.first == listen || variable.first == watch);
  });
  if (number == 1 && !meeting.empty() && links.listen.empty()) one.emplace_back(listen, meeting);
  if (number > 1 && links.join.empty()) one.emplace_back(peer::variable_of("join"), meeting);
  if (number == 1 && links.join.empty() && plan.peers > 1 && links.wait_for.empty())
    one.emplace_back(peer::variable_of("wait_for"), std::to_string(plan.peers));
  if (const std::vector<std::string>& ids = plan.gpus.ids; !ids.empty())
    one.emplace_back(plan.gpus.variable, ids[(number - 1) % ids.size()]);
  if (!is_set("TRADEWIND_PROGRESS") && links.progress.empty())
    one.emplace_back(peer::variable_of("progress"), number == 1 ? "line" : "off");
  return one;
}

/// Where the peers of a crew meet; empty: they join others, or there is one alone.
Result<std::string> meeting_of(const RunPlan& plan) {
  const peer::LinkOptions& links = plan.arguments.links;
  const bool alone = plan.peers + plan.joins == 1;
  if (links.listen.empty() && (alone || !links.join.empty())) return std::string();
  TW_TRY(auto address, host::parse_address(links.listen.empty() ? "127.0.0.1:0" : links.listen));
  // The others are told where to dial, so somebody has to choose the port.
  if (address.port == 0 && !alone) {
    TW_TRY(address.port, host::free_port());
  }
  return to_string(address);
}

bool lets_others_in(const peer::LinkOptions& links) {
  return !links.token.empty() || !links.run_folder.empty() || links.insecure;
}

/// A token for this crew alone.
Status make_token(peer::LinkOptions& links, const std::string& folder) {
  const std::string file = peer::token_file(folder);
  links.token = "@" + file;
  return host::write_secret_file(file,
                                 to_text(host::token_for_one_run("local", kProgramTokenLasts_s)) + "\n");
}

}  // namespace

Result<RunPlan> plan_run(const RunArguments& arguments) {
  RunPlan plan{.arguments = arguments};
  TW_TRY(count_peers(plan));
  if (!arguments.threads.empty()) TW_TRY(peer::parse_threads_option("--threads", arguments.threads));
  TW_TRY(settings_text(arguments.set));
  TW_TRY(const auto restarts, parse_count("--restarts", arguments.restarts, {.least = 0, .most = 1'000'000}));
  plan.restarts = restarts;
  TW_TRY(read_script(plan));
  for (const std::string& text : arguments.set)
    if (const Status right = check_setting(text); !right) return Error{"--set " + right.error().message};
  TW_TRY(plan.arguments, with_options_of_set(plan.arguments));
  TW_TRY(check(plan));
  TW_TRY(check_values(plan.arguments));
  peer::LinkOptions& links = plan.arguments.links;
  if (!links.wait_for.empty()) {
    TW_TRY(const auto waits_for, parse_count("--wait-for", links.wait_for, {.least = 1}));
    plan.waits_for = waits_for;
  }
  TW_TRY(const auto price, price_text(links.usd_per_h, links.site));
  links.usd_per_h = price;
  const bool others = names_others(links);
  const bool has_script = !plan.script.is_over();
  if (has_script && links.out.empty())
    return Error{"--kill, --join ROUND and --stop follow the event logs: give --out FOLDER, too"};
  if (has_script && others)
    return Error{
        "--kill, --join ROUND and --stop: go with a run that begins here, and another option says that its "
        "peers are elsewhere"};
  if (has_script && !links.id.empty())
    return Error{fmt::format("--id {}: the peers of a script are numbered from 1; leave it out", links.id)};
  plan.begins = !others && (plan.peers > 1 || has_script);
  if (plan.begins && !lets_others_in(links) && !links.wait_for.empty() && plan.waits_for > plan.peers)
    return Error{
        fmt::format("--wait-for {}: {} peers begin here, and nobody else can join them: raise --peers, or "
                    "give --token or --run, and --listen",
                    plan.waits_for, plan.peers)};
  return plan;
}

Result<launch::Crew::Options> crew_options(const RunPlan& planned, const std::string& folder) {
  RunPlan plan = planned;
  const auto meeting = meeting_of(plan);
  if (!meeting) return meeting.error();
  if (!plan.arguments.links.listen.empty()) plan.arguments.links.listen = meeting.value();
  const bool alone = plan.begins && !lets_others_in(plan.arguments.links);
  if (alone) TW_TRY(make_token(plan.arguments.links, folder));
  const auto variables = common(plan);
  if (!variables) return variables.error();
  launch::Crew::Options options{.words = plan.arguments.words,
                                .restarts = plan.restarts,
                                .folder = folder,
                                .must_join = true,
                                .begins = plan.begins,
                                .waits_for = plan.waits_for,
                                .script = plan.script};
  for (std::uint64_t number = 1; number <= plan.peers; ++number)
    options.environments.push_back(environment_of(number, plan, variables.value(), meeting.value()));
  if (alone) options.environments.front().emplace_back(peer::variable_of("no_rejoin"), "1");
  options.newcomer = [plan, variables = variables.value(), meeting = meeting.value()](std::uint64_t number) {
    return environment_of(number, plan, variables, meeting);
  };
  if (plan.begins) options.out_folder = plan.arguments.links.out;
  return options;
}

}  // namespace tw::cli
