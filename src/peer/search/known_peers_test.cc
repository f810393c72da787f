// SPDX-License-Identifier: Apache-2.0
#include "peer/search/known_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "host/system/temporary_folder.h"

namespace tw::peer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Digest kTraining{3, 4};

class KnownPeersOf : public testing::Test {
 protected:
  KnownPeers of(std::uint64_t self, const Digest& training = kTraining) const {
    return {folder_.path(), PeerId{self}, training};
  }

  static void save(const KnownPeers& known) { std::ofstream(known.path()) << known.text(); }

  static std::vector<std::string> addresses(const KnownPeers& known) {
    std::vector<std::string> all;
    for (const wire::Member& member : known.all()) all.push_back(member.address);
    return all;
  }

  const host::TemporaryFolder folder_;
};

TEST_F(KnownPeersOf, a_former_process_are_there_after_a_restart_the_last_ones_first) {
  KnownPeers before = of(1);
  EXPECT_TRUE(before.see({{PeerId{1}, "a:1"}, {PeerId{2}, "b:2"}, {PeerId{3}, "c:3"}}));
  EXPECT_FALSE(before.see({{PeerId{2}, "b:2"}})) << "nothing is new";
  EXPECT_TRUE(before.see({{PeerId{3}, "c:4"}})) << "it moved";
  save(before);
  EXPECT_THAT(addresses(of(1)), ElementsAre("c:4", "b:2"));
  EXPECT_THAT(addresses(of(7)), ElementsAre("c:4", "b:2")) << "under another id, too";
}

TEST_F(KnownPeersOf, itself_are_newer_to_it_than_those_of_others) {
  KnownPeers own = of(1), other = of(2);
  own.see({{PeerId{3}, "c:2"}});
  other.see({{PeerId{3}, "c:1"}, {PeerId{4}, "d:4"}});
  save(own);
  save(other);
  EXPECT_THAT(addresses(of(1)), ElementsAre("c:2", "d:4"));
}

TEST_F(KnownPeersOf, another_run_are_none_of_this_one) {
  KnownPeers other = of(1, {7, 7});
  EXPECT_TRUE(other.see({{PeerId{2}, "b:2"}}));
  save(other);
  EXPECT_THAT(addresses(of(1)), IsEmpty());
}

TEST_F(KnownPeersOf, a_file_that_is_torn_or_foreign_are_left_out) {
  KnownPeers known = of(1);
  known.see({{PeerId{2}, "b:2"}});
  std::ofstream(folder_.path() + "/peers-1.csv") << known.text() << to_string(kTraining) << ",3,nonsense\nx,";
  std::ofstream(folder_.path() + "/peers-2.csv") << std::string(1000, '\xff');
  std::ofstream(folder_.path() + "/peers-3.csv") << "run,peer,address\n"
                                                 << to_string(kTraining) << ",x,d:4\n"
                                                 << to_string(kTraining) << ",5,e\n";
  EXPECT_THAT(addresses(of(1)), IsEmpty());
}

TEST_F(KnownPeersOf, many_are_forgotten_in_the_order_in_which_they_were_seen) {
  KnownPeers known = of(1);
  for (std::uint64_t id = 2; id < 2 + KnownPeers::kMost + 10; ++id)
    known.see({{PeerId{id}, "h:" + std::to_string(id)}});
  EXPECT_EQ(known.all().size(), KnownPeers::kMost);
  EXPECT_EQ(known.all().back().peer, PeerId{12});
}

TEST_F(KnownPeersOf, a_run_with_more_than_it_keeps_are_no_news_each_time) {
  KnownPeers known = of(1);
  std::vector<wire::Member> members;
  for (std::uint64_t id = 2; id < 2 + 2 * KnownPeers::kMost; ++id)
    members.push_back({PeerId{id}, "h:" + std::to_string(id)});
  EXPECT_TRUE(known.see(members));
  EXPECT_FALSE(known.see(members));
}

TEST(KnownPeers, of_a_peer_without_a_folder_are_written_nowhere) {
  KnownPeers known("", PeerId{1}, kTraining);
  EXPECT_TRUE(known.see({{PeerId{2}, "b:2"}}));
  EXPECT_EQ(known.path(), "");
}

}  // namespace
}  // namespace tw::peer
