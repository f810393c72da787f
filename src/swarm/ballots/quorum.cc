// SPDX-License-Identifier: Apache-2.0
#include "swarm/ballots/quorum.h"

#include <algorithm>

#include "base/check.h"
#include "swarm/ballots/lineage.h"
#include "wire/frame.h"

namespace tw::swarm {

using wire::Member;

bool is_quorum(const std::vector<Member>& members, const std::set<PeerId>& present) {
  return is_quorum_of(ids_of(members), present);
}

bool is_quorum_of(const std::vector<PeerId>& members, const std::set<PeerId>& present) {
  const auto here = static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(), [&](PeerId peer) { return present.contains(peer); }));
  if (2 * here != members.size()) return 2 * here > members.size();
  return !members.empty() && present.contains(members.front());
}

std::vector<PeerId> ids_of(const std::vector<Member>& members) {
  std::vector<PeerId> ids;
  for (const Member& m : members) ids.push_back(m.peer);
  return ids;
}

const Member& ballot_owner(const std::vector<Member>& members, Ballot ballot) {
  TW_CHECK(!members.empty());
  return members[ballot % members.size()];
}

Ballot next_ballot(const std::vector<Member>& members, PeerId owner, Ballot above) {
  TW_CHECK(is_member(members, owner));
  Ballot ballot = above + 1;
  while (ballot_owner(members, ballot).peer != owner) ++ballot;
  return ballot;
}

void put_first(const std::set<PeerId>& anchors, std::vector<Member>& members) {
  std::stable_partition(members.begin(), members.end(),
                        [&](const Member& m) { return anchors.contains(m.peer); });
}

bool is_member(const std::vector<Member>& members, PeerId peer) {
  return std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.peer == peer; });
}

bool names(const std::vector<Member>& members, const Member& process) {
  return std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.is(process); });
}

wire::Record genesis(const Digest& run, const Digest& parameters, std::vector<Member> members) {
  wire::Record record;
  record.run = run;
  record.members = std::move(members);
  record.had_company = record.members.size() > 1;
  record.parameters = parameters;
  return record;
}

wire::Record begun_anew(const wire::Record& record, std::vector<Member> members) {
  wire::Record next = record;
  next.parent = digest_of(record);
  next.members = std::move(members);
  next.minority = true;
  next.last = false;
  continue_lineage(next, record);
  ++next.restarts;
  return next;
}

wire::Record restarted(const wire::Record& record, std::vector<Member> members) {
  wire::Record next = begun_anew(record, std::move(members));
  const bool had_counted = !record.minority && record.awaited.empty();
  if (had_counted) next.majority_samples -= std::min(next.majority_samples, record.samples);
  return next;
}

}  // namespace tw::swarm
