// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "wire/token.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Errand = Rendezvous::Errand;

constexpr std::int64_t kNow = 1'764'170'000;
constexpr std::uint64_t kSeeds = 200;
const NoticeName kOwn{.run = "1a2b3c4d", .peer = PeerId{1}};

std::string notice(std::uint64_t peer, std::int64_t left_s, const std::string& run = kOwn.run) {
  return to_string(NoticeName{run, kNow + left_s, PeerId{peer}});
}

TEST(NoticeName, is_read_as_it_is_written) {
  const NoticeName name{"1a2b3c4d", kNow, PeerId{7}};
  EXPECT_EQ(to_string(name), "peer-1a2b3c4d-1764170000-7");
  EXPECT_EQ(notice_name_in(to_string(name)), name);
  for (const char* other :
       {"", "peer-", "peer-1a2b3c4d", "peer-1a2b3c4d-", "peer-1a2b3c4d-12", "peer-1a2b3c4d-12-",
        "peer-1a2b3c4d-12-7.part", "peer-1a2b3c4d-12-99999999999999999999", "round-7.tw",
        "peer-1a2b3c4dx12-7", "peer-1a2b3c4d-x-7", "peer-1a2b3c4d-012-7", "peer-1a2b3c4d-12-007",
        "peer-1a2b3c4d-0-7", "peer-1a2b3c4d--9223372036854775808-7"})
    EXPECT_EQ(notice_name_in(other), std::nullopt) << other;
}

TEST(NoticeChoice, leaves_out_what_is_expired_dated_ahead_of_another_run_or_its_own) {
  const NoticeChoice choice = choose_notices({notice(1, 300), notice(2, 300), notice(3, 0), notice(4, -3600),
                                              notice(5, 901), notice(6, 300, "99999999"), "round-7.tw"},
                                             kOwn, kNow, 1);
  EXPECT_THAT(choice.read, ElementsAre(notice(2, 300)));
  EXPECT_THAT(choice.ahead, ElementsAre(notice(5, 901)));
  EXPECT_THAT(choice.over, ElementsAre(notice(4, -3600)));
  EXPECT_EQ(choice.fresh, 1U);
  EXPECT_EQ(choice.expired, 2U);
}

TEST(NoticeChoice, takes_the_newest_of_a_peer_that_was_killed_while_it_renewed) {
  EXPECT_THAT(choose_notices({notice(2, 500), notice(2, 300)}, kOwn, kNow, 1).read,
              ElementsAre(notice(2, 500)));
}

TEST(NoticeChoice, does_not_wade_through_the_remains_of_thousands_that_were_killed) {
  std::vector<std::string> names;
  for (std::uint64_t peer = 2; peer < 5000; ++peer) names.push_back(notice(peer, -4000));
  names.push_back(notice(5000, 60));
  const NoticeChoice choice = choose_notices(names, kOwn, kNow, 1);
  EXPECT_THAT(choice.read, ElementsAre(notice(5000, 60)));
  EXPECT_EQ(choice.over.size(), NoticeChoice::kMostRemoved);
}

// All joiners asked the first address of the list, and the peer there had 64 handshakes at once.
TEST(NoticeChoice, of_64_peers_at_once_reads_few_each_and_the_same_for_few) {
  std::vector<std::string> names;
  for (std::uint64_t peer = 1; peer <= 64; ++peer) names.push_back(notice(peer, 300));
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::map<std::string, int> asked;
    std::set<std::uint64_t> reached{1};
    std::vector<std::vector<std::string>> reads;
    for (std::uint64_t peer = 1; peer <= 64; ++peer) {
      NoticeName own = kOwn;
      own.peer = PeerId{peer};
      const NoticeChoice choice = choose_notices(names, own, kNow, mix(seed, peer));
      ASSERT_EQ(choice.read.size(), NoticeChoice::kMostRead);
      ASSERT_THAT(choice.read, testing::Not(testing::Contains(notice(peer, 300))));
      ASSERT_EQ(std::set(choice.read.begin(), choice.read.end()).size(), choice.read.size());
      for (const std::string& name : choice.read) ++asked[name];
      reads.push_back(choice.read);
    }
    for (const auto& [name, times] : asked) EXPECT_LE(times, 24) << name << ", seed " << seed;
    // Peers tell each other whom they know: one connected graph is one run.
    for (std::size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (std::uint64_t peer = 1; peer <= 64; ++peer)
        for (const std::string& name : reads[peer - 1]) {
          const std::uint64_t other = notice_name_in(name)->peer.value;
          if (reached.contains(peer) || reached.contains(other)) reached.insert({peer, other});
        }
    }
    EXPECT_EQ(reached.size(), 64U) << "seed " << seed;
  }
}

constexpr Rendezvous::Standing kJoiner{.alone = true}, kMember{.has_run = true},
    kFounder{.has_run = true, .alone = true};

/// A peer with a clock, and a store that may be down.
class Searcher {
 public:
  explicit Searcher(Rendezvous::Options options) : machine_(options) {}

  struct Did {
    Duration after{};
    Errand errand;
    bool is_news = false;
  };

  /// Lets time pass. fails: of the store.
  std::vector<Did> spend(Duration time, Rendezvous::Standing standing, std::set<Errand> fails = {}) {
    std::vector<Did> all;
    for (const Instant end = now_ + time, begin = now_; now_ < end; now_ += 100ms) {
      const auto errand = machine_.next(now_, standing);
      if (!errand) continue;
      const bool store = *errand != Errand::recall;
      const bool is_news = store && machine_.done(now_ + 50ms, *errand, fails.contains(*errand));
      all.push_back({now_ - begin, *errand, is_news});
    }
    return all;
  }

  static int count(const std::vector<Did>& all, Errand errand) {
    return static_cast<int>(std::ranges::count(all, errand, &Did::errand));
  }

 private:
  Rendezvous machine_;
  Instant now_{Duration(1h)};
};

TEST(Rendezvous, gives_the_addresses_of_the_user_time_before_it_recalls_and_looks) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Searcher peer({.has_folder = true, .announces = false, .seed = seed});
    const auto did = peer.spend(60s, kJoiner);
    ASSERT_GE(did.size(), 3U);
    EXPECT_EQ(did[0].errand, Errand::recall);
    EXPECT_GE(did[0].after, 2s);
    EXPECT_EQ(did[1].errand, Errand::look);
    EXPECT_LE(did[1].after, 2200ms);
    EXPECT_EQ(Searcher::count(did, Errand::recall), 1);
    EXPECT_GE(Searcher::count(did, Errand::look), 4) << "seed " << seed;
    EXPECT_LE(Searcher::count(did, Errand::look), 8) << "seed " << seed;
  }
}

TEST(Rendezvous, of_a_peer_with_company_only_renews_before_its_notice_expires) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Searcher peer({.has_folder = true, .announces = true, .seed = seed});
    Duration last{};
    for (const auto& did : peer.spend(1h, kMember)) {
      EXPECT_EQ(did.errand, Errand::renew);
      EXPECT_LE(did.after - last, std::chrono::seconds(wire::kAnnouncementLasts_s) / 2) << "seed " << seed;
      last = did.after;
    }
    EXPECT_GE(last, 56min);
  }
}

TEST(Rendezvous, searches_anew_whenever_the_last_link_is_gone) {
  Searcher peer({.has_folder = true, .announces = false, .seed = 1});
  for (int times = 0; times < 3; ++times) {
    EXPECT_THAT(peer.spend(1min, kMember), IsEmpty());
    const auto did = peer.spend(3s, kJoiner);
    EXPECT_EQ(Searcher::count(did, Errand::recall), 1);
    EXPECT_EQ(Searcher::count(did, Errand::look), 1);
  }
}

TEST(Rendezvous, tells_of_itself_only_once_it_has_the_run) {
  Searcher peer({.has_folder = true, .announces = true, .seed = 1});
  EXPECT_EQ(Searcher::count(peer.spend(1h, kJoiner), Errand::renew), 0);
  EXPECT_EQ(Searcher::count(peer.spend(10s, kFounder), Errand::renew), 1);
}

// Each takes the empty folder for a run that nobody has begun; then it has to see the other's notice there.
TEST(Rendezvous, leads_two_that_began_at_the_same_moment_to_each_other) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Searcher one({.has_folder = true, .announces = true, .seed = 2 * seed});
    Searcher other({.has_folder = true, .announces = true, .seed = 2 * seed + 1});
    const auto written = one.spend(20s, kFounder), read = other.spend(20s, kFounder);
    const auto notice = std::ranges::find(written, Errand::renew, &Searcher::Did::errand);
    ASSERT_NE(notice, written.end());
    EXPECT_TRUE(std::ranges::any_of(
        read, [&](const auto& did) { return did.errand == Errand::look && did.after > notice->after; }))
        << "seed " << seed;
  }
}

TEST(Rendezvous, without_a_folder_recalls_and_does_nothing_else) {
  Searcher peer({.has_folder = false, .announces = true, .seed = 1});
  const auto did = peer.spend(1h, kJoiner);
  ASSERT_EQ(did.size(), 1U);
  EXPECT_EQ(did.front().errand, Errand::recall);
}

// One that could be listed alone was written to every few seconds, with a warning each time; one that could
// be written alone was never written to.
TEST(Rendezvous, tries_each_errand_that_fails_less_and_less_and_says_so_once) {
  for (const std::set<Errand>& fails :
       {std::set{Errand::look}, std::set{Errand::renew}, std::set{Errand::look, Errand::renew}}) {
    for (std::uint64_t seed = 1; seed <= kSeeds / 10; ++seed) {
      Searcher peer({.has_folder = true, .announces = true, .seed = seed});
      for (int times = 0; times < 2; ++times) {
        const auto did = peer.spend(1h, kFounder, fails);
        EXPECT_EQ(std::ranges::count(did, true, &Searcher::Did::is_news), std::ssize(fails));
        for (const Errand errand : {Errand::look, Errand::renew}) {
          const auto [least, most] = fails.contains(errand)   ? std::pair(25, 50)
                                     : errand == Errand::look ? std::pair(90, 160)
                                                              : std::pair(15, 26);
          EXPECT_GE(Searcher::count(did, errand), least) << "seed " << seed;
          EXPECT_LE(Searcher::count(did, errand), most) << "seed " << seed;
        }
        EXPECT_GE(Searcher::count(peer.spend(5min, kFounder), Errand::look), 5) << "it is up again";
      }
    }
  }
}

TEST(Rendezvous, looks_no_more_often_in_a_store_that_is_down_because_links_come_and_go) {
  Searcher peer({.has_folder = true, .announces = false, .seed = 1});
  int looks = 0;
  for (int times = 0; times < 60; ++times) {
    peer.spend(1s, kMember, {Errand::look});
    looks += Searcher::count(peer.spend(4s, kJoiner, {Errand::look}), Errand::look);
  }
  EXPECT_LE(looks, 8);
}

}  // namespace
}  // namespace tw::swarm
