// SPDX-License-Identifier: Apache-2.0
#include "plan/hivemind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/csv.h"
#include "market/built_in.h"

namespace tw {
namespace {

/// An fp16 gradient goes to its owner, the fp16 mean comes back.
constexpr double kMbPerMParams = 4;
/// Streams wander, and a round ends with the slowest of them: the norm of the times of all. 3 and 1.5 were
/// chosen once (the fit is flat around them), not fitted with the constants.
constexpr double kStragglers = 3;
/// Processors and streams work side by side, but not perfectly: between the sum (1) and the longer
/// (infinity).
constexpr double kOverlap = 1.5;

double host_time(const PeerGroup& peers, const HivemindLaw& law) {
  if (on_premise(peers.site)) return law.on_premise_host;
  return peers.site.provider == "lambda" ? law.lambda_host : 1;
}

double host_exchange_time(const PeerGroup& peers, const HivemindLaw& law) {
  return on_premise(peers.site) ? 1 : host_time(peers, law);
}

/// Contributions one way and means the other, between two peers in one round.
class Streams {
 public:
  Streams(const NetworkProfile& network, const HivemindLaw& law, double pair_bytes)
      : network_(network), law_(law), pair_bytes_(pair_bytes) {}

  double seconds(const PeerGroup& a, const PeerGroup& b) const {
    const Site from = network_site(a);
    const Site to = network_site(b);
    const double slower =
        std::min(network_.path(from, to).stream_bytes_per_s, network_.path(to, from).stream_bytes_per_s);
    const bool premise = on_premise(from) || on_premise(to);
    return pair_bytes_ / slower / (premise ? law_.on_premise_stream_gain : law_.stream_gain);
  }

 private:
  const NetworkProfile& network_;
  const HivemindLaw& law_;
  double pair_bytes_;
};

/// A round ends when each peer has all means, so all streams between sites are waited for, one of each pair
/// of peers.
void add_wire(const std::vector<PeerGroup>& peers, const Streams& streams, HivemindRound& round) {
  double sum = 0;
  double longest_s = 0;
  for (std::size_t a = 0; a < peers.size(); ++a) {
    for (std::size_t b = a + 1; b < peers.size(); ++b) {
      if (peers[a].site == peers[b].site) continue;
      const double seconds = streams.seconds(peers[a], peers[b]);
      sum += peers[a].count * peers[b].count * std::pow(seconds, kStragglers);
      if (seconds <= longest_s) continue;
      longest_s = seconds;
      round.slowest = to_string(peers[b].site) + ">" + to_string(peers[a].site);
    }
  }
  round.wire_s = std::pow(sum, 1 / kStragglers);
}

}  // namespace

HivemindRound hivemind_round(const ModelProfile& model, const std::vector<PeerGroup>& peers,
                             const NetworkProfile& network, const HivemindLaw& law, double calc_s) {
  HivemindRound round;
  const int n = count_of(peers);
  if (n < 2) return round;
  const double others = n - 1;
  const double pair_bytes = kMbPerMParams * 1e6 * model.params_m / n;
  add_wire(peers, Streams(network, law, pair_bytes), round);
  double update = 0;
  double exchange = 0;
  for (const PeerGroup& group : peers) {
    update = std::max(update, host_time(group, law));
    exchange = std::max(exchange, host_exchange_time(group, law));
    const double card = network.bytes_per_s(network_site(group), network_site(group), 1);
    round.card_s = std::max(round.card_s, others * pair_bytes / card);
  }
  round.matchmaking_s = std::max(0.0, model.matchmaking_s - calc_s);
  round.update_s = update * (law.update_s + law.update_s_per_m_params * model.params_m);
  round.exchange_s = exchange * law.exchange_s_per_tensor * model.tensors * std::sqrt(others);
  const double moving_s =
      std::pow(std::pow(round.exchange_s, kOverlap) + std::pow(round.wire_s, kOverlap), 1 / kOverlap);
  round.comm_s = round.matchmaking_s + std::max(round.update_s + moving_s, round.card_s);
  round.sent_mb = (law.sent_factor * kMbPerMParams * model.params_m + law.sent_mb) * others / n;
  return round;
}

double hivemind_round_samples(const ModelProfile& model, const std::vector<PeerGroup>& peers,
                              double target_batch_size) {
  return target_batch_size + count_of(peers) * model.microbatch / 2;
}

Result<HivemindLaw> read_hivemind_law(const std::string& file, std::string_view text) {
  const auto table = CsvTable::parse(file, text, {"constant", "value"});
  if (!table) return table.error();
  HivemindLaw law;
  std::size_t known = 0;
  for (std::size_t i = 0; i < table.value().size(); ++i) {
    CsvRow row = table.value().row(i);
    const std::string name = row.word("constant");
    const auto constant = std::find_if(kHivemindConstants.begin(), kHivemindConstants.end(),
                                       [&](const auto& each) { return each.first == name; });
    if (constant == kHivemindConstants.end()) {
      row.complain("constant", "one of those in plan/hivemind.h");
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
  static const HivemindLaw law = read_hivemind_law("hivemind.csv", built_in_file("hivemind.csv")).value();
  return law;
}

}  // namespace tw
