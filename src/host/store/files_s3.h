// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/store/s3_place.h"
#include "world/files.h"
#include "world/http.h"
#include "world/store.h"

namespace tw::host {

/// The Files door on an object store that speaks S3: paths are s3://BUCKET/KEY, folders are prefixes. An
/// object exists whole or not at all, even if the writer is killed; so does a renamed one, which the store
/// copies itself. Errors name the object, the answer and the key that signed the request. Blocks; any thread.
class S3Files final : public world::Files {
 public:
  /// Bytes of one request; larger objects take several.
  static constexpr std::size_t kPartBytes = std::size_t{16} << 20;
  static constexpr int kAttempts = 5;

  /// One exchange over the network; blocks.
  using Exchange = std::function<Result<world::HttpAnswer>(const world::HttpRequest&)>;

  /// Its needs from the machine.
  struct Doors {
    Exchange exchange;
    std::function<std::int64_t()> unix_s;
    std::function<void(Duration)> pause;  ///< before another attempt
    std::uint64_t seed = 0;               ///< of the jitter of pauses
    std::function<bool()> is_over{};      ///< nothing is asked any more; empty: never
    Exchange last_exchange{};             ///< after that, one that nothing breaks off; empty: `exchange`
  };

  /// How long one request may take.
  struct Effort {
    int attempts = kAttempts;                     ///< while the server is busy or does not answer
    Duration patience = std::chrono::minutes(5);  ///< of an attempt: 16 MiB at 0.5 Mbit/s
    /// world::HttpRequest; longer where the store takes in or copies what it was sent before it answers.
    Duration silence = std::chrono::seconds(10);
    std::uint64_t most_bytes = UINT64_MAX;  ///< a larger object is not read
  };

  S3Files(S3Place place, Doors doors, const Effort& effort);
  S3Files(S3Place place, Doors doors);

  Result<std::vector<std::byte>> read(const std::string& path) override;
  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Status make_folder(const std::string& folder) override;

  /// Names in a folder, sorted.
  struct Content {
    std::vector<std::string> files{};
    std::vector<std::string> folders{};  ///< with a slash at the end of each
  };

  Result<Content> content(const std::string& folder);

  /// Until now, by the name of the store.
  world::StoreUses uses() const;

 private:
  struct Ask {
    std::string method = "GET";
    S3Name name;
    std::vector<std::pair<std::string, std::string>> query{};
    world::HttpHeaders headers{};
    std::string body{};
    std::uint64_t copied_bytes = 0;  ///< by the store itself
  };

  Result<S3Name> name_in(const std::string& path) const;
  std::string shown(const S3Name& name) const;
  /// The object, or the folder of a list.
  std::string shown(const Ask& ask) const;
  Duration silence_of(const Ask& ask) const;
  void count(const Ask& ask, const Result<world::HttpAnswer>& answer);
  bool is_over() const;
  /// Signed now.
  world::HttpRequest request_for(const Ask& ask) const;
  /// The answer, whatever its status, of the last attempt.
  Result<world::HttpAnswer> send(const Ask& ask);
  /// The answer where its status is `expected`.
  Result<world::HttpAnswer> ask(const Ask& ask, int expected);
  Error refused(const Ask& ask, const world::HttpAnswer& answer) const;
  /// It says that all is well, and is not what S3 would say.
  Error no_store(const Ask& ask, const world::HttpAnswer& answer, std::string_view expected) const;
  /// Stores say 200 before they have copied anything: the body says whether it became an object.
  Status judge_late(const Ask& ask, const world::HttpAnswer& answer) const;
  Result<std::uint64_t> size_of(const S3Name& name);
  Status write_in_parts(const S3Name& name, std::span<const std::span<const std::byte>> parts);
  Result<std::string> begin_upload(const S3Name& name);
  /// bytes: of all its parts.
  Status finish_upload(const S3Name& name, const std::string& upload, const std::vector<std::string>& etags,
                       std::uint64_t bytes);
  /// Removes its parts, even when all is over: then with one attempt of a second.
  void drop_upload(const S3Name& name, const std::string& upload);
  Status copy_in_parts(const S3Name& from, const S3Name& to, std::uint64_t size);
  Status remove_object(const S3Name& name);

  S3Place place_;
  Doors doors_;
  Effort effort_;
  std::atomic<std::uint64_t> attempts_ = 0;
  mutable std::mutex mutex_;
  world::StoreUse use_;  // guarded by mutex_
};

/// The doors of this machine: curl, the wall clock, sleep.
S3Files::Doors s3_doors();

}  // namespace tw::host
