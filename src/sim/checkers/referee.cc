// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/referee.h"

#include "sim/checkers/checkers.h"
#include "wire/frame.h"

namespace tw::sim {
namespace {

bool is_plan(const Frame& frame) {
  static const std::byte kType = encode(wire::Plan{}).head.bytes().front();
  return !frame.head.empty() && frame.head.bytes().front() == kType;
}

}  // namespace

Referee::Referee(const Rules& rules, const std::vector<std::string>& names)
    : checkers_(make_checkers(rules, ledger_, names).value()) {}

void Referee::on_sent(const Frame& frame) {
  if (!is_plan(frame)) return;
  const Result<wire::Message> message = wire::decode(frame);
  if (!message.ok()) return;  // tampered with
  const wire::Record& draft = std::get<wire::Plan>(message.value()).draft;
  drafts_.emplace(digest_of(draft), draft);
}

std::vector<wire::Record> Referee::open_drafts() const {
  const wire::Record* newest = ledger_.newest();
  std::vector<wire::Record> open;
  for (const auto& [digest, draft] : drafts_) {
    if (newest == nullptr || draft.round == newest->round + 1) open.push_back(draft);
  }
  return open;
}

std::vector<Violation> Referee::violations() const {
  std::vector<Violation> all = own_;
  for (const auto& checker : checkers_)
    all.insert(all.end(), checker->violations().begin(), checker->violations().end());
  return all;
}

}  // namespace tw::sim
