// SPDX-License-Identifier: Apache-2.0
#include "bind/verdict.h"

#include <gtest/gtest.h>

#include "base/text/text_file.h"
#include "host/system/temporary_folder.h"

namespace tw::bind {
namespace {

using train::Ending;

struct Told {
  host::TemporaryFolder folder;
  std::string file = folder.path() + "/verdict";
  Verdict verdict{file};

  std::string word() const { return read_text_file(file).value(); }

  std::string at_the_end(Ending ending, const Verdict::Flaws& flaws = {}) {
    verdict.end(ending, flaws);
    return word();
  }
};

TEST(Verdict, says_where_a_peer_stands) {
  Told told;
  told.verdict.join();
  EXPECT_EQ("joining", told.word());
  told.verdict.begin();
  EXPECT_EQ("begun", told.word());
  EXPECT_EQ("complete", told.at_the_end(Ending::complete));
}

TEST(Verdict, says_how_a_peer_ended_that_had_a_part_in_its_run) {
  const std::pair<Ending, const char*> cases[] = {
      {Ending::complete, "complete"}, {Ending::notice, "notice"}, {Ending::interrupted, "interrupted"},
      {Ending::left, "left"},         {Ending::failed, "failed"}, {Ending::lost, "lost"},
  };
  for (const auto& [ending, word] : cases) {
    Told told;
    told.verdict.begin();
    EXPECT_EQ(word, told.at_the_end(ending));
  }
}

TEST(Verdict, says_what_is_wrong_with_a_run_that_is_complete) {
  const auto word = [](Ending ending, const Verdict::Flaws& flaws) {
    Told told;
    told.verdict.begin();
    return told.at_the_end(ending, flaws);
  };
  EXPECT_EQ("unsaved", word(Ending::complete, {.unsaved = true}));
  EXPECT_EQ("differs", word(Ending::complete, {.differs = true}));
  EXPECT_EQ("differs", word(Ending::complete, {.unsaved = true, .differs = true}))
      << "another start writes the checkpoint, and hides the difference";
  EXPECT_EQ("left", word(Ending::left, {.unsaved = true, .differs = true}));
}

TEST(Verdict, tells_a_peer_that_its_program_closed_from_one_that_was_asked_to_leave) {
  const auto word = [](bool asked, Ending ending, bool begins = true) {
    Told told;
    told.verdict.join();
    if (begins) told.verdict.begin();
    if (asked) told.verdict.leave();
    told.verdict.close();
    return told.at_the_end(ending);
  };
  EXPECT_EQ("closed", word(false, Ending::left));
  EXPECT_EQ("left", word(true, Ending::left));
  EXPECT_EQ("notice", word(false, Ending::notice)) << "it was leaving already";
  EXPECT_EQ("complete", word(false, Ending::complete));
  EXPECT_EQ("joining", word(false, Ending::left, false));
}

TEST(Verdict, says_of_a_peer_that_had_no_part_whether_another_start_may_help) {
  const std::pair<Ending, const char*> cases[] = {
      {Ending::complete, "over"}, {Ending::notice, "condemned"},    {Ending::unreached, "unreached"},
      {Ending::lost, "lost"},     {Ending::left, "joining"},        {Ending::failed, "joining"},
      {Ending::taken, "taken"},   {Ending::interrupted, "joining"},
  };
  for (const auto& [ending, word] : cases) {
    Told told;
    told.verdict.join();
    EXPECT_EQ(word, told.at_the_end(ending));
  }
}

}  // namespace
}  // namespace tw::bind
