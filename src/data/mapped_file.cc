// SPDX-License-Identifier: Apache-2.0
#include "data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tw::data {

// owners: data sets of it
Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const auto failed = [&](const char* why) {
    return Error{fmt::format("{}: cannot be opened: {}", path, why)};
  };
  // O_NONBLOCK: opening a pipe would wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed(std::strerror(errno));
  struct stat facts = {};
  const bool regular = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  const auto size = regular ? static_cast<std::size_t>(facts.st_size) : 0;
  void* const at = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : nullptr;
  const int error = errno;
  ::close(file);
  if (!regular) return failed("expected a regular file");
  if (at == MAP_FAILED) return failed(std::strerror(error));
  return std::shared_ptr<const MappedFile>(  // owners: as above
      new MappedFile({static_cast<const std::byte*>(at), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tw::data
