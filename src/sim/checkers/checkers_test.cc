// SPDX-License-Identifier: Apache-2.0
#include "sim/checkers/checkers.h"

#include <gtest/gtest.h>

namespace tw::sim {
namespace {

TEST(Checkers, are_chosen_by_name_and_all_of_them_without_names) {
  const Ledger ledger;
  EXPECT_EQ(make_checkers({}, ledger, {}).value().size(), checker_names().size() + 2)
      << "I3 and I11 have two";
  EXPECT_EQ(make_checkers({}, ledger, {"I4", "L1"}).value().size(), 2U);
}

TEST(Checkers, that_do_not_exist_are_an_error_that_lists_those_that_do) {
  const Ledger ledger;
  const auto made = make_checkers({}, ledger, {"I1", "I99"});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("no checker is called I99; there are I1, I2"), std::string::npos);
}

}  // namespace
}  // namespace tw::sim
