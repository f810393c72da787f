// SPDX-License-Identifier: Apache-2.0
#include "host/store/store_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/result.h"
#include "base/text/text_file.h"
#include "host/http.h"
#include "host/store/object_place.h"
#include "host/store/role_credentials.h"

namespace tw::host {
namespace {

constexpr std::uint64_t kMostCredentials = 1 << 20;

std::string_view scheme_of(const std::string& path) {
  return is_s3(path) || is_gs(path) ? std::string_view(path).substr(0, 5) : std::string_view();
}

std::uint64_t bytes_of_file(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

}  // namespace

AwsFiles read_aws_files(const Environment& environment) {
  AwsFiles files;
  const auto text_of_file = [&](const std::string& variable, const char* name) {
    const std::string named = environment(variable);
    const std::string path = named.empty() ? environment("HOME") + "/.aws/" + name : named;
    std::error_code error;
    const auto kind = std::filesystem::status(path, error).type();
    if (named.empty() && kind == std::filesystem::file_type::not_found) return std::string();
    auto text = read_text_file(path, kMostCredentials);
    if (!text) files.add_trouble((named.empty() ? "" : variable + "=") + text.error().message);
    return text ? std::move(text).value() : std::string();
  };
  files.credentials = text_of_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
  files.config = text_of_file("AWS_CONFIG_FILE", "config");
  return files;
}

S3Files::Doors StoreFiles::doors() const {
  S3Files::Doors doors = s3_doors();
  doors.is_over = [this] { return is_over(); };
  doors.last_exchange = doors.exchange;
  doors.exchange = [this](const world::HttpRequest& request) {
    return http_exchange(request, [this] { return is_over(); });
  };
  doors.pause = [this](Duration time) {
    constexpr Duration kLook = std::chrono::milliseconds(50);
    for (; time > Duration{} && !is_over(); time -= kLook) std::this_thread::sleep_for(std::min(time, kLook));
  };
  return doors;
}

bool StoreFiles::is_over() const {
  const Instant end = end_;
  const auto past = std::chrono::steady_clock::now().time_since_epoch() >= end.time_since_epoch();
  return past || (is_over_ && is_over_());
}

void StoreFiles::end_at(Instant when) {
  Instant end = end_;
  while (when < end && !end_.compare_exchange_weak(end, when)) continue;
}

Result<world::Files*> StoreFiles::files_for(const std::string& path) {
  if (scheme_of(path).empty()) return static_cast<world::Files*>(&disk_);
  TW_TRY(S3Files* const store, store_for(path));
  return static_cast<world::Files*>(store);
}

Result<S3Files*> StoreFiles::store_for(const std::string& path) {
  if (is_gs(path)) {
    const std::lock_guard lock(mutex_);
    const auto place = gs_place(environment_value);
    if (!place) return Error{fmt::format("{}: {}", path, place.error().message)};
    if (!gs_) gs_.emplace(place.value(), doors(), effort_);
    return &*gs_;
  }
  // The credentials of a role are others every few hours.
  const AwsFiles files = role_credentials().files();
  const std::lock_guard lock(mutex_);
  if (const auto known = s3_.find(files); known != s3_.end()) return &known->second;
  const auto place = s3_place(environment_value, files);
  if (!place) return Error{fmt::format("{}: {}", path, place.error().message)};
  return &s3_.try_emplace(files, place.value(), doors(), effort_).first->second;
}

Result<std::vector<std::byte>> StoreFiles::read(const std::string& path) {
  const auto files = files_for(path);
  if (!files) return files.error();
  const std::uint64_t bytes = scheme_of(path).empty() ? bytes_of_file(path) : 0;
  if (bytes > effort_.most_bytes)
    return Error{fmt::format("{} has {} bytes, at most {} were expected", path, bytes, effort_.most_bytes),
                 true};
  return files.value()->read(path);
}

Status StoreFiles::write(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const auto files = files_for(path);
  return files ? files.value()->write(path, parts) : files.error();
}

Status StoreFiles::rename(const std::string& from, const std::string& to) {
  if (scheme_of(from) != scheme_of(to)) return Error{fmt::format("{}: cannot become {}", from, to)};
  const auto files = files_for(from);
  return files ? files.value()->rename(from, to) : files.error();
}

Status StoreFiles::remove(const std::string& path) {
  const auto files = files_for(path);
  return files ? files.value()->remove(path) : files.error();
}

Result<std::vector<std::string>> StoreFiles::list(const std::string& folder) {
  const auto files = files_for(folder);
  return files ? files.value()->list(folder) : files.error();
}

Result<StoreFiles::Content> StoreFiles::content(const std::string& folder) {
  if (!scheme_of(folder).empty()) {
    TW_TRY(S3Files* const store, store_for(folder));
    return store->content(folder);
  }
  TW_TRY(auto names, disk_.list(folder));
  return Content{std::move(names), {}};
}

Status StoreFiles::make_folder(const std::string& folder) {
  const auto files = files_for(folder);
  return files ? files.value()->make_folder(folder) : files.error();
}

world::StoreUses StoreFiles::uses() const {
  world::StoreUses sum;
  const std::lock_guard lock(mutex_);
  for (const auto& [files, store] : s3_) world::add(sum, store.uses());
  if (gs_) world::add(sum, gs_->uses());
  return sum;
}

}  // namespace tw::host
