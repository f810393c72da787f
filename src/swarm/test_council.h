// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "swarm/ballots/quorum.h"
#include "swarm/ballots/test_records.h"
#include "swarm/lead.h"
#include "swarm/leases/work.h"
#include "wire/frame.h"

/// For tests of the leader's side of a round.
namespace tw::swarm {

using namespace std::chrono_literals;

/// One Lead and its members, joined without delay. Links fail when the test says so; gradients are Work that
/// is begun and finished; means are digests.
class Council {
 public:
  struct Setup {
    std::vector<std::uint64_t> members = {1, 2, 3};
    std::uint64_t leader = 1;
    Ballot ballot = 0;
    LeaseBook::Options lease{64, 4};
    Round rounds = 100;
    std::uint32_t wait_for = 0;
    Duration patience = 10s;
    Duration expected_reduce = 2s;
    std::map<std::uint64_t, std::string> sites{};
    DivisionOptions division{};
    Duration shortest_reduce{};
  };

  explicit Council(const Setup& setup)
      : sites(setup.sites), head(head_before(setup)), lead(options_of(setup), head, setup.ballot, kStart) {
    for (const std::uint64_t id : setup.members) {
      live.emplace(PeerId{id}, 0);
      works.try_emplace(id, Work(7));
    }
    lead.set_live(now, live);
  }

  Council() : Council(Setup{}) {}

  static std::vector<wire::Member> members_of(const Setup& setup) {
    std::vector<wire::Member> all = members(setup.members);
    for (wire::Member& m : all) {
      if (setup.sites.contains(m.peer.value)) m.site = setup.sites.at(m.peer.value);
    }
    return all;
  }

  /// Where batches are chosen, the round has as many samples as the one before.
  static wire::Record head_before(const Setup& setup) {
    wire::Record head = head_of(members_of(setup));
    if (setup.lease.chosen) head.batch = wire::BatchChoice{.samples = 64, .next = 64};
    return head;
  }

  static Lead::Options options_of(const Setup& setup) {
    Lead::Options options{member(setup.leader),  setup.lease,    12,
                          setup.rounds,          setup.wait_for, setup.patience,
                          setup.expected_reduce, setup.division};
    options.shortest_reduce = setup.shortest_reduce;
    return options;
  }

  void link(std::uint64_t id) {
    live.emplace(PeerId{id}, 0);
    works.try_emplace(id, Work(7));
    lead.set_live(now, live);
    carry();
  }

  void lose(std::uint64_t id) {
    live.erase(PeerId{id});
    lead.set_live(now, live);
    carry();
  }

  wire::Progress progress_of(std::uint64_t id) {
    wire::Progress progress;
    progress.round = 7;
    progress.ballot = 0;
    progress.parameters = parameters.contains(id) ? parameters.at(id) : kParameters;
    progress.samples_per_s = 100;
    progress.slots = works.at(id).progress();
    progress.leaving = leaving.contains(id);
    if (lines.contains(id)) progress.bandwidth = lines.at(id);
    if (wishes.contains(id)) progress.settings = wishes.at(id);
    progress.wants_more = works.at(id).wants_more() && !progress.leaving && !candidates.contains(id);
    return progress;
  }

  void tells(std::uint64_t id, bool gave_back = false) {
    if (!live.contains(PeerId{id})) return;
    wire::Progress progress = progress_of(id);
    progress.gave_back = gave_back;
    const std::string site = sites.contains(id) ? sites.at(id) : "";
    lead.on_progress({PeerId{id}, member(id).address, live.at(PeerId{id}), site}, progress);
    carry();
  }

  void everybody_tells() {
    for (const auto& [id, work] : works) tells(id);
  }

  void works_once(std::uint64_t id) {
    Work& work = works.at(id);
    if (!live.contains(PeerId{id}) || !work.begin()) return;
    work.finish(1);
    tells(id);
  }

  /// Everybody works until there is a plan newer than `version`.
  const wire::Plan& work_until_called(std::uint32_t version = 0) {
    everybody_tells();
    for (int i = 0; i < 100 && last_plan.version <= version; ++i) {
      for (const auto& [id, work] : works) works_once(id);
    }
    EXPECT_GT(last_plan.version, version) << "no call";
    return last_plan;
  }

  void vote(std::uint64_t id, const Digest& mean = kMean) {
    lead.on_vote(PeerId{id}, {last_plan.step(), last_plan.ballot, last_plan.version, mean});
    carry();
  }

  void promise(std::uint64_t id, std::optional<wire::Plan> plan = {},
               std::optional<wire::Accepted> accepted = {}) {
    wire::Progress progress = progress_of(id);
    progress.called = accepted && !lost_its_mean.contains(id);
    lead.on_promise(PeerId{id}, {lead.ballot(), progress, std::move(plan), std::move(accepted)});
    carry();
  }

  void report_stall(std::uint64_t from, std::uint64_t suspect, wire::StallCause cause) {
    lead.on_report(PeerId{from}, {{7}, PeerId{suspect}, cause});
  }

  void slow(std::uint64_t from, std::uint64_t suspect, wire::StallCause cause, Range missing) {
    lead.on_report(PeerId{from}, {{7}, PeerId{suspect}, cause, RangeSet(missing)});
  }

  void after(Duration duration) {
    for (const Instant end = now + duration; now < end;) {
      now += 100ms;
      lead.step(now);
      carry();
    }
  }

  /// Peers that were declared lost, in order.
  std::vector<std::uint64_t> left_out() {
    for (world::Event& event : lead.take_events()) events.push_back(std::move(event));
    std::vector<std::uint64_t> ids;
    for (const world::Event& event : events) {
      if (event.phase() == world::Phase::lost) ids.push_back(event.peer->value);
    }
    return ids;
  }

  std::map<std::uint64_t, std::string> sites;
  wire::Record head;
  Lead lead;
  Instant now = kStart;
  Lead::Live live{};
  std::set<std::uint64_t> leaving{};
  std::set<std::uint64_t> candidates{};
  std::set<std::uint64_t> deaf{};           ///< they ignore recalls
  std::set<std::uint64_t> lost_its_mean{};  ///< they voted, then took the state anew
  std::map<std::uint64_t, Digest> parameters{};
  std::map<std::uint64_t, std::string> wishes{};  ///< settings that they want for the update
  std::map<std::uint64_t, wire::Bandwidth> lines{};
  std::map<std::uint64_t, Work> works{};
  std::map<std::uint64_t, RangeSet> leased{};
  std::map<std::uint64_t, wire::Plan> plans{};
  wire::Plan last_plan{};
  std::multiset<std::uint64_t> asked{};  ///< for a promise
  std::vector<world::Event> events{};

 private:
  void carry() {
    for (const wire::Envelope& envelope : lead.take_messages()) {
      const std::uint64_t id = envelope.to.value;
      if (const auto* plan = std::get_if<wire::Plan>(&envelope.message)) plans[id] = last_plan = *plan;
      if (std::holds_alternative<wire::Prepare>(envelope.message)) asked.insert(id);
      if (!live.contains(envelope.to)) continue;
      if (const auto* lease = std::get_if<wire::Lease>(&envelope.message)) {
        works.at(id).lease(lease->slot, lease->microbatches);
        leased[id].add(lease->microbatches);
      }
      if (std::holds_alternative<wire::Recall>(envelope.message) && !deaf.contains(id)) {
        works.at(id).drop_queued();
        tells(id, true);
      }
    }
  }
};

}  // namespace tw::swarm
