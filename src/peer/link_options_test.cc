// SPDX-License-Identifier: Apache-2.0
#include "peer/link_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::peer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Status set(LinkOptions& options, std::string_view name, const std::string& value) {
  return assign(options, name, value, Spelling::python);
}

TEST(LinkOptions, are_assigned_by_name_and_lists_grow) {
  LinkOptions options;
  for (const auto& [name, value] :
       {std::pair("join", "a:1"), std::pair("listen", "b:2"), std::pair("join", "c:3"),
        std::pair("listen", "d:4"), std::pair("run", "myrun"), std::pair("insecure", "true")})
    EXPECT_TRUE(set(options, name, value)) << name;
  EXPECT_THAT(options.join, ElementsAre("a:1", "c:3"));
  EXPECT_EQ(options.listen, "d:4");
  EXPECT_EQ(options.run_folder, "myrun");
  EXPECT_TRUE(options.insecure);
  EXPECT_TRUE(set(options, "insecure", "false"));
  EXPECT_FALSE(options.insecure);
}

TEST(LinkOptions, have_a_place_of_their_own_each) {
  for (const LinkField& field : link_fields()) {
    LinkOptions options;
    const std::string value = std::holds_alternative<bool*>(field.place(options)) ? "true" : "x";
    ASSERT_TRUE(set(options, field.name, value)) << field.name;
    std::size_t given = 0;
    for (const LinkField& other : link_fields()) {
      const auto place = other.place(options);
      if (auto* const* text = std::get_if<std::string*>(&place)) given += **text == "x" ? 1 : 0;
      if (auto* const* list = std::get_if<std::vector<std::string>*>(&place)) given += (*list)->size();
      if (auto* const* truth = std::get_if<bool*>(&place)) given += **truth ? 1 : 0;
    }
    EXPECT_EQ(given, 1U) << field.name;
    EXPECT_EQ(find_link_field(field.name), &field);
  }
}

TEST(LinkOptions, that_do_not_exist_are_named_with_the_one_that_was_meant) {
  LinkOptions options;
  EXPECT_EQ(set(options, "lisen", "a:1").error().message, "lisen: unknown option; did you mean \"listen\"?");
  EXPECT_EQ(assign(options, "waitfor", "1", Spelling::command_line).error().message,
            "--waitfor: unknown option; did you mean \"--wait-for\"?");
  EXPECT_EQ(set(options, "colour", "red").error().message,
            "colour: unknown option; expected one of join, listen, out, log_limit, id, wait_for, site, role, "
            "token, run, rejoin, no_rejoin, anew, notices, grace, watch, usd_per_h, progress, insecure");
  EXPECT_EQ(
      assign(options, "colour", "red", Spelling::command_line).error().message,
      "--colour: unknown option; expected one of --join, --listen, --out, --log-limit, --id, --wait-for, "
      "--site, --role, --token, --run, --rejoin, --no-rejoin, --anew, --notices, --grace, "
      "--watch, "
      "--usd-per-h, --progress, "
      "--insecure");
  EXPECT_EQ(find_link_field("colour"), nullptr);
}

TEST(LinkOptions, that_are_no_more_name_what_to_give_instead) {
  LinkOptions options;
  EXPECT_THAT(assign(options, "bootstrap", "10.0.0.5", Spelling::command_line).error().message,
              AllOf(StartsWith("--bootstrap is no more: give join the address of any living peer"),
                    HasSubstr("rendezvous")));
  EXPECT_THAT(set(options, "bootstrap", "10.0.0.5").error().message, StartsWith("bootstrap is no more: "));
}

TEST(LinkOptions, that_are_on_or_off_are_true_or_false) {
  LinkOptions options;
  EXPECT_EQ(set(options, "rejoin", "maybe").error().message, "rejoin=maybe: expected true or false");
  EXPECT_EQ(set(options, "rejoin", "True").error().message,
            "rejoin=True: expected true or false; did you mean \"true\"?");
  EXPECT_TRUE(set(options, "rejoin", "on"));
  EXPECT_TRUE(options.rejoin);
}

TEST(LinkOptions, that_are_given_have_a_value) {
  LinkOptions options;
  for (const LinkField& field : link_fields())
    EXPECT_THAT(set(options, field.name, "").error().message,
                StartsWith(std::string(field.name) + ": found an empty text, expected a value ("));
  EXPECT_EQ(set(options, "token", "").error().message,
            "token: found an empty text, expected a value (TOKEN or @FILE, from tw token: admits this peer "
            "and names peers to join)");
}

}  // namespace
}  // namespace tw::peer
