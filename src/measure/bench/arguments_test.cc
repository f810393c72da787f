// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/arguments.h"

#include <gtest/gtest.h>

namespace tw::measure {
namespace {

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

TEST(Bytes, have_units_of_1000_and_of_1024) {
  EXPECT_EQ(parse_bytes("--bytes", "64MiB").value(), 64U << 20U);
  EXPECT_EQ(parse_bytes("--bytes", "256MB").value(), 256'000'000U);
  EXPECT_EQ(parse_bytes("--bytes", "4KiB").value(), 4096U);
  EXPECT_EQ(parse_bytes("--bytes", "1kB").value(), 1000U);
  EXPECT_EQ(parse_bytes("--bytes", "2GiB").value(), 2ULL << 30U);
  EXPECT_EQ(parse_bytes("--bytes", "4").value(), 4U);
  EXPECT_EQ(parse_bytes("--bytes", "8B").value(), 8U);
}

TEST(Bytes, that_are_no_whole_floats_or_no_size_show_a_right_one) {
  for (const char* text :
       {"", "0", "0MiB", "3", "6B", "64 MiB", "64mib", "-4", "1.5GB", "MiB", "99999999GiB"}) {
    const auto bytes = parse_bytes("--bytes", text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_TRUE(
        says(bytes.error().message, std::string("--bytes ") + text + ": expected a size such as 64MiB"));
  }
}

TEST(CodecName, goes_both_ways_and_a_wrong_one_shows_those_that_there_are) {
  for (const codec::Codec codec : codec::kCodecs)
    EXPECT_EQ(parse_codec(std::string(name_of(codec))).value(), codec);
  EXPECT_TRUE(says(parse_codec("fp17").error().message, "did you mean \"fp16\"?"));
  EXPECT_TRUE(says(parse_codec("zip").error().message, "--codec zip: expected fp32, fp16, bf16, int8, int4"));
}

TEST(Disturbance, names_a_peer_or_the_leader_and_a_moment) {
  EXPECT_EQ(parse_disturbance("--kill", "2@0.5", 4).value(),
            (Disturbance{Disturbance::Kind::kill, PeerId{2}, 0.5}));
  EXPECT_EQ(parse_disturbance("--stop", "leader@1", 4).value(),
            (Disturbance{Disturbance::Kind::stop, std::nullopt, 1}));
  EXPECT_EQ(parse_disturbance("--kill", "4@0", 4).value().victim, PeerId{4});
}

TEST(Disturbance, that_is_wrong_shows_a_right_one) {
  for (const char* text : {"2", "2@", "@0.5", "x@0.5", "2@1.5", "2@-0.1", "2@nan", "leader"})
    EXPECT_TRUE(says(parse_disturbance("--kill", text, 4).error().message,
                     std::string("--kill ") + text + ": expected PEER@FRACTION such as 2@0.5"))
        << text;
  EXPECT_TRUE(says(parse_disturbance("--stop", "5@0.5", 4).error().message,
                   "there are peers 1 to 4, for example --stop 4@0.5"));
  EXPECT_FALSE(parse_disturbance("--stop", "0@0.5", 4));
}

TEST(Trouble, has_a_kind_and_a_length) {
  EXPECT_EQ(parse_trouble("busy@20s", false).value(), (TroubleTime{TroubleKind::busy, from_seconds(20)}));
  EXPECT_EQ(parse_trouble("link@1.5", true).value(), (TroubleTime{TroubleKind::link, from_seconds(1.5)}));
  EXPECT_EQ(to_string(parse_trouble("stop@20s", false).value()), "stop@20s");
  for (const char* text : {"", "busy", "busy@", "busy@0s", "busy@1e9", "busy@nan", "idle@20s", "@20s"})
    EXPECT_TRUE(says(parse_trouble(text, true).error().message,
                     std::string("--disturb ") + text + ": expected busy, link or stop and how long"))
        << text;
  EXPECT_TRUE(says(parse_trouble("link@20s", false).error().message, "add --wan hetero4"));
}

TEST(SiteUse, has_a_name) {
  EXPECT_EQ(parse_site_use("tree").value(), swarm::SiteUse::tree);
  EXPECT_TRUE(says(parse_site_use("on").error().message, "--sites on: expected auto, flat, tree"));
}

TEST(Baselines, are_a_list_of_known_names) {
  EXPECT_EQ(parse_baselines("gloo,openmpi").value(), (std::vector<std::string>{"gloo", "openmpi"}));
  EXPECT_TRUE(says(parse_baselines("glo").error().message, "did you mean \"gloo\"?"));
  EXPECT_TRUE(
      says(parse_baselines("gloo,").error().message, "expected some of gloo,gloo-ring,openmpi,butterfly"));
}

}  // namespace
}  // namespace tw::measure
