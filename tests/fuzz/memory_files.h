// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "world/files.h"

namespace tw::fuzz {

/// A disk in memory, with one folder for all names.
class MemoryFiles final : public world::Files {
 public:
  std::map<std::string, std::vector<std::byte>> content;

  Result<std::vector<std::byte>> read(const std::string& path) override {
    const auto found = content.find(path);
    if (found == content.end()) return Error{path + ": no such file"};
    return found->second;
  }

  Status write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    std::vector<std::byte>& file = content[path];
    file.clear();
    for (const auto part : parts) file.insert(file.end(), part.begin(), part.end());
    return Unit{};
  }

  Status rename(const std::string& from, const std::string& to) override {
    auto moved = content.extract(from);
    if (moved.empty()) return Error{from + ": no such file"};
    content[to] = std::move(moved.mapped());
    return Unit{};
  }

  Status remove(const std::string& path) override {
    return content.erase(path) == 1 ? Status(Unit{}) : Status(Error{path + ": no such file"});
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& [path, bytes] : content) names.push_back(path.substr(folder.size() + 1));
    return names;
  }

  Status make_folder(const std::string&) override { return Unit{}; }
};

}  // namespace tw::fuzz
