// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "e2e/program.h"
#include "host/system/free_port.h"

/// Peers whose addresses are gone find the run again.
namespace tw {
namespace {

using testing::HasSubstr;

class Rendezvous : public ProgramTest {
 protected:
  std::string run_with(const std::string& rendezvous, std::uint64_t rounds = 100'000) const {
    return write_run({.rounds = rounds}, "  patience: 3s\n" + rendezvous);
  }

  std::string shared_folder() const { return "rendezvous: file:" + path("shared") + "\n"; }

  /// A peer with a folder of its own, as on a machine of its own.
  Program lone(const std::string& run, std::uint64_t id, std::vector<std::string> more) const {
    more.insert(more.begin(), {"out=" + out_of(id), "listen=127.0.0.1:0"});
    return peer(run, id, more);
  }

  std::string out_of(std::uint64_t id) const { return path("out-" + std::to_string(id)); }

  std::vector<world::Event> events_there(std::uint64_t id, world::Phase phase) const {
    std::vector<world::Event> events;
    const auto log = monitor::read_event_log(out_of(id) + "/" + monitor::event_log_name(PeerId{id}));
    if (!log) return events;
    for (const monitor::LogEntry& entry : log.value())
      if (entry.event.phase() == phase) events.push_back(entry.event);
    return events;
  }

  std::string listens_at(std::uint64_t id) const {
    wait_until([&] { return !events_there(id, world::Phase::start).empty(); });
    const auto started = events_there(id, world::Phase::start);
    return started.empty() ? "" : started.front().as<event::Start>()->address;
  }

  bool takes_part(std::uint64_t id, std::size_t rounds = 2) const {
    return wait_until([&] { return events_there(id, world::Phase::commit).size() >= rounds; });
  }

  /// Each of them has made an update in which all of them took part.
  bool train_together(const std::vector<std::uint64_t>& ids) const {
    return wait_until([&] {
      return std::ranges::all_of(ids, [&](std::uint64_t id) {
        const auto commits = events_there(id, world::Phase::commit);
        return !commits.empty() && commits.back().as<event::Commit>()->peers.size() == ids.size();
      });
    });
  }

  /// What their parameters are after the last round that all of them know: one digest, where they train
  /// alike.
  std::set<std::string> digests_of(const std::vector<std::uint64_t>& ids) const {
    std::map<Round, std::vector<std::string>> found;
    for (const std::uint64_t id : ids)
      for (const world::Event& commit : events_there(id, world::Phase::commit))
        found[commit.round].push_back(commit.as<event::Commit>()->digest);
    std::set<std::string> last;
    for (const auto& [round, digests] : found)
      if (digests.size() == ids.size()) last = {digests.begin(), digests.end()};
    return last;
  }

  static std::string free_address() {
    const auto port = host::free_port();
    EXPECT_TRUE(port.ok());
    return "127.0.0.1:" + std::to_string(port.value());
  }

  static void kill(Program& program) {
    program.send(SIGKILL);
    program.wait();
  }

  static void leave(Program& program) {
    program.send(SIGTERM);
    EXPECT_EQ(program.wait(), kGoesOn) << program.output();
  }

  /// Without those that are being written: nobody sees what a peer had not finished when it was killed.
  std::size_t notices() const {
    std::error_code none_yet;
    const std::filesystem::directory_iterator files(path("shared"), none_yet);
    if (none_yet) return 0;
    return static_cast<std::size_t>(std::count_if(
        begin(files), end(files), [](const auto& file) { return file.path().extension() != ".part"; }));
  }
};

// The old problem "bootstrap peers are gone": whoever is named in the token was a spot machine, too. Hivemind
// and Petals keep machines that do nothing else but be found.
TEST_F(Rendezvous, leads_a_joiner_to_the_living_when_all_first_peers_are_gone) {
  const std::string run = run_with(shared_folder());
  Program first = lone(run, 1, {"wait_for=3"});
  const std::string address = listens_at(1);
  Program second = lone(run, 2, {"join=" + address});
  Program third = lone(run, 3, {"join=" + address});
  ASSERT_TRUE(takes_part(3)) << third.output();
  Program made =
      tw({"token", path("run"), "--address", address, "--address", listens_at(2), "--out", path("token")},
         "token");
  ASSERT_EQ(made.wait(), 0) << made.output();
  EXPECT_TRUE(wait_until([&] { return notices() == 3; }));
  kill(first);
  kill(second);
  Program joiner = toy("joiner", words_of(4, {"run_file=" + run, "token=@" + path("token"),
                                              "out=" + out_of(4), "listen=127.0.0.1:0"}));
  EXPECT_TRUE(takes_part(4)) << joiner.output() << third.output();
  EXPECT_TRUE(joiner.says("shows alive: ")) << joiner.output();
  leave(joiner);
  leave(third);
  EXPECT_EQ(notices(), 2U) << "of those that were killed";
}

TEST_F(Rendezvous, keeps_a_peer_without_addresses_from_beginning_a_second_history) {
  const std::string run = run_with("checkpoint: {to: " + path("copies") + "}\n");
  Program first = lone(run, 1, {});
  ASSERT_TRUE(takes_part(1));
  EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(path("copies/peers")); }));
  Program second = lone(run, 2, {});
  EXPECT_TRUE(takes_part(2)) << second.output();
  EXPECT_TRUE(second.says("asks peers that " + path("copies/peers") + " shows alive")) << second.output();
  EXPECT_GT(events_there(2, world::Phase::commit).front().round, 1U);
  leave(second);
  leave(first);
}

TEST_F(Rendezvous, unites_peers_that_began_at_the_same_moment) {
  const std::string run = run_with(shared_folder());
  Program first = lone(run, 1, {}), second = lone(run, 2, {}), third = lone(run, 3, {});
  EXPECT_TRUE(train_together({1, 2, 3})) << first.output() << second.output() << third.output();
  EXPECT_EQ(digests_of({1, 2, 3}).size(), 1U);
  for (Program* const peer : {&first, &second, &third}) leave(*peer);
}

// Only the first address of a token begins the run, in whatever order its peers start.
TEST_F(Rendezvous, is_not_needed_by_peers_that_all_have_a_token_with_two_addresses) {
  const std::string run = run_with("checkpoint: {folder: none}\n");
  const std::string one = free_address(), other = free_address();
  Program made =
      tw({"token", path("run"), "--address", one, "--address", other, "--out", path("token")}, "token");
  ASSERT_EQ(made.wait(), 0) << made.output();
  const auto start = [&](std::uint64_t id, const std::string& listen) {
    return toy("peer-" + std::to_string(id), words_of(id, {"run_file=" + run, "token=@" + path("token"),
                                                           "out=" + out_of(id), "listen=" + listen}));
  };
  Program third = start(3, "127.0.0.1:0"), second = start(2, other), first = start(1, one);
  EXPECT_TRUE(train_together({1, 2, 3})) << first.output() << second.output() << third.output();
  kill(first);
  ASSERT_TRUE(train_together({2, 3})) << second.output() << third.output();
  Program again = start(1, one);
  EXPECT_TRUE(train_together({1, 2, 3})) << again.output() << second.output() << third.output();
  EXPECT_EQ(digests_of({1, 2, 3}).size(), 1U) << "it has not begun another run";
  for (Program* const peer : {&again, &second, &third}) leave(*peer);
}

// The notices of peers that were killed count for some minutes more.
TEST_F(Rendezvous, of_the_dead_alone_keeps_nobody_from_beginning) {
  const std::string run = run_with(shared_folder());
  Program first = lone(run, 1, {});
  ASSERT_TRUE(takes_part(1));
  EXPECT_TRUE(wait_until([&] { return notices() == 1; }));
  kill(first);
  Program second = lone(run, 2, {});
  EXPECT_TRUE(takes_part(2)) << second.output();
  EXPECT_TRUE(second.says("asks peers that ")) << second.output();
  leave(second);
}

TEST_F(Rendezvous, that_is_down_is_one_warning_and_no_reason_to_stop) {
  std::ofstream(path("file")) << "in the way";
  const std::string run = run_with("rendezvous: file:" + path("file") + "/shared\n", 600);
  Program peer = lone(run, 1, {});
  EXPECT_EQ(peer.wait(), 0) << peer.output();
  const std::string said = peer.output(), warning = "others cannot find this peer";
  EXPECT_THAT(said, HasSubstr(warning));
  EXPECT_EQ(said.find(warning), said.rfind(warning)) << said;
}

TEST_F(Rendezvous, is_not_needed_by_a_peer_that_wrote_down_whom_it_knew) {
  const std::string run = run_with("checkpoint: {folder: none}\n");
  Program first = lone(run, 1, {"wait_for=3"});
  const std::string address = listens_at(1);
  Program second = lone(run, 2, {"join=" + address});
  Program third = lone(run, 3, {"join=" + address});
  ASSERT_TRUE(takes_part(3)) << third.output();
  EXPECT_TRUE(wait_until(
      [&] { return content_of(out_of(3) + "/peers-3.csv").find(listens_at(2)) != std::string::npos; }));
  kill(first);
  kill(third);
  const std::size_t before = events_there(3, world::Phase::commit).size();
  Program again = toy("again", words_of(3, {"run_file=" + run, "run=" + path("run"), "out=" + out_of(3),
                                            "listen=127.0.0.1:0", "join=" + address}));
  EXPECT_TRUE(takes_part(3, before + 2)) << again.output() << second.output();
  EXPECT_TRUE(again.says("that this peer knew before (" + out_of(3) + "/peers-3.csv)")) << again.output();
  leave(again);
  leave(second);
}

}  // namespace
}  // namespace tw
