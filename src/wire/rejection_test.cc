// SPDX-License-Identifier: Apache-2.0
#include "wire/rejection.h"

#include <gtest/gtest.h>

namespace tw::wire {
namespace {

using Code = Rejection::Code;

TEST(Rejection, is_read_from_the_text_it_travels_as) {
  for (const Code code :
       {Code::version, Code::parameters, Code::run, Code::taken, Code::self, Code::credential}) {
    const auto back = rejection_in(to_string(Rejection{code, PeerId{5}, "some [words] 7"}));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(code, back->code);
    EXPECT_EQ(PeerId{5}, back->peer);
    EXPECT_EQ("some [words] 7", back->words);
  }
  const auto placed = rejection_in("[run 5 12] another run");
  ASSERT_TRUE(placed.has_value());
  EXPECT_EQ(12U, placed->place);
  EXPECT_EQ("[run 5 12] another run", to_string(*placed));
  EXPECT_EQ("[taken 5] peer id 5 is taken",
            to_string(Rejection{Code::taken, PeerId{5}, "peer id 5 is taken"}));
}

TEST(Rejection, is_nothing_else) {
  for (const char* other : {"", "[", "[taken", "[taken 5]", "[taken] x", "[taken x] y", "[taken 5x] y",
                            "[run 5 x] y", "[run 5 ] y", "[run 5 1 2] y", "[other 5] x",
                            "cannot connect to [::1]:7000: connection refused", "[ 5] x"}) {
    EXPECT_FALSE(rejection_in(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace tw::wire
