// SPDX-License-Identifier: Apache-2.0
#include "cli/watched_folder.h"

#include <chrono>
#include <utility>

#include "cli/commands.h"
#include "cli/run_prices.h"
#include "cli/terminal.h"
#include "peer/token_file.h"
#include "peer/values.h"

namespace tw::cli {
namespace {

constexpr Duration kBetweenFolderLooks = std::chrono::seconds(1);

monitor::JournalOptions facts_of(const WatchedFolder::Place& place, const std::vector<PeerId>& peers) {
  const auto prices = prices_for(place.folder, place.plan, peers);
  if (!prices) warn(prices.error().message);
  return {.usd_per_h = prices ? prices.value() : PeerPrices{}};
}

}  // namespace

Result<std::unique_ptr<WatchedFolder>> WatchedFolder::open(host::Loop& loop, const Place& place,
                                                           host::WebOptions options) {
  auto logs = monitor::FollowedLogs::open(
      place.folder, [place](const std::vector<PeerId>& peers) { return facts_of(place, peers); });
  if (!logs) return logs.error();
  std::unique_ptr<WatchedFolder> watched(new WatchedFolder(loop, std::move(logs).value()));
  auto viewer = peer::Viewer::open(loop, std::move(options), [self = watched.get()] {
    return self->logs_.board(static_cast<double>(self->loop_.unix_nanos()) / 1e9);
  });
  if (!viewer) return viewer.error();
  watched->viewer_ = std::move(viewer).value();
  watched->look();
  return watched;
}

void WatchedFolder::look() {
  const Status polled = logs_.poll();
  if (!polled && polled.error().message != trouble_) {
    trouble_ = polled.error().message;
    warn(trouble_);
  }
  loop_.at(loop_.now() + kBetweenFolderLooks, life_.tie([this] { look(); }));
}

Result<std::unique_ptr<WatchedFolder>> watch_folder(host::Loop& loop, const std::string& folder,
                                                    const std::string& address) {
  if (address.empty()) return std::unique_ptr<WatchedFolder>();
  const auto checked = peer::parse_address_option("--watch", address);
  if (!checked) return checked.error();
  host::WebOptions options{.address = address};
  if (const auto token = peer::read_token("--token", "@" + peer::token_file(folder), warn))
    options.token = token.value();
  auto watched = WatchedFolder::open(loop, {.folder = folder}, std::move(options));
  if (watched) show_aside("watch: " + watched.value()->viewer().how_to_watch());
  return watched;
}

}  // namespace tw::cli
