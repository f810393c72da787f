// SPDX-License-Identifier: Apache-2.0
#include "host/store/file_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/cause_text.h"
#include "base/result.h"
#include "base/text/date.h"

namespace tw::host {
namespace {

constexpr std::string_view kFileScheme = "file://";

/// "10 bytes of 2026-05-20T10:00:00Z"; anything else as it is.
std::string version_text(const std::string& version) {
  const std::size_t dash = version.find('-');
  std::uint64_t time = 0, bytes = 0;
  const char *const begin = version.data(), *const end = begin + version.size();
  if (dash == std::string::npos || std::from_chars(begin, begin + dash, time, 16).ptr != begin + dash ||
      std::from_chars(begin + dash + 1, end, bytes, 16).ptr != end)
    return version;
  return fmt::format("{} bytes of {}", bytes, date_text(static_cast<std::int64_t>(time)));
}

/// An open file, or why it is none.
class OpenedFile {
 public:
  explicit OpenedFile(const std::string& object)
      : path_(object.starts_with(kFileScheme) ? object.substr(kFileScheme.size()) : object),
        file_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}

  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  ~OpenedFile() {
    if (file_ >= 0) ::close(file_);
  }

  Result<world::ObjectFacts> facts() const {
    struct stat found {};

    if (file_ < 0) {
      const bool is_path_wrong = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
      return Error{wrong(cause_text(errno)).message, is_path_wrong};
    }
    if (::fstat(file_, &found) != 0) return wrong(cause_text(errno));
    if (!S_ISREG(found.st_mode)) return Error{wrong("expected a plain file").message, true};
    return world::ObjectFacts{
        static_cast<std::uint64_t>(found.st_size),
        fmt::format("{:x}-{:x}", static_cast<std::uint64_t>(found.st_mtime), found.st_size)};
  }

  Result<std::string> bytes(std::uint64_t offset, std::uint64_t length) const {
    std::string content(length, '\0');
    std::size_t done = 0;
    while (done < length) {
      const ssize_t got =
          ::pread(file_, content.data() + done, length - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return wrong(cause_text(errno));
      if (got == 0) return wrong(fmt::format("it ends at byte {}", offset + done));
      done += static_cast<std::size_t>(got);
    }
    return content;
  }

  Error wrong(const std::string& why) const { return Error{fmt::format("{}: {}", path_, why)}; }

 private:
  std::string path_;
  int file_;
};

Result<std::string> read_extent(const world::Extent& extent) {
  const OpenedFile file(extent.object);
  TW_TRY(const auto facts, file.facts());
  if (!extent.version.empty() && facts.version != extent.version)
    return file.wrong(fmt::format(
        "it changed since its index was made: expected {}, found {}; make the index anew, or copy the "
        "file with its time (cp -p, rsync -a)",
        version_text(extent.version), version_text(facts.version)));
  const std::uint64_t bytes = facts.bytes;
  if (extent.offset > bytes || extent.length > bytes - extent.offset)
    return file.wrong(fmt::format("it has {} bytes, asked for {}", bytes, text_of(extent)));
  return file.bytes(extent.offset, extent.length);
}

}  // namespace

void FileStore::read(const world::Extent& extent, Read done) { done(read_extent(extent)); }

void FileStore::look(const std::string& object, Looked done) { done(OpenedFile(object).facts()); }

}  // namespace tw::host
