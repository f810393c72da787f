// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/doctor_mode.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/advise/mode_choice.h"

namespace tw::cli {
namespace {

market::PathRate path_of(double rtt_s, double bytes_per_s) {
  return {.rtt_s = rtt_s,
          .stream_bytes_per_s = bytes_per_s,
          .path_bytes_per_s = bytes_per_s,
          .source = "tw doctor"};
}

/// A machine has no faster card than its best link, which all of its links share.
market::NetworkProfile network_of(const market::Site& own, const std::vector<MeasuredLink>& links) {
  market::NetworkProfile network = market::NetworkProfile::built_in();
  double best = 0;
  for (const MeasuredLink& link : links) {
    const double faster = std::max(link.out_bytes_per_s, link.in_bytes_per_s);
    network.set(link.to, link.to, path_of(link.rtt_s, faster));
    best = std::max(best, faster);
  }
  network.set(own, own, path_of(links.front().rtt_s, best));
  for (const MeasuredLink& link : links) {
    if (link.to == own) continue;
    network.set(own, link.to, path_of(link.rtt_s, link.out_bytes_per_s));
    network.set(link.to, own, path_of(link.rtt_s, link.in_bytes_per_s));
  }
  return network;
}

measure::Finding unknown(const std::string& why, const std::string& remedy) {
  return {"mode", measure::Verdict::note, "not known: " + why, remedy};
}

}  // namespace

std::optional<measure::Finding> judge_mode(const plan::ModelProfile& model, const market::Site& own,
                                           const std::vector<MeasuredLink>& links, double samples) {
  const bool has_speed = !model.accumulating.empty();
  if (links.empty() && !has_speed) return std::nullopt;
  if (links.empty())
    return unknown("no link is measured",
                   "run tw net probe --listen on another machine, and name it here with --probe");
  if (!has_speed)
    return unknown("the speed of the model is not known",
                   "give a PROFILE.yaml, as tw profile -o PROFILE.yaml -- COMMAND writes it");
  const std::string& machine = model.accumulating.begin()->first;
  std::vector<plan::PeerGroup> peers = {{1, machine, own}};
  for (const MeasuredLink& link : links) peers.push_back({1, machine, link.to});
  const market::NetworkProfile network = network_of(own, links);
  plan::NamedWork work;
  work.target_batch_size = samples;
  const plan::Workload workload{.model = model};
  const auto choice =
      plan::choose_mode({work, workload, peers, {.network = network}, {"mode", "codec", "tbs"}});
  if (!choice) return unknown(choice.error().message, "");
  const plan::ModePoint& best = choice.value().best();
  const bool is_sync = best.mode == "sync";
  return measure::Finding{
      "mode", is_sync ? measure::Verdict::ok : measure::Verdict::note,
      fmt::format("with {:.0f} samples a round of {} peers on {} in {}, {}",
                  choice.value().points.front().round_samples, peers.size(), machine,
                  choice.value().points.front().codec, plan::reason_of(choice.value())),
      is_sync ? ""
              : fmt::format("set training.mode={}, training.codec={}, training.target_batch_size={:.0f} "
                            "(docs/modes.md)",
                            best.mode, best.codec, best.round_samples)};
}

}  // namespace tw::cli
