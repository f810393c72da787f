// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/launch_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/cause_text.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/text/duration.h"
#include "base/text/option.h"
#include "base/text/text_file.h"
#include "cli/arguments/arguments.h"
#include "cli/commands.h"
#include "cli/plan/price_sources.h"
#include "host/system/free_port.h"
#include "host/system/own_folder.h"
#include "launch/command_run.h"
#include "launch/local/child.h"
#include "launch/user_program.h"
#include "train/run/run_file_yaml.h"

namespace tw::cli {
namespace {

namespace fs = std::filesystem;

/// Where others reach the peers of this machine, as --with names it.
std::string own_address_key(const launch::EngineChoice& engines) {
  return engines.key_of("local", "address");
}

std::string absolute_of(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// Relative paths in PLAN.yaml are relative to it.
std::string beside(const std::string& plan_file, const std::string& path) {
  if (path.empty()) return "";
  return (fs::path(plan_file).parent_path() / path).lexically_normal().string();
}

/// The name of the file, made to fit.
std::string name_from(const std::string& run_file) {
  std::string name;
  for (const char c : fs::path(run_file).stem().string()) {
    const char low = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool fits = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9');
    if (fits || (!name.empty() && name.back() != '-')) name += fits ? low : '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

Result<std::string> name_of_run(const UpArguments& arguments, const std::string& run_file) {
  std::string name = arguments.name.empty() ? name_from(run_file) : arguments.name;
  if (launch::is_run_name(name)) return name;
  return Error{
      fmt::format("--name {}: expected 1 to 40 of a-z, 0-9 and -, a letter first, for example --name "
                  "words-eu",
                  name)};
}

Result<std::map<std::string, std::string>> engine_settings(const UpArguments& arguments,
                                                           const launch::EngineChoice& engines) {
  std::map<std::string, std::string> on;
  for (const std::string& text : arguments.with) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{fmt::format("--with {}: expected KEY=VALUE, for example --with partition=spot", text)};
    std::string key = text.substr(0, equals);
    const std::string named = engines.engines().front() + ".";
    if (engines.is_one() && key.starts_with(named)) key.erase(0, named.size());
    on[key] = text.substr(equals + 1);
  }
  if (!arguments.ssh_config.empty()) {
    if (!fs::exists(arguments.ssh_config))
      return Error{fmt::format("--ssh-config {}: no such file", arguments.ssh_config)};
    on[engines.key_of("ssh", "ssh-config")] = absolute_of(arguments.ssh_config);
  }
  return on;
}

/// Folder of the sockets of ssh, where --with does not name one. A short path: the name of a socket has at
/// most 108 bytes.
std::string control_folder() { return fmt::format("/tmp/tradewind-{}", geteuid()); }

/// The plan's settings, then those of the user, which win.
Result<std::vector<std::pair<std::string, std::string>>> overrides_of(const UpArguments& arguments,
                                                                      const plan::PlanFile& plan) {
  std::vector<std::pair<std::string, std::string>> own, overrides;
  for (const std::string& text : arguments.set) {
    TW_TRY(auto setting, parse_setting(text));
    own.push_back(std::move(setting));
  }
  for (const std::string& text : plan.settings) {
    TW_TRY(auto setting, parse_setting(text));
    const bool is_set =
        std::ranges::count(own, setting.first, &std::pair<std::string, std::string>::first) > 0;
    if (!is_set) overrides.push_back(std::move(setting));
  }
  overrides.insert(overrides.end(), own.begin(), own.end());
  return overrides;
}

/// Settings of the user, and paths of the run file: peers read both in other folders.
Result<std::vector<std::string>> settings_of(const UpArguments& arguments, const LaunchRequest& request) {
  TW_TRY(const auto overrides, overrides_of(arguments, request.plan));
  TW_TRY(const auto paths, train::absolute_paths(request.run_file, overrides));
  std::vector<std::string> settings;
  for (const auto& [key, path] : paths) settings.push_back(key + "=" + path);
  for (const auto& [key, value] : overrides)
    if (std::ranges::find(paths, key, &std::pair<std::string, std::string>::first) == paths.end())
      settings.push_back(key + "=" + value);
  return settings;
}

/// Errors that every peer would report once its machine is paid for.
Result<train::RunOptions> checked_run(const UpArguments& arguments, const LaunchRequest& request) {
  TW_TRY(const auto overrides, overrides_of(arguments, request.plan));
  return train::read_run_file(request.run_file, overrides);
}

Status run_quietly(std::vector<std::string> words) {
  TW_TRY(const auto done, launch::run_command({.words = std::move(words)}));
  if (done.exit_code == 0) return Unit{};
  return Error{fmt::format("{}: {}", to_line(done.command), done.errors)};
}

/// A copy without debugging symbols, which are most of its bytes; where there is no strip, a whole one.
Status copy_stripped(const std::string& from, const std::string& to) {
  if (run_quietly({"strip", "-o", to, from})) return Unit{};
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  return error ? Status(Error{fmt::format("{}: cannot be copied to {}", from, to)}) : Status(Unit{});
}

/// The Python package that belongs to this `tw`, for the user's program.
Status copy_package(const std::string& tw, const fs::path& folder) {
  const std::string package = launch::python_package_of(tw);
  if (package.empty()) return Unit{};  // the machines have their own, or tw up says that they lack it
  std::error_code error;
  fs::create_directories(folder, error);
  for (const std::string& file : launch::files_of_package(package)) {
    const fs::path copy = folder / file;
    fs::create_directories(copy.parent_path(), error);
    if (!error) fs::copy_file(fs::path(package) / file, copy, fs::copy_options::overwrite_existing, error);
    if (error) break;
  }
  if (error) return Error{fmt::format("{}: cannot be copied: {}", package, cause_text(error))};
  return copy_stripped(package + "/libtradewind.so", (folder / "libtradewind.so").string());
}

/// An archive of `tw` and the package, and its digest: equal contents give equal bytes.
Status pack_program(launch::Deployment& deployment) {
  const std::string folder = deployment.folder + "/pack", packed = deployment.folder + "/tw.tar";
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (const Status copied = copy_stripped(deployment.program, folder + "/tw"); !copied) return copied;
  if (const Status copied = copy_package(deployment.program, folder + "/python/tradewind"); !copied)
    return copied;
  const Status made = run_quietly({"tar", "-cf", packed, "-C", folder, "--sort=name", "--mtime=@0",
                                   "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX", "."});
  fs::remove_all(folder, error);
  if (!made) return made;
  TW_TRY(const auto bytes, read_text_file(packed));
  deployment.archive = packed;
  deployment.archive_bytes = bytes.size();
  deployment.archive_digest = to_string(digest_of(bytes)).substr(0, 16);
  return Unit{};
}

/// With the values that the run file leaves to the environment of this command.
Result<std::map<std::string, std::string>> filled(
    const std::map<std::string, std::optional<std::string>>& variables) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : variables) {
    const char* const own = std::getenv(name.c_str());
    if (!value && own == nullptr)
      return Error{
          fmt::format("program.env: {} has no value: write one (\"\" for an empty one), or export {} "
                      "before tw up",
                      name, name)};
    all[name] = value ? *value : own;
  }
  return all;
}

/// Sets the user's program, its image, and the run file that peers read.
Status set_program(const UpArguments& arguments, const LaunchRequest& request,
                   launch::Deployment& deployment) {
  TW_TRY(const auto text, read_text("--run-file", request.run_file));
  TW_TRY(auto rest, train::without_program(request.run_file, text));
  deployment.run_file = std::move(rest);
  const train::ProgramOptions& program = request.program;
  deployment.image = arguments.image.empty() ? program.image : arguments.image;
  TW_TRY(auto env, filled(program.env));
  const launch::ProgramWish wish{.folder = fs::path(request.run_file).parent_path().string(),
                                 .command = program.command,
                                 .files = program.files,
                                 .setup = program.setup,
                                 .env = std::move(env),
                                 .warn = warn};
  const auto starts_containers = [](const std::string& engine) {
    return engine == "k8s" || engine == "skypilot";
  };
  const bool in_image =
      !deployment.image.empty() && std::ranges::all_of(request.engines.engines(), starts_containers);
  auto user = launch::user_program(wish, in_image);
  if (!user) return Error{fmt::format("{}: {}", request.run_file, user.error().message)};
  deployment.user = std::move(user).value();
  return Unit{};
}

/// An option that only these engines make use of.
Status check_engines(const LaunchRequest& request, const std::string& option, const std::string& value,
                     const std::vector<std::string>& users) {
  const auto is_used = [&](const std::string& engine) { return request.engines.has(engine); };
  if (value.empty() || std::ranges::any_of(users, is_used)) return Unit{};
  return Error{fmt::format("{} {}: goes with --on {}, not with --on {}", option, value,
                           fmt::join(users, ", "), request.engines.text())};
}

Status check_program(const UpArguments& arguments, const LaunchRequest& request) {
  const std::vector<std::string> users = {"local", "ssh", "slurm"};  // others have the tw of their image
  TW_TRY(check_engines(request, "--program", arguments.program, users));
  std::error_code error;
  if (arguments.program.empty() || fs::is_regular_file(arguments.program, error)) return Unit{};
  return Error{fmt::format("--program {}: no such file; expected the path of a tw", arguments.program)};
}

/// Others of a run on several engines reach this machine at an address that only its user knows.
Status check_own_address(const LaunchRequest& request) {
  const std::string key = own_address_key(request.engines);
  const bool alone = request.engines.engines().size() == 1;
  if (alone || !request.engines.has("local") || request.with.contains(key)) return Unit{};
  return Error{
      fmt::format("--on {}: the other machines have to reach this one; expected --with {}=HOST, its "
                  "name or address as they see it",
                  request.engines.text(), key)};
}

/// Names of --ssh-config mean nothing to machines of clouds.
Status check_addresses(const UpArguments& arguments, const LaunchRequest& request) {
  const bool in_clouds = request.engines.has("skypilot") || request.engines.has("k8s");
  const auto unnamed = std::ranges::find(request.hosts, false, &launch::Host::is_named);
  if (arguments.ssh_config.empty() || !in_clouds || unnamed == request.hosts.end()) return Unit{};
  return Error{
      fmt::format("--hosts {}: {}: machines of other engines have to reach it; expected address=HOST",
                  arguments.hosts, unnamed->ssh)};
}

}  // namespace

Result<LaunchRequest> read_request(const UpArguments& arguments) {
  LaunchRequest request{.plan_file = absolute_of(arguments.plan)};
  TW_TRY(const auto text, read_text("PLAN.yaml", arguments.plan));
  auto plan = plan::read_plan(arguments.plan, text);
  if (!plan) return plan.error();
  request.plan = std::move(plan).value();
  TW_TRY(auto engines, launch::EngineChoice::parse(arguments.on));
  request.engines = std::move(engines);
  TW_TRY(auto with, engine_settings(arguments, request.engines));
  request.with = std::move(with);
  TW_TRY(check_own_address(request));
  const std::vector<std::string> with_images = {"skypilot", "k8s"};
  TW_TRY(check_engines(request, "--image", arguments.image, with_images));
  TW_TRY(check_program(arguments, request));
  request.job_file = beside(request.plan_file, request.plan.job);
  request.run_file = arguments.run_file.empty() ? beside(request.plan_file, request.plan.run)
                                                : absolute_of(arguments.run_file);
  if (request.run_file.empty())
    return Error{
        fmt::format("{}: does not say what is trained: give --run-file RUN.yaml, or run: RUN.yaml in "
                    "JOB.yaml before tw plan",
                    arguments.plan)};
  auto program = train::read_program(request.run_file);
  if (!program) return program.error();
  request.program = std::move(program).value();
  if (request.program.command.empty())
    return Error{
        fmt::format("{}: program.command: missing; expected the words that start the program on each "
                    "machine, such as [python3, train.py]",
                    request.run_file)};
  TW_TRY(const auto run, checked_run(arguments, request));
  request.has_checkpoints = run.checkpoint.folder != train::CheckpointOptions::kNone;
  TW_TRY(auto name, name_of_run(arguments, request.run_file));
  request.name = std::move(name);
  const bool by_ssh = request.engines.has("ssh");
  if (by_ssh == arguments.hosts.empty())
    return Error{by_ssh ? "--on ssh: give --hosts FILE, a line for each machine"
                        : fmt::format("--hosts {}: goes with --on ssh alone", arguments.hosts)};
  if (arguments.hosts.empty()) return request;
  TW_TRY(const auto lines, read_text("--hosts", arguments.hosts));
  TW_TRY(auto hosts, launch::read_hosts(arguments.hosts, lines));
  request.hosts = std::move(hosts);
  TW_TRY(check_addresses(arguments, request));
  return request;
}

Result<std::vector<launch::PeerJob>> with_addresses(const LaunchRequest& request,
                                                    std::vector<launch::PeerJob> peers) {
  for (launch::PeerJob& peer : peers) {
    if (request.engines.engine_of(peer) != "local") continue;
    const std::string key = own_address_key(request.engines);
    const auto said = request.with.find(key);
    const std::string address = said == request.with.end() ? "127.0.0.1" : said->second;
    if (peer.address == address) continue;
    if (!peer.address.empty())
      return Error{fmt::format("--with {}={}: {} is to be reached at {}; tw down first", key, address,
                               launch::short_name(peer), peer.address)};
    TW_TRY(const auto port, host::free_port());
    peer.address = address;
    peer.port = port;
  }
  return peers;
}

namespace {

/// After tw down they may be reached elsewhere. One that was never started may change its engine.
Result<std::vector<launch::PeerJob>> former_peers(const LaunchRequest& request,
                                                  const launch::RunState& before) {
  std::vector<launch::PeerJob> peers = before.deployment.peers;
  if (peers.empty()) return peers;
  TW_TRY(const auto engines, launch::EngineChoice::parse({before.engine}));
  for (launch::PeerJob& peer : peers) {
    if (!peer.untried || engines.engine_of(peer) == request.engines.engine_of(peer)) continue;
    peer.host.clear();
    peer.home.clear();
    peer.address.clear();
  }
  if (before.stop != launch::StopState::stopped) return peers;
  for (launch::PeerJob& peer : peers) {
    if (request.engines.engine_of(peer) == "local") peer.address.clear();
    const auto host = std::ranges::find(request.hosts, peer.host, &launch::Host::ssh);
    if (!peer.host.empty() && host != request.hosts.end()) peer.address = host->address;
  }
  return peers;
}

}  // namespace

Result<launch::RunState> wanted_state(const UpArguments& arguments, const LaunchRequest& request,
                                      const launch::RunStore& store) {
  const launch::RunState& before = store.state();
  launch::RunState state{.engine = request.engines.text(),
                         .plan_file = request.plan_file,
                         .job_file = request.job_file,
                         .next_number = before.next_number};
  launch::Deployment& deployment = state.deployment;
  deployment.run = request.name;
  deployment.folder = store.folder();
  deployment.founder = before.deployment.founder;
  deployment.program = arguments.program.empty() ? launch::own_path() : absolute_of(arguments.program);
  TW_TRY(set_program(arguments, request, deployment));
  auto settings = settings_of(arguments, request);
  if (!settings) return settings.error();
  deployment.settings = std::move(settings).value();
  deployment.on = request.with;
  const auto grace = parse_duration(arguments.grace);
  if (!grace || *grace < std::chrono::seconds(1))
    return Error{fmt::format("--grace {}: expected {}, from 1s", arguments.grace, kDurationWords)};
  deployment.grace = *grace;
  TW_TRY(const auto former, former_peers(request, before));
  auto peers = launch::place({.plan = request.plan.peers,
                              .before = former,
                              .hosts = request.hosts,
                              .next_number = before.next_number,
                              .engines = request.engines});
  if (peers) peers = with_addresses(request, std::move(peers).value());
  if (!peers) return peers.error();
  deployment.peers = std::move(peers).value();
  for (const launch::PeerJob& peer : deployment.peers)
    state.next_number = std::max(state.next_number, peer.number + 1);
  if (request.engines.has("ssh")) {
    std::string& control = deployment.on[request.engines.key_of("ssh", "control")];
    control = control.empty() ? control_folder() : absolute_of(control);
    const Status taken = host::take_own_folder(control);
    if (!taken)
      return Error{fmt::format("{}; or take another one: --with {}=FOLDER", taken.error().message,
                               request.engines.key_of("ssh", "control"))};
    deployment.archive_digest = "DIGEST";
    if (!arguments.dry_run) TW_TRY(pack_program(deployment));
  }
  return state;
}

}  // namespace tw::cli
