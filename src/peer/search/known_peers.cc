// SPDX-License-Identifier: Apache-2.0
#include "peer/search/known_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <ranges>
#include <utility>

#include "base/text/csv.h"
#include "base/text/text_file.h"
#include "host/address.h"
#include "host/files_disk.h"
#include "wire/limits.h"

namespace tw::peer {
namespace {

constexpr std::uint64_t kMostFileBytes = 1 << 20;

std::optional<PeerId> peer_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return PeerId{number};
}

}  // namespace

KnownPeers::KnownPeers(std::string folder, PeerId self, const Digest& training)
    : self_(self), training_(to_string(training)) {
  if (folder.empty()) return;
  path_ = fmt::format("{}/peers-{}.csv", folder, self.value);
  if (const auto names = host::DiskFiles().list(folder)) {
    for (const std::string& name : names.value()) {
      const std::string file = folder + "/" + name;
      if (name.starts_with("peers-") && name.ends_with(".csv") && file != path_) read(file);
    }
  }
  read(path_);  // what it saw itself is newer to it than what others did
}

void KnownPeers::read(const std::string& file) {
  const auto text = read_text_file(file, kMostFileBytes);
  if (!text) return;
  const auto table = CsvTable::parse(file, text.value(), {"run", "peer", "address"});
  if (!table) return;
  for (std::size_t i = table.value().size(); i-- > 0;) {  // the last one was seen first
    const CsvRow row = table.value().row(i);
    const std::string& address = row.text("address");
    const auto peer = peer_in(row.text("peer"));
    if (peer && row.text("run") == training_ && host::parse_address(address)) note(*peer, address);
  }
}

bool KnownPeers::note(PeerId peer, const std::string& address) {
  if (peer == self_ || address.empty() || address.size() > wire::kMostAddressBytes) return false;
  Known& known = known_[peer];
  known.seen = ++seen_;
  const bool is_news = known.address != address;
  known.address = address;
  if (known_.size() > kMost)
    known_.erase(std::ranges::min_element(
        known_, {}, [](const std::pair<const PeerId, Known>& one) { return one.second.seen; }));
  return is_news;
}

bool KnownPeers::see(const std::vector<wire::Member>& members) {
  bool is_news = false;
  // Always the same ones if they are more than it keeps: others would be news each time.
  for (const wire::Member& member : members | std::views::take(kMost))
    is_news |= note(member.peer, member.address);
  return is_news;
}

std::vector<wire::Member> KnownPeers::all() const {
  std::vector<std::pair<std::uint64_t, wire::Member>> order;
  for (const auto& [peer, known] : known_) order.push_back({known.seen, {peer, known.address}});
  std::ranges::sort(order, std::ranges::greater(), &std::pair<std::uint64_t, wire::Member>::first);
  std::vector<wire::Member> members;
  for (auto& [seen, member] : order) members.push_back(std::move(member));
  return members;
}

std::string KnownPeers::text() const {
  std::string text = "run,peer,address\n";
  for (const wire::Member& member : all())
    text += fmt::format("{},{},{}\n", training_, member.peer.value, member.address);
  return text;
}

}  // namespace tw::peer
