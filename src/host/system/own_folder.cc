// SPDX-License-Identifier: Apache-2.0
#include "host/system/own_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/cause_text.h"

namespace tw::host {
namespace {

/// What is there instead; empty: the folder is this user's alone.
std::string objection_to(const struct stat& found, const std::string& path) {
  const unsigned mode = found.st_mode & 07777U;
  if (S_ISLNK(found.st_mode)) return "is a link; remove it";
  if (!S_ISDIR(found.st_mode)) return "is no folder; remove it";
  if (found.st_uid != geteuid())
    return fmt::format("belongs to user {}, not to {}; that user or root can remove it", found.st_uid,
                       geteuid());
  if (mode != 0700) return fmt::format("is open to others (mode {:o}); chmod 700 {}", mode, path);
  return {};
}

}  // namespace

Status take_own_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return Error{fmt::format("{}: cannot make this folder: {}", path, cause_text(errno))};

  struct stat found {};

  if (lstat(path.c_str(), &found) != 0)
    return Error{fmt::format("{}: cannot look at this folder: {}", path, cause_text(errno))};
  const std::string objection = objection_to(found, path);
  if (objection.empty()) return Unit{};
  return Error{fmt::format("{}: expected a folder that only you can enter, but it {}", path, objection)};
}

}  // namespace tw::host
