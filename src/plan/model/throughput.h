// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "market/network.h"
#include "plan/model/cluster.h"
#include "plan/model/gpu.h"
#include "plan/model/hivemind.h"
#include "plan/model/model_profile.h"

/// Training speed of a cluster: accumulate the target batch, average, apply.
namespace tw::plan {

/// Patterns of averaging. tradewind: shares by bandwidth, many streams; tradewind_sites: first within each
/// site, then between sites (docs/protocol.md). The others are for comparison: Hivemind's butterfly of single
/// streams as published, a ring, and one peer that serves all.
enum class Pattern { tradewind, tradewind_sites, hivemind, ring, parameter_server };

std::string_view to_string(Pattern pattern);
Result<Pattern> parse_pattern(const std::string& name);

/// "tradewind, ring, ...": the names that parse_pattern knows.
std::string pattern_names();

/// What predictions are made from beside the cluster.
struct Knowledge {
  const Gpus& gpus = Gpus::built_in();
  const market::NetworkProfile& network = market::NetworkProfile::built_in();
  const HivemindLaw& hivemind = HivemindLaw::built_in();
};

struct Workload {
  ModelProfile model;
  double target_batch_size = 0;
  Pattern pattern = Pattern::tradewind;
  double bytes_per_param = 2;  ///< on the wire; Hivemind's are always 2
  double fragments = 1;        ///< a round averages one of so many parts of the parameters
  int streams = 16;            ///< TCP connections between two peers; Hivemind has one
  bool delayed = false;        ///< the next accumulation runs while a round is averaged
  double samples_a_read = 0;   ///< of the data store, in a row; 0: a microbatch

  /// Millions of parameters that a round averages.
  double round_params_m() const { return model.params_m / fragments; }

  /// MB of a vector on the wire.
  double round_mb() const { return bytes_per_param * round_params_m(); }
};

/// What reading the samples asks for. The peer is the one whose network card has the least to spare.
struct ReadRate {
  double requests_per_s = 0;  ///< of all peers, on average
  double mbit_s = 0;          ///< of one peer while it accumulates, if the card did not limit it
  double card_mbit_s = 0;
  std::string peer;  ///< T4@gcp:us

  bool limits() const { return mbit_s > card_mbit_s; }

  /// The part of the card that is taken, more than one where it limits the peer.
  double share() const { return card_mbit_s > 0 ? mbit_s / card_mbit_s : 0; }
};

/// Prediction for a round, or for a second. Estimates are medians with their 80 % range.
struct Prediction {
  Estimate throughput_sps;
  Estimate local_sps;             ///< of all peers while they accumulate
  std::vector<double> group_sps;  ///< of it by group
  ReadRate reads;
  Estimate calc_s;
  Estimate comm_s;
  double overlap_s = 0;             ///< part of comm_s that calculating hides
  Estimate granularity;             ///< calc_s / comm_s; infinite for a lone peer
  Estimate sent_mb_per_peer_round;  ///< mean over the peers
  /// From all peers of one group to all of another, or within one.
  std::vector<std::vector<double>> sent_mb;
  double round_samples = 0;
  /// What would have to be faster: calculation, data (the network card of a peer that reads), matchmaking,
  /// update, exchange (of processors), network card, site, latency, or a stream such as gcp:eu>gcp:aus.
  std::string limit;
  std::vector<std::string> assumptions;  ///< inputs that were not measured

  double round_s() const { return round_samples / throughput_sps.value; }
};

/// An error names the unknown GPU or model.
Result<Prediction> predict(const Workload& workload, const std::vector<PeerGroup>& peers,
                           const Knowledge& knowledge = {});

/// Samples in a row that one request reads.
double samples_a_read(const Workload& workload);

/// What the network card of a peer carries at its site; infinite for models without data.
double card_samples_per_s(const Workload& workload, const market::NetworkProfile& network,
                          const PeerGroup& peer);

/// Reads of a peer of this speed whose card carries so many samples/s; requests are left out. Models without
/// data read nothing.
ReadRate read_rate(const ModelProfile& model, const PeerGroup& peer, double samples_per_s,
                   double card_samples_per_s);

/// What k times the peers make of a run of granularity g at best (Erben et al. 2024, section 3). hidden:
/// averaging goes on beside calculating.
double speed_up(double granularity, double times, bool hidden = false);

}  // namespace tw::plan
