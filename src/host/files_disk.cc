// SPDX-License-Identifier: Apache-2.0
#include "host/files_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/cause_text.h"

namespace tw::host {
namespace {

Error failed(const std::string& what, int code) {
  return Error{fmt::format("cannot {}: {}", what, cause_text(code))};
}

/// Owns a descriptor; negative when opening failed, with the cause in errno.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}

  ~Descriptor() { close(); }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

  bool is_open() const { return number_ >= 0; }

  /// False, with the cause in errno, when earlier writes were lost (network file systems report it here).
  bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0 || errno == EINTR;
  }

 private:
  int number_;
};

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

bool sync(int file) {
  while (::fsync(file) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

Status sync_folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (!descriptor.is_open() || !sync(descriptor.number())) return failed("make durable " + folder, errno);
  return Unit{};
}

}  // namespace

Result<std::vector<std::byte>> DiskFiles::read(const std::string& path) {
  const Descriptor file(path, O_RDONLY);

  struct stat about {};

  if (!file.is_open() || ::fstat(file.number(), &about) != 0)
    return Error{failed("read " + path, errno).message, errno == ENOENT};
  std::vector<std::byte> bytes(static_cast<std::size_t>(about.st_size) +
                               1);  // one more: the end shows without growing
  std::size_t have = 0;
  while (true) {
    if (have == bytes.size()) bytes.resize(2 * have);
    const ssize_t got = ::read(file.number(), bytes.data() + have, bytes.size() - have);
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return failed("read " + path, errno);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Status DiskFiles::write(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file.is_open()) return failed("write " + path, errno);
  for (const auto& part : parts) {
    if (!write_all(file.number(), part)) return failed("write " + path, errno);
  }
  if (!sync(file.number()) || !file.close()) return failed("write " + path, errno);
  return Unit{};
}

Status DiskFiles::rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return failed(fmt::format("rename {} to {}", from, to), errno);
  return sync_folder_of(to);
}

Status DiskFiles::remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return failed("remove " + path, errno);
  return Unit{};
}

Result<std::vector<std::string>> DiskFiles::list(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code vanished;  // between listing and looking: then it is no file of this folder any more
    if (entry->is_regular_file(vanished)) names.push_back(entry->path().filename().string());
  }
  if (error)
    return Error{failed("list " + folder, error.value()).message,
                 error == std::errc::no_such_file_or_directory};
  std::sort(names.begin(), names.end());
  return names;
}

Status DiskFiles::make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return failed("make folder " + folder, error.value());
  if (!std::filesystem::is_directory(folder, error)) return failed("make folder " + folder, ENOTDIR);
  return Unit{};
}

}  // namespace tw::host
