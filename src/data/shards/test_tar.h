// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "world/store.h"

/// Tars and stores in memory, for tests.
namespace tw::data {

/// A member of a tar in the format of ustar. The kind of a link is '1' or '2', of a folder '5'.
inline std::string test_member(const std::string& name, const std::string& content, char kind = '0',
                               const std::string& target = "") {
  std::string head(512, '\0');
  head.replace(0, name.size(), name);
  head.replace(100, 7, "0000644");
  head.replace(108, 7, "0000000");
  head.replace(116, 7, "0000000");
  head.replace(124, 11, fmt::format("{:011o}", content.size()));
  head.replace(136, 11, "00000000000");
  head.replace(148, 8, "        ");
  head[156] = kind;
  head.replace(157, target.size(), target);
  head.replace(257, 8, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  head.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return head + content + std::string((512 - content.size() % 512) % 512, '\0');
}

/// A tar of plain files.
inline std::string test_tar(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string tar;
  for (const auto& [name, content] : files) tar += test_member(name, content);
  return tar + std::string(1024, '\0');
}

/// Objects in memory. Reads are answered at once, or in answer_all() if holds_back. The version is the size.
class MemoryStore final : public world::Store {
 public:
  std::map<std::string, std::string> objects;
  std::map<std::string, std::string> broken;  ///< object: the answer
  bool holds_back = false;

  void read(const world::Extent& extent, Read done) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back(extent);
    if (holds_back) return waiting_.push_back({extent, std::move(done)});
    done(answer(extent));
  }

  void look(const std::string& object, Looked done) override {
    const auto found = objects.find(object);
    if (found == objects.end()) return done(Error{object + ": not there"});
    done(world::ObjectFacts{found->second.size(), std::to_string(found->second.size())});
  }

  std::vector<world::Extent> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  /// Answers all reads that are held back.
  void answer_all() {
    std::vector<std::pair<world::Extent, Read>> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
    }
    for (auto& [extent, done] : waiting) done(answer(extent));
  }

 private:
  Result<std::string> answer(const world::Extent& extent) const {
    if (const auto bad = broken.find(extent.object); bad != broken.end())
      return Error{text_of(extent) + ": " + bad->second};
    return objects.at(extent.object).substr(extent.offset, extent.length);
  }

  mutable std::mutex mutex_;
  std::vector<world::Extent> asked_;
  std::vector<std::pair<world::Extent, Read>> waiting_;
};

}  // namespace tw::data
