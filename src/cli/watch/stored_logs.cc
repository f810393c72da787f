// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/stored_logs.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "host/files_disk.h"
#include "host/store/s3_place.h"
#include "monitor/logs/log_file.h"

namespace tw::cli {
namespace {

constexpr std::size_t kFilesAtOnce = 8;

Result<std::vector<std::string>> names_of_logs(world::Files& store, const std::string& folder) {
  auto names = store.list(folder);
  if (names)
    std::erase_if(names.value(), [](const std::string& name) { return !monitor::is_log_file(name); });
  return names;
}

Status fetch(world::Files& store, const std::string& from, const std::string& to) {
  TW_TRY(const auto content, store.read(from));
  const std::array parts{std::span<const std::byte>(content)};
  return host::DiskFiles().write(to, parts);
}

}  // namespace

Status fetch_logs(world::Files& store, const std::string& folder, const std::string& to) {
  if (host::is_s3(folder)) TW_TRY(host::parse_s3(folder));
  std::string from = folder.substr(0, folder.find_last_not_of('/') + 1);
  auto names = names_of_logs(store, from);
  if (names && names.value().empty()) {
    from += "/logs";
    names = names_of_logs(store, from);
  }
  if (!names) return names.error();
  if (names.value().empty()) return Error{fmt::format("no event log (events-*.jsonl) in {}", folder)};
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> failure;  // guarded by the mutex
  const auto fetch_some = [&] {
    for (std::size_t at = next++; at < names.value().size(); at = next++) {
      const std::string& name = names.value()[at];
      const Status fetched = fetch(store, from + "/" + name, to + "/" + name);
      if (fetched) continue;
      next = names.value().size();
      const std::lock_guard lock(mutex);
      failure = fetched.error();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kFilesAtOnce; ++i) threads.emplace_back(fetch_some);
  threads.clear();
  return failure ? Status(*failure) : Status(Unit{});
}

}  // namespace tw::cli
