// SPDX-License-Identifier: Apache-2.0
#include "peer/peer.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "host/address.h"
#include "host/allocation.h"
#include "host/cpu_time.h"

namespace tw::peer {
namespace {

constexpr Duration kLookAtSelfEvery = std::chrono::milliseconds(10);
/// How long the last messages may take to leave.
constexpr Duration kFarewell = std::chrono::seconds(3);
/// What a 1 GiB burst held takes 0.5 s of CPU time to be cleared by the kernel when it is used again.
constexpr Duration kReturnMemoryEvery = std::chrono::minutes(5);

}  // namespace

Peer::Peer(host::Loop& loop, Options options, Front front)
    : loop_(loop),
      options_(std::move(options)),
      front_(std::move(front)),
      network_(loop_, options_.session.self, random_,
               [this](world::Cause cause, const std::string& what) {
                 emit({.at = loop_.now(), .phase = world::Phase::refuse, .why = what, .cause = cause});
               },
               {.tls = options_.tls.get(), .most_streams = options_.most_streams}),
      disk_(loop_, [this](const std::string& what) { fail("the disk work failed: " + what); }) {}

Peer::Peer(host::Loop& loop, world::Executor& compute, Options options, Front front, train::Trainer& trainer)
    : Peer(loop, std::move(options), std::move(front)) {
  session_.emplace(doors(compute), options_.session, trainer, front_.decisions);
}

Peer::Peer(host::Loop& loop, world::Executor& compute, Options options, Front front,
           std::unique_ptr<train::Learner> learner)
    : Peer(loop, std::move(options), std::move(front)) {
  session_.emplace(doors(compute), options_.session, std::move(learner), front_.decisions);
}

train::Doors Peer::doors(world::Executor& compute) {
  return {.clock = loop_,
          .network = network_,
          .files = files_,
          .compute = compute,
          .disk = disk_,
          .events = *this};
}

Result<std::string> Peer::start() {
  if (const Status opened = open_log(); !opened) return opened.error();
  Result<std::string> address = session_->start();
  if (!address) return address;
  address_ = address.value();
  if (options_.directory && !address_.empty()) options_.directory->announce(loop_, address_);
  at(loop_.now(), &Peer::look);
  at(loop_.now() + kReturnMemoryEvery, &Peer::return_memory);
  return address;
}

Status Peer::open_log() {
  if (options_.out.empty()) return Unit{};
  if (Status made = files_.make_folder(options_.out); !made) return made;
  const PeerId self = options_.session.self;
  auto log = monitor::JsonEventLog::open(options_.out + "/" + monitor::event_log_name(self), self, loop_,
                                         options_.log_limits);
  if (!log) return log.error();
  log_ = std::move(log).value();
  return Unit{};
}

void Peer::leave() {
  ++asked_to_leave_;
  session_->leave();
  if (ends_at_once()) end();
}

void Peer::fail(const std::string& why) {
  TW_CHECK(!why.empty());
  failure_ = why;
  end();
}

std::string Peer::failure() const { return failure_.empty() ? view().failure : failure_; }

std::string Peer::meeting_point() const {
  if (!options_.directory || address_.empty()) return "";
  return to_string(host::Address{host::parse_address(address_).value().host, options_.directory->port()});
}

void Peer::farewell() {
  const std::string failed = failure();
  const std::string why = failed.empty() ? view().ended : failed;
  if (!ends_at_once()) {
    for (const wire::Member& member : session_->members()) network_.close(member.peer);
    loop_.run_until([this] { return network_.flushed() || ends_at_once(); }, kFarewell);
  }
  for (const world::Event& refusals : refusals_.rest()) tell(refusals);
  const host::LinkBytes bytes = network_.total();
  emit({.at = loop_.now(),
        .phase = world::Phase::stop,
        .round = view().round,
        .why = why,
        .numbers = {{"bytes_sent", static_cast<double>(bytes.sent)},
                    {"bytes_received", static_cast<double>(bytes.received)}}});
  if (!log_ || !log_->trouble()) return;
  warn(fmt::format("{}; the last {} events are not in it", log_->trouble()->message,
                   log_->trouble()->missing));
}

void Peer::emit(const world::Event& event) {
  if (event.phase != world::Phase::refuse) return tell(event);
  if (const auto first = refusals_.take(event)) tell(*first);
}

void Peer::tell(const world::Event& event) {
  if (log_) log_->emit(completed(event));
  if (front_.shown != nullptr) front_.shown->emit(event);
}

/// What averaging a round costs lies between its call and its commit.
world::Event Peer::completed(world::Event event) const {
  if (event.phase == world::Phase::start && !options_.tls) event.numbers.emplace_back("insecure", 1);
  if (event.phase != world::Phase::call && event.phase != world::Phase::commit) return event;
  event.numbers.emplace_back("cpu_s", host::cpu_seconds());
  event.numbers.emplace_back("kernel_s", host::kernel_seconds());
  event.numbers.emplace_back("peak_memory", host::peak_memory_bytes());
  event.numbers.emplace_back("bytes_sent", static_cast<double>(network_.total().sent));
  return event;
}

void Peer::at(Instant when, void (Peer::*call)()) {
  loop_.at(when, life_.tie([this, call] { (this->*call)(); }));
}

void Peer::look() {
  if (log_)
    if (const auto line = log_watch_.line(loop_.now(), log_->trouble())) warn(*line);
  for (const world::Event& refusals : refusals_.due(loop_.now())) tell(refusals);
  if (session_->finished()) return end();
  at(loop_.now() + kLookAtSelfEvery, &Peer::look);
}

void Peer::return_memory() {
  host::return_freed_memory();
  at(loop_.now() + kReturnMemoryEvery, &Peer::return_memory);
}

void Peer::warn(const std::string& line) const {
  if (front_.warn) front_.warn(line);
}

void Peer::end() const {
  if (front_.over) front_.over();
}

}  // namespace tw::peer
