// SPDX-License-Identifier: Apache-2.0
#include "plan/input/cluster_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "base/text/fields.h"
#include "plan/input/fields_yaml.h"

namespace tw::plan {
namespace {

constexpr double kMostOwnPrice = 1e6;

/// `T4@gcp:us: 0.18`: USD per hour of a peer.
std::vector<market::Offer> own_prices(YamlFields& fields, const std::string& file,
                                      const std::vector<PeerGroup>& peers) {
  const std::vector<market::Offer> no_others;
  std::vector<market::Offer> offers;
  for (const auto& [machine, value] : fields.map("usd_per_h", "MACHINE: USD")) {
    const std::string name = "usd_per_h." + machine;
    const auto group = parse_peers("1x" + machine);
    const auto usd = number_in<double>(value, {.high = kMostOwnPrice});
    if (!group) fields.complain(name, "a machine such as T4@gcp:us");
    if (!usd)
      fields.complain(name, fmt::format("USD per hour of a machine, from 0 to {:.0f}", kMostOwnPrice));
    if (!group || !usd) continue;
    const PeerGroup& peer = group.value().front();
    offers.push_back({.provider = peer.site.provider,
                      .region = peer.site.region,
                      .zone = peer.site.zone,
                      .gpu = peer.gpu,
                      .gpus = 1,
                      .purchase = market::Purchase::owned,
                      .usd_per_h = *usd,
                      .source = file});
    const auto is_priced = [&](const PeerGroup& one) {
      return offer_for(one, {.own = {offers.back()}, .offers = no_others}).has_value();
    };
    if (std::ranges::none_of(peers, is_priced)) fields.complain(name, "a machine of peers");
  }
  return offers;
}

void take_peers(YamlFields& fields, ClusterFile& cluster) {
  auto peers = parse_peers(fields.word("peers"));
  if (!peers)
    fields.complain("peers", "groups such as 4xT4@gc:us;2xA10@lambda:us-west; " + peers.error().message);
  if (peers) cluster.peers = std::move(peers).value();
}

}  // namespace

Result<ClusterFile> read_cluster(const std::string& file, std::string_view text) {
  TW_TRY(auto read, YamlFields::read(file, text));
  YamlFields& fields = read;
  ClusterFile cluster;
  take_work(fields, cluster);
  take_peers(fields, cluster);
  cluster.purchases = take_purchases(fields);
  cluster.own_prices = own_prices(fields, file, cluster.peers);
  TW_TRY(fields.finish());
  return cluster;
}

}  // namespace tw::plan
