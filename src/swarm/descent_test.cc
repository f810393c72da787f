// SPDX-License-Identifier: Apache-2.0
#include "swarm/descent.h"

#include "swarm/quorum.h"
#include "swarm/test_records.h"
#include "wire/frame.h"

namespace tw {
namespace {

Record history_of(const std::vector<Member>& members, Round rounds) {
  Record record = genesis(digest_of(std::string("run")), digest_of(std::string("seed")), members);
  for (Round round = 1; round <= rounds; ++round) {
    Record next = record;
    next.round = round;
    next.parent = digest_of(record);
    record = next;
  }
  return record;
}

TEST(Descent, lone_history_gives_way_to_one_that_had_members_however_long_it_is) {
  const Record lone = history_of(members({1}), 100), company = history_of(members({1, 2}), 3);
  EXPECT_EQ(true, gives_way_by_descent(lone, company));
  EXPECT_EQ(false, gives_way_by_descent(company, lone));
}

TEST(Descent, history_whose_members_are_gone_had_them_all_the_same) {
  Record survivor = history_of(members({1, 2}), 3);
  survivor.members = members({2});
  survivor.minority = true;
  EXPECT_EQ(true, gives_way_by_descent(history_of(members({1}), 100), survivor));
}

TEST(Descent, record_that_was_begun_anew_goes_before_the_former_one) {
  const Record record = history_of(members({1, 2}), 5);
  const Record anew = restarted(record, members({3}));
  EXPECT_EQ(true, gives_way_by_descent(record, anew));
  EXPECT_EQ(false, gives_way_by_descent(anew, record));
}

TEST(Descent, decides_nothing_between_histories_that_both_had_members_or_both_did_not) {
  EXPECT_EQ(std::nullopt,
            gives_way_by_descent(history_of(members({1, 2}), 4), history_of(members({2, 3}), 9)));
  EXPECT_EQ(std::nullopt, gives_way_by_descent(history_of(members({1}), 4), history_of(members({2}), 4)));
}

}  // namespace
}  // namespace tw
