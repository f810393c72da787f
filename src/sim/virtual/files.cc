// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual/files.h"

#include <algorithm>
#include <utility>

namespace tw::sim {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error no_such(const std::string& path) { return Error{path + ": no such file or folder"}; }

Error broken(const std::string& path) { return Error{path + ": input/output error"}; }

Blob part_of(std::vector<std::byte> content, Prng& random) {
  if (!content.empty()) content.resize(random.below(content.size()));
  return Blob(std::move(content));
}

}  // namespace

Result<std::vector<std::byte>> VirtualFiles::read(const std::string& path) {
  if (auto failed = begin(Operation::read, path)) return *failed;
  const auto found = seen_.find(path);
  if (found == seen_.end()) return no_such(path);
  const auto bytes = found->second.content.bytes();
  return std::vector(bytes.begin(), bytes.end());
}

Status VirtualFiles::write(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  if (auto failed = begin(Operation::write, path)) return *failed;
  if (!folders_.contains(folder_of(path))) return no_such(folder_of(path));
  std::vector<std::byte> content;
  for (const auto part : parts) content.insert(content.end(), part.begin(), part.end());
  return put(path, std::move(content));
}

Status VirtualFiles::put(const std::string& path, std::vector<std::byte> content) {
  if (lasts(DiskFault::full) || power_ == Power::going) {
    leave_part(path, std::move(content));
    if (power_ != Power::going) return Error{path + ": no space left on device"};
    power_ = Power::gone;
    return broken(path);
  }
  const File file{Blob(std::move(content)), !lasts(DiskFault::lost_fsync)};
  if (durable_.contains(path) && file.synced) durable_[path] = file;
  seen_[path] = file;
  return Unit{};
}

// Whether the part had reached the disk when power went is open.
void VirtualFiles::leave_part(const std::string& path, std::vector<std::byte> content) {
  const File part{part_of(std::move(content), chance_), true};
  seen_[path] = part;
  if (durable_.contains(path) || chance_.chance(0.5)) durable_[path] = part;
}

Status VirtualFiles::rename(const std::string& from, const std::string& to) {
  if (auto failed = begin(Operation::rename, from)) return *failed;
  const auto found = seen_.find(from);
  if (found == seen_.end()) return no_such(from);
  if (!folders_.contains(folder_of(to))) return no_such(folder_of(to));
  if (lasts(DiskFault::rename_lost)) undone_.push_back(seen_);
  File file = std::move(found->second);
  seen_.erase(found);
  seen_[to] = std::move(file);
  if (lasts(DiskFault::rename_lost)) return Unit{};
  undone_.clear();
  make_names_durable(folder_of(to));
  make_names_durable(folder_of(from));
  return Unit{};
}

Status VirtualFiles::remove(const std::string& path) {
  if (auto failed = begin(Operation::remove, path)) return *failed;
  if (!seen_.contains(path)) return no_such(path);
  if (lasts(DiskFault::rename_lost)) undone_.push_back(seen_);
  seen_.erase(path);
  return Unit{};
}

Result<std::vector<std::string>> VirtualFiles::list(const std::string& folder) {
  if (auto failed = begin(Operation::other, folder)) return *failed;
  if (!folders_.contains(folder)) return Error{no_such(folder).message, true};
  std::vector<std::string> names;
  for (const auto& [path, file] : seen_) {
    if (folder_of(path) == folder) names.push_back(path.substr(path.rfind('/') + 1));
  }
  return names;
}

Status VirtualFiles::make_folder(const std::string& folder) {
  if (auto failed = begin(Operation::other, folder)) return *failed;
  for (std::string path = folder; folders_.insert(path).second;) path = folder_of(path);
  return Unit{};
}

void VirtualFiles::arm(DiskFault fault, int operations_from_now, std::uint64_t seed,
                       std::function<void()> struck) {
  armed_.push_back({fault, operations_from_now, Prng(seed), std::move(struck)});
}

void VirtualFiles::mend() {
  armed_.clear();
  errors_ = 0;
  power_ = Power::on;
  lasting_.clear();
}

VirtualFiles VirtualFiles::without_faults() const {
  VirtualFiles copy = *this;
  copy.mend();
  return copy;
}

std::optional<Error> VirtualFiles::begin(Operation operation, const std::string& path) {
  std::vector<Armed> now;
  for (std::size_t i = 0; i < armed_.size();) {
    const bool due = armed_[i].operations-- <= 0 && concerns(armed_[i].fault, operation) &&
                     (armed_[i].fault != DiskFault::bit_flip || has_bits());
    if (due) {
      now.push_back(std::move(armed_[i]));
      armed_.erase(armed_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  for (Armed& armed : now) strike(std::move(armed));
  if (power_ == Power::gone || errors_ > 0) {
    errors_ = std::max(0, errors_ - 1);
    return broken(path);
  }
  return std::nullopt;
}

bool VirtualFiles::concerns(DiskFault fault, Operation operation) {
  switch (fault) {
    case DiskFault::full:
    case DiskFault::torn_write:
    case DiskFault::lost_fsync:
      return operation == Operation::write;
    case DiskFault::rename_lost:
      return operation == Operation::rename;
    case DiskFault::error:
    case DiskFault::bit_flip:
      return true;
  }
  return false;
}

void VirtualFiles::strike(Armed armed) {
  chance_ = armed.random;
  switch (armed.fault) {
    case DiskFault::full:
    case DiskFault::lost_fsync:
    case DiskFault::rename_lost:
      lasting_.insert(armed.fault);
      break;
    case DiskFault::error:
      errors_ = 1 + static_cast<int>(chance_.below(3));
      break;
    case DiskFault::torn_write:
      if (power_ == Power::on) power_ = Power::going;
      break;
    case DiskFault::bit_flip:
      flip_bit(chance_);
      break;
  }
  if (armed.struck) armed.struck();
}

bool VirtualFiles::has_bits() const {
  return std::any_of(seen_.begin(), seen_.end(),
                     [](const auto& entry) { return !entry.second.content.empty(); });
}

void VirtualFiles::flip_bit(Prng& random) {
  std::vector<std::string> paths;
  for (const auto& [path, file] : seen_) {
    if (!file.content.empty()) paths.push_back(path);
  }
  const std::string& path = paths[random.below(paths.size())];
  const auto old = seen_[path].content.bytes();
  std::vector<std::byte> bytes(old.begin(), old.end());
  bytes[random.below(bytes.size())] ^= std::byte{1} << random.below(8);
  const Blob flipped(std::move(bytes));
  seen_[path].content = flipped;
  if (const auto kept = durable_.find(path); kept != durable_.end() && seen_[path].synced) {
    kept->second.content = flipped;
  }
}

void VirtualFiles::crash(Prng& random) {
  const bool undo = !undone_.empty();
  Contents after = undo ? after_lost_renames(random) : after_power_loss(random);
  spoil(after, random);
  seen_ = after;
  durable_ = std::move(after);
  undone_.clear();
  power_ = Power::on;
}

// A journal: some of the first changes of names are there, none of those after the first that is lost.
VirtualFiles::Contents VirtualFiles::after_lost_renames(Prng& random) {
  const std::size_t there = random.below(undone_.size() + 1);
  return there == undone_.size() ? seen_ : undone_[there];
}

VirtualFiles::Contents VirtualFiles::after_power_loss(Prng& random) {
  Contents after;
  for (const auto& [path, file] : durable_) {
    const auto seen = seen_.find(path);
    if (seen != seen_.end() && !seen->second.synced) {
      after[path] = seen->second;
    } else if (seen != seen_.end() || random.chance(0.5)) {
      after[path] = file;
    }
  }
  for (const auto& [path, file] : seen_) {
    if (!durable_.contains(path) && random.chance(0.5)) after[path] = file;
  }
  return after;
}

// Content that never reached the disk: nothing at all, nothing of it, a part, or what was there before.
void VirtualFiles::spoil(Contents& files, Prng& random) const {
  for (auto entry = files.begin(); entry != files.end();) {
    File& file = entry->second;
    const auto before = durable_.find(entry->first);
    const std::uint64_t fate = file.synced ? 4 : random.below(4);
    file.synced = true;
    if (fate == 0 || (fate == 3 && before == durable_.end())) {
      entry = files.erase(entry);
      continue;
    }
    const auto bytes = file.content.bytes();
    if (fate == 1) file.content = Blob();
    if (fate == 2) file.content = part_of(std::vector(bytes.begin(), bytes.end()), random);
    if (fate == 3) file.content = before->second.content;
    ++entry;
  }
}

void VirtualFiles::make_names_durable(const std::string& folder) {
  std::erase_if(durable_, [&](const auto& entry) {
    return folder_of(entry.first) == folder && !seen_.contains(entry.first);
  });
  for (const auto& [path, file] : seen_) {
    if (folder_of(path) == folder && file.synced) durable_[path] = file;
  }
}

}  // namespace tw::sim
