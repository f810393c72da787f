// SPDX-License-Identifier: Apache-2.0
#include "bind/verdict.h"

#include <gtest/gtest.h>

#include "base/text/text_file.h"
#include "host/system/temporary_folder.h"

namespace tw::bind {
namespace {

using peer::Ending;

struct Told {
  host::TemporaryFolder folder;
  std::string file = folder.path() + "/verdict";
  Verdict verdict{file};

  std::string word() const { return read_text_file(file).value(); }

  std::string at_the_end(const End& end) {
    verdict.end(end);
    return word();
  }
};

TEST(Verdict, says_where_a_peer_stands) {
  Told told;
  told.verdict.join();
  EXPECT_EQ("joining", told.word());
  told.verdict.begin();
  EXPECT_EQ("begun", told.word());
  EXPECT_EQ("complete", told.at_the_end({.ending = Ending::complete}));
}

TEST(Verdict, says_how_a_peer_ended_that_had_a_part_in_its_run) {
  const std::pair<End, const char*> cases[] = {
      {{.ending = Ending::complete}, "complete"}, {{.ending = Ending::complete, .unsaved = true}, "unsaved"},
      {{.ending = Ending::notice}, "notice"},     {{.ending = Ending::interrupted}, "interrupted"},
      {{.ending = Ending::left}, "left"},         {{.ending = Ending::failed}, "failed"},
      {{.ending = Ending::lost}, "lost"},
  };
  for (const auto& [end, word] : cases) {
    Told told;
    told.verdict.begin();
    EXPECT_EQ(word, told.at_the_end(end));
  }
}

TEST(Verdict, says_of_a_peer_that_had_no_part_whether_another_start_may_help) {
  const std::pair<End, const char*> cases[] = {
      {{.ending = Ending::complete}, "over"},
      {{.ending = Ending::notice}, "condemned"},
      {{.ending = Ending::left, .unreached = true}, "unreached"},
      {{.ending = Ending::lost}, "lost"},
      {{.ending = Ending::left}, "joining"},
      {{.ending = Ending::failed}, "joining"},
      {{.ending = Ending::interrupted}, "joining"},
  };
  for (const auto& [end, word] : cases) {
    Told told;
    told.verdict.join();
    EXPECT_EQ(word, told.at_the_end(end));
  }
}

}  // namespace
}  // namespace tw::bind
