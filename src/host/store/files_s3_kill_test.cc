// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>
#include <utility>

#include "host/store/test_bucket.h"

/// A writer of checkpoints that dies at any request, before or after the store has done it.
namespace tw::host {
namespace {

struct Killed {};

/// As sync/checkpoint.h saves, and the oldest goes. renames: under another name first.
void save_checkpoints(S3Files& files, const std::vector<std::string>& contents, bool renames) {
  for (std::size_t round = 0; round < contents.size(); ++round) {
    const std::string path = "s3://data/run/round-" + std::to_string(round);
    ASSERT_TRUE(write(files, renames ? path + ".part" : path, contents[round]).ok());
    if (renames) {
      ASSERT_TRUE(files.rename(path + ".part", path).ok());
    }
    if (round < 2) continue;
    ASSERT_TRUE(files.remove("s3://data/run/round-" + std::to_string(round - 2)).ok());
  }
}

/// Number of requests until it was done.
std::size_t die_at(Bucket& bucket, std::size_t request, bool before, const std::vector<std::string>& contents,
                   bool renames = false) {
  std::size_t asked = 0;
  const auto count = [&] {
    if (++asked == request) throw Killed{};
  };
  (before ? bucket.before : bucket.after) = count;
  S3Files files = bucket.files();
  try {
    save_checkpoints(files, contents, renames);
  } catch (const Killed&) {
  }
  bucket.before = bucket.after = [] {};
  return asked;
}

TEST(KilledWriter, that_dies_at_any_request_leaves_its_newest_checkpoint_whole) {
  // The second of three takes several requests.
  const std::vector<std::string> contents{"first", std::string(S3Files::kPartBytes + 5, 'b'), "third",
                                          "fourth"};
  for (const auto& [before, renames] :
       {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
    Bucket undisturbed;
    const std::size_t requests = die_at(undisturbed, 0, true, contents, renames);
    ASSERT_EQ(requests, renames ? 21U : 9U);
    std::set<std::size_t> newest_seen;
    std::size_t newest_before = 0;
    for (std::size_t request = 1; request <= requests; ++request) {
      Bucket bucket;
      die_at(bucket, request, before, contents, renames);
      S3Files later = bucket.files();
      const auto names = later.list("s3://data/run");
      ASSERT_TRUE(names.ok());
      std::size_t newest = 0;
      for (const std::string& name : names.value()) {
        if (name.ends_with(".part")) continue;
        const std::size_t round = std::stoul(name.substr(6));
        newest = std::max(newest, round + 1);
        EXPECT_TRUE(text_of(later.read("s3://data/run/" + name)) == contents[round])
            << name << " at " << request;
      }
      EXPECT_GE(newest, newest_before) << "a named checkpoint is gone at request " << request;
      newest_before = newest;
      newest_seen.insert(newest);
    }
    EXPECT_EQ(newest_before, contents.size());
    const std::size_t none_yet = before || renames ? 1 : 0;
    EXPECT_EQ(newest_seen.size(), none_yet + contents.size()) << "each state between two checkpoints was met";
  }
}

TEST(KilledWriter, that_dies_in_mid_upload_leaves_parts_that_no_listing_shows) {
  Bucket bucket;
  die_at(bucket, 3, true, {std::string(S3Files::kPartBytes + 5, 'b')});
  EXPECT_EQ(bucket.uploads.size(), 1U);
  EXPECT_TRUE(bucket.files().list("s3://data/run").value().empty());
}

}  // namespace
}  // namespace tw::host
