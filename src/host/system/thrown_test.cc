// SPDX-License-Identifier: Apache-2.0
#include "host/system/thrown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "host/system/temporary_folder.h"

namespace tw::host {
namespace {

namespace fs = std::filesystem;

std::string words_after(const auto& call) {
  try {
    call();
  } catch (const std::exception& thrown) {
    return words_of(thrown);
  }
  return "nothing is thrown";
}

TEST(Thrown, names_the_file_and_the_cause) {
  EXPECT_EQ(words_after([] { (void)fs::read_symlink("/nowhere/exe"); }),
            "/nowhere/exe: No such file or directory");
  EXPECT_EQ(words_after([] { throw std::runtime_error("no room"); }), "no room");
}

TEST(Thrown, of_a_current_folder_that_is_gone_has_the_remedy) {
  const fs::path before = fs::current_path();
  {
    const TemporaryFolder folder;
    fs::current_path(folder.path());
  }
  const std::string absolute = words_after([] { (void)fs::absolute("x.twi"); });
  const std::string current = words_after([] { (void)fs::current_path(); });
  fs::current_path(before);
  EXPECT_EQ(absolute, "the current folder: No such file or directory; cd to a folder that exists");
  EXPECT_EQ(current, absolute);
}

TEST(TemporaryFolder, that_cannot_be_made_names_the_variable_that_chooses_its_place) {
  const char* const set = std::getenv("TMPDIR");
  const std::string before = set == nullptr ? "" : set;
  setenv("TMPDIR", "/nowhere", 1);
  const std::string said = words_after([] { const TemporaryFolder folder; });
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
  EXPECT_EQ(said,
            "cannot make a folder in /nowhere: No such file or directory; set TMPDIR to a folder where this "
            "user may write");
}

}  // namespace
}  // namespace tw::host
