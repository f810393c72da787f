// SPDX-License-Identifier: Apache-2.0
#include "sim/files.h"

#include <utility>

namespace tw {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error no_such(const std::string& path) { return Error{path + ": no such file or folder"}; }

}  // namespace

Result<std::vector<std::byte>> VirtualFiles::read(const std::string& path) {
  const auto found = seen_.find(path);
  if (found == seen_.end()) return no_such(path);
  return found->second;
}

Status VirtualFiles::write(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  if (!folders_.contains(folder_of(path))) return no_such(folder_of(path));
  std::vector<std::byte> content;
  for (const auto part : parts) content.insert(content.end(), part.begin(), part.end());
  if (durable_.contains(path)) durable_[path] = content;
  seen_[path] = std::move(content);
  return Unit{};
}

Status VirtualFiles::rename(const std::string& from, const std::string& to) {
  const auto found = seen_.find(from);
  if (found == seen_.end()) return no_such(from);
  if (!folders_.contains(folder_of(to))) return no_such(folder_of(to));
  std::vector<std::byte> content = std::move(found->second);
  seen_.erase(found);
  seen_[to] = std::move(content);
  make_names_durable(folder_of(to));
  make_names_durable(folder_of(from));
  return Unit{};
}

Status VirtualFiles::remove(const std::string& path) {
  if (seen_.erase(path) == 0) return no_such(path);
  return Unit{};
}

Result<std::vector<std::string>> VirtualFiles::list(const std::string& folder) {
  if (!folders_.contains(folder)) return no_such(folder);
  std::vector<std::string> names;
  for (const auto& [path, content] : seen_) {
    if (folder_of(path) == folder) names.push_back(path.substr(path.rfind('/') + 1));
  }
  return names;
}

Status VirtualFiles::make_folder(const std::string& folder) {
  for (std::string path = folder; folders_.insert(path).second;) path = folder_of(path);
  return Unit{};
}

void VirtualFiles::crash(Prng& random) {
  Contents after;
  for (const auto& [path, content] : durable_) {
    if (seen_.contains(path) || random.chance(0.5)) after[path] = content;
  }
  for (const auto& [path, content] : seen_) {
    if (!durable_.contains(path) && random.chance(0.5)) after[path] = content;
  }
  seen_ = after;
  durable_ = std::move(after);
}

void VirtualFiles::make_names_durable(const std::string& folder) {
  std::erase_if(durable_, [&](const auto& entry) {
    return folder_of(entry.first) == folder && !seen_.contains(entry.first);
  });
  for (const auto& [path, content] : seen_) {
    if (folder_of(path) == folder) durable_[path] = content;
  }
}

}  // namespace tw
