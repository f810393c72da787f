// SPDX-License-Identifier: Apache-2.0
#include "host/store/store_files.h"

#include <fmt/format.h>

#include "base/text_file.h"

namespace tw::host {
namespace {

constexpr std::uint64_t kMostCredentials = 1 << 20;

}  // namespace

std::string shared_credentials() {
  std::string path = process_environment("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) path = process_environment("HOME") + "/.aws/credentials";
  const auto text = read_text_file(path, kMostCredentials);
  return text ? text.value() : "";
}

Result<world::Files*> StoreFiles::files_for(const std::string& path) {
  if (!is_s3(path)) return static_cast<world::Files*>(&disk_);
  std::call_once(asked_, [this] {
    place_ = s3_place(process_environment, shared_credentials());
    if (place_) s3_.emplace(place_.value(), s3_doors());
  });
  if (!place_) return Error{fmt::format("{}: {}", path, place_.error().message)};
  return static_cast<world::Files*>(&*s3_);
}

Result<std::vector<std::byte>> StoreFiles::read(const std::string& path) {
  const auto files = files_for(path);
  return files ? files.value()->read(path) : files.error();
}

Status StoreFiles::write(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const auto files = files_for(path);
  return files ? files.value()->write(path, parts) : files.error();
}

Status StoreFiles::rename(const std::string& from, const std::string& to) {
  if (is_s3(from) != is_s3(to)) return Error{fmt::format("{}: cannot become {}", from, to)};
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

}  // namespace tw::host
