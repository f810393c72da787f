// SPDX-License-Identifier: Apache-2.0
#include "base/text/field_table.h"

#include <gtest/gtest.h>

#include "base/text/field_values.h"

namespace tw {
namespace {

struct Boat {
  double length_m = 2;
  int masts = 1;
  bool sails = true;
  std::optional<double> draught_m;
};

using Place = std::variant<double*, int*, bool*, std::optional<double>*>;
using BoatField = Field<Boat, Place>;

constexpr BoatField kBoat[] = {
    {"", "length_cm", "from bow to stern", [](Boat& b) -> Place { return &b.length_m; }, {}, {.over = 100}},
    {"rig", "masts", "that carry sails", [](Boat& b) -> Place { return &b.masts; }, {.low = 1, .high = 5}},
    {"rig", "sails", "whether they are set", [](Boat& b) -> Place { return &b.sails; }},
    {"hull", "draught", "below the water", [](Boat& b) -> Place { return &b.draught_m; }},
};

std::string assigned(std::string_view section, std::string_view name, const GivenValue& given, Boat& boat) {
  return assign_field<ExpectedValue, ValueAssignment>(*find_field<BoatField>(kBoat, section, name), given,
                                                      boat);
}

TEST(FieldTable, stores_values_in_the_unit_of_the_struct_and_refuses_others) {
  Boat boat;
  EXPECT_EQ(assigned("", "length_cm", given_word("350"), boat), "");
  EXPECT_EQ(boat.length_m, 3.5);
  EXPECT_EQ(assigned("hull", "draught", given_word("0.5"), boat), "");
  EXPECT_EQ(boat.draught_m, 0.5);
  EXPECT_EQ(assigned("rig", "masts", given_word("6"), boat),
            "expected a whole number from 1 to 5, found \"6\"");
  EXPECT_EQ(assigned("rig", "sails", {.words = {"true", "false"}, .is_list = true}, boat),
            "expected true or false, found [true, false]");
  EXPECT_EQ(assigned("rig", "sails", given_word("False"), boat),
            "expected true or false, found \"False\"; did you mean \"false\"?");
  EXPECT_EQ(assigned("rig", "sails", given_word("off"), boat), "");
  EXPECT_FALSE(boat.sails);
  EXPECT_EQ(boat.masts, 1);
}

TEST(FieldTable, names_keys_and_sections_that_are_near) {
  EXPECT_EQ(unknown_field<BoatField>(kBoat, "rig", "sail"), "unknown key; did you mean \"sails\"?");
  EXPECT_EQ(unknown_field<BoatField>(kBoat, "", "mast"), "unknown key; did you mean \"rig.masts\"?");
  EXPECT_EQ(unknown_field<BoatField>(kBoat, "", "hul"), "unknown key; did you mean \"hull\"?");
  EXPECT_EQ(unknown_field<BoatField>(kBoat, "", "x"), "unknown key; known here: length_cm, rig, hull");
  EXPECT_EQ(find_field<BoatField>(kBoat, "rig", "draught"), nullptr);
}

TEST(FieldTable, is_the_reference) {
  EXPECT_EQ((reference_of<ExpectedValue, WrittenValue, BoatField>(kBoat, Boat())),
            "| key | value | default | meaning |\n|---|---|---|---|\n"
            "| `length_cm` | a number from 0 | `200` | from bow to stern |\n"
            "| `rig.masts` | a whole number from 1 to 5 | `1` | that carry sails |\n"
            "| `rig.sails` | true or false | `true` | whether they are set |\n"
            "| `hull.draught` | a number from 0 |  | below the water |\n");
}

/// Keys of a file, as "key=value" with the complaints after them.
std::string keys_in(const std::string& text) {
  const auto tree = parse_yaml("a.yaml", text);
  if (!tree) return tree.error().message;
  Complaints complaints("a.yaml");
  std::string keys;
  complaints.for_each_key(tree.value(), complaints.place(tree.value()), "",
                          [&](const Tree& value, const std::string& where) {
                            const auto given = complaints.given(value, where, "a word");
                            if (given) keys += value.key + "=" + given->text() + " ";
                          });
  return complaints.empty() ? keys : keys + complaints.error().message;
}

TEST(Complaints, have_the_line_and_the_key) {
  EXPECT_EQ(keys_in("a: 1\nb: [x, y]\nc:\n"), "a=1 b=[x, y] c= ");
  EXPECT_EQ(keys_in(""), "");
  EXPECT_EQ(keys_in("- a"), "a.yaml:1: expected keys with values");
  EXPECT_EQ(keys_in("a: 1\na: 2\n"), "a=1 a.yaml:2: a: given twice");
  EXPECT_EQ(keys_in("a: {b: 1}\n"), "a.yaml:1: a: expected a word, found a map");
  EXPECT_EQ(keys_in("a: [[1]]\n"), "a.yaml:1: a: expected a word, found a list of lists or maps");
  EXPECT_EQ(keys_in("a: 1\n\tb: 1\n"), "a.yaml:2: a tab at the beginning; YAML takes spaces alone");
  EXPECT_EQ(keys_in("a: {b: 1\nc: 1\n"),
            "a.yaml:2: no valid YAML: end of map flow not found; expected KEY: VALUE, and each bracket and "
            "quote closed");
}

TEST(Tree, of_more_levels_or_values_than_a_person_writes_is_refused) {
  EXPECT_EQ(keys_in("a: &a [*a]\n"), "a.yaml:1: expected at most 10000 values in 100 levels");
}

TEST(Tree, of_a_second_document_is_refused) {
  EXPECT_EQ(keys_in("---\na: 1\n"), "a=1 ");
  EXPECT_EQ(keys_in("a: 1\n---\nb: 2\n"), "a.yaml:3: a second document (after ---); expected one");
}

}  // namespace
}  // namespace tw
