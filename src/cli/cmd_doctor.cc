// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>

#include "base/result.h"
#include "base/text/text_file.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/doctor_network.h"
#include "host/store/store_files.h"
#include "host/system/calendar.h"
#include "host/system/random_os.h"
#include "measure/doctor/findings_json.h"
#include "peer/search/meeting_place.h"
#include "peer/values.h"
#include "plan/input/model_profile_yaml.h"
#include "plan/model/gpu_memory.h"
#include "swarm/members/rendezvous.h"
#include "train/run/run_file_yaml.h"

namespace tw::cli {
namespace {

using measure::Finding;

/// What was found so far; for people each line at once.
class Findings {
 public:
  explicit Findings(bool json) : json_(json) {}

  void add(Finding finding) {
    all_.push_back(std::move(finding));
    if (json_) return;
    print_out_now(measure::render({all_.back()}));
  }

  int finish() const {
    if (json_) print_out_text(to_json(all_));
    return any_hurts(all_) ? kFailed : kDone;
  }

 private:
  bool json_;
  std::vector<Finding> all_;
};

bool is_profile(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

struct Given {
  std::string token, profile;
};

Result<Given> sort_words(const std::vector<std::string>& words) {
  Given given;
  for (const std::string& word : words) {
    std::string& place = is_profile(word) ? given.profile : given.token;
    if (!place.empty())
      return Error{
          fmt::format("doctor {}: expected one token (or @FILE) and one PROFILE.yaml; {} is there already",
                      word, is_profile(word) ? given.profile : "a token")};
    place = word;
  }
  return given;
}

/// A model without a name where no profile is given.
Result<plan::ModelProfile> model_of(const std::string& profile) {
  if (profile.empty()) return plan::ModelProfile{};
  TW_TRY(const auto text, read_text_file(profile));
  return plan::read_profile(profile, text);
}

/// What a run of the profiled model needs.
measure::Needs needs_of(const plan::ModelProfile& model) {
  const auto bytes = [](double mb) {
    return mb > 0 ? std::optional(static_cast<std::uint64_t>(mb * 1e6)) : std::nullopt;
  };
  return measure::Needs{.state_bytes = bytes(model.state_mb), .memory_bytes = bytes(model.memory_mb)};
}

Finding look_at_disk(const std::string& folder, const measure::Needs& needs) {
  constexpr std::uint64_t kMostWritten = 256ULL << 20, kUsualWritten = 64ULL << 20;
  const auto disk =
      measure::measure_disk(folder, std::min(needs.state_bytes.value_or(kUsualWritten), kMostWritten));
  if (disk) return judge_disk(folder, disk.value(), needs);
  return measure::judge_no_disk(disk.error().message);
}

/// What a peer does there, under a name that no peer takes for a notice.
Status try_rendezvous(world::Files& files, const std::string& folder, std::vector<std::string>& names) {
  const std::string path = fmt::format("{}/doctor-{}", folder, host::OsRandom().next());
  const std::array<std::byte, 4> some{std::byte{'d'}, std::byte{'o'}, std::byte{'c'}, std::byte{'!'}};
  const std::array<std::span<const std::byte>, 1> parts{some};
  TW_TRY(files.make_folder(folder));
  TW_TRY(files.write(path, parts));
  auto listed = files.list(folder);
  const auto read = files.read(path);
  TW_TRY(files.remove(path));
  if (!listed) return listed.error();
  if (!read) return read.error();
  names = std::move(listed).value();
  const std::string name = path.substr(folder.size() + 1);
  if (std::ranges::find(names, name) == names.end())
    return Error{fmt::format("{}: the list lacks {}, which was just written there", folder, name)};
  if (!std::ranges::equal(read.value(), some))
    return Error{fmt::format("{}: other bytes are read than were written there", path)};
  return Unit{};
}

Finding look_at_rendezvous(const std::string& folder) {
  const measure::FoldersOnTrial made(folder);
  host::StoreFiles files(peer::MeetingPlace::kEffort);
  std::vector<std::string> names;
  if (const Status works = try_rendezvous(files, folder, names); !works)
    return {"rendezvous", measure::Verdict::hurts, works.error().message,
            "mend what is said there, or give rendezvous another folder or bucket where every peer may list, "
            "read, write and remove"};
  const std::int64_t now = host::now_unix_s();
  const auto alive = std::ranges::count_if(names, [now](const std::string& text) {
    const auto name = swarm::notice_name_in(text);
    return name && name->until_unix_s > now;
  });
  return {
      "rendezvous", measure::Verdict::ok,
      fmt::format("{} can be listed, read and written; {} notices of peers there are valid", folder, alive),
      ""};
}

/// The folder as a run file would name it; empty: none.
Result<std::string> rendezvous_of(const DoctorArguments& arguments) {
  if (arguments.rendezvous.empty()) return std::string();
  TW_TRY(const auto run, train::read_run_file("", {{"rendezvous", arguments.rendezvous}}));
  return run.checkpoint.rendezvous == train::CheckpointOptions::kNone ? std::string()
                                                                      : run.checkpoint.rendezvous;
}

/// token: as given; empty: none.
Status check_addresses(const DoctorArguments& arguments, const std::string& token) {
  for (const auto& [name, address] :
       {std::pair{"--probe", &arguments.probe}, std::pair{"--listen", &arguments.listen}}) {
    if (address->empty()) continue;
    TW_TRY(peer::parse_address_option(name, *address));
  }
  if (!arguments.listen.empty() && arguments.probe.empty())
    return Error{
        fmt::format("--listen {}: somebody has to dial it; add --probe HOST:PORT of a machine where "
                    "tw net probe --listen runs",
                    arguments.listen)};
  if (!arguments.probe.empty() && token.empty() && !arguments.insecure)
    return Error{fmt::format(
        "--probe {}: it answers those of its run alone; give the token of the run, too (tw doctor "
        "@FILE), or --insecure for a probe that runs with it",
        arguments.probe)};
  return Unit{};
}

}  // namespace

void describe_doctor(CLI::App& app, DoctorArguments& arguments) {
  CLI::App* command = app.add_subcommand("doctor", "Check this machine for problems before a run");
  command->add_option("TOKEN|PROFILE.yaml", arguments.words,
                      "token or @FILE with addresses to dial; profile of tw profile");
  command->add_option("--plan", arguments.plan, "PLAN.yaml: how many peers, and where they are");
  command->add_option("--site", arguments.site, "PROVIDER:REGION[:ZONE] of this machine");
  command->add_option("--probe", arguments.probe,
                      "HOST:PORT of tw net probe --listen: checks clock, bandwidth, dialing");
  command->add_option("--listen", arguments.listen, "HOST:PORT of this machine that the probe dials");
  command->add_option("--folder", arguments.folder, "folder for checkpoints");
  command->add_option("--rendezvous", arguments.rendezvous,
                      "file:/FOLDER, s3://... or gs://... : tries the place");
  command->add_flag("--insecure", arguments.insecure, "the probe runs with --insecure, without tokens");
  command->add_flag("--json", arguments.json, "{\"hurts\", \"findings\": [{check, verdict, text, remedy}]}");
  command->footer(
      "One line each: ok, note (not known, or worth a look) or will hurt, with its remedy. All cores are\n"
      "busy for half a second, or twice where that looks bad; a file of the size of a checkpoint, at most\n"
      "256 MiB, is written and removed, with the folders that were made for it.\n"
      "Exit codes: 0 nothing will hurt, 1 something will, 2 wrong usage.\n"
      "\n"
      "Examples:\n"
      "  tw doctor\n"
      "  tw doctor @token profile.yaml --plan PLAN.yaml\n"
      "  tw net probe --site gcp:us-west1 --token @token --listen 10.0.0.5:7100   # on another machine\n"
      "  tw doctor @token --site onprem:eu --probe 10.0.0.5:7100 --listen 192.0.2.7:7000");
}

int doctor(const DoctorArguments& arguments) {
  const auto given = sort_words(arguments.words);
  if (!given) return complain(given.error().message, kUsage);
  if (const Status addresses = check_addresses(arguments, given.value().token); !addresses)
    return complain(addresses.error().message, kUsage);
  auto network = open_doctor_network(arguments, given.value().token);
  if (!network) return complain(network.error().message, kUsage);
  const auto model = model_of(given.value().profile);
  if (!model) return complain(model.error().message, kUsage);
  const auto rendezvous = rendezvous_of(arguments);
  if (!rendezvous) return complain(rendezvous.error().message, kUsage);
  measure::Needs needs = needs_of(model.value());
  needs.peers = network.value().peers();
  if (!given.value().profile.empty()) needs.gpu_gib = plan::gpu_memory_need(model.value()).gib;

  Findings findings(arguments.json);
  measure::CpuFacts cpu = measure::measure_cpu();
  if (judge_cpu(cpu).verdict != measure::Verdict::ok) cpu = quieter(cpu, measure::measure_cpu());
  findings.add(judge_cpu(cpu));
  findings.add(judge_memory(measure::measure_memory(), needs));
  findings.add(judge_gpu(measure::look_for_gpus(), needs));
  findings.add(judge_files(measure::open_file_limit(), needs));
  findings.add(look_at_disk(arguments.folder, needs));
  findings.add(look_at_notices());
  if (!rendezvous.value().empty()) findings.add(look_at_rendezvous(rendezvous.value()));
  for (Finding& finding : network.value().look()) findings.add(std::move(finding));
  const auto samples = static_cast<double>(train::RunOptions().batch.size.value_or(0));  // a run's usual ones
  if (auto mode = network.value().look_at_mode(model.value(), samples)) findings.add(*std::move(mode));
  return findings.finish();
}

}  // namespace tw::cli
