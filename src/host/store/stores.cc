// SPDX-License-Identifier: Apache-2.0
#include "host/store/stores.h"

#include <fmt/format.h>

#include <utility>

#include "host/store/role_credentials.h"
#include "host/system/calendar.h"

namespace tw::host {

Stores::Stores(std::function<void(const std::string&)> troubled)
    : troubled_(std::move(troubled)),
      http_({.exchange = [this](world::HttpRequest request, HttpPool::Tell tell,
                                Duration later) { pool_.add(std::move(request), std::move(tell), later); },
             .unix_s = now_unix_s,
             .environment = environment_value,
             .aws_files = [] { return role_credentials().files(); },
             .keys_refused = [] { role_credentials().refused(); },
             .seed = static_cast<std::uint64_t>(now_unix_s()),
             .troubled = troubled_}),
      pool_(HttpStore::kRequestsAtOnce) {}

Status Stores::keep_in(const std::string& folder, std::uint64_t most_bytes) {
  TW_TRY(RangeCache::make_folder(folder));
  cache_ = std::make_unique<RangeCache>(http_, folder, most_bytes, troubled_);
  return Unit{};
}

void Stores::read(const world::Extent& extent, Read done) {
  const std::size_t colon = extent.object.find("://");
  if (!is_http_object(extent.object)) {
    if (colon == std::string::npos || extent.object.starts_with("file://"))
      return files_.read(extent, std::move(done));
    return done(Error{fmt::format(
        "{}: expected a path, or a URL that begins with file, http, https, s3, gs or az", extent.object)});
  }
  if (cache_) return cache_->read(extent, std::move(done));
  http_.read(extent, std::move(done));
}

void Stores::look(const std::string& object, Looked done) {
  if (is_http_object(object)) return http_.look(object, std::move(done));
  const bool is_file = object.find("://") == std::string::npos || object.starts_with("file://");
  if (is_file) return files_.look(object, std::move(done));
  done(Error{
      fmt::format("{}: expected a path, or a URL that begins with file, http, https, s3, gs or az", object)});
}

}  // namespace tw::host
