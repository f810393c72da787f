// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/line_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace tw::soak {

LineTail::~LineTail() {
  if (file_ >= 0) close(file_);
}

LineTail::LineTail(LineTail&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), read_(other.read_) {}

LineTail& LineTail::operator=(LineTail&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(read_, other.read_);
  return *this;
}

std::vector<std::string> LineTail::poll() {
  std::vector<std::string> lines;
  if (file_ >= 0) {
    const bool replaced = was_replaced();  // before it is read to its end
    read_into(lines);
    if (!replaced) return lines;
    close(file_);
    read_ = 0;
  }
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ >= 0) read_into(lines);
  return lines;
}

void LineTail::read_into(std::vector<std::string>& lines) {
  std::array<char, 1 << 16> buffer;
  std::string rest;
  std::int64_t position = read_;
  for (ssize_t got; (got = pread(file_, buffer.data(), buffer.size(), position)) > 0; position += got) {
    rest.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines.push_back(rest.substr(begin, end - begin));
    rest.erase(0, begin);
  }
  read_ = position - static_cast<std::int64_t>(rest.size());
}

bool LineTail::was_replaced() const {
  struct stat ours {};

  struct stat named {};

  if (fstat(file_, &ours) != 0 || stat(path_.c_str(), &named) != 0) return false;
  return ours.st_ino != named.st_ino || ours.st_dev != named.st_dev;
}

}  // namespace tw::soak
