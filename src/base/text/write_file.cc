// SPDX-License-Identifier: Apache-2.0
#include "base/text/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/cause_text.h"

namespace tw {
namespace {

constexpr unsigned kUsualMode = 0666;  // less the umask

Error unwritten(const std::string& path, int cause) {
  return Error{fmt::format("{}: cannot be written: {}", path, cause_text(cause))};
}

/// 0, or the error. Closes the file.
int fill(int file, const std::string& text, bool is_durable) {
  std::size_t done = 0;
  int cause = 0;
  while (cause == 0 && done < text.size()) {
    const ssize_t written = ::write(file, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      cause = errno;
    }
  }
  if (cause == 0 && is_durable && ::fsync(file) != 0) cause = errno;
  if (::close(file) != 0 && cause == 0) cause = errno;
  return cause;
}

/// What must not be replaced: /dev/stdout may lead to a regular file.
bool is_device(const std::string& path) {
  struct stat about {};

  return path.starts_with("/dev/") || (::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode));
}

}  // namespace

Status write_file(const std::string& path, const std::string& text, std::optional<unsigned> mode) {
  if (path.find('\0') != std::string::npos)
    return Error{"the name of a file to write has a NUL byte; expected none"};
  if (is_device(path)) {
    const int device = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    if (device < 0) return unwritten(path, errno);
    const int cause = fill(device, text, false);
    return cause == 0 ? Status(Unit{}) : unwritten(path, cause);
  }
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());  // what a killed process left
  const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode.value_or(kUsualMode));
  if (file < 0) return unwritten(path, errno);
  if (mode) ::fchmod(file, *mode);
  int cause = fill(file, text, true);
  if (cause == 0 && ::rename(beside.c_str(), path.c_str()) != 0) cause = errno;
  if (cause == 0) return Unit{};
  ::unlink(beside.c_str());
  return unwritten(path, cause);
}

}  // namespace tw
