// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "fuzz/target.h"

namespace tw::fuzz {
namespace {

constexpr std::uint64_t kSeeds = 3000;

std::vector<std::uint8_t> random_bytes(std::uint64_t seed) {
  Prng prng(seed);
  std::vector<std::uint8_t> bytes(prng.below(prng.chance(0.2) ? 4000 : 400));
  const double small = prng.uniform();
  for (std::uint8_t& b : bytes)
    b = static_cast<std::uint8_t>(prng.chance(small) ? prng.below(16) : prng.next());
  return bytes;
}

/// The targets of the coverage-guided fuzzers on chance inputs: what `make test` can do without clang.
class Random : public testing::TestWithParam<Target> {};

std::uint64_t present_seed = 0;

void tell_the_seed(int) {
  std::fprintf(stderr, " (seed %llu)\n", static_cast<unsigned long long>(present_seed));
}

void feed(const Target& target, const std::vector<std::uint8_t>& bytes) {
  Input input(bytes);
  target.run(input);
}

/// Ends the process: with 0 unless a TW_CHECK of the target, or a sanitizer, ends it before.
[[noreturn]] void feed(const Target& target) {
  std::signal(SIGABRT, tell_the_seed);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    present_seed = seed;
    feed(target, random_bytes(seed));
  }
  std::exit(0);
}

TEST_P(Random, inputs_break_no_law) { EXPECT_EXIT(feed(GetParam()), testing::ExitedWithCode(0), ""); }

/// What a fuzzer once found, by the name of its target: tests/fuzz/found/TARGET-HASH.
TEST_P(Random, inputs_that_once_broke_a_law_do_not_again) {
  const std::string prefix = std::string(GetParam().name) + "-";
  for (const auto& entry : std::filesystem::directory_iterator(TW_SOURCE_DIR "/tests/fuzz/found")) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_FALSE(bytes.empty());
    EXPECT_EXIT((feed(GetParam(), bytes), std::exit(0)), testing::ExitedWithCode(0), "") << entry.path();
  }
}

void break_a_law(Input&) { TW_CHECK(present_seed < 7); }

TEST(RandomInputs, that_break_a_law_are_told_by_their_seed) {
  EXPECT_DEATH(feed({"", break_a_law}), "present_seed < 7.*\n? \\(seed 7\\)");
}

INSTANTIATE_TEST_SUITE_P(Target, Random, testing::ValuesIn(kTargets),
                         [](const auto& target) { return target.param.name; });

}  // namespace
}  // namespace tw::fuzz
