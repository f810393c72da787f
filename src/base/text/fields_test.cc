// SPDX-License-Identifier: Apache-2.0
#include "base/text/fields.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(NumberBounds, are_told_as_they_hold) {
  EXPECT_EQ(number_text({.low = 0, .high = 1}), "a number from 0 to 1");
  EXPECT_EQ(number_text({.low = 0.5}), "a number from 0.5");
  EXPECT_EQ(number_text({.above_low = true}), "a number above 0");
  EXPECT_EQ(number_text({.high = 1, .above_low = true}), "a number above 0 and at most 1");
  EXPECT_EQ(number_text({.high = 1, .below_high = true}), "a number from 0 and below 1");
  EXPECT_EQ(number_text({.low = -kInfinity}), "a number");
  EXPECT_EQ(whole_number_text({.low = 1, .high = 1e9}), "a whole number from 1 to 1000000000");
  EXPECT_EQ(whole_number_text({}), "a whole number from 0");
}

TEST(NumberBounds, hold_for_whole_texts_only) {
  const NumberBounds share{.high = 1, .above_low = true};
  EXPECT_EQ(number_in<double>("1", share), 1.0);
  for (const char* text : {"0", "1.5", "nan", "0.5x", ""})
    EXPECT_FALSE(number_in<double>(text, share)) << text;
  EXPECT_FALSE(number_in<double>("inf", {})) << "beyond any bound";
  EXPECT_EQ(number_in<int>("3", {.low = 1, .high = 3}), 3);
  EXPECT_FALSE(number_in<int>("3", {.high = 3, .below_high = true}));
}

TEST(Truth, is_read_as_shells_and_files_write_it) {
  for (const char* text : {"true", "1", "yes", "on"}) EXPECT_EQ(truth_in(text), true) << text;
  for (const char* text : {"false", "0", "no", "off"}) EXPECT_EQ(truth_in(text), false) << text;
  for (const char* text : {"True", "maybe", "2", ""}) EXPECT_FALSE(truth_in(text)) << text;
  EXPECT_EQ(meant_truth("TRUE"), "; did you mean \"true\"?");
  EXPECT_EQ(meant_truth("False"), "; did you mean \"false\"?");
  EXPECT_EQ(meant_truth("maybe"), "");
}

TEST(UnknownKey, names_the_nearest_one_and_those_that_belong_here_first) {
  const std::vector<KnownKey> known = {{"every", "every"},
                                       {"samples", "samples"},
                                       {"seed", "training.seed", false},
                                       {"folder", "a.folder", false},
                                       {"folder", "b.folder", false}};
  EXPECT_EQ(unknown_key("evry", known), "unknown key; did you mean \"every\"?");
  EXPECT_EQ(unknown_key("sead", known), "unknown key; did you mean \"training.seed\"?");
  EXPECT_EQ(unknown_key("folders", known), "unknown key; did you mean \"a.folder\" or \"b.folder\"?");
  EXPECT_EQ(unknown_key("modle", {{"mode", "mode"}, {"model", "model"}}),
            "unknown key; did you mean \"model\"?");
  EXPECT_EQ(unknown_key("colour", known), "unknown key; known here: every, samples");
}

TEST(Complaint, says_what_was_found) {
  EXPECT_EQ(unexpected("a name", "x"), "expected a name, found \"x\"");
  EXPECT_EQ(unexpected("a name", ""), "expected a name, found nothing");
  EXPECT_EQ(did_you_mean("kil", std::vector<std::string>{"kill", "stop"}), "; did you mean \"kill\"?");
}

TEST(FieldReference, is_a_table) {
  EXPECT_EQ(reference_of({{"a.b", "a number", "1", "how many"}, {"c", "a file", "", "where"}}),
            "| key | value | default | meaning |\n|---|---|---|---|\n"
            "| `a.b` | a number | `1` | how many |\n| `c` | a file |  | where |\n");
}

}  // namespace
}  // namespace tw
