// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace tw::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Frame frame_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {Blob(std::vector<std::byte>(bytes.begin(), bytes.end())), {}};
}

std::string text_of(const Frame& frame) {
  std::string text;
  for (const std::byte b : frame.head.bytes()) text += static_cast<char>(b);
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Writes down what it hears, and checks that it is never called from inside its own calls.
struct Listener final : world::NetworkEvents {
  Listener(VirtualNetwork& network, Scheduler& scheduler, int id, Capacity capacity)
      : self{static_cast<std::uint64_t>(id)},
        time(scheduler),
        process(scheduler),
        door(network.attach(process, capacity)) {
    address = door.open("", *this).value();
    door.greet_with(frame_of(std::to_string(id)));
  }

  world::Admission admit(const Frame& hello) override {
    EXPECT_FALSE(calling);
    const PeerId peer{std::stoull(text_of(hello))};
    if (unwanted == peer) return world::Refusal{"unwanted"};
    return peer;
  }

  void on_open(PeerId peer, const Frame& hello) override {
    greetings.push_back(text_of(hello));
    hear("open " + to_string(peer));
  }

  void on_message(PeerId from, Frame frame) override {
    const std::string text = text_of(frame);
    hear(to_string(from) + ":" + (text.size() > 40 ? std::to_string(text.size()) : text));
    received += frame.size();
  }

  void on_close(PeerId peer, const std::string&) override { hear("close " + to_string(peer)); }

  void on_refused(const std::string&, const world::DialFailure& failure) override {
    hear("refused " + failure.why.words);
  }

  std::optional<Frame> next_bulk(PeerId) override {
    EXPECT_FALSE(calling);
    if (bulk.empty()) return std::nullopt;
    Frame next = bulk.front();
    bulk.pop_front();
    return next;
  }

  void hear(const std::string& what) {
    EXPECT_FALSE(calling);
    heard += what + "\n";
    last = time.now();
  }

  void call(const std::function<void(world::Network&)>& what) {
    calling = true;
    what(door);
    calling = false;
  }

  void connect(const Listener& other) {
    call([&](world::Network& n) { n.connect(other.address); });
  }

  void send(const Listener& to, const std::string& text) {
    call([&](world::Network& n) { n.send(to.self, frame_of(text)); });
  }

  void pull(const Listener& to) {
    call([&](world::Network& n) { n.pull(to.self); });
  }

  PeerId self;
  Scheduler& time;
  Process process;
  Port& door;
  std::string address;
  PeerId unwanted;
  std::deque<Frame> bulk;
  std::vector<std::string> greetings;
  std::string heard;
  std::size_t received = 0;
  Instant last{};
  bool calling = false;
};

struct Wire : testing::Test {
  Listener& peer(Capacity capacity = {}) {
    peers.push_back(
        std::make_unique<Listener>(network, scheduler, static_cast<int>(peers.size()) + 1, capacity));
    return *peers.back();
  }

  void link(Listener& a, Listener& b, const Quality& quality = {}) {
    network.set_quality(a.door.number(), b.door.number(), quality);
    a.connect(b);
    scheduler.run_for(seconds(1));
    a.heard.clear();
    b.heard.clear();
  }

  Scheduler scheduler;
  VirtualNetwork network{scheduler, 7};
  std::vector<std::unique_ptr<Listener>> peers;
};

TEST_F(Wire, opens_a_link_at_both_ends_after_the_greeting) {
  Listener &a = peer(), &b = peer();
  network.set_quality(0, 1, {.latency = milliseconds(10)});
  a.connect(b);
  scheduler.run_for(milliseconds(20));
  EXPECT_EQ(a.heard, "");
  scheduler.run_for(milliseconds(1));
  EXPECT_EQ(a.heard, "open 2\n");
  a.send(b, "hi");
  scheduler.run_for(milliseconds(20));
  EXPECT_EQ(b.heard, "open 1\n1:hi\n");
}

TEST_F(Wire, tells_why_a_dial_came_to_nothing) {
  Listener &a = peer(), &b = peer(), &c = peer();
  b.unwanted = a.self;
  a.connect(b);
  scheduler.run_for(milliseconds(100));
  EXPECT_EQ(a.heard, "refused unwanted\n");
  EXPECT_EQ(b.heard, "");
  a.heard.clear();
  network.crash(c.door.number(), Death::clean);
  a.connect(c);
  scheduler.run_for(milliseconds(100));
  EXPECT_EQ(a.heard, "refused connection refused\n");
  a.heard.clear();
  a.call([&](world::Network& n) { n.connect("nowhere:1"); });
  a.connect(a);
  scheduler.run_for(milliseconds(100));
  EXPECT_EQ(a.heard, "refused nobody is known there\nrefused this is my own address\n");
}

TEST_F(Wire, makes_one_link_of_dials_that_meet) {
  for (int lag_us = 0; lag_us < 4000; lag_us += 100) {
    SCOPED_TRACE(lag_us);
    Listener &a = peer(), &b = peer();
    (lag_us % 200 == 0 ? a : b).connect(lag_us % 200 == 0 ? b : a);
    scheduler.run_for(std::chrono::microseconds(lag_us));
    (lag_us % 200 == 0 ? b : a).connect(lag_us % 200 == 0 ? a : b);
    scheduler.run_for(seconds(5));
    const std::string open_a = "open " + to_string(b.self) + "\n",
                      open_b = "open " + to_string(a.self) + "\n";
    const std::string too_late = "refused already connected\n";
    EXPECT_TRUE(a.heard == open_a || a.heard == open_a + too_late) << a.heard;
    EXPECT_TRUE(b.heard == open_b || b.heard == open_b + too_late) << b.heard;
    a.send(b, "x");
    b.send(a, "y");
    scheduler.run_for(seconds(1));
    EXPECT_NE(b.heard.find(":x"), std::string::npos);
    EXPECT_NE(a.heard.find(":y"), std::string::npos);
  }
}

TEST_F(Wire, has_one_link_to_a_peer_though_two_processes_of_its_id_call_at_once) {
  Listener &a = peer(), &b = peer(), &twin = peer();
  const std::string id = std::to_string(b.self.value);
  twin.door.greet_with(frame_of(id + " too"));
  b.connect(a);
  twin.connect(a);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(a.heard, "open " + to_string(b.self) + "\n");
  EXPECT_EQ(a.greetings, std::vector{id}) << "the hello of the link that is open";
  EXPECT_EQ(b.heard, "open " + to_string(a.self) + "\n");
  b.send(a, "x");
  scheduler.run_for(seconds(1));
  EXPECT_NE(a.heard.find(":x"), std::string::npos);
}

TEST_F(Wire, keeps_the_order_of_control_messages_alone_under_jitter) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(5), .jitter = milliseconds(50)});
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    a.send(b, std::to_string(i));
    expected += "1:" + std::to_string(i) + "\n";
    scheduler.run_for(milliseconds(1));
  }
  scheduler.run_for(seconds(5));
  EXPECT_EQ(b.heard, expected);
  b.heard.clear();
  for (int i = 0; i < 50; ++i) a.bulk.push_back(frame_of(std::to_string(i)));
  a.pull(b);
  scheduler.run_for(seconds(5));
  EXPECT_NE(b.heard, expected);
  EXPECT_THAT(lines_of(b.heard), ::testing::UnorderedElementsAreArray(lines_of(expected)));
}

TEST_F(Wire, moves_bulk_at_the_rate_of_the_narrowest_place) {
  struct Case {
    Capacity sender, receiver;
    double path_bytes_per_s;
  };

  const Case cases[] = {
      {{1e6, 1e9}, {1e9, 1e9}, 1e9}, {{1e9, 1e9}, {1e9, 1e6}, 1e9}, {{1e9, 1e9}, {1e9, 1e9}, 1e6}};
  for (const Case& c : cases) {
    Listener &a = peer(c.sender), &b = peer(c.receiver);
    link(a, b, {.latency = milliseconds(1), .bytes_per_s = c.path_bytes_per_s});
    for (int i = 0; i < 100; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
    const Instant begin = scheduler.now();
    a.pull(b);
    scheduler.run_for(seconds(10));
    EXPECT_EQ(b.received, 1'000'000U);
    EXPECT_NEAR(to_seconds(b.last - begin), 1.0, 0.02);
  }
}

TEST_F(Wire, shares_an_uplink_between_receivers) {
  Listener &a = peer({1e6, 1e9}), &b = peer(), &c = peer();
  link(a, b);
  link(a, c);
  for (int i = 0; i < 200; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.pull(b);
  a.pull(c);
  scheduler.run_for(seconds(1));
  EXPECT_NEAR(static_cast<double>(b.received), 500e3, 30e3);
  EXPECT_NEAR(static_cast<double>(c.received), 500e3, 30e3);
}

TEST_F(Wire, caps_bulk_at_window_per_round_trip) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(50), .window_bytes = 100'000});
  for (int i = 0; i < 1000; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.pull(b);
  scheduler.run_for(seconds(4));
  EXPECT_NEAR(static_cast<double>(b.received), 4e6, 0.15e6);
}

TEST_F(Wire, lets_control_pass_bulk) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(1), .bytes_per_s = 1e5});
  for (int i = 0; i < 10; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.pull(b);
  scheduler.run_for(milliseconds(50));
  a.send(b, "quick");
  scheduler.run_for(milliseconds(5));
  EXPECT_EQ(b.heard, "1:quick\n");
}

TEST_F(Wire, closes_after_what_was_sent) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(1), .jitter = milliseconds(20), .bytes_per_s = 1e5});
  a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.pull(b);
  scheduler.run_for(milliseconds(1));
  a.send(b, "bye");
  a.call([&](world::Network& n) { n.close(b.self); });
  b.send(a, "too late");
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "1:bye\n1:10000\nclose 1\n");
  EXPECT_EQ(a.heard, "");
  a.connect(b);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(a.heard, "open 2\n");
}

TEST_F(Wire, closes_the_links_of_a_dead_process_one_latency_later) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(10)});
  a.send(b, "last words");
  network.crash(a.door.number(), Death::clean);
  scheduler.run_for(milliseconds(9));
  EXPECT_EQ(b.heard, "");
  scheduler.run_for(milliseconds(2));
  EXPECT_EQ(b.heard, "1:last words\nclose 1\n");
  b.send(a, "anybody there");
  scheduler.run_for(seconds(1));
  EXPECT_EQ(a.heard, "");
}

TEST_F(Wire, tells_nobody_of_a_machine_that_is_gone) {
  Listener &a = peer(), &b = peer();
  link(a, b);
  network.crash(a.door.number(), Death::silent);
  scheduler.run_for(seconds(100));
  EXPECT_EQ(b.heard, "");
  b.call([&](world::Network& n) { n.close(a.self); });
  b.connect(a);
  scheduler.run_for(Port::kDialTimeout);
  EXPECT_EQ(b.heard, "refused timed out\n");
}

TEST_F(Wire, loses_the_tail_of_some_abrupt_deaths) {
  int arrived = 0;
  for (int i = 0; i < 100; ++i) {
    Listener &a = peer(), &b = peer();
    link(a, b);
    a.send(b, "x");
    network.crash(a.door.number(), Death::abrupt);
    scheduler.run_for(milliseconds(100));
    const std::string close = "close " + to_string(a.self) + "\n";
    ASSERT_TRUE(b.heard.ends_with(close));
    arrived += b.heard != close ? 1 : 0;
  }
  EXPECT_GT(arrived, 20);
  EXPECT_LT(arrived, 80);
}

TEST_F(Wire, accepts_bytes_for_a_stopped_process_up_to_the_window) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(1), .window_bytes = 20'000});
  b.process.stop();
  for (int i = 0; i < 10; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.pull(b);
  a.send(b, "hello");
  scheduler.run_for(seconds(10));
  EXPECT_EQ(a.bulk.size(), 8U);
  EXPECT_EQ(b.heard, "");
  EXPECT_EQ(a.heard, "") << "the link stays open";
  b.process.resume();
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.received, 100'005U);
}

TEST_F(Wire, holds_what_crosses_a_partition_until_it_heals) {
  Listener &a = peer(), &b = peer(), &c = peer();
  link(a, b);
  link(a, c);
  a.bulk.push_back(frame_of("bulk"));
  network.isolate({0, 2});
  a.send(b, "1");
  a.send(c, "1");
  a.pull(b);
  scheduler.run_for(seconds(60));
  EXPECT_EQ(b.heard, "");
  EXPECT_EQ(c.heard, "1:1\n");
  b.connect(c);
  scheduler.run_for(Port::kDialTimeout);
  EXPECT_EQ(b.heard, "refused timed out\n");
  b.heard.clear();
  a.send(b, "2");
  network.heal();
  a.send(b, "3");
  scheduler.run_for(seconds(1));
  EXPECT_NE(b.heard.find("1:1\n1:2\n1:3\n"), std::string::npos) << b.heard;
  EXPECT_NE(b.heard.find("1:bulk"), std::string::npos) << b.heard;
}

TEST_F(Wire, may_close_the_links_across_a_partition) {
  Listener &a = peer(), &b = peer(), &c = peer();
  link(a, b);
  link(a, c);
  link(b, c);
  a.heard.clear();
  network.isolate({0}, true);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(a.heard, "close 2\nclose 3\n");
  EXPECT_EQ(b.heard, "close 1\n");
  EXPECT_EQ(c.heard, "close 1\n");
}

TEST_F(Wire, loses_what_is_under_way_when_a_link_is_reset_and_works_afresh_after_a_new_dial) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(10), .window_bytes = 20'000});
  for (int i = 0; i < 4; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.pull(b);
  a.send(b, "lost");
  scheduler.run_for(milliseconds(5));
  network.reset(0, 1);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(a.heard, "close 2\n");
  EXPECT_EQ(b.heard, "close 1\n");
  EXPECT_EQ(a.bulk.size(), 2U);
  b.connect(a);
  scheduler.run_for(seconds(1));
  a.pull(b);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.received, 20'000U);
}

TEST_F(Wire, forgets_acknowledgements_of_a_link_that_was_reset) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(10), .window_bytes = 20'000});
  for (int i = 0; i < 6; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.pull(b);
  scheduler.run_for(milliseconds(15));
  EXPECT_EQ(b.received, 20'000U);
  network.reset(0, 1);
  scheduler.run_for(seconds(1));
  b.connect(a);
  scheduler.run_for(seconds(1));
  a.pull(b);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.received, 60'000U);
}

TEST_F(Wire, replaces_a_link_whose_other_end_has_begun_anew) {
  Listener &a = peer(), &b = peer();
  link(a, b);
  b.process.stop();
  a.call([&](world::Network& n) { n.close(b.self); });
  a.connect(b);
  scheduler.run_for(seconds(1));
  b.process.resume();
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "close 1\nopen 1\n");
  EXPECT_EQ(a.heard, "open 2\n");
}

TEST_F(Wire, gives_up_a_dial_to_a_stopped_process) {
  Listener &a = peer(), &b = peer();
  b.process.stop();
  a.connect(b);
  scheduler.run_for(seconds(10));
  EXPECT_EQ(a.heard, "refused timed out\n");
  b.process.resume();
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "refused timed out\n");
  a.connect(b);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(a.heard, "refused timed out\nopen 2\n");
}

TEST_F(Wire, holds_one_direction_and_loses_nothing) {
  Listener &a = peer(), &b = peer();
  link(a, b);
  network.hold(0, 1);
  a.bulk.push_back(frame_of("bulk"));
  a.pull(b);
  a.send(b, "1");
  b.send(a, "the other way");
  scheduler.run_for(seconds(60));
  EXPECT_EQ(a.heard, "2:the other way\n");
  EXPECT_EQ(b.heard, "");
  a.send(b, "2");
  network.release(0, 1);
  scheduler.run_for(seconds(1));
  EXPECT_NE(b.heard.find("1:1\n1:2\n"), std::string::npos) << b.heard;
  EXPECT_NE(b.heard.find("1:bulk\n"), std::string::npos) << b.heard;
}

TEST_F(Wire, times_out_dials_in_both_directions_while_one_is_held) {
  Listener &a = peer(), &b = peer();
  network.hold(0, 1);
  EXPECT_TRUE(network.cut(0, 1) && network.cut(1, 0));
  a.connect(b);
  b.connect(a);
  scheduler.run_for(Port::kDialTimeout);
  EXPECT_EQ(a.heard, "refused timed out\n");
  EXPECT_EQ(b.heard, "refused timed out\n");
  network.release(0, 1);
  a.connect(b);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "refused timed out\nopen 1\n");
}

TEST_F(Wire, wants_a_release_for_each_hold_and_keeps_holds_apart_from_isolation) {
  Listener &a = peer(), &b = peer();
  link(a, b);
  network.hold(0, 1);
  network.hold(0, 1);
  network.isolate({0});
  a.send(b, "x");
  network.release(0, 1);
  scheduler.run_for(seconds(1));
  network.release(0, 1);
  network.release(0, 1);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "") << "still isolated";
  network.hold(0, 1);
  network.heal();
  EXPECT_FALSE(network.cut(0, 1));
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "1:x\n") << "healing ends holds, too";
}

TEST_F(Wire, swallows_what_is_sent_on_a_half_open_link_and_takes_a_new_one) {
  Listener &a = peer(), &b = peer();
  link(a, b, {.latency = milliseconds(10), .window_bytes = 20'000});
  a.send(b, "before");
  EXPECT_TRUE(network.black_hole(0, 1));
  for (int i = 0; i < 5; ++i) a.bulk.push_back(frame_of(std::string(10'000, 'x')));
  a.send(b, "lost");
  b.send(a, "lost");
  a.pull(b);
  scheduler.run_for(seconds(100));
  EXPECT_EQ(b.heard, "1:before\n");
  EXPECT_EQ(a.heard, "");
  EXPECT_EQ(a.bulk.size(), 3U) << "the window is full of what was never acknowledged";
  network.heal();
  a.call([&](world::Network& n) { n.close(b.self); });
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "1:before\n") << "nor is its end told";
  a.connect(b);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "1:before\nclose 1\nopen 1\n");
  EXPECT_EQ(a.heard, "open 2\n");
  a.pull(b);
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.received, 6U + 30'000U);
}

TEST_F(Wire, makes_no_black_hole_where_no_link_is) {
  Listener &a = peer(), &b = peer();
  EXPECT_FALSE(network.black_hole(0, 1));
  link(a, b);
  a.send(b, "x");
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "1:x\n");
}

TEST_F(Wire, tells_nobody_of_a_process_that_dies_behind_a_half_open_link) {
  Listener &a = peer(), &b = peer();
  link(a, b);
  network.black_hole(0, 1);
  network.crash(0, Death::clean);
  scheduler.run_for(seconds(100));
  EXPECT_EQ(b.heard, "");
}

TEST_F(Wire, counts_a_byte_of_a_bulk_payload_as_many) {
  Listener &a = peer(), &b = peer();
  network.set_bulk_scale(1000);
  link(a, b, {.latency = milliseconds(1), .bytes_per_s = 1e6});
  const std::uint64_t greeting = network.bytes_sent(0, 1);
  a.bulk.push_back({frame_of("head").head, Blob(std::vector<std::byte>(500))});
  const Instant begin = scheduler.now();
  a.pull(b);
  scheduler.run_for(seconds(10));
  EXPECT_EQ(network.bytes_sent(0, 1) - greeting, 500'004U);
  EXPECT_EQ(b.received, 504U);
  EXPECT_NEAR(to_seconds(b.last - begin), 0.505, 0.002);
}

TEST_F(Wire, moves_messages_larger_than_the_window_at_window_per_round_trip) {
  Listener &a = peer({1e9, 1e9}), &b = peer({1e9, 1e9});
  link(a, b, {.latency = milliseconds(50), .bytes_per_s = 1e9, .window_bytes = 100'000});
  network.set_bulk_scale(1000);
  for (int i = 0; i < 100; ++i) a.bulk.push_back({frame_of("x").head, Blob(std::vector<std::byte>(350))});
  const Instant begin = scheduler.now();
  a.pull(b);
  scheduler.run_for(seconds(100));
  EXPECT_TRUE(a.bulk.empty());
  EXPECT_NEAR(to_seconds(b.last - begin), 35.05, 0.2);
}

TEST_F(Wire, counts_what_was_sent) {
  Listener &a = peer(), &b = peer(), &c = peer();
  link(a, b);
  link(a, c);
  const std::uint64_t control = network.control_bytes_sent(0), messages = network.messages_sent(0);
  const std::uint64_t to_b = network.bytes_sent(0, 1), to_c = network.bytes_sent(0, 2);
  a.send(b, "12345");
  a.bulk.push_back(frame_of("123"));
  a.pull(c);
  scheduler.run_for(seconds(1));
  network.black_hole(0, 1);
  a.send(b, "1234567");
  EXPECT_EQ(network.control_bytes_sent(0) - control, 12U);
  EXPECT_EQ(network.messages_sent(0) - messages, 3U);
  EXPECT_EQ(network.bytes_sent(0, 1) - to_b, 12U);
  EXPECT_EQ(network.bytes_sent(0, 2) - to_c, 3U);
  EXPECT_EQ(network.bytes_sent(1, 2), 0U);
}

TEST_F(Wire, sends_what_tampering_makes_of_messages) {
  Listener &a = peer(), &b = peer();
  link(a, b);
  network.tamper(0, [](const Frame& frame) -> std::vector<Frame> {
    const std::string text = text_of(frame);
    if (text == "drop") return {};
    return {frame_of(text + "!"), frame_of(text + "?")};
  });
  a.send(b, "1");
  a.send(b, "drop");
  b.send(a, "mine");
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "1:1!\n1:1?\n");
  EXPECT_EQ(a.heard, "2:mine\n");
  b.heard.clear();
  for (const char* text : {"x", "drop", "y"}) a.bulk.push_back(frame_of(text));
  a.pull(b);
  scheduler.run_for(seconds(1));
  EXPECT_THAT(lines_of(b.heard), ::testing::UnorderedElementsAre("1:x!", "1:x?", "1:y!", "1:y?"));
  b.heard.clear();
  network.tamper(0, {});
  a.send(b, "2");
  scheduler.run_for(seconds(1));
  EXPECT_EQ(b.heard, "1:2\n");
}

TEST_F(Wire, tampers_with_greetings) {
  Listener &a = peer(), &b = peer(), &c = peer();
  network.tamper(0, [](const Frame&) -> std::vector<Frame> { return {frame_of("77"), frame_of("78")}; });
  b.unwanted = PeerId{77};
  a.connect(b);
  c.connect(a);
  scheduler.run_for(seconds(1));
  EXPECT_NE(a.heard.find("refused unwanted\n"), std::string::npos) << a.heard;
  EXPECT_EQ(c.heard, "open 77\n");
}

}  // namespace
}  // namespace tw::sim
