// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/peers.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::soak {
namespace {

/// More than the longest soak can last.
constexpr Round kRoundsWithoutEnd = 100'000'000;
constexpr std::uint64_t kVectorValues = 128 << 10;
/// Slept, not computed: the soak leaves the cores to others.
constexpr std::uint64_t kSampleMs = 100;
constexpr Round kBetweenCheckpoints = 20;
constexpr std::uint64_t kSamplesOfAPeer = 4;
/// Rounds that a member may be behind by its log: they are read one after another.
constexpr Round kBehind = 1;
constexpr std::size_t kTail = 4000;
/// Peers from this number on live in a time namespace of their own instead of with a clock that is stepped.
constexpr std::uint64_t kFirstWithNamespace = 5;

std::string end_of(const std::string& text) {
  return text.size() > kTail ? "..." + text.substr(text.size() - kTail) : text;
}

}  // namespace

Peers::Peers(Options options, const Testbed& testbed, const Disks& disks)
    : options_(std::move(options)),
      testbed_(&testbed),
      disks_(&disks),
      history_(kSamplesOfAPeer * options_.members) {}

std::vector<std::string> Peers::words(std::uint64_t id, Place place) const {
  const auto setting = [](const char* key, const auto& value) { return fmt::format("{}={}", key, value); };
  std::vector<std::string> words = {
      "--batch", "1", "--values", std::to_string(kVectorValues), "--work-ms", std::to_string(kSampleMs)};
  words.insert(
      words.end(),
      {setting("id", id), setting("out", disks_->folder(place.host) + "/out"),
       setting("listen", testbed_->listen_address(place.host, place.slot)),
       setting("wait_for", options_.members), setting("token", options_.token), setting("progress", "line"),
       setting("training.target_batch_size", kSamplesOfAPeer * options_.members),
       setting("training.rounds", kRoundsWithoutEnd), setting("training.codec", "fp16"),
       setting("checkpoint.every", kBetweenCheckpoints),
       setting("checkpoint.folder", fmt::format("{}/checkpoints-{}", disks_->folder(place.host), id))});
  for (std::size_t host = 0; host < options_.members && !places_.empty(); ++host)
    if (place.slot != 0 || host != place.host)
      words.push_back(setting("join", testbed_->listen_address(host, 0)));
  return words;
}

std::vector<std::string> Peers::enter(std::uint64_t id, Place place, const SteppedClock& clock) const {
  std::vector<std::string> words = testbed_->enter(place.host);
  std::vector<std::string> more = clock.enter();
  if (has_time_namespace(id)) {
    const std::string offset_s = std::to_string(1000 * id + 77'777 * launches_);
    more = {"/usr/bin/unshare", "--time", "--monotonic", offset_s, "--boottime", offset_s};
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void Peers::launch(std::uint64_t id, Place place) {
  const std::string name = fmt::format("{}/peer-{}-{}", options_.folder, id, ++launches_);
  auto clock = std::make_unique<SteppedClock>(name + ".clock");
  auto program = std::make_unique<Program>(
      words(id, place),
      Program::Options{.output = name + ".txt", .enter = enter(id, place, *clock), .program = TW_TOY});
  places_[id] = place;
  running_.erase(id);
  running_.emplace(id, Running{place, std::move(clock), std::move(program), LineTail(name + ".txt")});
}

void Peers::kill(std::uint64_t id) {
  Running& peer = running_.at(id);
  peer.program->send(SIGKILL);
  peer.program->wait();
  read_event_log(id, peer);
  read_output(id, peer);
  running_.erase(id);
}

void Peers::dismiss(std::uint64_t id) {
  Running& peer = running_.at(id);
  peer.program->send(SIGTERM);
  leaving_.emplace(id, Leaving{std::move(peer), std::chrono::steady_clock::now() + kPatience});
  running_.erase(id);
}

void Peers::send(std::uint64_t id, int signal) {
  const auto found = running_.find(id);
  if (found != running_.end()) found->second.program->send(signal);
}

bool Peers::can_step_clock(std::uint64_t id) const {
  return SteppedClock::kCanStep && !has_time_namespace(id);
}

bool Peers::has_time_namespace(std::uint64_t id) const {
  return id >= kFirstWithNamespace && testbed_->is_up();
}

std::vector<std::uint64_t> Peers::ids() const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, peer] : running_) ids.push_back(id);
  return ids;
}

bool Peers::is_settled(std::uint64_t id) const {
  const auto found = running_.find(id);
  return found != running_.end() && found->second.last > 0 && found->second.last + kBehind >= newest_round();
}

Round Peers::newest_round() const {
  std::vector<Round> rounds = {0, 0};
  for (const auto& [id, peer] : running_) rounds.push_back(peer.last);
  std::sort(rounds.rbegin(), rounds.rend());
  return rounds[1];
}

std::size_t Peers::members() const {
  std::size_t most = 0;
  for (const auto& [id, peer] : running_) {
    if (is_settled(id)) most = std::max(most, peer.members);
  }
  return most;
}

void Peers::look() {
  for (auto& [id, peer] : running_) {
    read_event_log(id, peer);
    read_output(id, peer);
  }
  for (auto& [id, leaving] : leaving_) {
    read_event_log(id, leaving.peer);
    read_output(id, leaving.peer);
  }
  look_at_ends();
}

void Peers::look_at_ends() {
  std::erase_if(running_, [&](auto& item) {
    Program& program = *item.second.program;
    if (!program.ended()) return false;
    faults_.push_back(fmt::format("peer {} ended with {} and nothing was done to it: {}", item.first,
                                  program.wait(), end_of(program.output())));
    return true;
  });
  std::erase_if(leaving_, [&](auto& item) {
    Program& program = *item.second.peer.program;
    const bool late = std::chrono::steady_clock::now() > item.second.until;
    if (!program.ended() && !late) return false;
    if (!program.ended() || program.wait() != kGoesOn) {
      faults_.push_back(fmt::format("peer {} was told to leave and {}: {}", item.first,
                                    late ? "did not" : "failed", end_of(program.output())));
    }
    return true;
  });
}

void Peers::read_event_log(std::uint64_t id, Running& peer) {
  const std::string name = fmt::format("{}/out/events-{}", disks_->folder(peer.place.host), id);
  EventLog& log = event_logs_.try_emplace(name, EventLog{1, LineTail(name + ".jsonl")}).first->second;
  for (bool more = true; more;) {
    // Asked first: once there is a further part, nothing is added to this one.
    const std::string next = fmt::format("{}.{}.jsonl", name, log.part + 1);
    more = std::filesystem::exists(next);
    for (const std::string& line : log.tail.poll()) {
      // A full disk may tear a line.
      if (const auto entry = monitor::parse_json_line(line)) take_event(entry.value(), peer);
    }
    if (more) log = EventLog{log.part + 1, LineTail(next)};
  }
}

void Peers::take_event(const monitor::LogEntry& entry, Running& peer) {
  history_.see(entry);
  lines_.see(entry);
  const auto* restored = entry.event.as<event::Restore>();
  const bool behind = restored && restored->digest.empty();
  if (entry.event.as<event::Start>() || behind) peer.last = 0;
  const auto* commit = entry.event.as<event::Commit>();
  if (commit == nullptr) return;
  peer.last = entry.event.round;
  peer.members = commit->members;
}

void Peers::read_output(std::uint64_t id, Running& peer) {
  for (const std::string& line : peer.printed.poll()) lines_.see(fmt::format("peer {}", id), line);
}

void Peers::end() {
  for (const std::uint64_t id : ids()) dismiss(id);
  while (anybody_is_leaving()) {
    look();
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace tw::soak
