// SPDX-License-Identifier: Apache-2.0
#include "launch/local/crew.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>

#include "launch/exit_codes.h"
#include "launch/local/verdict.h"

namespace tw::launch {
namespace {

constexpr int kLookEvery_ms = 50;
/// Well below the time of a round of the smallest models, so that the script is on time.
constexpr int kFollowScriptEvery_ms = 4;
/// How long the processes that another one has left behind may take to end.
constexpr Duration kRestHas = std::chrono::seconds(3);

}  // namespace

Crew::Crew(world::Clock& clock, Options options) : options_(std::move(options)), clock_(clock) {}

Result<int> Crew::run() {
  if (!options_.out_folder.empty()) {
    TW_TRY(auto logs, CrewLogs::open(options_.out_folder, clock_, std::move(options_.script)));
    logs_.emplace(std::move(logs));
  }
  for (std::vector<Variable>& environment : options_.environments) add(std::move(environment), false);
  while (!std::ranges::all_of(processes_, &Process::ended)) {
    wait_for_news();
    pass_on_signals();
    follow_logs();
    wake_stopped();
    for (Process& process : processes_) reap(process);
    watch_the_rest();
    end_those_that_wait();
    end_late_comers();
  }
  end_the_rest();
  return outcome();
}

void Crew::add(std::vector<Variable> environment, bool later) {
  const std::size_t number = processes_.size() + 1;
  const std::string verdict =
      options_.folder.empty() ? "" : fmt::format("{}/verdict-{}", options_.folder, number);
  processes_.push_back({.program = {number, std::move(environment), verdict}, .came_later = later});
  start(processes_.back(), {});
}

/// Each start is another peer of the run: an id is never used again.
void Crew::start(Process& process, std::vector<Variable> more) {
  if (options_.begins) {
    const PeerId id = logs_ ? logs_->next_id() : PeerId{++ids_};
    more.emplace_back("TRADEWIND_ID", to_string(id));
    if (process.came_later && has_begun() && logs_ && !logs_->addresses().empty())
      more.emplace_back("TRADEWIND_JOIN", fmt::format("{}", fmt::join(logs_->addresses(), ",")));
    if (logs_) logs_->note_start(process.program.number(), id);
  }
  const Status started = process.program.start(options_.words, more);
  if (started) return;
  options_.say(started.error().message);
  first_failure_ = first_failure_.value_or(1);
  process.ended = true;
}

void Crew::wait_for_news() {
  std::vector<pollfd> polled;
  for (const Process& process : processes_)
    polled.push_back({process.ended ? -1 : process.program.output(), POLLIN, 0});
  const bool acts = logs_ && !logs_->script().is_over();
  poll(polled.data(), polled.size(), acts ? kFollowScriptEvery_ms : kLookEvery_ms);  // a signal ends it
}

void Crew::read_logs() {
  if (const Status read = logs_->follow(); !read) options_.say(read.error().message);
  if (const std::string news = logs_->take_news(); !news.empty()) options_.say(news);
}

void Crew::follow_logs() {
  if (!logs_) return;
  read_logs();
  if (!signals_.any()) act(logs_->due());
}

void Crew::act(const Script::Due& due) {
  for (Process& process : processes_) {
    const PeerId number{process.program.number()};
    for (const auto& [victim, round] : due.kills)
      if (victim == number) kill_by_script(process, round);
    for (const Stop& stop : due.stops)
      if (stop.victim == number) stop_by_script(process, stop);
  }
  for (const Round round : due.joins) {
    add(options_.newcomer(processes_.size() + 1), true);
    options_.say(fmt::format("round {}: process {} is started, which joins", round, processes_.size()));
  }
}

void Crew::kill_by_script(Process& process, Round round) {
  process.was_ended = true;
  logs_->note_kill(process.program.number(), round);
  process.program.send_signal(SIGKILL);
  options_.say(fmt::format("round {}: process {} is killed", round, process.program.number()));
}

void Crew::stop_by_script(Process& process, const Stop& stop) {
  process.continues_at = clock_.now() + stop.lasts;
  process.program.send_signal(SIGSTOP);
  options_.say(fmt::format("round {}: process {} stands still for {:g} s", stop.round,
                           process.program.number(), to_seconds(stop.lasts)));
}

void Crew::wake_stopped() {
  for (Process& process : processes_) {
    if (!process.continues_at || clock_.now() < *process.continues_at) continue;
    process.continues_at.reset();
    process.program.send_signal(SIGCONT);
  }
}

/// With all processes, which have groups of their own; those that the script has stopped stay so.
void Crew::stand_still() {
  const auto send_all = [&](int signal) {
    for (const Process& process : processes_)
      if (!process.ended && !process.continues_at) process.program.send_signal(signal);
  };
  send_all(SIGSTOP);
  CrewSignals::stop_here();
  send_all(SIGCONT);
}

void Crew::pass_on_signals() {
  if (CrewSignals::take_stop()) stand_still();
  for (const int signal : signals_.take(clock_.now()))
    for (Process& process : processes_) send(process, signal);
  if (!signals_.kills(clock_.now())) return;
  for (Process& process : processes_) send(process, SIGKILL);
}

/// To a process, or to what it left behind; one that stands still goes on first.
void Crew::send(Process& process, int signal) {
  if (process.ended) {
    process.program.send_signal_to_rest(signal);
    return;
  }
  if (process.continues_at) process.program.send_signal(SIGCONT);
  process.continues_at.reset();
  process.program.send_signal(signal);
}

void Crew::print_lines(Process& process) const {
  for (const std::string& line : process.program.take_lines())
    options_.out(fmt::format("[{}] {}", process.program.number(), line));
}

void Crew::reap(Process& process) {
  if (process.ended) return;
  const std::optional<int> ending = process.program.ending();
  print_lines(process);
  if (!ending) return;
  std::string place;
  if (logs_) {
    read_logs();  // its last lines
    place = logs_->place_of(process.program.number());
    logs_->note_end(process.program.number());
  }
  process.program.send_signal_to_rest(SIGTERM);
  if (process.program.ended_by() > 0 && starts_again(process, process.program.ended_by())) return;
  process.ended = true;
  judge(process, *ending, place);
}

/// For the end of a message about a signal that this crew did not send.
std::string Crew::cause_of(int signal) {
  return signal == SIGKILL && memory_kills_.take() ? ": memory ran out here, and the kernel killed a process"
                                                   : "";
}

bool Crew::starts_again(Process& process, int signal) {
  if (process.was_ended || signals_.any() || process.restarts >= options_.restarts) return false;
  if (well_ > 0) {
    options_.say(fmt::format("process {} was ended by signal {}; the run is over, so it is not started again",
                             process.program.number(), signal));
    return false;
  }
  ++process.restarts;
  process.came_later = true;
  options_.say(fmt::format("process {} was ended by signal {}{}; starting it again", process.program.number(),
                           signal, cause_of(signal)));
  // Words of a first start, "" as if they were not there.
  std::vector<Variable> more = {{"TRADEWIND_ANEW", ""}, {"TRADEWIND_NO_REJOIN", ""}};
  if (has_begun()) more.emplace_back("TRADEWIND_REJOIN", "1");
  start(process, std::move(more));
  return !process.ended;
}

/// place: where it was in the run, for messages.
void Crew::judge(Process& process, int ending, const std::string& place) {
  if (process.was_ended) return;
  const int signal = process.program.ended_by(), code = code_of(process, ending);
  const std::string verdict = process.program.verdict();
  if (code == 0 && saw_the_end(verdict)) ++well_;
  if (code == 0 && broke_off(verdict)) {
    ++early_;
    if (!signals_.any())
      options_.say(fmt::format("process {} ended with exit code 0{}; the run is not complete",
                               process.program.number(), place));
  }
  if (code == kGoesOn) ++(verdict == "unreached" ? unreached_ : left_);
  if (code == 0 || code == kGoesOn) return;
  if (process.came_later && signal == 0 && (waits(verdict) || verdict == "over")) {
    process.late = code;
    return;
  }
  if (!signals_.any() && !signals_.at_once()) say_end(process, ending, code);
  count(code, signal > 0);
  if (!has_begun()) missing_ = process.program.number();
}

void Crew::say_end(const Process& process, int ending, int code) {
  const std::size_t number = process.program.number();
  const int signal = process.program.ended_by();
  if (ending == 0 && never_joined(process)) {
    options_.say(fmt::format(
        "process {} ended with exit code 0 and never took part in the run: does it call tradewind.join() and "
        "step()?",
        number));
  } else {
    const std::string why =
        signal > 0 ? cause_of(signal) : std::string(reason_of(code, process.program.verdict()));
    options_.say(fmt::format("process {} ended with {} {}{}", number, signal > 0 ? "signal" : "exit code",
                             signal > 0 ? signal : code, why));
  }
}

/// A failure; one of the program says more than one by a signal.
void Crew::count(int code, bool lost) {
  if (!first_failure_ || (*first_failure_ >= 128 && !lost)) first_failure_ = code;
}

bool Crew::has_begun() {
  begun_ = begun_ || std::ranges::any_of(processes_, [](const Process& process) {
             return took_part(process.program.verdict());
           });
  return begun_;
}

/// Nobody else can take the place of one that never joined. The others may come to wait for it later.
void Crew::end_those_that_wait() {
  const auto is_waiting = [](const Process& process) {
    return !process.ended && waits(process.program.verdict());
  };
  if (missing_ == 0 || !options_.begins || signals_.any() || signals_.at_once() || has_begun()) return;
  const auto left = static_cast<std::size_t>(std::ranges::count(processes_, false, &Process::ended));
  if (left >= options_.waits_for || !std::ranges::any_of(processes_, is_waiting)) return;
  options_.say(
      fmt::format("the run has not begun, and waited for process {}: the others are ended, too", missing_));
  signals_.end_all(clock_.now());
  for (Process& process : processes_) send(process, SIGTERM);
}

/// A group that is empty is forgotten at once: its number may become another's.
void Crew::watch_the_rest() {
  subreaper_.reap([this](pid_t pid) {
    return std::ranges::any_of(processes_, [pid](const Process& one) { return one.program.is(pid); });
  });
  for (Process& process : processes_) {
    if (!process.ended) continue;
    process.program.send_signal_to_rest(0);
    print_lines(process);
  }
}

/// What a process started is part of its peer: it had SIGTERM when that one ended.
void Crew::end_the_rest() {
  const Instant until = clock_.now() + kRestHas;
  const auto stays = [&](Process& process) { return rest_has_time(process, until); };
  while (std::ranges::any_of(processes_, stays)) {
    poll(nullptr, 0, kLookEvery_ms);
    pass_on_signals();
    watch_the_rest();
  }
  watch_the_rest();  // its last lines
  for (Process& process : processes_)
    if (process.program.send_signal_to_rest(SIGKILL))
      options_.say(fmt::format("process {}: what it had started ran on after its end, and is killed",
                               process.program.number()));
}

/// Behind a wrapper (`sh -c`) that died of a signal which was passed on, the rest is the peer itself: it has
/// the time that the wrapper would have had.
bool Crew::rest_has_time(Process& process, Instant until) {
  if (!process.program.send_signal_to_rest(0)) return false;
  const bool is_the_peer = signals_.any() && process.program.ended_by() > 0;
  return is_the_peer ? !signals_.kills(clock_.now()) : clock_.now() < until;
}

/// Processes that were still on their way into the run when its last peer completed it: nobody is left to let
/// them in.
void Crew::end_late_comers() {
  const auto trains = [](const Process& process) {
    return !process.ended && !(process.came_later && !took_part(process.program.verdict()));
  };
  if (!options_.begins || well_ == 0 || signals_.any()) return;
  if (std::ranges::any_of(processes_, trains)) return;
  for (Process& process : processes_) {
    if (process.ended || process.was_ended) continue;
    process.was_ended = true;
    send(process, SIGKILL);
    options_.say(fmt::format("process {} came too late: the run was over before it had the state",
                             process.program.number()));
  }
}

/// A run that is over cannot be joined any more.
void Crew::count_late_failures() {
  for (const Process& process : processes_) {
    if (!process.late) continue;
    const std::size_t number = process.program.number();
    if (well_ > 0) {
      options_.say(fmt::format("process {} came {} the end of the run; that is no failure", number,
                               process.restarts > 0 ? "back after" : "after"));
      continue;
    }
    options_.say(fmt::format("process {} ended with exit code {}", number, *process.late));
    count(*process.late, false);
  }
}

bool Crew::never_joined(const Process& process) const {
  const std::string verdict = process.program.verdict();
  return options_.must_join && (verdict.empty() || waits(verdict));
}

/// kGoesOn also where the program does not say it by its own exit code.
int Crew::code_of(const Process& process, int ending) const {
  if (const int signal = process.program.ended_by(); signal > 0) {
    // Before the program had a handler: it had not joined.
    const bool passed_on = signals_.any() && signal != SIGINT && signal != SIGKILL;
    return passed_on ? kGoesOn : ending;
  }
  // An interpreter that loads its modules has its own code for an interrupt.
  if (ending != 0 && signals_.came(SIGINT) && never_joined(process)) return 128 + SIGINT;
  if (ending == 0 && !signals_.any() && never_joined(process)) return 1;
  return exit_code(ending, process.program.verdict());
}

int Crew::outcome() {
  count_late_failures();
  if (logs_ && !signals_.any())
    for (const std::string& pending : logs_->script().pending())
      options_.say(pending + " did not come about: the run was over before");
  if (std::ranges::all_of(processes_, &Process::was_ended)) {
    options_.say("all processes were killed: none was left to finish the run");
    return 1;
  }
  if (well_ > 0 && !signals_.any() && first_failure_ >= 128)
    return 0;  // those that were lost are why it is here
  const bool unfinished = early_ > 0 && well_ == 0 && !signals_.any();
  const bool goes_on = left_ > 0 || (unreached_ > 0 && !unfinished);
  if (goes_on && well_ == 0 && !first_failure_) return kGoesOn;
  return first_failure_.value_or(unfinished ? 1 : 0);
}

}  // namespace tw::launch
