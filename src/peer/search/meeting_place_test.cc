// SPDX-License-Identifier: Apache-2.0
#include "peer/search/meeting_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "host/identity/announcement.h"
#include "host/identity/authority.h"
#include "host/store/store_files.h"
#include "host/store/test_bucket.h"
#include "host/system/temporary_folder.h"

namespace tw::peer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::int64_t kNow = 1'764'170'000;
constexpr Digest kSameTraining{3, 4};

/// One peer of a run at the place.
struct Visitor {
  Visitor(const host::Authority& run, world::Files& files, const std::string& folder, std::uint64_t id,
          const Digest& training = kSameTraining)
      : token(run.issue({.from_unix_s = kNow - 1000, .expires_unix_s = kNow + 1'000'000})),
        tls(host::Tls::open(token, kNow).value()),
        place(files, folder, {token, *tls, training, PeerId{id}}, [this] { return now; }),
        address("10.0.0." + std::to_string(id) + ":7000") {}

  std::int64_t now = kNow;
  wire::Token token;
  std::unique_ptr<host::Tls> tls;
  MeetingPlace place;
  std::string address;
};

/// A folder of a bucket, as the store has it.
class AMeetingPlace : public testing::Test {
 protected:
  std::unique_ptr<Visitor> visitor(std::uint64_t id, const Digest& training = kSameTraining) {
    return std::make_unique<Visitor>(run_, files_, "s3://data/run/peers", id, training);
  }

  void announce(std::uint64_t id) { EXPECT_TRUE(visitor(id)->place.renew(visitor(id)->address)); }

  MeetingPlace::Found look(std::uint64_t seed = 1) {
    auto found = visitor(99)->place.look(seed);
    EXPECT_TRUE(found) << found.error().message;
    return found ? std::move(found).value() : MeetingPlace::Found{};
  }

  static std::vector<std::uint64_t> peers_of(const MeetingPlace::Found& found) {
    std::vector<std::uint64_t> peers;
    for (const wire::Member& peer : found.peers) peers.push_back(peer.peer.value);
    return peers;
  }

  /// The name of the only notice there.
  std::string only() const {
    EXPECT_EQ(bucket_.objects.size(), 1U);
    return bucket_.objects.empty() ? "" : bucket_.objects.begin()->first;
  }

  host::Bucket bucket_;
  host::Authority run_ = host::Authority::create("words");
  host::S3Files files_ = bucket_.files(MeetingPlace::kEffort);
};

// "All bootstrap peers are gone": the addresses of a token die with their machines, and the run went on
// without anybody being able to join it.
TEST_F(AMeetingPlace, shows_the_living_whatever_became_of_the_first) {
  const auto first = visitor(1), second = visitor(2), third = visitor(3);
  for (const auto* one : {&first, &second}) EXPECT_TRUE((*one)->place.renew((*one)->address));
  EXPECT_THAT(peers_of(look()), UnorderedElementsAre(1, 2));
  EXPECT_TRUE(third->place.renew(third->address));
  EXPECT_TRUE(first->place.leave());
  EXPECT_TRUE(second->place.leave());
  const auto found = look();
  ASSERT_THAT(peers_of(found), ElementsAre(3));
  EXPECT_EQ(found.peers.front().address, "10.0.0.3:7000");
  EXPECT_THAT(found.ignored, IsEmpty());
}

TEST_F(AMeetingPlace, has_one_notice_of_a_peer_however_often_it_is_renewed) {
  const auto one = visitor(1);
  EXPECT_TRUE(one->place.renew(one->address));
  const std::string first = only();
  one->now += 200;
  EXPECT_TRUE(one->place.renew(one->address));
  EXPECT_NE(only(), first);
  EXPECT_TRUE(one->place.leave());
  EXPECT_THAT(bucket_.objects, IsEmpty());
  EXPECT_TRUE(one->place.leave()) << "there is nothing left";
}

TEST_F(AMeetingPlace, ignores_notices_that_nobody_of_the_run_signed) {
  announce(1);
  const std::string name = only(), sound = bucket_.objects.at(name);
  const auto complaint = [&](const std::string& content) {
    bucket_.objects[name] = content;
    const auto found = look();
    EXPECT_THAT(found.peers, IsEmpty());
    return found.ignored.empty() ? "nothing is wrong" : found.ignored.front();
  };
  std::string moved = sound;
  moved[moved.find("10.0.0.1") + 7] = '9';
  EXPECT_THAT(complaint(moved), EndsWith("-1 is not signed by a peer of this run"));
  EXPECT_THAT(complaint("torn"), EndsWith(" is not what a peer of this version writes"));
  EXPECT_THAT(complaint(std::string(100'000, 'x')),
              EndsWith(" has 100000 bytes, at most 4096 were expected"));
  Visitor stranger(host::Authority::create("words"), files_, "s3://data/elsewhere", 1);
  EXPECT_TRUE(stranger.place.renew(stranger.address));
  EXPECT_THAT(complaint(bucket_.objects.rbegin()->first == name ? bucket_.objects.begin()->second
                                                                : bucket_.objects.rbegin()->second),
              EndsWith(" is not signed by a peer of this run"));
}

TEST_F(AMeetingPlace, ignores_a_notice_of_another_training_with_the_same_token) {
  announce(1);
  const std::string name = only();
  const auto bytes = host::sign_announcement(
                         visitor(1)->token,
                         {.training = {7, 7}, .peer = PeerId{1}, .address = "a:1", .until_unix_s = kNow + 60})
                         .value();
  bucket_.objects[name] = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  EXPECT_THAT(look().ignored, ElementsAre(EndsWith(" is of another run")));
  bucket_.objects.erase(name);
  const auto other = visitor(1, {7, 7});
  EXPECT_TRUE(other->place.renew(other->address));
  EXPECT_THAT(look().ignored, IsEmpty()) << "it has another name, so that a folder may serve several";
}

TEST_F(AMeetingPlace, ignores_what_has_expired_or_is_dated_ahead_whatever_its_name_says) {
  const auto late = visitor(1), early = visitor(2);
  late->now -= 700;
  EXPECT_TRUE(late->place.renew(late->address));
  early->now += 700;
  EXPECT_TRUE(early->place.renew(early->address));
  auto found = look();
  EXPECT_THAT(found.peers, IsEmpty());
  EXPECT_EQ(found.expired, 1U);
  EXPECT_THAT(found.ignored, ElementsAre(EndsWith("-2 is dated ahead of this machine's clock")));
  // An old notice under the name of a new one.
  const std::string old = bucket_.objects.begin()->second;
  bucket_.objects.clear();
  announce(1);
  bucket_.objects.begin()->second = old;
  found = look();
  EXPECT_THAT(found.peers, IsEmpty());
  EXPECT_THAT(found.ignored, ElementsAre(EndsWith("-1 has expired")));
}

TEST_F(AMeetingPlace, is_rid_of_what_expired_an_hour_ago) {
  const auto killed = visitor(1);
  killed->now -= 5000;
  EXPECT_TRUE(killed->place.renew(killed->address));
  const auto one = visitor(1);
  EXPECT_EQ(one->place.look(1).value().expired, 0U) << "its own";
  const auto other = visitor(2);
  EXPECT_EQ(other->place.look(1).value().expired, 1U);
  EXPECT_EQ(bucket_.objects.size(), 1U) << "a start is not held up by it";
  other->place.tidy();
  EXPECT_THAT(bucket_.objects, IsEmpty());
}

// Eight notices and 16 removals of a store that answers no more took minutes.
TEST_F(AMeetingPlace, is_left_at_the_first_notice_that_does_not_come) {
  for (std::uint64_t id = 1; id <= 3; ++id) announce(id);
  const auto read = [](const std::string& request) { return request.find("/peer-") != std::string::npos; };
  const auto fail_from_read = [&](std::ptrdiff_t number) {
    bucket_.asked.clear();
    bucket_.before = [this, read, number] {
      if (std::ranges::count_if(bucket_.asked, read) >= number) bucket_.refusals = {0};
    };
    return visitor(99)->place.look(1);
  };
  const auto nobody = fail_from_read(1);
  ASSERT_FALSE(nobody);
  EXPECT_THAT(nobody.error().message, HasSubstr("connection refused"));
  EXPECT_EQ(std::ranges::count_if(bucket_.asked, read), MeetingPlace::kEffort.attempts);
  const auto some = fail_from_read(2);
  ASSERT_TRUE(some);
  EXPECT_EQ(some.value().peers.size(), 1U);
  EXPECT_THAT(some.value().ignored, IsEmpty());
}

TEST_F(AMeetingPlace, is_not_asked_once_the_time_is_over) {
  announce(1);
  bucket_.asked.clear();
  bucket_.is_over = true;
  EXPECT_THAT(visitor(99)->place.look(1).error().message, EndsWith(": store did not answer in time"));
  EXPECT_THAT(bucket_.asked, IsEmpty());
}

// The second machine dialled itself, and began a second history.
TEST_F(AMeetingPlace, in_a_store_leads_nobody_to_his_own_machine) {
  const auto one = visitor(1);
  const Status refused = one->place.renew("127.0.0.1:7000");
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message,
      "127.0.0.1:7000 is an address of this machine alone, and peers on others read s3://data/run/peers; "
      "give listen HOST:PORT, such as 0.0.0.0:0");
  EXPECT_THAT(bucket_.objects, IsEmpty());
  announce(1);
  const auto bytes =
      host::sign_announcement(
          one->token,
          {.training = kSameTraining, .peer = PeerId{1}, .address = "[::1]:7000", .until_unix_s = kNow + 60})
          .value();
  bucket_.objects[only()] = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  EXPECT_THAT(look().peers, IsEmpty());
  EXPECT_THAT(look().ignored, ElementsAre(EndsWith("-1 names [::1]:7000, an address of its machine alone")));
}

// A key that may not delete: the next process under another id was to dial its own address.
TEST_F(AMeetingPlace, shows_nobody_a_former_process_at_his_own_address) {
  const auto former = visitor(1), now = visitor(2);
  EXPECT_TRUE(former->place.renew(former->address));
  const int denied = 403;
  bucket_.refusals = {denied};
  bucket_.refusal = "AccessDenied";
  EXPECT_THAT(former->place.leave().error().message,
              AllOf(HasSubstr("DELETE was answered with 403"), HasSubstr("needs s3:DeleteObject")));
  MeetingPlace same(files_, "s3://data/run/peers",
                    {now->token, *now->tls, kSameTraining, PeerId{2}, former->address}, [] { return kNow; });
  const auto found = same.look(1);
  ASSERT_TRUE(found);
  EXPECT_THAT(found.value().peers, IsEmpty());
  EXPECT_THAT(found.value().ignored, IsEmpty());
  EXPECT_THAT(peers_of(look()), ElementsAre(1)) << "others may dial it";
}

TEST_F(AMeetingPlace, is_rid_of_a_notice_that_was_written_although_the_store_said_no) {
  const auto one = visitor(1);
  bucket_.after = [this] { bucket_.is_over = true; };  // the answer is lost
  const int busy = 503;
  bucket_.refusals = {busy};
  EXPECT_FALSE(one->place.renew(one->address));
  bucket_.after = [] {};
  bucket_.is_over = false;
  bucket_.asked.clear();
  EXPECT_TRUE(one->place.leave());
  EXPECT_EQ(bucket_.asked.size(), 1U) << "a removal";
}

TEST_F(AMeetingPlace, that_takes_no_long_addresses_says_so) {
  EXPECT_THAT(visitor(1)->place.renew(std::string(250, 'h') + ":65535").error().message,
              EndsWith(":65535 has 256 bytes, at most 255 were expected"));
}

TEST_F(AMeetingPlace, that_is_down_is_an_error_each_time_and_nothing_else) {
  const auto one = visitor(1);
  bucket_.refusals = {0, 0, 503, 503};
  EXPECT_THAT(one->place.renew(one->address).error().message, HasSubstr("connection refused"));
  EXPECT_THAT(one->place.look(1).error().message, HasSubstr("503"));
  const int denied = 403;
  bucket_.refusals = {denied};
  EXPECT_TRUE(one->place.leave()) << "there is no notice that could stay";
  EXPECT_TRUE(one->place.renew(one->address));
  EXPECT_THAT(peers_of(look()), ElementsAre(1));
}

TEST_F(AMeetingPlace, of_64_peers_shows_some_to_each_joiner_not_the_same) {
  for (std::uint64_t id = 1; id <= 64; ++id) announce(id);
  bucket_.asked.clear();
  std::set<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto found = peers_of(look(seed));
    EXPECT_EQ(found.size(), swarm::NoticeChoice::kMostRead);
    all.insert(found.begin(), found.end());
  }
  EXPECT_GT(all.size(), 50U);
  const auto lists = [](const std::string& request) {
    return request.find("list-type") != std::string::npos;
  };
  EXPECT_EQ(bucket_.asked.size() - static_cast<std::size_t>(std::ranges::count_if(bucket_.asked, lists)),
            30 * swarm::NoticeChoice::kMostRead);
}

TEST(AMeetingPlaceOnADisk, is_a_folder_that_the_first_one_makes) {
  const host::TemporaryFolder folder;
  host::StoreFiles files(MeetingPlace::kEffort);
  const host::Authority run = host::Authority::create("words");
  const std::string place = folder.path() + "/shared/peers";
  Visitor first(run, files, place, 1), second(run, files, place, 2);
  const auto nobody = second.place.look(1);
  ASSERT_TRUE(nobody) << nobody.error().message;
  EXPECT_THAT(nobody.value().peers, IsEmpty());
  EXPECT_TRUE(first.place.renew(first.address));
  const auto found = second.place.look(1);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found.value().peers.size(), 1U);
  EXPECT_EQ(found.value().peers.front().address, first.address);
  EXPECT_TRUE(first.place.renew("127.0.0.1:7000")) << "peers of one machine";
  EXPECT_EQ(second.place.look(1).value().peers.size(), 1U);
  EXPECT_TRUE(first.place.leave());
  EXPECT_THAT(files.list(place).value(), IsEmpty());
  const std::array<std::span<const std::byte>, 0> empty;
  EXPECT_TRUE(files.write(folder.path() + "/file", empty));
  Visitor blocked(run, files, folder.path() + "/file/peers", 3);
  EXPECT_THAT(blocked.place.renew(blocked.address).error().message, HasSubstr("cannot make folder"));
}

// Each lists the folder while the others write and remove there.
TEST(AMeetingPlaceOnADisk, serves_64_peers_at_once) {
  constexpr std::uint64_t kPeers = 64;
  const host::TemporaryFolder folder;
  const host::Authority run = host::Authority::create("words");
  const std::string place = folder.path() + "/peers";
  std::vector<std::string> failures(kPeers);
  const auto take_part = [&](std::uint64_t id) -> std::string {
    host::StoreFiles files(MeetingPlace::kEffort);
    Visitor one(run, files, place, id);
    for (int times = 0; times < 3; ++times) {
      one.now += 60;
      if (const Status renewed = one.place.renew(one.address); !renewed) return renewed.error().message;
      const auto found = one.place.look(id);
      if (!found) return found.error().message;
      for (const wire::Member& peer : found.value().peers)
        if (peer.address != "10.0.0." + std::to_string(peer.peer.value) + ":7000") return peer.address;
      for (const std::string& ignored : found.value().ignored)  // unless its peer renewed it meanwhile
        if (ignored.find("No such file") == std::string::npos) return ignored;
    }
    return "";
  };
  std::vector<std::jthread> peers;
  for (std::uint64_t id = 1; id <= kPeers; ++id)
    peers.emplace_back([&, id] { failures[id - 1] = take_part(id); });
  peers.clear();
  EXPECT_THAT(failures, testing::Each(IsEmpty()));

  host::StoreFiles files(MeetingPlace::kEffort);
  EXPECT_EQ(files.list(place).value().size(), kPeers) << "one notice of each, nothing unfinished";
  Visitor joiner(run, files, place, kPeers + 1);
  const auto found = joiner.place.look(1);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found.value().peers.size(), swarm::NoticeChoice::kMostRead);
  EXPECT_THAT(found.value().ignored, IsEmpty());
}

}  // namespace
}  // namespace tw::peer
