// SPDX-License-Identifier: Apache-2.0
#include "data/shards/tar_writer.h"

#include <gmock/gmock.h>

#include "data/shards/tar_members.h"

namespace tw::data {
namespace {

TEST(TarWriter, writes_what_the_reader_finds) {
  const std::string deep = std::string(120, 'x') + "/" + std::string(150, 'y') + ".jpg";
  TarWriter writer;
  ASSERT_TRUE(writer.add("a.cls", "7"));
  ASSERT_TRUE(writer.add(deep, std::string(1000, 'p')));
  ASSERT_TRUE(writer.add("\xc3\xa9.txt", ""));
  EXPECT_GE(writer.bytes(), 2000U);
  const std::string tar = writer.finish().value();
  const auto found = tar_members("x", tar.size(), [&](std::uint64_t at) -> Result<std::string_view> {
    return std::string_view(tar).substr(at);
  });
  ASSERT_TRUE(found) << found.error().message;
  const auto& members = found.value().members;
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[1].name, deep);
  EXPECT_EQ(tar.substr(members[0].offset, 1), "7");
  EXPECT_EQ(tar.substr(members[1].offset, 1000), std::string(1000, 'p'));
  EXPECT_EQ(members[2].name, "\xc3\xa9.txt");
  EXPECT_EQ(found.value().doubt, "");
}

}  // namespace
}  // namespace tw::data
