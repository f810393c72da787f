// SPDX-License-Identifier: Apache-2.0
#include "base/text/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/cause_text.h"
#include "base/result.h"

namespace tw {
namespace {

constexpr std::uint64_t kPieceBytes = 4096;

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

Result<std::uint64_t> size_of(int file, const std::string& path) {
  struct stat about {};

  if (::fstat(file, &about) != 0) return unreadable(path, errno);
  if (!S_ISREG(about.st_mode))
    return unreadable(path, fmt::format("it is {}; expected a regular file", kind_of(about.st_mode)));
  return static_cast<std::uint64_t>(about.st_size);
}

/// The next bytes, so many at most; fewer: the file ends there.
Result<std::string> read_on(int file, const std::string& path, std::uint64_t at_most) {
  std::string text(static_cast<std::size_t>(at_most), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(file, text.data() + have, text.size() - have);
    if (got < 0 && errno != EINTR) return unreadable(path, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  text.resize(have);
  return text;
}

/// read: gives the text of the open file.
template <class Read>
Result<std::string> text_of_file(const std::string& path, Read read) {
  if (path.find('\0') != std::string::npos) return unreadable(path, "a path has no NUL byte");
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return unreadable(path, errno);
  auto text = read(file);
  ::close(file);
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::uint64_t most_bytes) {
  return text_of_file(path, [&](int file) -> Result<std::string> {
    const Error too_large = unreadable(path, fmt::format("it is larger than {} bytes", most_bytes));
    TW_TRY(const std::uint64_t size, size_of(file, path));
    if (size > most_bytes) return too_large;
    // Some files, as those of /proc, have a size of 0; and a file may grow meanwhile.
    std::string text;
    for (std::uint64_t room = size + 1; text.size() <= most_bytes; room = kPieceBytes) {
      TW_TRY(const std::string piece, read_on(file, path, room));
      text += piece;
      if (piece.size() < room) return text;
    }
    return too_large;
  });
}

Result<std::string> read_text_from(const std::string& path, std::uint64_t from, std::uint64_t at_most) {
  return text_of_file(path, [&](int file) -> Result<std::string> {
    TW_TRY(const std::uint64_t size, size_of(file, path));
    if (from >= size) return std::string();
    if (::lseek(file, static_cast<off_t>(from), SEEK_SET) < 0) return unreadable(path, errno);
    return read_on(file, path, std::min(at_most, size - from));
  });
}

}  // namespace tw
