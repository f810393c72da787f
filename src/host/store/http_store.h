// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "host/http.h"
#include "host/store/object_place.h"
#include "world/store.h"

namespace tw::host {

/// Objects behind HTTP: http, https, s3, gs and az (object_place.h). At most 16 requests are under way, over
/// connections that stay open. An answer that the server is busy, or none, is asked for again up to 8 times
/// within half a minute, with jitter (a certificate that is not trusted is an error at once); a body that
/// breaks off or is too short goes on where it ended. Every part must be of the bytes that were asked for
/// (Content-Range) and of one version (ETag). Redirects are followed for http and https alone. Keys that are
/// refused are read anew, once a read.
class HttpStore final : public world::Store {
 public:
  struct Doors {
    /// An exchange that begins after a delay (HttpPool::add).
    std::function<void(world::HttpRequest, HttpPool::Tell, Duration)> exchange;
    std::function<std::int64_t()> unix_s;
    Environment environment;
    std::function<AwsFiles()> aws_files;   ///< s3_place()
    std::function<void()> keys_refused{};  ///< the next aws_files() reads them anew; empty: they are the same
    std::uint64_t seed = 0;                ///< of the jitter
    /// What went wrong where it is asked again, in words; empty: nobody is told. Any thread.
    std::function<void(const std::string&)> troubled{};
  };

  explicit HttpStore(Doors doors);

  void read(const world::Extent& extent, Read done) override;
  void look(const std::string& object, Looked done) override;
  world::StoreUses uses() const override;

  static constexpr int kAttempts = 8;
  static constexpr int kMostRedirects = 5;
  static constexpr std::size_t kRequestsAtOnce = 16;

 private:
  struct Job;
  struct Trouble;
  using SharedJob = std::shared_ptr<Job>;  // owners: exchanges under way

  void ask(const SharedJob& job, Duration later);
  void count(const Job& job, std::uint64_t requests, std::uint64_t bytes);
  void take(const SharedJob& job, Result<world::HttpAnswer> answer, const world::HttpAnswer& partial);
  void try_again(const SharedJob& job, const Trouble& trouble);
  void judge(const SharedJob& job, world::HttpAnswer answer);
  bool asks_elsewhere(const SharedJob& job, const world::HttpAnswer& answer);
  void name_both_versions(const SharedJob& job);
  void tell_trouble(const Job& job, const Trouble& trouble) const;
  Error refused(const Job& job, const world::HttpAnswer& answer) const;

  Doors doors_;
  std::atomic<std::uint64_t> asked_ = 0;
  mutable std::mutex mutex_;
  world::StoreUses uses_;  // guarded by mutex_
};

}  // namespace tw::host
