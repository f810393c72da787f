// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/skypilot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "base/result.h"
#include "base/text/number.h"
#include "base/text/split.h"
#include "base/text/text.h"
#include "launch/engines/cloud_names.h"
#include "launch/engines/engines.h"

namespace tw::launch {
namespace {

const std::vector<std::string> kSkySettings = {"join", "mount", "disk", "max-hourly-cost"};

Error wrong_setting(const std::string& key, const std::string& value, const std::string& expected) {
  return {fmt::format("skypilot: {}={}: expected {}", key, value, expected)};
}

Status read_setting(SkySettings& settings, const std::string& key, const std::string& value) {
  if (key == "join") {
    for (const std::string& address : split(value, ',')) {
      const auto at = address.rfind(':');
      if (at == std::string::npos || at == 0 || !parse_number<std::uint16_t>(address.substr(at + 1)))
        return wrong_setting(key, address, "HOST:PORT of a peer");
      settings.join.push_back(address);
    }
  } else if (key == "mount") {
    for (const std::string& mount : split(value, ',')) {
      const auto at = mount.find('=');
      if (at == std::string::npos || !mount.starts_with('/') || at + 1 == mount.size())
        return wrong_setting(key, mount, "/PATH=SOURCE, such as /data=s3://bucket/mnist");
      settings.mounts.emplace_back(mount.substr(0, at), mount.substr(at + 1));
    }
  } else if (key == "disk") {
    settings.disk_gb = parse_number<int>(value);
    if (settings.disk_gb.value_or(0) < 1) return wrong_setting(key, value, "GB, a whole number from 1");
  } else {
    settings.most_usd_per_h = parse_number<double>(value);
    if (!(settings.most_usd_per_h.value_or(0) > 0)) return wrong_setting(key, value, "USD, more than 0");
  }
  return Unit{};
}

}  // namespace

Result<SkySettings> sky_settings(const Deployment& deployment) {
  SkySettings settings;
  for (const auto& [key, value] : deployment.on) {
    if (std::ranges::find(kSkySettings, key) == kSkySettings.end())
      return Error{fmt::format("skypilot: {}={}: unknown setting; expected one of {}", key, value,
                               fmt::join(kSkySettings, ", "))};
    TW_TRY(read_setting(settings, key, value));
  }
  return settings;
}

namespace {

/// What `sky jobs logs` ends with, by the state of the job (JobExitCode in sky/exceptions.py): done, failed,
/// not finished, not found, cancelled.
const std::vector<int> kLogsExits = {0, 100, 101, 102, 103};

SkySettings checked_sky_settings(const Deployment& deployment) {
  auto settings = sky_settings(deployment);
  TW_CHECK(settings.ok());
  return std::move(settings).value();
}

std::string task_path(const Deployment& deployment, const PeerJob& peer) {
  return fmt::format("skypilot/{}.yaml", job_name(deployment, peer));
}

/// The variable TW_TOKEN, for --secret-file.
std::string secret_path(const PeerJob& peer) { return fmt::format("skypilot/{}.env", short_name(peer)); }

/// A value of a file of variables, as python-dotenv reads it: it expands ${NAME:-DEFAULT} in single quotes,
/// too.
std::string dotenv_word(const std::string& value) {
  std::string word = "'";
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\'' || value[i] == '\\') word += '\\';
    word += value.compare(i, 2, "${") == 0 ? std::string("${:-$}") : std::string(1, value[i]);
  }
  return word + "'";
}

class SkyPilot final : public Engine {
 public:
  bool restarts(const PeerJob& /*peer*/) const override { return true; }

  Status check_settings(const Deployment& deployment) const override {
    TW_TRY(sky_settings(deployment));
    return Unit{};
  }

  Status check(const Deployment& deployment) const override;
  std::vector<File> files(const Deployment& deployment) const override;
  std::vector<Command> commands(Action action, const Deployment& deployment,
                                const std::vector<PeerJob>& peers) const override;
  Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                         const std::vector<Output>& outputs) const override;
  Remains remains(Action action, const Deployment& deployment, const std::vector<PeerJob>& peers,
                  const std::vector<Output>& outputs) const override;
};

/// The exit code of sky for wrong usage, such as an option that it does not know.
constexpr int kSkyUsage = 2;

/// A stop goes by what the queue says: it has the time of a stop, and is asked once more.
Command sky_queue(Action action, const Deployment& deployment) {
  return with_limits({{.words = {"sky", "jobs", "queue", "--all", "--output", "json"},
                       .fine = {0, kSkyUsage},
                       .again_when_late = action != Action::status}},
                     action, deployment)
      .front();
}

/// Why the queue is not known.
Error queue_failure(const Output& output) {
  const bool is_old =
      output.exit_code == kSkyUsage && output.errors.find("No such option") != std::string::npos;
  return Error{
      fmt::format("skypilot: {} ended with {}: {}{}", shell_line(output.command.words), output.exit_code,
                  last_line(output.errors),
                  is_old ? "; expected SkyPilot 0.12 or newer: pip install --upgrade skypilot" : "")};
}

Status SkyPilot::check(const Deployment& deployment) const {
  TW_TRY(const auto settings, sky_settings(deployment));
  if (deployment.image.empty() && deployment.user.setup.empty())
    return Error{
        "skypilot: machines of clouds have no tw; expected --image NAME of an image that has it, or a line "
        "of program.setup that installs it (docs/launch.md, Images)"};
  if (!settings.join.empty() && !deployment.elsewhere.empty())
    return Error{
        fmt::format("skypilot: join={}: peers of this plan on another engine begin the run; leave it out",
                    fmt::join(settings.join, ","))};
  if (sky_meeting_places(deployment, settings).empty())
    return Error{
        "skypilot: clouds give addresses only to machines that run; expected peers of the plan on ssh or "
        "local (--on owned=ssh --on skypilot), or --with join=HOST:PORT of a peer that stays and begins the "
        "run"};
  if (deployment.anew && find_peer(deployment, first_of(deployment).number) != nullptr)
    return Error{fmt::format(
        "skypilot: --anew is for the peer that begins the run, and that is at join={}: give it to "
        "its tw run, and leave it out here",
        fmt::join(settings.join, ","))};
  for (const PeerJob& peer : deployment.peers)
    for (const Machine& machine : choices_of(peer))
      if (machine.purchase == market::Purchase::owned)
        return Error{fmt::format(
            "skypilot: peer {} is planned on a machine of your own ({}); give it to another engine, such as "
            "--on owned=ssh --on skypilot",
            peer.number, market::to_string(machine.site))};
  return Unit{};
}

std::vector<File> SkyPilot::files(const Deployment& deployment) const {
  constexpr unsigned kSecretMode = 0600;
  const SkySettings settings = checked_sky_settings(deployment);
  std::vector<File> files;
  for (const PeerJob& peer : deployment.peers) {
    files.push_back({task_path(deployment, peer), sky_task(deployment, peer, settings)});
    std::string secrets = fmt::format("TW_TOKEN={}\n", token_of(deployment, peer));
    for (const auto& [name, value] : deployment.user.env)
      secrets += fmt::format("{}={}\n", name, dotenv_word(value));
    files.push_back({secret_path(peer), std::move(secrets), kSecretMode});
  }
  return files;
}

std::vector<std::string> sky_words(Action action, const Deployment& deployment, const PeerJob& peer) {
  const std::string name = job_name(deployment, peer);
  const std::string folder = deployment.folder + "/";
  switch (action) {
    case Action::start:
      return {"sky",
              "jobs",
              "launch",
              "--name",
              name,
              "--yes",
              "--async",
              "--secret-file",
              folder + secret_path(peer),
              folder + task_path(deployment, peer)};
    case Action::collect:
      return {"sky", "jobs", "logs", "--name", name, "--no-follow", "--tail", "10000"};
    case Action::logs:
      return {"sky", "jobs", "logs", "--name", name, "--no-follow", "--tail", "0"};
    default:
      return {};
  }
}

std::vector<Command> SkyPilot::commands(Action action, const Deployment& deployment,
                                        const std::vector<PeerJob>& peers) const {
  // A name may have several jobs, of which `sky jobs cancel --name` cancels none: remains() goes by their
  // ids.
  if (action == Action::status || action == Action::stop || action == Action::retire)
    return {sky_queue(action, deployment)};
  std::vector<Command> commands;
  for (const PeerJob& peer : peers) {
    Command command{.words = sky_words(action, deployment, peer), .peer = peer.number};
    if (command.words.empty())
      return {};  // nothing is made beside the jobs, and none waits in a queue of its own
    if (action == Action::collect || action == Action::logs) command.fine = kLogsExits;
    if (action == Action::collect)
      command.output_file = fmt::format("{}/logs/{}.log", deployment.folder, short_name(peer));
    commands.push_back(std::move(command));
  }
  return with_limits(std::move(commands), action, deployment);
}

Result<std::vector<PeerReport>> SkyPilot::states(const Deployment& deployment,
                                                 const std::vector<Output>& outputs) const {
  TW_CHECK(outputs.size() == 1);
  const Output& output = outputs.front();
  if (output.is_late) return unknown_for(deployment, output.errors);
  if (output.exit_code != 0) return queue_failure(output);
  TW_TRY(const auto queue, read_sky_queue(output.text));
  return sky_reports(queue, deployment, output.unix_s);
}

/// A job that is being cancelled has its machine yet, and SkyPilot sees to that. Nothing gentler than a
/// cancel keeps a job that retires from its recovery.
Remains SkyPilot::remains(Action action, const Deployment& deployment, const std::vector<PeerJob>& peers,
                          const std::vector<Output>& outputs) const {
  if (outputs.empty()) return {};
  const Output& answer = outputs.back();
  if (answer.exit_code == kSkyUsage) return {.living = queue_failure(answer).message};
  if (answer.exit_code != 0) return {};  // that was said
  const auto queue = read_sky_queue(answer.text);
  if (!queue) return {.living = queue.error().message};
  std::vector<std::string> ids, living;
  for (const PeerJob& peer : peers) {
    const std::vector<SkyJob> jobs = sky_jobs_of(queue.value(), deployment, peer);
    for (const SkyJob& job : jobs) {
      if (!job.lives || job.state == PeerState::leaving) continue;
      ids.push_back(std::to_string(job.id));
      living.push_back(fmt::format("{}: skypilot: job {} lives: {}", job.name, job.id, job.detail));
    }
    if (is_on_its_way(deployment, peer, jobs, answer.unix_s))
      living.push_back(
          fmt::format("{}: skypilot: started {} s ago, and its job is not in the queue yet; tw down "
                      "again in some minutes",
                      job_name(deployment, peer), answer.unix_s - peer.started_unix_s));
  }
  Remains remains{.living = fmt::format("{}", fmt::join(living, "\n"))};
  if (living.empty()) return remains;
  if (!ids.empty()) {
    Command cancel{.words = {"sky", "jobs", "cancel", "--yes"}};
    cancel.words.insert(cancel.words.end(), ids.begin(), ids.end());
    remains.next = with_limits({std::move(cancel)}, action, deployment);
  }
  remains.next.push_back(sky_queue(action, deployment));
  return remains;
}

}  // namespace

std::unique_ptr<Engine> skypilot_engine() { return std::make_unique<SkyPilot>(); }

}  // namespace tw::launch
