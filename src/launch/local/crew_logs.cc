// SPDX-License-Identifier: Apache-2.0
#include "launch/local/crew_logs.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/cause_text.h"
#include "base/result.h"

namespace tw::launch {

Result<CrewLogs> CrewLogs::open(const std::string& folder, world::Clock& clock, Script script) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{fmt::format("--out {}: cannot make this folder: {}", folder, cause_text(error))};
  TW_TRY(auto log,
         monitor::JsonEventLog::open(folder + "/" + monitor::event_log_name(PeerId{}), PeerId{}, clock));
  return CrewLogs(folder, clock, std::move(script), std::move(log));
}

PeerId CrewLogs::next_id() {
  while (std::filesystem::exists(path_of(PeerId{++last_id_}))) {
  }
  return PeerId{last_id_};
}

void CrewLogs::note_start(std::size_t number, PeerId id) {
  log(event::Start{}, id, script_.round());
  followed_.insert_or_assign(number, Followed{.id = id, .tail = monitor::EventLogTail(path_of(id))});
}

void CrewLogs::note_kill(std::size_t number, Round round) {
  log(event::Kill{}, followed_.at(number).id, round);
}

void CrewLogs::note_end(std::size_t number) {
  followed_.erase(number);
  script_.note_end(PeerId{number});
}

Status CrewLogs::follow() {
  for (auto& [number, followed] : followed_) {
    auto entries = followed.tail.poll();
    if (!entries) {
      const Error error = entries.error();
      note_end(number);
      return error;
    }
    for (monitor::LogEntry& entry : entries.value()) {
      if (const auto* start = entry.event.as<event::Start>()) {
        followed.address = start->address;
        followed.last_round = start->last_round.value_or(0);
        note_run(start->digest);
      }
      if (entry.event.as<event::Accumulate>()) followed.round = entry.event.round;
      entry.writer = PeerId{number};
      script_.note(entry);
    }
  }
  return Unit{};
}

std::string CrewLogs::place_of(std::size_t number) const {
  const auto found = followed_.find(number);
  if (found == followed_.end() || found->second.round == 0) return "";
  const auto& [round, last] = std::pair(found->second.round, found->second.last_round);
  return last == 0 ? fmt::format(" in round {}", round) : fmt::format(" in round {} of {}", round, last);
}

/// Another setting of the program makes another run, which only its peers know.
void CrewLogs::note_run(const std::string& run) {
  if (!run_.empty() || run.empty()) return;
  run_ = run;
  if (before_.run().empty() || before_.run() == run) return;
  news_ = fmt::format(
      "--out {}: this run, {}, is another one than before (another setting or model): {}. tw report, top and "
      "watch show the newest run alone; another --out keeps them apart",
      folder_, monitor::short_run(run), before_.others_than(run));
}

std::vector<std::string> CrewLogs::addresses() const {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> found;
  for (const auto& [number, followed] : followed_)
    if (!followed.address.empty() && found.size() < kMost) found.push_back(followed.address);
  return found;
}

void CrewLogs::log(world::Fact fact, PeerId about, Round round) {
  log_.emit({.at = clock_->now(), .round = round, .peer = about, .fact = std::move(fact)});
}

}  // namespace tw::launch
