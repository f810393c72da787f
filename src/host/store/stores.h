// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "host/http.h"
#include "host/store/file_store.h"
#include "host/store/http_store.h"
#include "host/store/range_cache.h"
#include "world/store.h"

namespace tw::host {

/// All objects that this machine can reach, by scheme, with the credentials of the environment of this
/// process.
class Stores final : public world::Store {
 public:
  /// troubled: HttpStore::Doors
  explicit Stores(std::function<void(const std::string&)> troubled = {});

  void read(const world::Extent& extent, Read done) override;
  void look(const std::string& object, Looked done) override;

  world::StoreUses uses() const override { return http_.uses(); }

  /// Objects behind HTTP are kept in a folder (range_cache.h). Before the first read. The error names the
  /// folder and why it cannot be used.
  Status keep_in(const std::string& folder, std::uint64_t most_bytes);

 private:
  const std::function<void(const std::string&)> troubled_;
  FileStore files_;
  HttpStore http_;
  std::unique_ptr<RangeCache> cache_;
  HttpPool pool_;  // last: ends before the others
};

}  // namespace tw::host
