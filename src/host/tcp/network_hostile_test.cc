// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "host/address.h"
#include "host/identity/authority.h"
#include "host/identity/tls.h"
#include "host/system/calendar.h"
#include "host/system/cpu_time.h"
#include "host/tcp/admission/greeting.h"
#include "host/tcp/admission/stranger.h"
#include "host/tcp/framing.h"
#include "host/tcp/party.h"
#include "host/web/server.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

/// Takes connections in without a word of its own.
class Door {
 public:
  Door() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    TW_CHECK(::bind(socket_, reinterpret_cast<const sockaddr*>(&any), size) == 0 &&
             ::listen(socket_, 8) == 0);
    TW_CHECK(::getsockname(socket_, reinterpret_cast<sockaddr*>(&any), &size) == 0);
    address = to_string(Address{"127.0.0.1", ntohs(any.sin_port)});
  }

  ~Door() { ::close(socket_); }

  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  std::unique_ptr<Stranger> next(Loop& loop) {
    int taken = -1;
    soon(loop, [&] { return (taken = ::accept(socket_, nullptr, nullptr)) >= 0; });
    return std::make_unique<Stranger>(taken);
  }

  std::string address;

 private:
  int socket_;
};

/// The nonce in the greeting that a dialer sent, as bytes of the stream.
std::uint64_t nonce_in(const std::string& stream) {
  std::uint64_t nonce = 0;
  std::memcpy(&nonce, stream.data() + preface().size() + FrameLengths().size() + 10, sizeof nonce);
  return nonce;
}

/// Lengths that no frame has.
FrameLengths lengths(std::uint32_t head, std::uint32_t payload) {
  FrameLengths bytes{};
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(head >> (8 * i));
  for (std::size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<std::byte>(payload >> (8 * i));
  return bytes;
}

/// By hand what the dialer of a link does; the other side is linked to peer 9 then.
struct ByHand {
  explicit ByHand(Loop& loop, Party& party) : control(party.address), bulk(party.address) {
    control.say(preface());
    control.say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{9}, 42, {}}));
    control.say(text_frame("9"));
    control.say(encode_greeting({StreamKind::control, Verdict::accept, PeerId{9}, 42, {}}));
    soon(loop, [this] { return control.heard().size() > 40; });
    bulk.say(preface());
    bulk.say(encode_greeting({StreamKind::bulk, Verdict::greet, PeerId{9}, 42, {}}));
    soon(loop, [&] { return party.linked(9); });
  }

  Stranger control;
  Stranger bulk;
};

TEST(HostileNetwork, links_to_a_peer_that_follows_the_protocol_by_hand) {
  Loop loop;
  Party one(loop, 1);
  ByHand nine(loop, one);
  ASSERT_TRUE(one.linked(9));
  nine.control.say(text_frame("hi"));
  EXPECT_TRUE(soon(loop, [&] { return one.heard[PeerId{9}] == std::vector<std::string>{"hi"}; }));
}

TEST(HostileNetwork, keeps_messages_that_overtake_the_answer_on_the_bulk_stream) {
  Loop loop;
  Party one(loop, 1);
  Door door;
  one.network.connect(door.address);
  const auto control = door.next(loop);
  ASSERT_TRUE(soon(loop, [&] { return control->heard().size() > 40; }));
  const std::uint64_t nonce = nonce_in(control->heard());
  control->say(preface());
  control->say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{9}, nonce, {}}));
  control->say(text_frame("9"));
  control->say(text_frame("early"));
  const auto bulk = door.next(loop);
  control->say(text_frame("bird"));
  settle(loop);
  EXPECT_TRUE(one.story.empty());
  bulk->say(preface());
  bulk->say(encode_greeting({StreamKind::bulk, Verdict::accept, PeerId{9}, nonce, {}}));
  ASSERT_TRUE(soon(loop, [&] { return one.heard[PeerId{9}].size() == 2; }));
  EXPECT_EQ(one.heard[PeerId{9}], (std::vector<std::string>{"early", "bird"}));
  EXPECT_EQ(one.story, std::vector<std::string>{"open 9"});
}

TEST(HostileNetwork, ends_the_dial_that_gave_way_like_the_connection_it_gave_way_to) {
  Loop loop;
  Party nine(loop, 9);
  Door door;
  nine.network.connect(door.address);
  const auto dialed = door.next(loop);
  ASSERT_TRUE(soon(loop, [&] { return dialed->heard().size() > 40; }));
  auto winner = std::make_unique<Stranger>(nine.address);
  winner->say(preface());
  winner->say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{1}, 42, {}}));
  winner->say(text_frame("1"));
  ASSERT_TRUE(soon(loop, [&] { return winner->heard().size() > 40; }));
  dialed->say(preface());
  dialed->say(
      encode_greeting({StreamKind::control, Verdict::duplicate, PeerId{1}, nonce_in(dialed->heard()), {}}));
  ASSERT_TRUE(soon(loop, [&] { return dialed->ended(); }));
  EXPECT_TRUE(nine.story.empty()) << nine.story[0];
  winner.reset();
  ASSERT_TRUE(soon(loop, [&] { return !nine.story.empty(); }));
  EXPECT_TRUE(nine.story[0].starts_with("refused " + door.address + ": ")) << nine.story[0];
}

TEST(HostileNetwork, closes_a_connection_of_garbage_and_no_other) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  ASSERT_TRUE(link_up(loop, one, two));
  Stranger browser(one.address);
  browser.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(soon(loop, [&] { return browser.ended(); }));
  ASSERT_EQ(one.garbage.size(), 1U);
  EXPECT_NE(one.garbage[0].find(": does not speak tradewind (its first bytes are 47455420)"),
            std::string::npos)
      << one.garbage[0];
  one.network.send(PeerId{2}, text_frame("undisturbed"));
  EXPECT_TRUE(soon(loop, [&] { return !two.heard.empty(); }));
  EXPECT_EQ(one.story, std::vector<std::string>{"open 2"});
}

TEST(HostileNetwork, tells_a_peer_of_another_version_its_own) {
  Loop loop;
  Party one(loop, 1);
  Stranger newer(one.address);
  Preface later = preface();
  later[4] = std::byte{3};
  newer.say(later);
  ASSERT_TRUE(soon(loop, [&] { return newer.ended(); }));
  EXPECT_NE(one.garbage.at(0).find("speaks version 3 of the streams, this peer version 2"),
            std::string::npos);
  const auto own = preface();
  EXPECT_EQ(newer.heard(), std::string(reinterpret_cast<const char*>(own.data()), own.size()));
}

TEST(HostileNetwork, closes_a_stranger_that_announces_a_large_hello) {
  Loop loop;
  Party one(loop, 1);
  Stranger stranger(one.address);
  stranger.say(preface());
  stranger.say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{9}, 42, {}}));
  stranger.say(lengths(1 << 20, 0));
  ASSERT_TRUE(soon(loop, [&] { return stranger.ended(); }));
  EXPECT_NE(one.garbage.at(0).find("announced a head of 1048576 bytes, the limit is 65536"),
            std::string::npos);
}

TEST(HostileNetwork, closes_a_link_over_a_frame_beyond_the_limit) {
  struct Case {
    std::uint32_t head, payload;
    bool on_bulk;
    std::string why;
  };

  for (const auto& c :
       {Case{0xffffffffU, 0, false, "announced a head of 4294967295 bytes, the limit is 1048576"},
        Case{1, (1 << 20) + 1, true, "announced a payload of 1048577 bytes, the limit is 1048576"}}) {
    Loop loop;
    Party one(loop, 1);
    ByHand nine(loop, one);
    (c.on_bulk ? nine.bulk : nine.control).say(lengths(c.head, c.payload));
    ASSERT_TRUE(soon(loop, [&] { return one.count("close") == 1; }));
    EXPECT_EQ(one.story.back(), "close 9: " + c.why);
    EXPECT_TRUE(soon(loop, [&] { return nine.control.ended() && nine.bulk.ended(); }));
  }
}

TEST(HostileNetwork, closes_a_link_whose_control_messages_are_not_read) {
  Loop loop;
  Party one(loop, 1);
  ByHand nine(loop, one);
  int sent = 0;
  const std::function<void()> send_more = [&] {
    if (one.count("close") > 0) return;
    one.network.send(PeerId{9}, text_frame(std::string(1 << 19, 'x')));
    ++sent;
    loop.post(send_more);
  };
  send_more();
  ASSERT_TRUE(soon(loop, [&] { return one.count("close") == 1; }));
  EXPECT_EQ(one.story.back(), "close 9: it leaves more than 8 MiB of control messages unread");
  EXPECT_GT(sent, 16);
  EXPECT_LT(sent, 100);
}

TEST(HostileNetwork, waits_with_bulk_for_a_peer_that_does_not_read) {
  Loop loop;
  Party one(loop, 1);
  const Frame segment{text_blob("segment"), text_blob(std::string(1 << 20, 'x'))};
  one.make_bulk = [&](PeerId) { return segment; };
  ByHand nine(loop, one);
  settle(loop);
  settle(loop);
  const int asked = one.asked[PeerId{9}];
  EXPECT_LT(asked, 40);
  settle(loop);
  one.network.pull(PeerId{9});
  settle(loop);
  EXPECT_EQ(one.asked[PeerId{9}], asked);
  settle(loop);
  EXPECT_FALSE(nine.bulk.ended());
  settle(loop);
  EXPECT_LE(one.asked[PeerId{9}], 17)
      << "it reads but grants nothing: the first window, 16 MiB, is all it gets";
  nine.control.say(encode_link_word({LinkWord::Kind::grant, 64 << 20}));
  EXPECT_TRUE(soon(loop, [&] { return nine.bulk.ended() || one.asked[PeerId{9}] > 2 * asked; }));
  EXPECT_TRUE(one.linked(9));
}

TEST(HostileNetwork, ends_a_link_whose_words_make_no_sense) {
  Loop loop;
  Party one(loop, 1);
  ByHand nine(loop, one);
  nine.control.say(Frame{{}, text_blob("grant me all")});
  ASSERT_TRUE(soon(loop, [&] { return one.count("close") == 1; }));
  EXPECT_EQ(one.story.back(), "close 9: it sent a malformed control message");
}

/// By hand what the dialer of a data stream does; without `confirmed` it stops before its last word.
std::unique_ptr<Stranger> data_stream(Party& party, std::uint64_t nonce, bool confirmed) {
  auto stream = std::make_unique<Stranger>(party.address);
  stream->say(preface());
  stream->say(encode_greeting({StreamKind::bulk, Verdict::greet, PeerId{9}, nonce, {}}));
  if (confirmed) stream->say(encode_greeting({StreamKind::bulk, Verdict::accept, PeerId{9}, nonce, {}}));
  return stream;
}

TEST(HostileNetwork, takes_no_more_data_streams_than_the_most_and_none_with_another_nonce) {
  Loop loop;
  Party one(loop, 1);
  ByHand nine(loop, one);
  std::vector<std::unique_ptr<Stranger>> more;
  more.push_back(data_stream(one, 43, true));
  for (int i = 0; i < StreamCount::kMost + 2; ++i) more.push_back(data_stream(one, 42, true));
  const auto ended = [&] {
    return std::count_if(more.begin(), more.end(), [](const auto& stream) { return stream->ended(); });
  };
  EXPECT_TRUE(soon(loop, [&] { return more.front()->ended() && ended() == 4; }));
  settle(loop);
  EXPECT_EQ(ended(), 4);
  EXPECT_EQ(one.network.data_streams(PeerId{9}), static_cast<std::size_t>(StreamCount::kMost));
  EXPECT_TRUE(one.linked(9));
}

TEST(HostileNetwork, a_data_stream_that_ends_before_its_dialer_confirms_it_takes_no_link_along) {
  Loop loop;
  Party one(loop, 1);
  ByHand nine(loop, one);
  auto given_up = data_stream(one, 42, false);
  const auto kept = data_stream(one, 42, true);
  ASSERT_TRUE(
      soon(loop, [&] { return one.network.data_streams(PeerId{9}) == 2 && !given_up->heard().empty(); }));
  given_up.reset();
  settle(loop);
  EXPECT_TRUE(one.linked(9));
  EXPECT_EQ(one.network.data_streams(PeerId{9}), 2U);
}

TEST(HostileNetwork, reports_a_reset_and_an_end_in_mid_message) {
  Loop loop;
  Party one(loop, 1);
  {
    ByHand nine(loop, one);
    nine.control.say(lengths(100, 0));
    nine.control.say("half");
    settle(loop);
    nine.control.finish();
    ASSERT_TRUE(soon(loop, [&] { return one.count("close") == 1; }));
    EXPECT_EQ(one.story.back(), "close 9: connection closed in the middle of a message");
  }
  ByHand nine(loop, one);
  nine.control.reset();
  ASSERT_TRUE(soon(loop, [&] { return one.count("close") == 2; }));
  EXPECT_EQ(one.story.back(), "close 9: connection reset");
}

TEST(HostileNetwork, takes_no_bulk_stream_with_a_wrong_nonce) {
  Loop loop;
  Party one(loop, 1);
  Stranger control(one.address);
  control.say(preface());
  control.say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{9}, 42, {}}));
  control.say(text_frame("9"));
  control.say(encode_greeting({StreamKind::control, Verdict::accept, PeerId{9}, 42, {}}));
  ASSERT_TRUE(soon(loop, [&] { return control.heard().size() > 40; }));
  Stranger bulk(one.address);
  bulk.say(preface());
  bulk.say(encode_greeting({StreamKind::bulk, Verdict::greet, PeerId{9}, 43, {}}));
  ASSERT_TRUE(soon(loop, [&] { return bulk.ended(); }));
  EXPECT_TRUE(one.story.empty());
  EXPECT_NE(one.garbage.at(0).find("brings a bulk stream for no link"), std::string::npos);
}

TEST(HostileNetwork, makes_no_link_of_malformed_greetings_and_early_messages) {
  Loop loop;
  Party one(loop, 1);
  Stranger malformed(one.address);
  malformed.say(preface());
  malformed.say(text_frame("hello?"));
  Stranger early(one.address);
  early.say(preface());
  early.say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{9}, 42, {}}));
  early.say(text_frame("9"));
  early.say(encode_greeting({StreamKind::control, Verdict::accept, PeerId{9}, 42, {}}));
  early.say(encode_greeting({StreamKind::control, Verdict::accept, PeerId{9}, 42, {}}));
  EXPECT_TRUE(soon(loop, [&] { return malformed.ended() && early.ended(); }));
  EXPECT_TRUE(one.story.empty());
  EXPECT_EQ(one.garbage.size(), 2U);
  Party nine(loop, 9);
  EXPECT_TRUE(link_up(loop, nine, one)) << "the claim of the connection that failed is released";
}

/// Silent strangers and slow ones in turn, from hosts that begin with 127.0.0.first.
std::vector<std::unique_ptr<Stranger>> besiegers(const Party& party, int many, std::uint32_t first,
                                                 std::uint32_t hosts) {
  std::vector<std::unique_ptr<Stranger>> all;
  for (std::uint32_t i = 0; static_cast<int>(i) < many; ++i) {
    all.push_back(std::make_unique<Stranger>(party.address, first + i / 2 % hosts));
    if (i % 2 == 1) all.back()->say("TW");
  }
  return all;
}

bool linked_within(Loop& loop, Party& dialer, Party& other, Duration limit) {
  dialer.network.connect(other.address);
  return loop.run_until([&] { return dialer.linked(1) && other.linked(2); }, limit);
}

TEST(HostileNetwork, links_a_peer_through_many_strangers_of_other_hosts) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  const auto strangers = besiegers(one, 300, 2, 8);
  EXPECT_TRUE(linked_within(loop, two, one, 2s));
}

TEST(HostileNetwork, links_a_peer_through_many_strangers_of_its_own_host) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  const auto strangers = besiegers(one, 300, 1, 1);
  EXPECT_TRUE(linked_within(loop, two, one, 2s));
}

TEST(HostileNetwork, says_nothing_to_a_stranger_that_says_nothing) {
  Loop loop;
  Party one(loop, 1);
  Stranger silent(one.address);
  Stranger speaks(one.address);
  speaks.say("T");
  ASSERT_TRUE(soon(loop, [&] { return !speaks.heard().empty(); }));
  EXPECT_TRUE(silent.heard().empty());
  silent.finish();
  ASSERT_TRUE(soon(loop, [&] { return !one.garbage.empty(); }));
  EXPECT_EQ(one.causes, std::vector<event::Cause>{event::Cause::broken});
  EXPECT_NE(one.garbage[0].find("closed without a message"), std::string::npos) << one.garbage[0];
}

std::unique_ptr<Tls> tls_of_a_run() {
  const std::int64_t now = now_unix_s();
  const wire::Token token =
      Authority::create("words").issue({.from_unix_s = now - 60, .expires_unix_s = now + 3600});
  return std::move(Tls::open(token, now)).value();
}

TEST(HostileNetwork, says_that_a_web_server_answers) {
  const auto tls = tls_of_a_run();
  for (const Tls* with : {static_cast<const Tls*>(nullptr), static_cast<const Tls*>(tls.get())}) {
    Loop loop;
    Party one(loop, 1, {.tls = with});
    Door door;
    one.network.connect(door.address);
    const auto server = door.next(loop);
    server->say("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
    EXPECT_EQ(one.story[0], "refused " + door.address + ": " + std::string(kSpeaksHttp));
  }
}

TEST(HostileNetwork, says_that_a_service_closed_without_a_word) {
  const auto tls = tls_of_a_run();
  for (const Tls* with : {static_cast<const Tls*>(nullptr), static_cast<const Tls*>(tls.get())}) {
    Loop loop;
    Party one(loop, 1, {.tls = with});
    const auto page =
        WebServer::open(loop, {.address = "127.0.0.1:0"}, [](const WebRequest&) { return WebAnswer{}; });
    ASSERT_TRUE(page) << page.error().message;
    std::string address = page.value()->url().substr(std::string("http://").size());
    address.pop_back();  // the slash
    one.network.connect(address);
    ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
    EXPECT_NE(one.story[0].find(" without a word (a page, another service, or a peer that restarts)"),
              std::string::npos)
        << one.story[0];
  }
}

/// Leaves so many descriptors free in this process.
class FewDescriptors {
 public:
  explicit FewDescriptors(int free) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit few{static_cast<rlim_t>(next + free), before_.rlim_max};
    TW_CHECK(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }

  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(HostileNetwork, dismisses_strangers_when_descriptors_are_out) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  const auto strangers = besiegers(one, 60, 2, 8);
  {
    const FewDescriptors few(4);
    EXPECT_TRUE(loop.run_until([&] { return one.garbage.size() > 50; }, 2s)) << one.garbage.size();
  }
  EXPECT_EQ(std::ranges::count(one.causes, event::Cause::crowded), std::ssize(one.causes));
  EXPECT_TRUE(link_up(loop, two, one));
}

TEST(HostileNetwork, waits_without_work_while_there_is_no_descriptor_at_all) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  Stranger waits(one.address);
  {
    const FewDescriptors none(0);
    const double before = cpu_seconds();
    loop.run_until([] { return false; }, 500ms);
    EXPECT_LT(cpu_seconds() - before, 0.1);
  }
  ASSERT_EQ(one.causes, std::vector<event::Cause>{event::Cause::own});
  EXPECT_NE(one.garbage[0].find("cannot take in connections: too many open files (raise the limit"),
            std::string::npos)
      << one.garbage[0];
  waits.say("T");
  EXPECT_TRUE(soon(loop, [&] { return !waits.heard().empty(); }));
  EXPECT_TRUE(link_up(loop, two, one));
}

TEST(HostileNetwork, says_how_a_process_gets_more_descriptors) {
  Loop loop;
  Party one(loop, 1);
  Party two(loop, 2);
  {
    const FewDescriptors none(0);
    one.network.connect(two.address);
    ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
  }
  EXPECT_NE(one.story[0].find("too many open files (raise the limit of this process, for example: ulimit -n"),
            std::string::npos)
      << one.story[0];
}

TEST(HostileNetwork, closes_who_says_no_hello_in_time) {
  Loop loop;
  Party one(loop, 1, {.patience = std::chrono::milliseconds(100)});
  Stranger silent(one.address);
  Stranger slow(one.address);
  slow.say(preface());
  slow.say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{8}, 42, {}}));
  Stranger half(one.address);
  half.say(preface());
  half.say(encode_greeting({StreamKind::control, Verdict::greet, PeerId{9}, 42, {}}));
  half.say(text_frame("9"));
  ASSERT_TRUE(soon(loop, [&] { return silent.ended() && slow.ended() && half.ended(); }));
  EXPECT_EQ(one.causes, (std::vector<event::Cause>{event::Cause::silent, event::Cause::slow}));
  EXPECT_NE(one.garbage[0].find("said nothing within 0.1 s"), std::string::npos) << one.garbage[0];
  EXPECT_NE(one.garbage[1].find("no hello within 0.1 s"), std::string::npos) << one.garbage[1];
  EXPECT_TRUE(one.story.empty());
}

}  // namespace
}  // namespace tw::host
