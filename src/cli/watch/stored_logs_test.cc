// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/stored_logs.h"

#include <gtest/gtest.h>

#include "host/files_disk.h"

namespace tw::cli {
namespace {

TEST(StoredLogs, of_a_store_without_a_bucket_are_refused_by_its_name) {
  host::DiskFiles store;
  const Status fetched = fetch_logs(store, "s3://", testing::TempDir());
  ASSERT_FALSE(fetched);
  EXPECT_TRUE(fetched.error().message.starts_with("s3://: expected s3://BUCKET/")) << fetched.error().message;
}

}  // namespace
}  // namespace tw::cli
