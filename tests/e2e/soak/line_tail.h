// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tw::soak {

/// Follows a text file that another process appends to, renames (and begins anew), or cuts after its last
/// whole line when it continues it.
class LineTail {
 public:
  explicit LineTail(std::string path) : path_(std::move(path)) {}

  ~LineTail();

  LineTail(LineTail&& other) noexcept;
  LineTail& operator=(LineTail&& other) noexcept;

  /// The lines that were completed since the last call; none while there is no such file.
  std::vector<std::string> poll();

 private:
  void read_into(std::vector<std::string>& lines);
  /// Another file has the name now.
  bool was_replaced() const;

  std::string path_;
  int file_ = -1;
  std::int64_t read_ = 0;  ///< bytes, of whole lines
};

}  // namespace tw::soak
