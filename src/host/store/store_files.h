// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "host/files_disk.h"
#include "host/store/files_s3.h"

namespace tw::host {

/// ~/.aws/credentials and ~/.aws/config, or what AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name. What
/// cannot be read is in their trouble.
AwsFiles read_aws_files(const Environment& environment);

/// The Files door of a machine: s3://BUCKET/KEY and gs://BUCKET/KEY are objects of a store, by the
/// environment of this process (s3_place(), gs_place()); any other path is a file of this machine. A rename
/// from the one to the other is an error. Any thread.
class StoreFiles final : public world::Files {
 public:
  /// effort: of requests to stores; its most_bytes counts for files, too. is_over: S3Files::Doors.
  explicit StoreFiles(const S3Files::Effort& effort = {}, std::function<bool()> is_over = {})
      : effort_(effort), is_over_(std::move(is_over)) {}

  Result<std::vector<std::byte>> read(const std::string& path) override;
  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Status make_folder(const std::string& folder) override;

  using Content = S3Files::Content;

  /// What is in a folder; folders in it are known in a store alone.
  Result<Content> content(const std::string& folder);

  /// From then on stores are asked nothing, and requests under way break off: the machine goes, and waits for
  /// none of them, but a second at most for the removal of an upload's parts. The earliest of several counts;
  /// on the time line of Loop::now.
  void end_at(Instant when);

  /// S3Files::uses of all stores.
  world::StoreUses uses() const;

 private:
  /// The error: the environment has no usable settings.
  Result<world::Files*> files_for(const std::string& path);
  /// path: s3:// or gs://
  Result<S3Files*> store_for(const std::string& path);
  S3Files::Doors doors() const;
  bool is_over() const;

  const S3Files::Effort effort_;
  const std::function<bool()> is_over_;
  std::atomic<Instant> end_ = kNever;
  DiskFiles disk_;
  mutable std::mutex mutex_;
  std::map<AwsFiles, S3Files> s3_;  ///< by what says where it is, and whose keys; guarded by mutex_
  std::optional<S3Files> gs_;       ///< guarded by mutex_
};

}  // namespace tw::host
