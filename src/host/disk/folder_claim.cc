// SPDX-License-Identifier: Apache-2.0
#include "host/disk/folder_claim.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace tw::host {
namespace {

using Kind = FileLock::Kind;

/// Held by a process while it looks and takes: of two that start at the same time, one sees the other.
constexpr FileLock::Range kGate{.first = 0, .count = 1};
/// A run that is about to end has the folder for so long.
constexpr Duration kWait = std::chrono::seconds(5);
constexpr Duration kTryAgain = std::chrono::milliseconds(100);
/// Two runs have the same place with a probability of 2^-40.
constexpr std::size_t kKeyBytes = 5;

FileLock::Range place_of(const wire::Token::Key& key) {
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < kKeyBytes; ++i) place = place << 8 | std::to_integer<std::uint64_t>(key[i]);
  return {.first = 1 + place, .count = 1};
}

/// None where it cannot be asked.
FileLock::Holder holder_in(const FileLock& lock, FileLock::Range range) {
  const auto holder = lock.holder(Kind::exclusive, range);
  return holder ? holder.value() : FileLock::Holder();
}

}  // namespace

FolderClaim::FolderClaim(std::string folder, const wire::Token::Key& key)
    : folder_(std::move(folder)), own_(place_of(key)) {
  if (folder_.empty()) return;
  std::error_code ignored;  // then the file cannot be made either
  std::filesystem::create_directories(folder_, ignored);
  if (auto lock = FileLock::open(folder_ + "/" + kFile)) lock_.emplace(std::move(lock).value());
}

FileLock::Holder FolderClaim::take() {
  if (!lock_) return std::nullopt;
  const auto gate = lock_->lock(Kind::exclusive, kGate);
  if (!gate) return std::nullopt;
  gate_is_busy_ = gate.value().has_value();
  if (gate_is_busy_) return gate.value();
  const FileLock::Holder other = take_with(*lock_);
  lock_->unlock(kGate);
  return other;
}

std::string FolderClaim::take_soon(Loop& loop, const std::function<bool()>& cut_short) {
  const Instant until = loop.now() + kWait;
  FileLock::Holder holder = take();
  for (; holder && loop.now() < until && !cut_short(); holder = take()) loop.run_until(cut_short, kTryAgain);
  // Many peers that start at once may take turns there for longer.
  if (holder && gate_is_busy_) holder = take_with(*lock_);
  if (!holder || cut_short()) return {};
  const std::string elsewhere =
      fmt::format("a process on another machine; if that is gone, remove {}/{}", folder_, kFile);
  return fmt::format(
      "a run trains in {} already ({}): join it with its token, or give another --out / checkpoint.folder",
      folder_, *holder > 0 ? fmt::format("process {}", *holder) : elsewhere);
}

/// At the gate.
FileLock::Holder FolderClaim::take_with(FileLock& lock) const {
  const FileLock::Range after{.first = own_.first + 1};
  FileLock::Holder other = holder_in(lock, after);
  if (!other && own_.first > 1) other = holder_in(lock, {.first = 1, .count = own_.first - 1});
  if (!other) (void)lock.lock(Kind::shared, own_);
  return other;
}

}  // namespace tw::host
