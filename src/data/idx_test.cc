// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tw::data {
namespace {

using namespace std::string_literals;

/// A file in gtest's folder for temporary files, gone at the end of the scope.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& content)
      : path_(testing::TempDir() + "tradewind_idx_" + std::to_string(::getpid()) + "_" + name) {
    std::ofstream(path_, std::ios::binary) << content;
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  ~TemporaryFile() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What read_idx says about a file with this content, without the path before it.
std::string complaint_about(const std::string& content) {
  const TemporaryFile file("broken", content);
  const Result<IdxTensor> tensor = read_idx(file.path());
  if (tensor) return "none";
  EXPECT_TRUE(tensor.error().message.starts_with(file.path() + ": ")) << tensor.error().message;
  return tensor.error().message.substr(file.path().size() + 2);
}

const std::string kThreeLabels = "\0\0\x08\x01\0\0\0\x03\x07\0\xff"s;

TEST(Idx, reads_type_shape_and_elements) {
  const TemporaryFile file("ok", "\0\0\x0b\x02\0\0\0\x02\0\0\0\x01\x00\x01\xff\xfe"s);
  const Result<IdxTensor> tensor = read_idx(file.path());
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ(tensor.value().type, IdxType::int16);
  EXPECT_EQ(tensor.value().shape, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(tensor.value().elements.size(), 4U);
}

TEST(Idx, says_what_is_wrong_with_a_file) {
  EXPECT_EQ(complaint_about(""), "not an IDX file: it ends within the first 4 bytes");
  EXPECT_EQ(complaint_about("\x1f\x8b\x08\x00rest"s),
            "not an IDX file: expected 0000, a type code (08 09 0b 0c 0d 0e) and a rank of at least 1, found "
            "1f8b0800 "
            "(gzip: unpack it first)");
  EXPECT_EQ(complaint_about("\0\0\x07\x01"s),
            "not an IDX file: expected 0000, a type code (08 09 0b 0c 0d 0e) and a rank of at least 1, found "
            "00000701");
  EXPECT_EQ(complaint_about("\0\0\x08\x03\0\0\0\x01"s),
            "truncated: the header of rank 3 needs 16 bytes, the file has 8");
  EXPECT_EQ(complaint_about(kThreeLabels.substr(0, 10)),
            "shape [3] of 1-byte elements needs 11 bytes, the file has 10 (truncated)");
  EXPECT_EQ(complaint_about(kThreeLabels + "x"),
            "shape [3] of 1-byte elements needs 11 bytes, the file has 12");
}

TEST(Idx, refuses_a_shape_whose_size_overflows) {
  const std::string huge = "\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s;
  EXPECT_EQ(
      complaint_about(huge),
      "shape [4294967295, 4294967295, 4294967295] of 8-byte elements needs too many bytes, the file has 16 "
      "(truncated)");
}

TEST(Idx, names_a_file_that_is_not_there) {
  const Result<IdxTensor> tensor = read_idx("/nowhere/images");
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().message, "/nowhere/images: cannot be opened: No such file or directory");
}

TEST(IdxDataset, scales_pictures_and_keeps_labels) {
  const TemporaryFile pictures("pictures", "\0\0\x08\x02\0\0\0\x03\0\0\0\x02\x00\xff\x33\x00\xff\xff"s);
  const TemporaryFile labels("labels", kThreeLabels);
  const auto dataset = open_idx_dataset(pictures.path(), labels.path());
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ(dataset.value()->size(), 3U);
  const std::vector<std::uint64_t> indices = {2, 0, 2};
  const Batch expected = {{{3, 2}, std::vector<float>{1, 1, 0, 1, 1, 1}},
                          {{3}, std::vector<std::int64_t>{255, 7, 255}}};
  EXPECT_EQ(dataset.value()->gather(indices), expected);
}

TEST(IdxDataset, converts_every_element_type) {
  const TemporaryFile labels("labels", "\0\0\x08\x01\0\0\0\x01\x07"s);
  const std::vector<std::uint64_t> first = {0};
  const auto inputs_of = [&](const std::string& content) {
    const TemporaryFile file("inputs", content);
    const auto dataset = open_idx_dataset(file.path(), labels.path());
    EXPECT_TRUE(dataset);
    return dataset.value()->gather(first).inputs.values;
  };
  using Integers = std::vector<std::int64_t>;
  using Floats = std::vector<float>;
  EXPECT_EQ(inputs_of("\0\0\x09\x01\0\0\0\x01\xfe"s).index(), 1U);
  EXPECT_EQ(std::get<Integers>(inputs_of("\0\0\x09\x01\0\0\0\x01\xfe"s)), Integers{-2});
  EXPECT_EQ(std::get<Integers>(inputs_of("\0\0\x0b\x01\0\0\0\x01\xff\x00"s)), Integers{-256});
  EXPECT_EQ(std::get<Integers>(inputs_of("\0\0\x0c\x01\0\0\0\x01\x80\0\0\0"s)), Integers{-2147483648LL});
  EXPECT_EQ(std::get<Floats>(inputs_of("\0\0\x0d\x01\0\0\0\x01\xbf\xc0\0\0"s)), Floats{-1.5F});
  EXPECT_EQ(std::get<Floats>(inputs_of("\0\0\x0e\x01\0\0\0\x01\x3f\xe0\0\0\0\0\0\0"s)), Floats{0.5F});
}

TEST(IdxDataset, refuses_files_of_different_lengths_or_without_samples) {
  const TemporaryFile three("three", kThreeLabels);
  const TemporaryFile two("two", "\0\0\x08\x01\0\0\0\x02\x01\x02"s);
  const TemporaryFile none("none", "\0\0\x08\x01\0\0\0\0"s);
  const auto uneven = open_idx_dataset(three.path(), two.path());
  ASSERT_FALSE(uneven);
  EXPECT_EQ(uneven.error().message, three.path() + " has 3 samples, but " + two.path() + " has 2");
  const auto empty = open_idx_dataset(none.path(), none.path());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, none.path() + ", " + none.path() + ": no samples");
}

}  // namespace
}  // namespace tw::data
