// SPDX-License-Identifier: Apache-2.0
#include "base/text/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/cause_text.h"

namespace tw {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error unreadable(const std::string& path, const std::string& why) {
  return Error{fmt::format("{}: cannot be read: {}", path, why)};
}

Error unreadable(const std::string& path, int cause) { return unreadable(path, cause_text(cause)); }

Result<std::string> content_of(int file, const std::string& path, std::uint64_t from,
                               std::uint64_t most_bytes) {
  struct stat about {};

  if (::fstat(file, &about) != 0) return unreadable(path, errno);
  if (!S_ISREG(about.st_mode))
    return unreadable(path, fmt::format("it is {}; expected a regular file", kind_of(about.st_mode)));
  if (from > 0 && ::lseek(file, static_cast<off_t>(from), SEEK_SET) < 0) return unreadable(path, errno);
  const auto size = static_cast<std::uint64_t>(about.st_size), bytes = size - std::min(size, from);
  std::string text;
  for (std::size_t have = 0; have <= most_bytes && bytes <= most_bytes;) {
    // Room for one more byte than the file had: the read that fills the text also shows the end.
    text.resize(std::max<std::size_t>(have + 4096, static_cast<std::size_t>(bytes) + 1));
    const ssize_t got = ::read(file, text.data() + have, text.size() - have);
    if (got < 0 && errno != EINTR) return unreadable(path, errno);
    if (got == 0) {
      text.resize(have);
      return text;
    }
    have += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return unreadable(path, fmt::format("it is larger than {} bytes", most_bytes));
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::uint64_t most_bytes) {
  return read_text_from(path, 0, most_bytes);
}

Result<std::string> read_text_from(const std::string& path, std::uint64_t from, std::uint64_t most_bytes) {
  if (path.find('\0') != std::string::npos) return unreadable(path, "a path has no NUL byte");
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return unreadable(path, errno);
  auto text = content_of(file, path, from, most_bytes);
  ::close(file);
  return text;
}

}  // namespace tw
