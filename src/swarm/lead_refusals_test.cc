// SPDX-License-Identifier: Apache-2.0
#include "swarm/test_council.h"

namespace tw::swarm {
namespace {

// long_rounds 998996828197: one peer computed for 2,361 s what eight had done together, and seven looked on.
TEST(LeadRefusals, of_most_peers_end_the_first_ballot_of_a_leader) {
  for (const bool first : {true, false}) {
    Council council({.members = {1, 2, 3, 4, 5}, .ballot = first ? 0U : 5U, .lease = {640, 4, true}});
    for (const std::uint64_t id : {1, 2, 3, 4, 5}) council.promise(id);
    council.work_until_called();
    for (const std::uint64_t id : {2, 3}) council.report_stall(id, id, wire::StallCause::owes_contribution);
    council.after(100ms);
    EXPECT_FALSE(council.lead.resigned()) << "three of five go on";
    council.report_stall(4, 4, wire::StallCause::owes_contribution);
    council.after(100ms);
    EXPECT_EQ(first, council.lead.resigned()) << "asked once more, they may do it again";
  }
}

}  // namespace
}  // namespace tw::swarm
