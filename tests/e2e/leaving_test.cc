// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/check.h"
#include "e2e/program.h"

namespace tw {
namespace {

using world::Phase;

constexpr std::uint64_t kPeers = 4;
constexpr Round kLast = 2;  ///< all peers are members by then
constexpr auto kGrace = 3s;
constexpr std::uint64_t kRoundSeconds = 6;  ///< with all peers
constexpr std::uint64_t kBatchMs = 50, kBatchSamples = 32;
constexpr auto kRound = 300s;  ///< beyond a round on a machine that got other work meanwhile

/// Four peers in a round that lasts longer than their notices.
class Leaving : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    run_.batch = kPeers * kRoundSeconds * 1000 / kBatchMs * kBatchSamples;
    file_ = write_run(run_);
    start(1, {"wait_for=" + std::to_string(kPeers)});
    const std::string address = address_of(1);
    for (std::uint64_t id = 2; id <= kPeers; ++id) start(id, {"join=" + address});
    for (std::uint64_t id = 1; id <= kPeers; ++id)
      ASSERT_TRUE(wait_until([&] { return !events_of(id, Phase::accumulate, kLast).empty(); }, kRound))
          << program(id).output();
    std::this_thread::sleep_for(1s);  // each has done some of it
  }

  void start(std::uint64_t id, std::vector<std::string> more) {
    more.insert(more.end(),
                {"grace=" + std::to_string(kGrace.count()) + "s", "--work-ms", std::to_string(kBatchMs)});
    programs_.emplace_back(new Program(peer(file_, id, std::move(more))));
  }

  Program& program(std::uint64_t id) { return *programs_.at(id - 1); }

  std::set<std::uint64_t> those_that_stay() const {
    std::set<std::uint64_t> stay;
    for (std::uint64_t id = 1; id <= kPeers; ++id)
      if (!gone_.contains(id)) stay.insert(id);
    return stay;
  }

  /// In the last round, in the logs of peers that stay.
  std::vector<world::Event> of_those_that_stay(Phase phase) const {
    std::vector<world::Event> found;
    for (const std::uint64_t id : those_that_stay()) {
      const auto events = events_of(id, phase, kLast);
      found.insert(found.end(), events.begin(), events.end());
    }
    return found;
  }

  /// The peer that leads the last round; 0: none of those that stay.
  std::uint64_t leader() const {
    const auto stay = those_that_stay();
    const auto leads = [this](std::uint64_t id) { return !events_of(id, Phase::lead, kLast).empty(); };
    const auto found = std::ranges::find_if(stay, leads);
    return found == stay.end() ? 0 : *found;
  }

  void take_away(std::uint64_t leaver) {
    program(leaver).send(SIGTERM);
    EXPECT_EQ(program(leaver).wait(kGrace), kGoesOn) << program(leaver).output();
    gone_.insert(leaver);
    EXPECT_TRUE(of_those_that_stay(Phase::commit).empty()) << "the round is not over";
    const auto handovers = events_of(leaver, Phase::handover);
    ASSERT_EQ(handovers.size(), 1U) << program(leaver).output();
    EXPECT_EQ(handovers[0].round, kLast);
    EXPECT_TRUE(those_that_stay().contains(handovers[0].peer->value));
    EXPECT_GT(handovers[0].as<event::Handover>()->samples.value_or(0), 0U);
  }

  void expect_each_sample_once() {
    for (const std::uint64_t id : those_that_stay()) EXPECT_EQ(program(id).wait(kRound), 0);
    std::uint64_t samples = 0;
    for (const world::Event& commit : of_those_that_stay(Phase::commit))
      samples += commit.as<event::Commit>()->samples;
    EXPECT_EQ(samples, run_.batch) << "that of those that left is in";
    const monitor::Summary end = summary();
    EXPECT_EQ(end.rounds, run_.rounds);
    EXPECT_EQ(end.samples, run_.rounds * run_.batch);
    EXPECT_TRUE(end.identical) << end.difference;
    std::set<std::string> digests;
    for (const world::Event& apply : of_those_that_stay(Phase::apply))
      digests.insert(apply.as<event::Apply>()->digest);
    EXPECT_EQ(digests.size(), 1U);
  }

 private:
  TestRun run_{.rounds = kLast};
  std::string file_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::set<std::uint64_t> gone_;
};

// The leader goes second: it keeps what the other one did, or hands over beside the one that does.
TEST_F(Leaving, peers_hand_over_what_they_did_and_are_gone_before_the_round_ends) {
  const std::uint64_t first_leader = leader();
  ASSERT_NE(first_leader, 0U);
  take_away(first_leader == kPeers ? 1 : kPeers);
  EXPECT_EQ(leader(), first_leader);
  take_away(first_leader);
  EXPECT_TRUE(wait_until([&] { return leader() != 0; })) << "another one leads";
  expect_each_sample_once();
  EXPECT_TRUE(of_those_that_stay(Phase::reissue).empty()) << "nothing was computed again";
  EXPECT_TRUE(of_those_that_stay(Phase::lost).empty());
}

/// A store that takes connections and never answers: nobody takes them from the queue of its port.
class SilentStore {
 public:
  SilentStore() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const general = reinterpret_cast<sockaddr*>(&address);
    TW_CHECK(bind(socket_, general, size) == 0 && listen(socket_, 16) == 0);
    TW_CHECK(getsockname(socket_, general, &size) == 0);
    setenv("AWS_ENDPOINT_URL", ("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port))).c_str(), 1);
    setenv("AWS_ACCESS_KEY_ID", "key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  }

  SilentStore(const SilentStore&) = delete;
  SilentStore& operator=(const SilentStore&) = delete;

  ~SilentStore() {
    close(socket_);
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
      unsetenv(name);
  }

  bool is_asked() const {
    pollfd waiting{socket_, POLLIN, 0};
    return poll(&waiting, 1, 0) == 1;
  }

 private:
  int socket_;
};

using LeavingAStore = ProgramTest;

TEST_F(LeavingAStore, that_is_silent_does_not_keep_a_peer_beyond_its_notice) {
  const SilentStore store;
  Program alone = peer(write_run({}), 1,
                       {"checkpoint.to=s3://data/run", "checkpoint.folder=" + path("kept"),
                        "checkpoint.logs=false", "rendezvous=none", "role=anchor", "grace=3s"});
  ASSERT_TRUE(wait_until([&] { return store.is_asked(); }));
  alone.send(SIGTERM);
  EXPECT_EQ(alone.wait(20s), kGoesOn) << "it waits for the store:\n" << alone.output();
}

}  // namespace
}  // namespace tw
