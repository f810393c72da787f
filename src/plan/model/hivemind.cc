// SPDX-License-Identifier: Apache-2.0
#include "plan/model/hivemind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/result.h"
#include "base/text/csv.h"
#include "market/built_in.h"

namespace tw::plan {
namespace {

/// An fp16 gradient goes to its owner, the fp16 mean comes back.
constexpr double kMbPerMParams = 4;
/// Streams vary, and a round ends with the slowest one: the norm of all their times. 3 and 1.5 were chosen
/// once (the fit is flat around them), not fitted with the constants.
constexpr double kStragglers = 3;
/// Processors and streams overlap, but not perfectly: between the sum (1) and the longer time (infinity).
constexpr double kOverlap = 1.5;

double host_time(const PeerGroup& peers, const HivemindLaw& law) {
  if (on_premise(peers.site)) return law.on_premise_host;
  return peers.site.provider == "lambda" ? law.lambda_host : 1;
}

double host_exchange_time(const PeerGroup& peers, const HivemindLaw& law) {
  return on_premise(peers.site) ? 1 : host_time(peers, law);
}

/// The pair of peers with the longest stream time: "gcp:eu>gcp:aus".
std::string slowest_stream(const std::vector<PeerGroup>& peers, const market::NetworkProfile& network,
                           const HivemindLaw& law) {
  double most = 0;
  std::string slowest;
  for (std::size_t a = 0; a < peers.size(); ++a) {
    for (std::size_t b = a + 1; b < peers.size(); ++b) {
      if (peers[a].site == peers[b].site) continue;
      const double cost = HivemindLoad::stream_cost(peers[a], peers[b], network, law);
      if (cost <= most) continue;
      most = cost;
      slowest = to_string(peers[b].site) + ">" + to_string(peers[a].site);
    }
  }
  return slowest;
}

}  // namespace

void HivemindLoad::add_host(const PeerGroup& peer, const market::NetworkProfile& network,
                            const HivemindLaw& law) {
  update_host = std::max(update_host, host_time(peer, law));
  exchange_host = std::max(exchange_host, host_exchange_time(peer, law));
  const double card = network.bytes_per_s(network_site(peer), network_site(peer), 1);
  card_s_per_byte = std::max(card_s_per_byte, 1 / card);
}

/// Contributions in one direction and means in the other.
double HivemindLoad::stream_cost(const PeerGroup& a, const PeerGroup& b,
                                 const market::NetworkProfile& network, const HivemindLaw& law) {
  const market::Site from = network_site(a);
  const market::Site to = network_site(b);
  const double slower =
      std::min(network.path(from, to).stream_bytes_per_s, network.path(to, from).stream_bytes_per_s);
  const bool premise = on_premise(from) || on_premise(to);
  return std::pow(1 / slower / (premise ? law.on_premise_stream_gain : law.stream_gain), kStragglers);
}

HivemindRound hivemind_round(const ModelProfile& model, const HivemindLoad& load, const HivemindLaw& law,
                             double calc_s) {
  HivemindRound round;
  if (load.peers < 2) return round;
  const double n = load.peers;
  const double pair_bytes = kMbPerMParams * 1e6 * model.params_m / n;
  round.wire_s = pair_bytes * std::pow(load.streams, 1 / kStragglers);
  round.card_s = (n - 1) * pair_bytes * load.card_s_per_byte;
  round.matchmaking_s = std::max(0.0, model.matchmaking_s - calc_s);
  round.update_s = load.update_host * (law.update_s + law.update_s_per_m_params * model.params_m);
  round.exchange_s = load.exchange_host * law.exchange_s_per_tensor * model.tensors * std::sqrt(n - 1);
  const double moving_s =
      std::pow(std::pow(round.exchange_s, kOverlap) + std::pow(round.wire_s, kOverlap), 1 / kOverlap);
  round.comm_s = round.matchmaking_s + std::max(round.update_s + moving_s, round.card_s);
  round.sent_mb = (law.sent_factor * kMbPerMParams * model.params_m + law.sent_mb) * (n - 1) / n;
  return round;
}

HivemindRound hivemind_round(const ModelProfile& model, const std::vector<PeerGroup>& peers,
                             const market::NetworkProfile& network, const HivemindLaw& law, double calc_s) {
  HivemindLoad load{.peers = count_of(peers)};
  for (std::size_t a = 0; a < peers.size(); ++a) {
    load.add_host(peers[a], network, law);
    for (std::size_t b = a + 1; b < peers.size(); ++b)
      if (peers[a].site != peers[b].site)
        load.streams +=
            peers[a].count * peers[b].count * HivemindLoad::stream_cost(peers[a], peers[b], network, law);
  }
  HivemindRound round = hivemind_round(model, load, law, calc_s);
  round.slowest = slowest_stream(peers, network, law);
  return round;
}

double hivemind_round_samples(const ModelProfile& model, int peers, double target_batch_size) {
  return target_batch_size + peers * model.microbatch / 2;
}

Result<HivemindLaw> read_hivemind_law(const std::string& file, std::string_view text) {
  TW_TRY(const auto table, CsvTable::parse(file, text, {"constant", "value"}));
  HivemindLaw law;
  std::size_t known = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const std::string name = row.word("constant");
    const auto constant = std::find_if(kHivemindConstants.begin(), kHivemindConstants.end(),
                                       [&](const auto& each) { return each.first == name; });
    if (constant == kHivemindConstants.end()) {
      row.complain("constant", "one of those in plan/model/hivemind.h");
    } else {
      law.*constant->second = row.number("value", {.least = 0});
      ++known;
    }
    if (!row.status()) return row.status().error();
  }
  if (known != kHivemindConstants.size())
    return Error{fmt::format("{}: {} constants, expected {}", file, known, kHivemindConstants.size())};
  return law;
}

const HivemindLaw& HivemindLaw::built_in() {
  static const HivemindLaw law =
      read_hivemind_law("hivemind.csv", market::built_in_file("hivemind.csv")).value();
  return law;
}

}  // namespace tw::plan
