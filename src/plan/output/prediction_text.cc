// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/quantity.h"

namespace tw::plan {
namespace {

std::string row(const char* what, const Estimate& estimate, const char* unit) {
  if (!std::isfinite(estimate.value)) return fmt::format("{:<22}none: nothing is averaged\n", what);
  std::string text = fmt::format("{:<22}{:>10} {:<12}", what, significant(estimate.value, 4), unit);
  if (estimate.low < estimate.high)
    text += fmt::format(" {} to {}", significant(estimate.low, 4), significant(estimate.high, 4));
  while (text.ends_with(' ')) text.pop_back();
  return text + "\n";
}

/// What needs the price of each machine.
std::string priced_row(const char* what, const std::optional<Estimate>& usd, const char* unit) {
  return usd ? row(what, *usd, unit) : fmt::format("{:<22}unknown\n", what);
}

std::string read_lines(const ReadRate& reads) {
  if (reads.peer.empty()) return "";
  return fmt::format("{:<22}{:>10} requests/s\n{:<22}{}\n", "reads", significant(reads.requests_per_s, 4), "",
                     peer_reads_text(reads));
}

}  // namespace

std::string peer_reads_text(const ReadRate& reads) {
  return fmt::format("{} {} {} Mbit/s while it accumulates, {} {} Mbit/s that its card carries", reads.peer,
                     reads.limits() ? "would read" : "reads", significant(reads.mbit_s, 4),
                     reads.limits() ? "more than the" : "of", significant(reads.card_mbit_s, 4));
}

std::string to_text(const Workload& workload, const std::vector<PeerGroup>& peers, const Prediction& p,
                    const Cost& cost) {
  std::string text = fmt::format(
      "{}, target batch {:g}, {}, averaged by {}; ranges hold 80 % of what may come\n", workload.model.name,
      workload.target_batch_size, to_string(peers), to_string(workload.pattern));
  text += row("throughput", p.throughput_sps, "samples/s");
  text += row("while accumulating", p.local_sps, "samples/s");
  text += row("calculation", p.calc_s, "s a round");
  text += row("averaging", p.comm_s, "s a round");
  if (p.overlap_s > 0)
    text += fmt::format("{:<22}{:>10} s of these\n", "  hidden", significant(p.overlap_s, 4));
  text += row("granularity", p.granularity, "");
  text += row("sent by a peer", p.sent_mb_per_peer_round, "MB a round");
  text += read_lines(p.reads);
  text += priced_row("machines", cost.vm_usd_per_h, "USD/h");
  text += row("egress", cost.egress_usd_per_h, "USD/h");
  text += row("data", cost.data_usd_per_h, "USD/h");
  text += priced_row("all", cost.total_usd_per_h, "USD/h");
  text += priced_row("a million samples", cost.usd_per_million_samples, "USD");
  text += fmt::format("{:<22}{}\n", "limit", p.limit);
  if (std::isfinite(p.granularity.value))
    text += fmt::format("{:<22}{:.2f} times as fast at best\n", "twice the peers",
                        speed_up(p.granularity.value, 2, workload.delayed));
  for (const std::string& assumption : p.assumptions) text += "assumed: " + assumption + "\n";
  for (const std::string& machine : cost.unpriced) text += "price: " + machine + "\n";
  for (const std::string& assumption : cost.assumptions) text += "price: " + assumption + "\n";
  return text;
}

}  // namespace tw::plan
