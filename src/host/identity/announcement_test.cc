// SPDX-License-Identifier: Apache-2.0
#include "host/identity/announcement.h"

#include <gtest/gtest.h>

#include "host/identity/authority.h"

namespace tw::host {
namespace {

constexpr std::int64_t kNow = 20'000;

class AnAnnouncement : public testing::Test {
 protected:
  static wire::Token token_of(const Authority& authority, wire::Role role = wire::Role::peer,
                              std::int64_t expires = 1'000'000) {
    return authority.issue({.role = role, .from_unix_s = 10'000, .expires_unix_s = expires});
  }

  std::string objection_to(std::span<const std::byte> bytes) const {
    const auto read = read_announcement(bytes, *tls, kNow);
    return read ? "none" : read.error().message;
  }

  std::string objection_to(const Announcement& said) const {
    return objection_to(sign_announcement(token, said).value());
  }

  Announcement sound{
      .training = {1, 2}, .peer = PeerId{7}, .address = "10.0.0.5:7000", .until_unix_s = kNow + 600};
  Authority run = Authority::create("words");
  wire::Token token = token_of(run);
  std::unique_ptr<Tls> tls = Tls::open(token, kNow).value();
};

TEST_F(AnAnnouncement, of_a_peer_of_the_run_says_where_it_is) {
  for (const char* address : {"10.0.0.5:7000", "[::1]:7000"}) {
    sound.address = address;
    const auto read = read_announcement(sign_announcement(token_of(run), sound).value(), *tls, kNow);
    ASSERT_TRUE(read) << "of another token of the run: " << read.error().message;
    EXPECT_EQ(read.value(), sound);
  }
}

TEST_F(AnAnnouncement, counts_for_a_time_that_its_clock_may_say) {
  const auto until = [&](std::int64_t unix_s) {
    Announcement said = sound;
    said.until_unix_s = unix_s;
    return objection_to(said);
  };
  EXPECT_EQ(until(kNow), "has expired");
  EXPECT_EQ(until(kNow + 1), "none");
  EXPECT_EQ(until(kNow + 900), "none") << "a clock may be 5 min ahead";
  EXPECT_EQ(until(kNow + 901), "is dated ahead of this machine's clock");
  EXPECT_EQ(until(-1), "has expired");
}

TEST_F(AnAnnouncement, of_somebody_else_is_ignored) {
  const std::string forged = "is not signed by a peer of this run";
  EXPECT_EQ(objection_to(sign_announcement(token_of(Authority::create("words")), sound).value()), forged);
  EXPECT_EQ(objection_to(sign_announcement(token_of(run, wire::Role::observer), sound).value()), forged);
  EXPECT_EQ(objection_to(sign_announcement(token_of(run, wire::Role::peer, kNow - 1), sound).value()), forged)
      << "its token has expired";
}

TEST_F(AnAnnouncement, that_was_changed_or_is_no_address_is_ignored) {
  const auto bytes = sign_announcement(token, sound).value();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto changed = bytes;
    changed[at] ^= std::byte{1};
    EXPECT_NE(objection_to(changed), "none") << at;
    EXPECT_NE(objection_to(std::span(bytes).first(at)), "none") << at;
  }
  EXPECT_EQ(objection_to(std::vector<std::byte>(5000)), "has 5000 bytes, at most 4096 were expected");
  sound.address = "somewhere";
  EXPECT_EQ(objection_to(sound), "names no address HOST:PORT");
}

}  // namespace
}  // namespace tw::host
