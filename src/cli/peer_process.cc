// SPDX-License-Identifier: Apache-2.0
#include "cli/peer_process.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "host/address.h"
#include "host/allocation.h"
#include "host/cpu_time.h"

namespace tw {

namespace {

constexpr Duration kLookAtSelfEvery = std::chrono::milliseconds(10);
/// How long the last messages may take to leave.
constexpr Duration kFarewell = std::chrono::seconds(3);
/// What a 1 GiB burst held takes 0.5 s of CPU time to be cleared by the kernel when it is used again.
constexpr Duration kReturnMemoryEvery = std::chrono::minutes(5);

}  // namespace

PeerProcess::PeerProcess(PeerOptions options, std::unique_ptr<Trainer> trainer, SessionObserver* observer)
    : options_(std::move(options)),
      network_(loop_, options_.session.self, random_,
               [this](Cause cause, const std::string& what) {
                 emit({.at = loop_.now(), .phase = Phase::refuse, .why = what, .cause = cause});
               },
               {.tls = options_.tls.get(), .most_streams = options_.most_streams}),
      trainer_(std::move(trainer)),
      compute_(loop_, [this](const std::string& what) { fail("training failed: " + what); }),
      disk_(loop_, [this](const std::string& what) { fail("the disk work failed: " + what); }),
      session_({.clock = loop_,
                .network = network_,
                .files = files_,
                .compute = compute_,
                .disk = disk_,
                .events = *this},
               options_.session, *trainer_, observer) {}

int PeerProcess::run() {
  if (const Status opened = open_log(); !opened) return complain(opened.error().message, kFailed);
  loop_.on_signal([this](int) { on_signal(); });
  const Result<std::string> address = session_.start();
  if (!address) return complain(address.error().message, kFailed);
  show_how_to_join(address.value());
  if (options_.directory && !address.value().empty()) options_.directory->announce(loop_, address.value());
  look();
  return_memory_now_and_then();
  loop_.run();

  const SessionView view = session_.view();
  const std::string& failure = failure_.empty() ? view.failure : failure_;
  say_farewell(failure.empty() ? view.ended : failure);
  if (log_ && log_->trouble())
    complain(fmt::format("{}; the last {} events are not in it", log_->trouble()->message,
                         log_->trouble()->missing),
             kDone);
  if (signals_ > 1) std::_Exit(kInterrupted);  // waits for no work under way
  if (!failure.empty()) return complain(failure, kFailed);
  const std::string after =
      signals_ > 0 ? fmt::format(", {:.2f} s after the signal", to_seconds(loop_.now() - signalled_at_)) : "";
  say(view.ended + after);
  return kDone;
}

void PeerProcess::return_memory_now_and_then() {
  loop_.at(loop_.now() + kReturnMemoryEvery, [this] {
    return_freed_memory();
    return_memory_now_and_then();
  });
}

Status PeerProcess::open_log() {
  if (options_.out.empty()) return Unit{};
  if (Status made = files_.make_folder(options_.out); !made) return made;
  const std::string path = options_.out + "/" + event_log_name(options_.session.self);
  auto log = JsonEventLog::open(path, options_.session.self, loop_, options_.log_limits);
  if (!log) return log.error();
  log_ = std::move(log).value();
  return Unit{};
}

/// What averaging a round costs lies between its call and its commit.
Event PeerProcess::completed(Event event) const {
  if (event.phase == Phase::start && !options_.tls) event.numbers.emplace_back("insecure", 1);
  if (event.phase != Phase::call && event.phase != Phase::commit) return event;
  event.numbers.emplace_back("cpu_s", cpu_seconds());
  event.numbers.emplace_back("kernel_s", kernel_seconds());
  event.numbers.emplace_back("peak_memory", peak_memory_bytes());
  event.numbers.emplace_back("bytes_sent", static_cast<double>(network_.total().sent));
  return event;
}

void PeerProcess::show_how_to_join(const std::string& address) {
  if (!options_.tls) say("without TLS (--insecure): anybody on the network can read and change this run");
  if (address.empty()) return say("dials others, and listens nowhere");
  if (options_.directory) {
    const Address here{parse_address(address).value().host, options_.directory->port()};
    say("others find this run with: --bootstrap " + to_string(here));
  }
  if (!options_.session.join.empty()) return say("listening on " + address);
  if (options_.admission.empty())
    return say("trains alone; for company: tw init FOLDER, tw train --run FOLDER");
  say(fmt::format("others join with: tw train {} --join {} {}", options_.run_file, address,
                  options_.admission));
}

void PeerProcess::emit(const Event& event) {
  if (event.phase != Phase::refuse) return tell(event);
  if (const auto first = refusals_.take(event)) tell(*first);
}

void PeerProcess::tell(const Event& event) {
  if (log_) log_->emit(completed(event));
  if (options_.quiet) return;
  if (const auto line = progress_.line_for(event)) say(*line);
}

void PeerProcess::say(const std::string& line) const {
  if (options_.quiet) return;
  show_news(printable_line(line));
}

void PeerProcess::on_signal() {
  ++signals_;
  if (signals_ == 1) {
    signalled_at_ = loop_.now();
    say("leaving after this round; once more to leave at once");
  }
  session_.leave();
  if (signals_ > 1) loop_.stop();
}

void PeerProcess::look() {
  tell_of_log();
  for (const Event& refusals : refusals_.due(loop_.now())) tell(refusals);
  if (session_.finished()) return loop_.stop();
  loop_.at(loop_.now() + kLookAtSelfEvery, [this] { look(); });
}

void PeerProcess::tell_of_log() {
  if (!log_) return;
  if (const auto line = log_watch_.line(loop_.now(), log_->trouble())) complain(*line, kDone);
}

void PeerProcess::fail(const std::string& why) {
  failure_ = why;
  loop_.stop();
}

void PeerProcess::say_farewell(const std::string& why) {
  if (signals_ < 2) {
    for (const Member& member : session_.members()) network_.close(member.peer);
    loop_.run_until([this] { return network_.flushed() || signals_ > 1; }, kFarewell);
  }
  for (const Event& refusals : refusals_.rest()) tell(refusals);
  const LinkBytes bytes = network_.total();
  emit({.at = loop_.now(),
        .phase = Phase::stop,
        .round = session_.view().round,
        .why = why,
        .numbers = {{"bytes_sent", static_cast<double>(bytes.sent)},
                    {"bytes_received", static_cast<double>(bytes.received)}}});
}

}  // namespace tw
