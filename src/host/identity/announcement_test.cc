// SPDX-License-Identifier: Apache-2.0
#include "host/identity/announcement.h"

#include <gtest/gtest.h>

#include "host/identity/authority.h"

namespace tw::host {
namespace {

class Announcement : public testing::Test {
 protected:
  wire::Token token_of(const Authority& authority, wire::Role role = wire::Role::peer,
                       std::int64_t expires = 1'000'000) {
    return authority.issue({.role = role, .from_unix_s = 10'000, .expires_unix_s = expires});
  }

  std::optional<std::string> read(std::span<const std::byte> bytes, std::int64_t now = 20'000) {
    return read_announcement(bytes, *tls, now);
  }

  Authority run = Authority::create("words");
  wire::Token token = token_of(run);
  std::unique_ptr<Tls> tls = Tls::open(token, 20'000).value();
};

TEST_F(Announcement, of_a_peer_of_the_run_gives_its_address) {
  EXPECT_EQ(read(sign_announcement(token, "10.0.0.5:7000", 20'600)), "10.0.0.5:7000");
  EXPECT_EQ(read(sign_announcement(token_of(run), "[::1]:7000", 20'600)), "[::1]:7000") << "of another token";
}

TEST_F(Announcement, that_is_over_is_ignored) {
  EXPECT_EQ(read(sign_announcement(token, "10.0.0.5:7000", 20'000)), std::nullopt);
  EXPECT_EQ(read(sign_announcement(token_of(run, wire::Role::peer, 19'000), "10.0.0.5:7000", 20'600)),
            std::nullopt);
}

TEST_F(Announcement, of_somebody_else_is_ignored) {
  EXPECT_EQ(read(sign_announcement(token_of(Authority::create("words")), "10.0.0.5:7000", 20'600)),
            std::nullopt);
  EXPECT_EQ(read(sign_announcement(token_of(run, wire::Role::observer), "10.0.0.5:7000", 20'600)),
            std::nullopt);
}

TEST_F(Announcement, that_was_changed_or_is_no_address_is_ignored) {
  EXPECT_EQ(read(sign_announcement(token, "somewhere", 20'600)), std::nullopt);
  const auto sound = sign_announcement(token, "10.0.0.5:7000", 20'600);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    auto changed = sound;
    changed[at] ^= std::byte{1};
    EXPECT_EQ(read(changed), std::nullopt) << at;
    EXPECT_EQ(read(std::span(sound).first(at)), std::nullopt) << at;
  }
}

}  // namespace
}  // namespace tw::host
