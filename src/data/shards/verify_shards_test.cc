// SPDX-License-Identifier: Apache-2.0
#include "data/shards/verify_shards.h"

#include <gmock/gmock.h>

#include "data/shards/index_shards.h"
#include "data/shards/test_tar.h"

namespace tw::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two shards, of which the first takes several parts and has a field that lies in two of them.
class Verified : public testing::Test {
 protected:
  Verified() {
    store_.objects["a.tar"] = test_tar({{"0.bin", std::string(kPartBytes - 1024, 'x')},
                                        {"0.cls", "7" + std::string(2 * kPartBytes, ' ')},
                                        {"1.cls", "1"}});
    store_.objects["b.tar"] = test_tar({{"2.cls", "2"}, {"3.cls", "3"}, {"3.txt", "any"}});
    index_ = index_shards({"a.tar", "b.tar"}, store_, {.contents = true}).value();
    looked_ = store_.asked().size();
  }

  MemoryStore store_;
  ShardIndex index_;
  std::size_t looked_ = 0;
};

TEST_F(Verified, shards_have_no_faults_and_each_byte_is_read_once) {
  EXPECT_THAT(faults_of(index_, store_), IsEmpty());
  std::uint64_t bytes = 0;
  const std::vector<world::Extent> asked = store_.asked();
  for (std::size_t i = looked_; i < asked.size(); ++i) bytes += asked[i].length;
  EXPECT_EQ(bytes, index_.bytes());
}

TEST_F(Verified, shards_that_changed_are_told_with_what_cannot_be_decoded) {
  std::string& tar = store_.objects["b.tar"];
  tar.replace(tar.find("3.cls") + 512, 1, "x");
  EXPECT_THAT(faults_of(index_, store_), ElementsAre("b.tar: its bytes are others than those of the index",
                                                     "b.tar: 3.cls: expected a whole number, found \"x\""));
  store_.broken["a.tar"] = "answered with 403";
  EXPECT_EQ(faults_of(index_, store_).front(), "a.tar, bytes 0-1048575: answered with 403");
}

TEST_F(Verified, shards_have_no_empty_files_and_no_pictures_that_are_cut_off) {
  store_.objects["c.tar"] = test_tar({{"4.jpg", ""}, {"5.jpg", "\xff\xd8 and no more"}, {"6.cls", ""}});
  EXPECT_THAT(faults_of(index_shards({"c.tar"}, store_, {}).value(), store_),
              ElementsAre("c.tar: 4.jpg: an empty file, expected a JPEG or PNG",
                          "c.tar: 5.jpg: a JPEG that is cut off: it has no end-of-image marker",
                          "c.tar: 6.cls: expected a whole number, found \"\""));
}

TEST_F(Verified, shards_have_no_numbers_that_are_too_large_but_any_text) {
  store_.objects["c.tar"] = test_tar({{"4.txt", "1e300 1"},
                                      {"5.json", "[1, 1e400]"},
                                      {"6.caption.txt", "a caption"},
                                      {"7.json", "{\"a\": 1e400}"}});
  EXPECT_THAT(
      faults_of(index_shards({"c.tar"}, store_, {}).value(), store_),
      ElementsAre("c.tar: 4.txt: expected real numbers from -3.4e38 to 3.4e38 (float32), found 1e300",
                  "c.tar: 5.json: expected real numbers from -3.4e38 to 3.4e38 (float32), found 1e400"));
}

TEST_F(Verified, shards_are_counted_as_they_are_done) {
  std::vector<std::size_t> done;
  faults_of(index_, store_, {.progress = [&](std::size_t count) { done.push_back(count); }});
  EXPECT_THAT(done, ElementsAre(1, 2));
}

}  // namespace
}  // namespace tw::data
