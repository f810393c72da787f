// SPDX-License-Identifier: Apache-2.0
#include "base/cause_text.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace tw {
namespace {

TEST(CauseText, says_which_limit_is_too_low) {
  const std::string process = "Too many open files (raise the limit of this process, for example: ulimit -n ";
  EXPECT_TRUE(cause_text(EMFILE).starts_with(process)) << cause_text(EMFILE);
  EXPECT_EQ(cause_text(std::error_code(EMFILE, std::system_category())), cause_text(EMFILE));
  EXPECT_NE(cause_text(ENFILE).find("fs.file-max"), std::string::npos) << cause_text(ENFILE);
  EXPECT_EQ(cause_text(ENOENT), "No such file or directory");
}

}  // namespace
}  // namespace tw
