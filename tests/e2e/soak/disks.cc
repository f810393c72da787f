// SPDX-License-Identifier: Apache-2.0
#include "e2e/soak/disks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace tw::soak {
namespace {

/// Holds the event logs of two hours and the checkpoints.
constexpr const char* kSize = "size=192m";
constexpr const char* kBallast = "/ballast";

}  // namespace

Disks::Disks(std::string folder, std::size_t hosts) : folder_(std::move(folder)), hosts_(hosts) {
  mounted_ = true;
  for (std::size_t host = 0; host < hosts; ++host) {
    std::filesystem::create_directories(this->folder(host));
    mounted_ = mounted_ && mount("soak", this->folder(host).c_str(), "tmpfs", 0, kSize) == 0;
  }
}

Disks::~Disks() {
  for (std::size_t host = 0; host < hosts_; ++host) umount2(folder(host).c_str(), MNT_DETACH);
}

std::string Disks::folder(std::size_t host) const { return fmt::format("{}/host-{}", folder_, host); }

bool Disks::fill(std::size_t host) const {
  if (!mounted_) return false;
  const int file = open((folder(host) + kBallast).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return false;
  static constexpr std::array<char, 1 << 16> kZeros{};
  while (write(file, kZeros.data(), kZeros.size()) > 0) {
  }
  const bool full = errno == ENOSPC;
  close(file);
  return full;
}

void Disks::free(std::size_t host) const {
  std::error_code gone;
  std::filesystem::remove(folder(host) + kBallast, gone);
}

void Disks::keep(const std::string& target) const {
  std::error_code failed;
  for (std::size_t host = 0; host < hosts_; ++host) {
    free(host);
    const std::string to = fmt::format("{}/host-{}", target, host);
    std::filesystem::create_directories(to, failed);
    std::filesystem::copy(folder(host), to, std::filesystem::copy_options::recursive, failed);
  }
}

}  // namespace tw::soak
