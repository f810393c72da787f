// SPDX-License-Identifier: Apache-2.0
#include "host/store/store_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/text/text_file.h"
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

AwsFiles read_aws_files() {
  const auto text_of_file = [](const char* variable, const char* name) {
    std::string path = environment_value(variable);
    if (path.empty()) path = environment_value("HOME") + "/.aws/" + name;
    const auto text = read_text_file(path, kMostCredentials);
    return text ? text.value() : std::string();
  };
  return {text_of_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
          text_of_file("AWS_CONFIG_FILE", "config")};
}

S3Files::Doors StoreFiles::doors() const {
  S3Files::Doors doors = s3_doors();
  doors.is_over = is_over_;
  return doors;
}

Result<world::Files*> StoreFiles::files_for(const std::string& path) {
  if (is_gs(path)) {
    const std::lock_guard lock(mutex_);
    const auto place = gs_place(environment_value);
    if (!place) return Error{fmt::format("{}: {}", path, place.error().message)};
    if (!gs_) gs_.emplace(place.value(), doors(), effort_);
    return static_cast<world::Files*>(&*gs_);
  }
  if (!is_s3(path)) return static_cast<world::Files*>(&disk_);
  // The credentials of a role are others every few hours.
  const AwsFiles files = role_credentials().files();
  const std::lock_guard lock(mutex_);
  if (const auto known = s3_.find(files); known != s3_.end())
    return static_cast<world::Files*>(&known->second);
  const auto place = s3_place(environment_value, files);
  if (!place) return Error{fmt::format("{}: {}", path, place.error().message)};
  return static_cast<world::Files*>(&s3_.try_emplace(files, place.value(), doors(), effort_).first->second);
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
