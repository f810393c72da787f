// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <deque>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/peer.h"
#include "wire/frame.h"

/// What every Network must do (world/network.h), in each world that has one. What only one of them has, such
/// as strangers without a hello or a partition, is tested beside it.
namespace tw::conformance {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::EndsWith;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAreArray;

struct World {
  const char* name;
  std::unique_ptr<NetworkWorld> (*make)();

  friend void PrintTo(const World& world, std::ostream* out) { *out << world.name; }
};

class EveryNetwork : public testing::TestWithParam<World> {
 protected:
  Peer& peer() { return peer(peers_.size() + 1); }

  /// Another process that says it is this one is allowed.
  Peer& peer(std::uint64_t number) { return peers_.emplace_back(*world_, number); }

  bool soon(const std::function<bool()>& holds) { return world_->run_until(holds); }

  bool link(Peer& a, Peer& b) {
    a.connect(b);
    return soon([&] { return a.linked(b) && b.linked(a); });
  }

  /// Lets what is under way arrive: two others talk for a while.
  void settle() {
    Peer &left = peer(), &right = peer();
    ASSERT_TRUE(link(left, right));
    for (std::size_t turn = 1; turn <= 20; ++turn) {
      left.send(right, "and?");
      ASSERT_TRUE(soon([&] { return right.heard[left.self].size() == turn; }));
      right.send(left, "nothing");
      ASSERT_TRUE(soon([&] { return left.heard[right.self].size() == turn; }));
    }
  }

  /// So many bulk messages, numbered, with a payload of so many bytes.
  static std::function<std::optional<Frame>(PeerId)> numbered(int messages, std::size_t bytes) {
    return [messages, bytes, next = 0](PeerId) mutable -> std::optional<Frame> {
      if (next == messages) return std::nullopt;
      const char letter = static_cast<char>('a' + next % 26);
      return frame_of(std::to_string(next++), std::string(bytes, letter));
    };
  }

 private:
  std::unique_ptr<NetworkWorld> world_ = GetParam().make();
  std::deque<Peer> peers_;
};

INSTANTIATE_TEST_SUITE_P(Network, EveryNetwork,
                         testing::Values(World{"simulated", simulated_world}, World{"tcp", tcp_world},
                                         World{"tls", tls_world}),
                         [](const auto& world) { return std::string(world.param.name); });

// ---- links

TEST_P(EveryNetwork, opens_a_link_on_both_sides_with_the_hello_of_the_other) {
  Peer &one = peer(), &two = peer();
  one.greet_with("1 from afar");
  one.connect(two);
  EXPECT_THAT(one.story, IsEmpty()) << "told from inside connect";
  ASSERT_TRUE(soon([&] { return one.linked(two) && two.linked(one); }));
  EXPECT_THAT(one.hellos, ElementsAre("2"));
  EXPECT_THAT(two.hellos, ElementsAre("1 from afar"));
  one.send(two, "from one");
  two.send(one, "from two");
  ASSERT_TRUE(soon([&] { return !one.heard.empty() && !two.heard.empty(); }));
  EXPECT_THAT(one.heads_from(two), ElementsAre("from two"));
  EXPECT_THAT(two.heads_from(one), ElementsAre("from one"));
  EXPECT_THAT(one.story, ElementsAre("open 2"));
  EXPECT_THAT(two.story, ElementsAre("open 1"));
}

TEST_P(EveryNetwork, greets_later_links_with_a_new_hello) {
  Peer &one = peer(), &two = peer(), &three = peer();
  ASSERT_TRUE(link(one, two));
  one.greet_with("1 again");
  ASSERT_TRUE(link(one, three));
  EXPECT_THAT(two.hellos, ElementsAre("1"));
  EXPECT_THAT(three.hellos, ElementsAre("1 again"));
}

TEST_P(EveryNetwork, makes_one_link_of_two_dials_of_one_side) {
  Peer &one = peer(), &two = peer();
  one.connect(two);
  one.connect(two);
  ASSERT_TRUE(soon([&] { return one.linked(two) && two.linked(one); }));
  settle();
  EXPECT_THAT(one.story, ElementsAre("open 2")) << "both dials end in the same event";
  EXPECT_THAT(two.story, ElementsAre("open 1"));
}

TEST_P(EveryNetwork, makes_one_link_of_each_pair_when_all_dial_all) {
  std::vector<Peer*> all;
  for (int i = 0; i < 8; ++i) all.push_back(&peer());
  for (Peer* a : all) {
    for (Peer* b : all) {
      if (a != b) a->connect(*b);
    }
  }
  ASSERT_TRUE(soon(
      [&] { return std::ranges::all_of(all, [](const Peer* one) { return one->count("open") == 7; }); }));
  settle();
  for (Peer* one : all) {
    EXPECT_EQ(one->count("open"), 7);
    EXPECT_EQ(one->count("close"), 0);
    for (Peer* other : all) {
      if (one != other) one->send(*other, "hi");
    }
  }
  EXPECT_TRUE(
      soon([&] { return std::ranges::all_of(all, [](const Peer* one) { return one->heard.size() == 7; }); }));
}

TEST_P(EveryNetwork, refuses_a_dial_to_a_peer_that_is_linked_already) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  one.connect(two);
  two.connect(one);
  ASSERT_TRUE(soon([&] { return one.story.size() == 2 && two.story.size() == 2; }));
  EXPECT_THAT(one.failures, ElementsAre(world::DialFailure::Kind::linked));
  EXPECT_THAT(two.failures, ElementsAre(world::DialFailure::Kind::linked));
  EXPECT_THAT(one.story[1], StartsWith("refused " + two.address + ": "));
  EXPECT_THAT(two.story[1], StartsWith("refused " + one.address + ": "));
  one.send(two, "still here");
  EXPECT_TRUE(soon([&] { return !two.heard.empty(); }));
}

TEST_P(EveryNetwork, has_one_link_to_a_peer_though_two_processes_say_they_are_it) {
  Peer &one = peer(), &two = peer();
  Peer& twin = peer(two.self.value);
  twin.greet_with("2 too");
  ASSERT_TRUE(link(two, one));
  twin.connect(one);
  ASSERT_TRUE(soon([&] { return twin.count("refused") + twin.count("close") == 1; }));
  two.send(one, "still here");
  ASSERT_TRUE(soon([&] { return !one.heard.empty(); }));
  EXPECT_THAT(one.story, ElementsAre("open 2"));
  EXPECT_THAT(one.hellos, ElementsAre("2"));
}

TEST_P(EveryNetwork, links_a_process_in_whose_favour_admit_closes_the_link_of_another) {
  Peer &one = peer(), &two = peer();
  Peer& newcomer = peer(two.self.value);
  ASSERT_TRUE(link(two, one));
  one.on_admit = [&](PeerId whose) { one.close(whose); };
  newcomer.connect(one);
  ASSERT_TRUE(
      soon([&] { return newcomer.linked(one) && one.count("open 2") == 2 && two.count("close 1") == 1; }));
  one.send(newcomer, "to the newcomer");
  ASSERT_TRUE(soon([&] { return !newcomer.heard.empty(); }));
  EXPECT_THAT(two.heard, IsEmpty());
  EXPECT_THAT(one.story, ElementsAre("open 2", "closed 2", "open 2"));
}

// ---- refusals

TEST_P(EveryNetwork, refuses_a_dial_where_nobody_listens) {
  Peer &one = peer(), &two = peer();
  two.end();
  one.connect(two);
  one.connect("nowhere");
  EXPECT_THAT(one.story, IsEmpty()) << "told from inside connect";
  ASSERT_TRUE(soon([&] { return one.story.size() == 2; }));
  EXPECT_EQ(one.count("refused " + two.address + ": "), 1);
  EXPECT_EQ(one.count("refused nowhere: "), 1);
  EXPECT_THAT(one.failures, Each(world::DialFailure::Kind::unreachable));
}

TEST_P(EveryNetwork, refuses_a_dial_to_itself) {
  Peer& one = peer();
  one.connect(one);
  ASSERT_TRUE(soon([&] { return !one.story.empty(); }));
  settle();
  EXPECT_THAT(one.story, ElementsAre(StartsWith("refused " + one.address + ": ")));
}

TEST_P(EveryNetwork, brings_the_refusal_of_the_dialed_peer_to_the_dialer_alone) {
  Peer &one = peer(), &two = peer();
  two.refusal = "another run: 12ab";
  one.connect(two);
  ASSERT_TRUE(soon([&] { return !one.story.empty(); }));
  settle();
  EXPECT_THAT(one.story, ElementsAre("refused " + two.address + ": another run: 12ab"));
  EXPECT_THAT(one.failures, ElementsAre(world::DialFailure::Kind::turned_away));
  EXPECT_THAT(one.turned_away,
              ElementsAre(world::Refusal{"another run: 12ab", world::Refusal::Code::taken, one.self, 3}))
      << "programs read the code, and what it is about";
  EXPECT_THAT(two.story, IsEmpty());
  two.refusal.clear();
  EXPECT_TRUE(link(one, two)) << "refused once is not refused for ever";
}

TEST_P(EveryNetwork, brings_the_refusal_of_the_dialer_to_both) {
  Peer &one = peer(), &two = peer();
  one.refusal = "another model";
  one.connect(two);
  ASSERT_TRUE(soon([&] { return !one.story.empty() && !two.story.empty(); }));
  EXPECT_THAT(one.story, ElementsAre("refused " + two.address + ": another model"));
  EXPECT_THAT(two.story, ElementsAre(EndsWith(": another model")));
  one.refusal.clear();
  EXPECT_TRUE(link(one, two));
}

// ---- messages

TEST_P(EveryNetwork, keeps_the_order_of_control_messages_of_any_size) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  const std::vector<std::size_t> sizes = {1, 300, 2, 65'535, 65'536, 7, 1, 100'000};
  std::vector<std::string> sent;
  for (std::size_t i = 0; i < 400; ++i) {
    const std::string number = std::to_string(i);
    sent.push_back(number + std::string(sizes[i % sizes.size()], static_cast<char>('a' + i % 26)));
    one.send(two, sent.back());
    if (i % 50 > 0) continue;
    ASSERT_TRUE(soon([&] { return two.heard[one.self].size() > i / 2; }));
  }
  ASSERT_TRUE(soon([&] { return two.heard[one.self].size() == sent.size(); }));
  EXPECT_THAT(two.heads_from(one), ElementsAreArray(sent));
}

TEST_P(EveryNetwork, carries_messages_whole_from_the_shortest_to_the_longest) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  const std::vector<Peer::Heard> messages = {
      {"h", ""},
      {"i", "p"},
      {std::string(wire::kMaxHeadBytes, 'j'), std::string(wire::kMaxPayloadBytes, 'q')}};
  for (const Peer::Heard& message : messages) one.send(two, message.head, message.payload);
  ASSERT_TRUE(soon([&] { return two.heard[one.self].size() == messages.size(); }));
  EXPECT_TRUE(two.heard[one.self] == messages);
  std::size_t made = 0;
  two.make_bulk = [&](PeerId) -> std::optional<Frame> {
    if (made == messages.size()) return std::nullopt;
    const Peer::Heard& message = messages[made++];
    return frame_of(message.head, message.payload);
  };
  two.pull(one);
  ASSERT_TRUE(soon([&] { return one.heard[two.self].size() == messages.size(); }));
  for (const Peer::Heard& message : messages)
    EXPECT_EQ(std::ranges::count(one.heard[two.self], message), 1) << message.head[0];
}

TEST_P(EveryNetwork, carries_both_directions_at_once) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  one.make_bulk = numbered(40, 300'000);
  two.make_bulk = numbered(40, 300'000);
  one.pull(two);
  two.pull(one);
  ASSERT_TRUE(soon([&] { return one.heard[two.self].size() == 40 && two.heard[one.self].size() == 40; }));
  std::vector<std::string> numbers;
  for (int i = 0; i < 40; ++i) numbers.push_back(std::to_string(i));
  EXPECT_THAT(two.heads_from(one), UnorderedElementsAreArray(numbers));
  EXPECT_THAT(one.heads_from(two), UnorderedElementsAreArray(numbers));
  for (const Peer::Heard& message : two.heard[one.self]) {
    const char letter = static_cast<char>('a' + std::stoi(message.head) % 26);
    EXPECT_TRUE(message.payload == std::string(300'000, letter)) << message.head;
  }
}

TEST_P(EveryNetwork, asks_for_bulk_until_there_is_none_and_then_only_when_pulled) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  one.make_bulk = numbered(3, 1000);
  one.pull(two);
  ASSERT_TRUE(soon([&] { return two.heard[one.self].size() == 3; }));
  settle();
  const int asked = one.asked;
  EXPECT_GE(asked, 4);
  one.make_bulk = numbered(1, 1000);
  settle();
  EXPECT_EQ(one.asked, asked) << "nobody pulled";
  one.pull(two);
  ASSERT_TRUE(soon([&] { return two.heard[one.self].size() == 4; }));
}

TEST_P(EveryNetwork, brings_control_messages_past_bulk_that_never_ends) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  int bulk = 0;
  bool quick = false;
  const Frame segment = frame_of("bulk", std::string(256 << 10, 'x'));
  one.make_bulk = [&](PeerId) { return segment; };
  two.received = [&](PeerId from) {
    auto& messages = two.heard[from];
    quick = quick || messages.back().head == "quick";
    bulk += messages.back().head == "bulk" ? 1 : 0;
    messages.clear();
  };
  one.pull(two);
  ASSERT_TRUE(soon([&] { return bulk >= 64; }));
  const int before = bulk;
  one.send(two, "quick");
  ASSERT_TRUE(soon([&] { return quick; }));
  EXPECT_LT(bulk - before, 40) << "10 MiB: as much as kernels would queue on one stream";
  one.make_bulk = nullptr;
}

TEST_P(EveryNetwork, drops_messages_to_peers_without_a_link) {
  Peer &one = peer(), &two = peer();
  one.send(two, "nobody");
  one.pull(two);
  one.close(two);
  settle();
  EXPECT_EQ(one.asked, 0);
  EXPECT_THAT(one.story, IsEmpty());
  ASSERT_TRUE(link(one, two));
  settle();
  EXPECT_THAT(two.heard, IsEmpty());
}

// ---- ends

TEST_P(EveryNetwork, lets_what_was_sent_leave_before_it_closes) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  for (int i = 0; i < 60; ++i) one.send(two, std::string(100'000, 'x'));
  one.send(two, "farewell");
  one.close(two);
  ASSERT_TRUE(soon([&] { return two.count("close 1") == 1; }));
  ASSERT_EQ(two.heard[one.self].size(), 61U);
  EXPECT_EQ(two.heard[one.self].back().head, "farewell");
  settle();
  EXPECT_THAT(one.story, ElementsAre("open 2", "closed 2")) << "who closes is not told";
  EXPECT_THAT(two.story, ElementsAre("open 1", "close 1"));
}

TEST_P(EveryNetwork, tells_nothing_of_a_link_that_was_closed_here) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  two.make_bulk = numbered(1000, 100'000);
  two.pull(one);
  two.received = [&](PeerId) { ADD_FAILURE() << "after close"; };
  ASSERT_TRUE(soon([&] { return !one.heard.empty(); }));
  two.send(one, "too late");
  one.close(two);
  const std::size_t heard = one.heard[two.self].size();
  one.send(two, "after close");
  ASSERT_TRUE(soon([&] { return two.count("close 1") == 1; }));
  settle();
  EXPECT_EQ(one.heard[two.self].size(), heard);
}

TEST_P(EveryNetwork, tells_nobody_when_both_close) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  one.close(two);
  two.close(one);
  settle();
  EXPECT_THAT(one.story, ElementsAre("open 2", "closed 2"));
  EXPECT_THAT(two.story, ElementsAre("open 1", "closed 1"));
}

TEST_P(EveryNetwork, links_again_after_a_link_is_gone) {
  Peer &one = peer(), &two = peer();
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(link(i % 2 == 0 ? one : two, i % 2 == 0 ? two : one)) << i;
    one.send(two, std::to_string(i));
    two.close(one);
    ASSERT_TRUE(soon([&] { return one.count("close 2") == i; })) << i;
  }
}

TEST_P(EveryNetwork, tells_of_a_process_that_ended_and_nothing_of_it_afterwards) {
  Peer &one = peer(), &two = peer();
  ASSERT_TRUE(link(one, two));
  two.end();
  ASSERT_TRUE(soon([&] { return one.count("close 2") == 1; }));
  const int asked = one.asked;
  one.make_bulk = numbered(1, 10);
  one.send(two, "anybody?");
  one.pull(two);
  settle();
  EXPECT_THAT(one.story, ElementsAre("open 2", "close 2"));
  EXPECT_EQ(one.asked, asked);
}

TEST_P(EveryNetwork, can_be_used_from_inside_its_events) {
  Peer &one = peer(), &two = peer(), &three = peer();
  one.opened = [&](PeerId who) {
    one.send(two, "last words");
    one.close(who);
  };
  two.received = [&](PeerId from) {
    two.close(from);
    two.connect(three);
  };
  two.opened = [&](PeerId who) {
    if (who == three.self) two.send(three, "your turn");
  };
  three.received = [&](PeerId) { three.pull(two); };
  three.make_bulk = [&](PeerId to) {
    three.close(to);
    return frame_of("bulk", "for nobody");
  };
  two.connect(one);
  ASSERT_TRUE(soon([&] { return two.count("close 3") == 1; }));
  EXPECT_THAT(two.heads_from(one), ElementsAre("last words"));
  EXPECT_THAT(one.story, ElementsAre("open 2", "closed 2"));
  EXPECT_THAT(two.story, ElementsAre("open 1", "closed 1", "open 3", "close 3"));
  EXPECT_THAT(three.story, ElementsAre("open 2", "closed 2"));
  EXPECT_THAT(two.heads_from(three), Not(testing::Contains("bulk")));
}

}  // namespace
}  // namespace tw::conformance
