// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/store.h"

#include <gtest/gtest.h>

#include "sim/virtual/files.h"

namespace tw::sim {
namespace {

constexpr const char* kObject = "s3://bucket/run/a";

Status put_object(world::Files& files, const std::string& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return files.write(path, std::span(&part, 1));
}

struct TwoPlaces {
  VirtualFiles disk;
  VirtualStore store;
  bool away = false;
  PeerFiles files{disk, store, [this] { return away; }, 1};
};

TEST(PeerFiles, keep_objects_in_the_store_and_files_on_the_disk) {
  TwoPlaces m;
  ASSERT_TRUE(put_object(m.files, kObject, "object").ok());
  ASSERT_TRUE(m.files.make_folder("/run").ok());
  ASSERT_TRUE(put_object(m.files, "/run/a", "file").ok());
  ASSERT_TRUE(m.files.rename(kObject, "s3://bucket/run/b").ok());
  EXPECT_EQ(m.store.list("s3://bucket/run").value(), std::vector<std::string>{"b"});
  EXPECT_EQ(m.store.read("s3://bucket/run/b").value().size(), 6U);
  EXPECT_EQ(m.disk.list("/run").value(), std::vector<std::string>{"a"});
  EXPECT_FALSE(m.files.read(kObject).ok()) << "it has another name";
  EXPECT_TRUE(m.files.remove("s3://bucket/run/b").ok());
  EXPECT_FALSE(m.files.remove("s3://bucket/run/b").ok());
}

TEST(PeerFiles, get_no_answer_of_a_store_that_is_away_but_half_of_the_changes_are_made) {
  TwoPlaces m;
  m.away = true;
  int made = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string path = "s3://bucket/run/" + std::to_string(i);
    EXPECT_FALSE(put_object(m.files, path, "x").ok());
    made += m.store.read(path).ok();
    EXPECT_FALSE(m.files.read(path).ok());
  }
  EXPECT_GT(made, 25);
  EXPECT_LT(made, 75);
  EXPECT_FALSE(m.files.list("s3://bucket/run").ok());
  EXPECT_TRUE(m.files.list("/").ok()) << "the disk is there";
  m.away = false;
  EXPECT_EQ(m.files.list("s3://bucket/run").value().size(), static_cast<std::size_t>(made));
}

}  // namespace
}  // namespace tw::sim
