// SPDX-License-Identifier: Apache-2.0
#include "host/disk/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "base/cause_text.h"
#include "base/result.h"

namespace tw::host {
namespace {

/// Device and inode: a file has several names.
using FileId = std::pair<dev_t, ino_t>;

FileId id_of(const struct stat& about) { return {about.st_dev, about.st_ino}; }

struct flock asked_of(FileLock::Kind kind, FileLock::Range range) {
  struct flock asked {};

  asked.l_type = kind == FileLock::Kind::shared ? F_RDLCK : F_WRLCK;
  asked.l_whence = SEEK_SET;
  asked.l_start = static_cast<off_t>(range.first);
  asked.l_len = static_cast<off_t>(range.count);
  return asked;
}

Error cannot(const std::string& path, const char* what) {
  return Error{fmt::format("{}: cannot be {}: {}", path, what, cause_text(errno))};
}

}  // namespace

struct FileLock::Open {
  explicit Open(int opened) : file(opened) {}

  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  ~Open() { ::close(file); }

  int file;
};

Result<FileLock> FileLock::open(const std::string& path) {
  static std::mutex mutex;
  static std::map<FileId, std::weak_ptr<Open>> all;  // guarded by mutex; owners: the FileLocks
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& one) { return one.second.expired(); });

  struct stat about {};

  // Looked up by its name first: to open it once more, and to close that, would drop its locks.
  if (::stat(path.c_str(), &about) == 0)
    if (const auto found = all.find(id_of(about)); found != all.end())
      if (auto file = found->second.lock()) return FileLock(path, std::move(file));
  const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (opened < 0) return cannot(path, "opened");
  auto file = std::make_shared<Open>(opened);
  if (::fstat(opened, &about) != 0) return cannot(path, "examined");
  all[id_of(about)] = file;
  return FileLock(path, std::move(file));
}

Error FileLock::no_locks() const { return cannot(path_, "locked"); }

Result<FileLock::Holder> FileLock::holder(Kind kind, Range range) const {
  struct flock found = asked_of(kind, range);
  if (::fcntl(file_->file, F_GETLK, &found) != 0) return no_locks();
  if (found.l_type == F_UNLCK) return Holder();
  return Holder(found.l_pid > 0 ? found.l_pid : 0);
}

Result<FileLock::Holder> FileLock::lock(Kind kind, Range range) {
  struct flock asked = asked_of(kind, range);
  if (::fcntl(file_->file, F_SETLK, &asked) == 0) return Holder();
  if (errno != EAGAIN && errno != EACCES) return no_locks();
  TW_TRY(const Holder other, holder(kind, range));
  return Holder(other.value_or(0));  // it may have let go in between
}

bool FileLock::is_at_its_path() const {
  struct stat own {};

  struct stat there {};

  return ::fstat(file_->file, &own) == 0 && ::stat(path_.c_str(), &there) == 0 && id_of(own) == id_of(there);
}

void FileLock::unlock(Range range) {
  struct flock asked = asked_of(Kind::shared, range);
  asked.l_type = F_UNLCK;
  (void)::fcntl(file_->file, F_SETLK, &asked);
}

}  // namespace tw::host
