// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "market/network.h"
#include "plan/model/cluster.h"
#include "plan/model/model_profile.h"

/// Time of averaging in a round of Hivemind. docs/planner.md explains the law's origin and its errors.
namespace tw::plan {

/// Fitted to the published runs of Erben et al. 2024 by bench_calibrate.
struct HivemindLaw {
  double update_s = 0;               ///< of the host's processor, after the exchange
  double update_s_per_m_params = 0;  ///< per million parameters: packing, unpacking and the parameter update
  double exchange_s_per_tensor = 0;  ///< while the bytes move; times the square root of the other peers
  double lambda_host = 1;            ///< time of a host at Lambda relative to a T4 machine with 8 vCPUs
  double on_premise_host = 1;        ///< the same on premise, only for the update
  double stream_gain = 1;            ///< rate of a stream between clouds relative to iperf
  double on_premise_stream_gain = 1;
  double sent_factor = 1;  ///< bytes sent relative to bytes of gradients
  double sent_mb = 0;      ///< other bytes that a peer sends per round, with many peers

  static const HivemindLaw& built_in();

  bool operator==(const HivemindLaw&) const = default;
};

/// The constants by their names in the catalog.
inline constexpr std::array<std::pair<std::string_view, double HivemindLaw::*>, 9> kHivemindConstants{{
    {"update_s", &HivemindLaw::update_s},
    {"update_s_per_m_params", &HivemindLaw::update_s_per_m_params},
    {"exchange_s_per_tensor", &HivemindLaw::exchange_s_per_tensor},
    {"lambda_host", &HivemindLaw::lambda_host},
    {"on_premise_host", &HivemindLaw::on_premise_host},
    {"stream_gain", &HivemindLaw::stream_gain},
    {"on_premise_stream_gain", &HivemindLaw::on_premise_stream_gain},
    {"sent_factor", &HivemindLaw::sent_factor},
    {"sent_mb", &HivemindLaw::sent_mb},
}};

/// CSV with the columns constant,value.
Result<HivemindLaw> read_hivemind_law(const std::string& file, std::string_view text);

/// Parts of averaging.
struct HivemindRound {
  double matchmaking_s = 0;  ///< waiting for the least round time
  double update_s = 0;
  double exchange_s = 0;  ///< of processors
  double wire_s = 0;      ///< of all streams between sites, until the slowest is done
  double card_s = 0;      ///< of the network cards at full rate
  std::string slowest;    ///< stream between sites: "gcp:eu>gcp:aus"
  double comm_s = 0;      ///< in all; processors and streams overlap in part
  double sent_mb = 0;     ///< by one peer
};

/// Summary of a cluster for the law.
struct HivemindLoad {
  int peers = 0;
  double update_host = 0;    ///< time of the slowest host relative to a T4 machine with 8 vCPUs
  double exchange_host = 0;  ///< the same for the exchange
  double streams = 0;        ///< sum of stream_cost over all pairs of peers at different sites
  double card_s_per_byte = 0;

  /// Adds the host and the network card of a peer.
  void add_host(const PeerGroup& peer, const market::NetworkProfile& network, const HivemindLaw& law);

  /// (s per byte)^3 of two peers at different sites, which sum up to the waiting time.
  static double stream_cost(const PeerGroup& a, const PeerGroup& b, const market::NetworkProfile& network,
                            const HivemindLaw& law);
};

/// A lone peer averages nothing. `calc_s`: time of accumulating.
HivemindRound hivemind_round(const ModelProfile& model, const HivemindLoad& load, const HivemindLaw& law,
                             double calc_s);
HivemindRound hivemind_round(const ModelProfile& model, const std::vector<PeerGroup>& peers,
                             const market::NetworkProfile& network, const HivemindLaw& law, double calc_s);

/// Each peer finishes its microbatch when the target batch is reached: half a microbatch more, on average.
double hivemind_round_samples(const ModelProfile& model, int peers, double target_batch_size);

}  // namespace tw::plan
