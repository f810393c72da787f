// SPDX-License-Identifier: Apache-2.0
#include "base/ticks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/prng.h"

namespace tw {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts_of(const Scale& scale) {
  std::vector<std::string> texts;
  for (const double tick : scale.ticks) texts.push_back(tick_text(tick, scale.step));
  return texts;
}

TEST(Ticks, are_round_and_read_without_an_exponent) {
  EXPECT_THAT(texts_of(round_scale(0, 1130, 5)), ElementsAre("0", "500", "1,000", "1,500"));
  EXPECT_THAT(texts_of(round_scale(0, 0.9, 4)), ElementsAre("0", "0.5", "1.0"));
  EXPECT_THAT(texts_of(round_scale(0, 4.2e6, 4)), ElementsAre("0", "2 M", "4 M", "6 M"));
  EXPECT_THAT(texts_of(round_scale(-30, 20, 5)), ElementsAre("-30", "-20", "-10", "0", "10", "20"));
  EXPECT_THAT(texts_of(round_scale(0, 0, 5)), ElementsAre("0", "0.2"));
  EXPECT_EQ(tick_text(1'234'567, 1), "1.234567 M");
  EXPECT_EQ(tick_text(-12'500, 500), "-12,500");
}

TEST(Ticks, of_what_is_not_finite_are_words) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(tick_text(kInf, 1), "inf");
  EXPECT_EQ(tick_text(-kInf, kInf), "-inf");
  EXPECT_EQ(tick_text(std::numeric_limits<double>::quiet_NaN(), 1), "nan");
}

/// The step's digits are 1, 2 or 5, the ends are inside, and there are no needless ticks.
TEST(Ticks, of_any_range_are_one_two_or_five_times_a_power_of_ten) {
  Prng random(3);
  for (int i = 0; i < 2'000; ++i) {
    const double low = i % 2 == 0 ? 0 : -std::pow(10.0, random.uniform() * 8 - 3);
    const double high = std::pow(10.0, random.uniform() * 12 - 4);
    const int most = 2 + i % 9;
    const Scale scale = round_scale(low, high, most);
    const double lead = scale.step / std::pow(10.0, std::floor(std::log10(scale.step) + 1e-9));
    EXPECT_TRUE(std::abs(lead - 1) < 1e-6 || std::abs(lead - 2) < 1e-6 || std::abs(lead - 5) < 1e-6) << lead;
    EXPECT_LE(scale.low, low + 1e-6 * scale.step);
    EXPECT_GE(scale.high, high - 1e-6 * scale.step);
    EXPECT_LE(scale.ticks.size(), static_cast<std::size_t>(most) + 3);
    for (const std::string& text : texts_of(scale)) EXPECT_EQ(text.find('e'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tw
