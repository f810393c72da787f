// SPDX-License-Identifier: Apache-2.0
#include "data/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tw::data {
namespace {

class Text : public testing::Test {
 protected:
  Result<TextCorpus> open(const std::string& content, std::uint64_t context, double test_share) const {
    std::ofstream(path_, std::ios::binary) << content;
    return open_text_corpus(path_, context, test_share);
  }

  ~Text() override { std::filesystem::remove(path_); }

  std::string path_ = testing::TempDir() + "tradewind_text_" + std::to_string(::getpid());
};

TEST_F(Text, cuts_samples_that_share_their_border_byte) {
  const auto corpus = open("abcdefgh", 3, 0);
  ASSERT_TRUE(corpus) << corpus.error().message;
  ASSERT_EQ(corpus.value().training->size(), 2U);
  EXPECT_EQ(corpus.value().evaluation, nullptr);
  const std::vector<std::uint64_t> indices = {1, 0};
  const Batch expected = {{{2, 3}, std::vector<std::int64_t>{'d', 'e', 'f', 'a', 'b', 'c'}},
                          {{2, 3}, std::vector<std::int64_t>{'e', 'f', 'g', 'b', 'c', 'd'}}};
  EXPECT_EQ(corpus.value().training->gather(indices), expected);
}

TEST_F(Text, keeps_its_tail_for_evaluation) {
  const auto corpus = open("0123456789", 2, 0.3);
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ(corpus.value().training->size(), 3U);
  ASSERT_EQ(corpus.value().evaluation->size(), 1U);
  const std::vector<std::uint64_t> first = {0};
  EXPECT_EQ(std::get<1>(corpus.value().evaluation->gather(first).inputs.values),
            (std::vector<std::int64_t>{'7', '8'}));
}

TEST_F(Text, reads_bytes_beyond_127_as_positive_tokens) {
  const auto corpus = open("\xc3\xa4", 1, 0);
  ASSERT_TRUE(corpus);
  const std::vector<std::uint64_t> first = {0};
  EXPECT_EQ(std::get<1>(corpus.value().training->gather(first).targets.values),
            std::vector<std::int64_t>{0xa4});
}

TEST_F(Text, refuses_a_part_without_a_whole_sample) {
  const auto corpus = open("0123456789", 4, 0.2);
  ASSERT_FALSE(corpus);
  EXPECT_EQ(corpus.error().message,
            path_ +
                ": 8 bytes for training and 2 for evaluation; each part needs at least 5 "
                "(context + 1)");
  EXPECT_FALSE(open("", 4, 0));
}

TEST_F(Text, names_a_file_that_is_not_there) {
  const auto corpus = open_text_corpus("/nowhere/text", 4, 0);
  ASSERT_FALSE(corpus);
  EXPECT_EQ(corpus.error().message, "/nowhere/text: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace tw::data
