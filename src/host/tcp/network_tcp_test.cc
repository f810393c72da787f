// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/network_tcp.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/prng.h"
#include "host/tcp/party.h"
#include "wire/frame.h"

namespace tw::host {
namespace {

using Story = std::vector<std::string>;

Frame bulk_frame(std::uint64_t number, std::size_t bytes) {
  Prng prng(number);
  std::vector<std::byte> payload(bytes);
  for (auto& byte : payload) byte = static_cast<std::byte>(prng.next());
  return {text_blob(std::to_string(number)), Blob(std::move(payload))};
}

/// Answers next_bulk with so many messages, numbered.
std::function<std::optional<Frame>(PeerId)> source_of(int messages, std::size_t bytes) {
  return [messages, bytes, next = 0](PeerId) mutable -> std::optional<Frame> {
    if (next == messages) return std::nullopt;
    return bulk_frame(static_cast<std::uint64_t>(next++), bytes);
  };
}

TEST(TcpNetwork, links_over_ipv6_and_by_name) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  Party three(loop, 3);
  TcpNetwork six(loop, PeerId{6}, one.random, [](event::Cause, const std::string&) {});
  six.greet_with(text_frame("6"));
  const auto address = six.open("[::1]:0", three);
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_TRUE(address.value().starts_with("[::1]:")) << address.value();
  one.network.connect(address.value());
  two.network.connect("localhost" + one.address.substr(one.address.rfind(':')));
  EXPECT_TRUE(soon(loop, [&] { return one.linked(6) && three.linked(1) && one.linked(2) && two.linked(1); }));
}

TEST(TcpNetwork, tells_an_address_that_others_can_dial_when_it_listens_everywhere) {
  Loop loop;
  Party one(loop, 1);
  Party events(loop, 2);
  TcpNetwork everywhere(loop, PeerId{3}, one.random, [](event::Cause, const std::string&) {});
  everywhere.greet_with(text_frame("3"));
  const auto address = everywhere.open("0.0.0.0:0", events);
  ASSERT_TRUE(address);
  EXPECT_FALSE(address.value().starts_with("0.0.0.0"));
  one.network.connect(address.value());
  EXPECT_TRUE(soon(loop, [&] { return one.linked(3); }));
}

TEST(TcpNetwork, makes_one_link_of_simultaneous_dials) {
  for (int repetition = 0; repetition < 50; ++repetition) {
    Loop loop;
    Party one(loop, 1);
    Party two(loop, 2);
    // The first party, and its lead in steps of the loop, differ: the two dials meet in all stages.
    Party& first = repetition % 2 == 0 ? one : two;
    Party& second = repetition % 2 == 0 ? two : one;
    first.network.connect(second.address);
    int steps = repetition / 2;
    soon(loop, [&] { return steps-- == 0; });
    const bool already = second.linked(first.self.value);
    second.network.connect(first.address);
    ASSERT_TRUE(soon(loop, [&] { return one.linked(2) && two.linked(1); })) << repetition;
    one.network.send(PeerId{2}, text_frame("hi"));
    two.network.send(PeerId{1}, text_frame("hi"));
    ASSERT_TRUE(soon(loop, [&] {
      return one.heard.size() == 1 && two.heard.size() == 1 && second.count("refused") == (already ? 1 : 0);
    })) << repetition;
    if (repetition % 10 == 0) settle(loop);
    EXPECT_EQ(first.story.size(), 1U) << repetition << ' ' << first.story.back();
    EXPECT_EQ(second.story.size(), already ? 2U : 1U) << repetition << ' ' << second.story.back();
    EXPECT_TRUE(one.garbage.empty() && two.garbage.empty());
  }
}

TEST(TcpNetwork, refuses_a_dial_to_itself) {
  Loop loop;
  Party one(loop, 1);
  one.network.connect(one.address);
  ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
  settle(loop);
  EXPECT_EQ(one.story, Story{"refused " + one.address + ": that is this peer itself"});
  EXPECT_TRUE(one.garbage.empty());
}

TEST(TcpNetwork, brings_the_refusal_of_the_dialed_peer_to_the_dialer) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  two.refusal = "another run: 12ab";
  one.network.connect(two.address);
  ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
  settle(loop);
  EXPECT_EQ(one.story, Story{"refused " + two.address + ": another run: 12ab"});
  EXPECT_TRUE(two.story.empty());
  EXPECT_TRUE(two.garbage.empty());
}

TEST(TcpNetwork, refuses_a_hello_of_another_peer_than_the_one_that_greets) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  one.network.greet_with(text_frame("7"));
  one.network.connect(two.address);
  ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
  EXPECT_EQ(one.story[0],
            "refused " + two.address + ": the hello is from peer 7, the connection from peer 1");
}

TEST(TcpNetwork, says_that_nobody_listens) {
  Loop loop;
  Party one(loop, 1);
  one.network.connect("127.0.0.1:9");
  EXPECT_TRUE(one.story.empty());
  ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
  EXPECT_EQ(one.story, Story{"refused 127.0.0.1:9: connection refused"});
}

TEST(TcpNetwork, says_that_a_name_is_unknown_or_no_address) {
  Loop loop;
  Party one(loop, 1);
  one.network.connect("no-such-host.invalid:7000");
  one.network.connect("nonsense");
  EXPECT_TRUE(one.story.empty());
  ASSERT_TRUE(soon(loop, [&] { return one.story.size() == 2; }));
  EXPECT_EQ(one.count("refused nonsense: 'nonsense' is no address"), 1);
  EXPECT_EQ(one.count("refused no-such-host.invalid:7000: "), 1);
}

TEST(TcpNetwork, says_that_an_address_is_in_use) {
  Loop loop;
  Party one(loop, 1);
  TcpNetwork second(loop, PeerId{2}, one.random, [](event::Cause, const std::string&) {});
  const auto opened = second.open(one.address, one);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "cannot listen on " + one.address +
                ": address already in use (another process has this port; listen on another one, "
                "port 0 picks a free one)");
}

TEST(TcpNetwork, says_that_an_address_is_not_of_this_machine) {
  Loop loop;
  Party one(loop, 1);
  TcpNetwork second(loop, PeerId{2}, one.random, [](event::Cause, const std::string&) {});
  const auto opened = second.open("192.0.2.1:7000", one);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "cannot listen on 192.0.2.1:7000: cannot assign requested address (no address of this machine; "
            "ip -brief address shows them, 0.0.0.0 and [::] stand for all)");
}

TEST(TcpNetwork, pulls_bulk_messages_in_order_until_there_are_none) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  one.make_bulk = source_of(40, 300'000);
  ASSERT_TRUE(link_up(loop, one, two));
  ASSERT_TRUE(soon(loop, [&] { return two.bulk[PeerId{1}].size() == 40; }));
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Frame& frame = two.bulk[PeerId{1}][i];
    EXPECT_EQ(text_of(frame.head), std::to_string(i));
    EXPECT_TRUE(std::ranges::equal(frame.payload.bytes(), bulk_frame(i, 300'000).payload.bytes())) << i;
  }
  settle(loop);
  const int asked = one.asked[PeerId{2}];
  EXPECT_EQ(asked, 41);
  one.make_bulk = source_of(1, 1);
  one.network.pull(PeerId{2});
  EXPECT_EQ(one.asked[PeerId{2}], asked) << "asked from inside pull";
  ASSERT_TRUE(soon(loop, [&] { return two.bulk[PeerId{1}].size() == 41; }));
  EXPECT_EQ(one.asked[PeerId{2}], 43);
}

// The word of somebody far away; over loopback this peer wants one.
TEST(TcpNetwork, dials_the_data_streams_that_the_other_side_wants) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  ASSERT_TRUE(link_up(loop, one, two));
  two.network.send(PeerId{1}, encode_link_word({LinkWord::Kind::streams, 7}));
  ASSERT_TRUE(soon(loop, [&] {
    return one.network.data_streams(PeerId{2}) == 7 && two.network.data_streams(PeerId{1}) == 7;
  }));
  one.make_bulk = source_of(100, 300'000);
  two.make_bulk = source_of(100, 300'000);
  one.network.pull(PeerId{2});
  two.network.pull(PeerId{1});
  ASSERT_TRUE(
      soon(loop, [&] { return two.bulk[PeerId{1}].size() == 100 && one.bulk[PeerId{2}].size() == 100; }));
  one.network.close(PeerId{2});
  ASSERT_TRUE(soon(loop, [&] { return two.count("close") == 1 && one.network.flushed(); }));
  EXPECT_EQ(two.story.back(), "close 1: connection closed");
}

TEST(TcpNetwork, reports_a_message_beyond_the_limit_and_goes_on) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  ASSERT_TRUE(link_up(loop, one, two));
  one.network.send(PeerId{2}, text_frame(std::string(wire::kMaxHeadBytes + 1, 'h')));
  one.network.send(PeerId{2}, text_frame("after it"));
  ASSERT_TRUE(soon(loop, [&] { return !two.heard[PeerId{1}].empty(); }));
  EXPECT_EQ(two.heard[PeerId{1}], std::vector<std::string>{"after it"});
  ASSERT_EQ(one.garbage.size(), 1U);
  EXPECT_NE(one.garbage[0].find("to peer 2 is beyond the limit"), std::string::npos);
}

TEST(TcpNetwork, brings_control_messages_while_bulk_is_saturated) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  const Frame segment = bulk_frame(1, 256 << 10);
  one.make_bulk = [&](PeerId) { return segment; };
  ASSERT_TRUE(link_up(loop, one, two));
  ASSERT_TRUE(soon(loop, [&] { return two.bulk_bytes > (32U << 20); }));
  const std::size_t before = two.bulk_bytes;
  one.network.send(PeerId{2}, text_frame("now"));
  ASSERT_TRUE(soon(loop, [&] { return !two.heard.empty(); }));
  // On one stream it would come after what kernel and queue hold: with the usual 4 MB of send and 6 MB of
  // receive buffer about 10 MiB. On its own it comes with the next turns of the loop.
  EXPECT_LT(two.bulk_bytes - before, 4U << 20);
  EXPECT_TRUE(one.linked(2));
}

TEST(TcpNetwork, reports_a_peer_that_vanished_and_nothing_of_it_afterwards) {
  Loop loop;
  Party one(loop, 1);
  auto two = std::make_unique<Party>(loop, 2);
  ASSERT_TRUE(link_up(loop, one, *two));
  const Instant gone = loop.now();
  two.reset();
  ASSERT_TRUE(soon(loop, [&] { return one.count("close") == 1; }));
  EXPECT_LT(to_seconds(loop.now() - gone), 1.0);
  EXPECT_EQ(one.story, (Story{"open 2", "close 2: connection closed"}));
  one.network.send(PeerId{2}, text_frame("anybody?"));
  one.network.pull(PeerId{2});
  const int asked = one.asked[PeerId{2}];
  settle(loop);
  EXPECT_EQ(one.story.size(), 2U);
  EXPECT_EQ(one.asked[PeerId{2}], asked);
}

TEST(TcpNetwork, lets_what_was_sent_leave_before_it_closes) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  const Frame segment = bulk_frame(1, 1 << 20);
  two.make_bulk = [&](PeerId) { return segment; };
  ASSERT_TRUE(link_up(loop, one, two));
  for (int i = 0; i < 60; ++i) one.network.send(PeerId{2}, text_frame(std::string(100'000, 'x')));
  one.network.send(PeerId{2}, text_frame("farewell"));
  one.network.close(PeerId{2});
  EXPECT_FALSE(one.network.flushed());
  ASSERT_TRUE(soon(loop, [&] { return two.count("close") == 1 && one.network.flushed(); }));
  ASSERT_EQ(two.heard[PeerId{1}].size(), 61U);
  EXPECT_EQ(two.heard[PeerId{1}].back(), "farewell");
  EXPECT_EQ(two.story, (Story{"open 1", "close 1: connection closed"}));
  EXPECT_EQ(one.story, Story{"open 2"});
}

TEST(TcpNetwork, counts_the_bytes_of_each_peer_over_all_its_links) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  one.make_bulk = source_of(10, 100'000);
  ASSERT_TRUE(link_up(loop, one, two));
  ASSERT_TRUE(soon(loop, [&] { return two.bulk_bytes == 1'000'000; }));
  settle(loop);
  const LinkBytes sent = one.network.bytes(PeerId{2});
  EXPECT_EQ(sent.sent, two.network.bytes(PeerId{1}).received);
  EXPECT_EQ(sent.received, two.network.bytes(PeerId{1}).sent);
  EXPECT_GT(sent.sent, 1'000'000U);
  EXPECT_LT(sent.sent, 1'001'000U);
  one.network.close(PeerId{2});
  ASSERT_TRUE(soon(loop, [&] { return one.network.flushed() && two.count("close") == 1; }));
  EXPECT_EQ(one.network.bytes(PeerId{2}), sent);
  two.story.clear();
  one.story.clear();
  ASSERT_TRUE(link_up(loop, one, two));
  EXPECT_GT(one.network.bytes(PeerId{2}).sent, sent.sent);
  EXPECT_EQ(one.network.total(), one.network.bytes(PeerId{2}));
  EXPECT_EQ(one.network.bytes(PeerId{3}), LinkBytes{});
}

TEST(TcpNetwork, may_end_with_everything_under_way) {
  Loop loop;
  auto one = std::make_unique<Party>(loop, 1);
  auto two = std::make_unique<Party>(loop, 2);
  Party three(loop, 3);
  const Frame segment = bulk_frame(1, 1 << 20);
  two->make_bulk = [&](PeerId) { return segment; };
  ASSERT_TRUE(link_up(loop, *one, *two));
  one->network.connect(three.address);
  one->network.connect("127.0.0.1:9");
  one->network.close(PeerId{2});
  three.network.connect(one->address);
  two.reset();
  soon(loop, [turns = 0]() mutable { return turns++ == 4; });
  one.reset();
  settle(loop);
  EXPECT_EQ(three.count("open"), three.count("close"));
}

}  // namespace
}  // namespace tw::host
