// SPDX-License-Identifier: Apache-2.0
#include "data/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tw::data {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

template <class Word>
std::string words(const std::vector<std::int64_t>& values) {
  std::string bytes;
  for (const std::int64_t value : values) {
    for (std::size_t i = 0; i < sizeof(Word); ++i)
      bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
  return bytes;
}

std::string megatron_index(std::uint8_t type, const std::vector<std::int64_t>& lengths,
                           const std::vector<std::int64_t>& places,
                           const std::vector<std::int64_t>& documents = {0}) {
  const auto count = [](const auto& values) {
    return words<std::int64_t>({static_cast<std::int64_t>(values.size())});
  };
  return std::string("MMIDIDX\0\0", 9) + words<std::int64_t>({1}) + static_cast<char>(type) + count(lengths) +
         count(documents) + words<std::int32_t>(lengths) + words<std::int64_t>(places) +
         words<std::int64_t>(documents);
}

Result<MegatronIndex> read_index_of(const std::string& index) {
  return read_megatron_index(std::as_bytes(std::span(index)));
}

class Tokens : public testing::Test {
 protected:
  Tokens() { std::filesystem::create_directories(folder_); }

  ~Tokens() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + name, std::ios::binary) << content;
    return folder_ + name;
  }

  TokenFiles raw(const std::string& content, TokenType type = TokenType::uint16) const {
    return {.training = write("train.bin", content), .type = type};
  }

  static std::string cause(const TokenFiles& files, std::uint64_t context = 2, double test_share = 0) {
    const auto corpus = open_token_corpus(files, context, test_share);
    return corpus ? "none" : corpus.error().message;
  }

  std::string folder_ = testing::TempDir() + "tradewind_tokens_" + std::to_string(::getpid()) + "/";
};

TEST_F(Tokens, are_inputs_and_targets_that_are_one_place_further) {
  const TokenFiles files = raw(words<std::uint16_t>({1, 2, 300, 65535, 5, 6, 7, 8}));
  const auto corpus = open_token_corpus(files, 3, 0);
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ(corpus.value().training->size(), 2U);
  EXPECT_EQ(corpus.value().evaluation, nullptr);
  const std::vector<std::uint64_t> indices = {1, 0};
  const Batch expected = {{{2, 3}, std::vector<std::int64_t>{65535, 5, 6, 1, 2, 300}},
                          {{2, 3}, std::vector<std::int64_t>{5, 6, 7, 2, 300, 65535}}};
  EXPECT_EQ(corpus.value().training->gather(indices), expected);
}

TEST_F(Tokens, of_32_bits_are_read_as_such) {
  const TokenFiles files = raw(words<std::uint32_t>({7, 4000000000, 9}), TokenType::uint32);
  const auto corpus = open_token_corpus(files, 2, 0);
  ASSERT_TRUE(corpus) << corpus.error().message;
  const std::vector<std::uint64_t> indices = {0};
  const Batch expected = {{{1, 2}, std::vector<std::int64_t>{7, 4000000000}},
                          {{1, 2}, std::vector<std::int64_t>{4000000000, 9}}};
  EXPECT_EQ(corpus.value().training->gather(indices), expected);
}

TEST_F(Tokens, for_evaluation_come_from_the_tail_or_a_file) {
  TokenFiles files = raw(words<std::uint16_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const std::vector<std::uint64_t> first = {0};
  const auto tail = open_token_corpus(files, 2, 0.3);
  ASSERT_TRUE(tail) << tail.error().message;
  EXPECT_EQ(tail.value().training->size(), 3U);
  EXPECT_EQ(std::get<1>(tail.value().evaluation->gather(first).inputs.values),
            (std::vector<std::int64_t>{7, 8}));

  files.evaluation = write("val.bin", words<std::uint16_t>({40, 41, 42}));
  const auto apart = open_token_corpus(files, 2, 0.3);
  ASSERT_TRUE(apart) << apart.error().message;
  EXPECT_EQ(apart.value().training->size(), 4U);
  EXPECT_EQ(std::get<1>(apart.value().evaluation->gather(first).inputs.values),
            (std::vector<std::int64_t>{40, 41}));
}

TEST_F(Tokens, of_megatron_are_named_by_either_file) {
  const std::string tokens = write("corpus.bin", words<std::int32_t>({5, 6, 70000, 8, 9}));
  const std::string index = write("corpus.idx", megatron_index(4, {2, 3}, {0, 8}, {0, 1, 2}));
  for (const std::string& path : {tokens, index}) {
    const auto corpus = open_token_corpus({.training = path, .megatron = true}, 4, 0);
    ASSERT_TRUE(corpus) << corpus.error().message;
    const std::vector<std::uint64_t> indices = {0};
    const Batch expected = {{{1, 4}, std::vector<std::int64_t>{5, 6, 70000, 8}},
                            {{1, 4}, std::vector<std::int64_t>{6, 70000, 8, 9}}};
    EXPECT_EQ(corpus.value().training->gather(indices), expected);
  }
}

TEST_F(Tokens, have_a_print_of_the_training_part) {
  const auto print = [&](const std::vector<std::int64_t>& values, double test_share = 0) {
    return open_token_corpus(raw(words<std::uint16_t>(values)), 2, test_share).value().print;
  };
  EXPECT_THAT(print({1, 2, 3, 4}), StartsWith("4 uint16 tokens, digest "));
  EXPECT_EQ(print({1, 2, 3, 4}), print({1, 2, 3, 4}));
  EXPECT_NE(print({1, 2, 3, 4}), print({1, 2, 4, 4}));
  EXPECT_NE(print({1, 2, 3, 4, 5, 6}), print({1, 2, 3, 4, 5, 6, 7}));
  // The tail is for evaluation, which does not count.
  EXPECT_EQ(print({1, 2, 3, 4, 5, 6}, 0.5), print({1, 2, 3, 9, 9, 9}, 0.5));

  std::vector<std::int64_t> many(2'000'000, 3);
  const std::string before = print(many);
  many.back() = 4;
  EXPECT_NE(print(many), before);
}

TEST_F(Tokens, that_cannot_be_used_are_told_with_what_was_expected) {
  EXPECT_THAT(cause(raw("abc")),
              EndsWith("train.bin: expected uint16 tokens of 2 bytes each, found 3 bytes"));
  EXPECT_THAT(cause(raw(words<std::uint16_t>({1, 2}))),
              EndsWith("train.bin: 2 tokens for training, expected at least 3 (context + 1)"));
  EXPECT_THAT(cause(raw("")), HasSubstr("0 tokens for training"));
  EXPECT_THAT(cause(raw(words<std::uint16_t>({1, 2, 3, 4})), 2, 0.25),
              EndsWith("train.bin: 1 tokens for evaluation, expected at least 3 (context + 1)"));
  EXPECT_EQ(cause({.training = "/nowhere/t.bin"}),
            "/nowhere/t.bin: cannot be opened: No such file or directory");
  EXPECT_EQ(cause({.training = folder_}), folder_ + ": cannot be opened: expected a regular file");

  const std::string tokens = write("other.bin", words<std::uint16_t>({1, 2, 3, 4}));
  EXPECT_EQ(cause({.training = tokens, .megatron = true}),
            folder_ + "other.idx: cannot be opened: No such file or directory");
  write("other.idx", megatron_index(8, {5}, {0}));
  EXPECT_EQ(cause({.training = tokens, .megatron = true}),
            tokens + ": 4 tokens, while " + folder_ + "other.idx says 5");
  write("other.idx", "MMIDIDX");
  EXPECT_THAT(cause({.training = tokens, .megatron = true}),
              StartsWith(folder_ + "other.idx: not a Megatron"));
  EXPECT_THAT(cause({.training = write("other.txt", "xx"), .megatron = true}),
              EndsWith("other.txt: expected the .bin or the .idx file of a Megatron data set"));
}

TEST(MegatronIndex, says_what_lies_beside_it) {
  const auto index = read_index_of(megatron_index(8, {2, 0, 3}, {0, 4, 4}, {0, 1, 3}));
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index.value(),
            (MegatronIndex{.type = TokenType::uint16, .sequences = 3, .documents = 3, .tokens = 5}));
  // Multimodal data: a byte for each sequence follows.
  EXPECT_TRUE(read_index_of(megatron_index(8, {2, 3}, {0, 4}) + std::string(2, '\1')));
}

TEST(MegatronIndex, that_is_damaged_is_told_with_what_was_expected) {
  const auto cause = [](const std::string& index) {
    const auto read_index = read_index_of(index);
    return read_index ? "none" : read_index.error().message;
  };
  const std::string sound = megatron_index(8, {2, 3}, {0, 4});
  EXPECT_EQ(cause(sound), "none");
  EXPECT_THAT(cause(""), StartsWith("not a Megatron index: expected MMIDIDX"));
  EXPECT_EQ(cause(sound.substr(0, 33)), "truncated: its header needs 34 bytes, the file has 33");
  EXPECT_EQ(cause(sound.substr(0, sound.size() - 1)),
            "truncated: 2 sequences and 1 documents do not fit in 65 bytes");
  EXPECT_EQ(cause(sound + "x"), "1 bytes follow its 2 sequences and 1 documents, expected none");
  EXPECT_EQ(cause(megatron_index(7, {2, 3}, {0, 4})),
            "type code 7: expected integers (1 uint8, 2 int8, 3 int16, 4 int32, 5 int64 or 8 uint16)");
  EXPECT_EQ(cause(megatron_index(8, {2, -3}, {0, 4})),
            "sequence 1: expected a length of at least 0, found -3");
  EXPECT_EQ(cause(megatron_index(8, {2, 3}, {0, 6})),
            "sequence 1: expected byte 4 (sequences follow one another), found 6");
  std::string version = sound;
  version[9] = 2;
  EXPECT_EQ(cause(version), "expected version 1, found 2");
  std::string huge = sound;
  for (std::size_t i = 18; i < 34; ++i) huge[i] = '\xff';
  EXPECT_THAT(cause(huge), StartsWith("truncated: 18446744073709551615 sequences"));
}

}  // namespace
}  // namespace tw::data
