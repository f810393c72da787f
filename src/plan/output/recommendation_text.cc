// SPDX-License-Identifier: Apache-2.0
#include "plan/output/recommendation_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/quantity.h"
#include "plan/advise/answers.h"
#include "plan/advise/plan_change.h"
#include "plan/output/prediction_text.h"

namespace tw::plan {
namespace {

std::string row_of(const Option& option, std::size_t width) {
  return fmt::format(
      "{:<15} {:<{}} {:<20} {:>9} {:>8} {:>8} {:>9} {:>8}  {}\n", option.name, to_string(option.peers), width,
      option.bought, (option.estimated ? "~" : "") + significant(option.samples_per_s, 4),
      significant(option.hours, 3), significant(option.usd, 4), significant(option.usd_per_h, 4),
      significant(option.usd_per_million, 4), option.verdict);
}

constexpr double kNotLookedFor = 1.001e-4;  ///< plan/search/search.h

/// The front is the table; a published method looks for none.
bool has_front(const Job& job, const Recommendation& plan) {
  return job.goal == Goal::pareto && plan.method.empty();
}

std::string choice_line(const Job& job, const Recommendation& plan) {
  if (!has_front(job, plan)) return "";
  return fmt::format("Chosen is {}, {}: {}; --point N chooses another.\n", plan.chosen.name,
                     to_string(plan.chosen.peers),
                     job.front_point > 0 ? "by --point" : "the knee of the front");
}

/// By which published method the plan was chosen, and the limit that it misses.
std::string method_line(const Recommendation& plan) {
  return fmt::format("Chosen by {}{}{}.\n", plan.method, plan.misses.empty() ? "" : "; it ", plan.misses);
}

std::string search_line(const Job& job, const Recommendation& plan) {
  if (!plan.method.empty()) return method_line(plan);
  if (plan.exact && job.goal == Goal::fastest)
    return "The search was exact: no other plan is faster by this model by more than 0.1 %.\n";
  if (plan.exact) return "The search was exact: no other plan is better by this model.\n";
  if (plan.gap <= kNotLookedFor) return "No other plan is better by this model by more than 0.01 %.\n";
  return fmt::format("The search was cut short: no plan is better by more than {} %.\n",
                     significant(100 * plan.gap, 2));
}

std::string spread_lines(const Job& job, const Option& plan) {
  std::string text = fmt::format(
      "Over 256 scenarios of interruptions and prediction errors ({}):\n"
      "  time  P10 {} h, P50 {} h, P90 {} h\n"
      "  cost  P10 {} $, P50 {} $, P90 {} $\n",
      losses_text(plan.losses), significant(plan.hours_spread.p10, 3), significant(plan.hours_spread.p50, 3),
      significant(plan.hours_spread.p90, 3), significant(plan.usd_spread.p10, 4),
      significant(plan.usd_spread.p50, 4), significant(plan.usd_spread.p90, 4));
  if (job.deadline_h > 0 || job.budget_usd > 0)
    text += fmt::format("  in {} % of them at most {} h and {} $\n", significant(100 * (1 - job.risk), 3),
                        significant(plan.risky_hours, 3), significant(plan.risky_usd, 4));
  return text;
}

/// How the run averages, and why so.
std::string mode_lines(const Job& job, const Recommendation& plan) {
  if (plan.mode_reasons.empty() && job.mode == "sync") return "";
  std::string text =
      fmt::format("Mode {} in {}, {:.0f} samples a round: a round is averaged while {}.\n", job.mode,
                  job.codec, job.target_batch_size, job.delayed() ? "the next is calculated" : "peers wait");
  for (const std::string& reason : plan.mode_reasons) text += "  " + reason + "\n";
  if (!job.outer.empty()) text += fmt::format("  The run gets training.outer: {}.\n", job.outer);
  return text;
}

std::string checkpoint_lines(const Job& job, const Recommendation& plan) {
  if (plan.checkpoint_interval_s == 0)
    return "No loss of all peers without notice is expected: checkpoints are counted as free.\n";
  const double working_samples_per_s = plan.chosen.samples_per_s / (1 - plan.checkpoint_share);
  const double rounds = plan.checkpoint_interval_s * working_samples_per_s / job.target_batch_size;
  return fmt::format(
      "All peers are lost at once every {} h on average: checkpoints and work done again take {} % of the "
      "time\n  (a checkpoint of {} s every {} s: exact; Young {} s, Daly {} s). That needs checkpoint.every: "
      "{:.0f}\n  in the run file, and a checkpoint.folder that outlives the machines\n",
      significant(plan.all_lost_h, 3), significant(100 * plan.checkpoint_share, 2),
      significant(plan.checkpoint_s, 3), significant(plan.checkpoint_interval_s, 4),
      significant(plan.young_s, 4), significant(plan.daly_s, 4), std::max(1.0, rounds));
}

std::string read_lines_of(const Recommendation& plan) {
  const ReadRate& reads = plan.chosen.reads;
  if (reads.peer.empty()) return "";
  return fmt::format("Data: {} requests/s; {}{}\n", significant(reads.requests_per_s, 4),
                     peer_reads_text(reads), reads.limits() ? "\nlimit: data" : "");
}

/// What the numbers mean: up to how many machines it pays, and whether traffic is most of the cost.
std::string answer_lines(const Job& job, const Recommendation& plan) {
  std::vector<FleetSpeed> fleets;
  for (const Option& one : plan.front)
    fleets.push_back({count_of(one.peers), one.samples_per_s, one.usd_per_h});
  std::ranges::sort(fleets, {}, &FleetSpeed::usd_per_h);
  const double traffic_usd = plan.chosen.round.usd / job.target_batch_size * job.samples;
  std::string text;
  for (const std::string& answer :
       {paying_answer(fleets), traffic_answer(traffic_usd, plan.chosen.usd, job.target_batch_size)})
    if (!answer.empty()) text += answer + "\n";
  if (job.sequence > 0)
    text += fmt::format("In tokens of {:g} a sample: {} tokens/s, {} $ a billion.\n", job.sequence,
                        significant(plan.chosen.samples_per_s * job.sequence, 4),
                        significant(plan.chosen.usd_per_million * 1e3 / job.sequence, 4));
  return text.empty() ? "" : text + "\n";
}

/// On-demand and owned machines.
bool is_anchor(const Candidate& one) { return one.offer.purchase != market::Purchase::spot; }

std::string machine_text(const Candidate& one) {
  return fmt::format("site: \"{}\", vm: \"{}\", gpu: \"{}\", purchase: {}, usd_per_h: {:.6g}",
                     to_string(site_of(one.offer)), one.offer.vm_type,
                     one.offer.gpu.empty() ? "" : machine_name(one.offer), to_string(one.offer.purchase),
                     one.usd_per_h);
}

std::string alternative_lines(const MarketSpace& market, const Recommendation& plan, std::size_t candidate) {
  const auto found = plan.alternatives.find(candidate);
  if (found == plan.alternatives.end()) return "";
  std::string text;
  for (std::size_t other : found->second)
    text += fmt::format("{}\n       {{{}}}", text.empty() ? "" : ",", machine_text(market.candidates[other]));
  return ",\n     alternatives: [" + text + "]";
}

std::string peer_lines(const MarketSpace& market, const Recommendation& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.chosen.counts.size(); ++i) {
    if (plan.chosen.counts[i] == 0) continue;
    const Candidate& one = market.candidates[i];
    text += fmt::format("  - {{count: {}, role: {}, {}{}}}\n", plan.chosen.counts[i],
                        is_anchor(one) ? "anchor" : "peer", machine_text(one),
                        alternative_lines(market, plan, i));
  }
  return text;
}

std::string anchor_lines(const MarketSpace& market, const Recommendation& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.chosen.counts.size(); ++i)
    if (plan.chosen.counts[i] > 0 && is_anchor(market.candidates[i]))
      text +=
          fmt::format("  - {{count: {}, {}}}\n", plan.chosen.counts[i], machine_text(market.candidates[i]));
  return text.empty() ? " []\n" : "\n" + text;
}

}  // namespace

std::string to_text(const Job& job, const Recommendation& plan) {
  std::size_t width = 10;
  for (const auto* options : {&plan.others, &plan.front})
    for (const Option& one : *options) width = std::max(width, to_string(one.peers).size());
  width = std::max(width, to_string(plan.chosen.peers).size());
  std::string text = fmt::format("{:<15} {:<{}} {:<20} {:>9} {:>8} {:>8} {:>9} {:>8}  {}\n", "plan", "peers",
                                 width, "bought", "samples/s", "hours", "$", "$/h", "$/1M",
                                 has_front(job, plan) ? "against the chosen one" : "why it lost");
  if (!has_front(job, plan)) text += row_of(plan.chosen, width);
  if (has_front(job, plan))
    for (const Option& one : plan.front) text += row_of(one, width);
  for (const Option& one : plan.others) text += row_of(one, width);
  const auto estimated = [](const Option& one) { return one.estimated; };
  if (plan.chosen.estimated || std::ranges::any_of(plan.others, estimated) ||
      std::ranges::any_of(plan.front, estimated))
    text += "~ the speed of a machine is an estimate; tw profile measures it\n";
  text += "\n" + answer_lines(job, plan) + choice_line(job, plan) + mode_lines(job, plan) +
          search_line(job, plan) + spread_lines(job, plan.chosen) + checkpoint_lines(job, plan) +
          read_lines_of(plan) + "\nAssumptions\n";
  for (const std::string& assumption : plan.assumptions) text += "  " + assumption + "\n";
  return text;
}

std::string next_command(const Job& job, const Recommendation& plan, const std::string& plan_file) {
  const bool own = plan.chosen.bought == to_string(market::Purchase::owned);
  const bool rented = plan.chosen.bought.find(to_string(market::Purchase::owned)) == std::string::npos;
  return fmt::format("tw up {}{} --on {}", plan_file, job.run.empty() ? " --run-file RUN.yaml" : "",
                     own      ? "ssh --hosts HOSTS"
                     : rented ? "skypilot --image IMAGE --with join=HOST:PORT"
                              : "owned=ssh --hosts HOSTS --on skypilot --image IMAGE");
}

std::string to_plan_file(const Job& job, const MarketSpace& market, const Recommendation& plan) {
  std::string text = fmt::format("# By `tw plan`: {} samples/s, {} h, {} $ expected.\n",
                                 significant(plan.chosen.samples_per_s, 4), significant(plan.chosen.hours, 3),
                                 significant(plan.chosen.usd, 4));
  if (!plan.method.empty()) text += "# " + method_line(plan);
  for (const std::string& reason : plan.mode_reasons) text += "# " + reason + "\n";
  if (!job.run.empty()) text += fmt::format("run: \"{}\"\n", job.run);
  if (!job.file.empty()) text += fmt::format("job: \"{}\"\n", job.file);
  text += fmt::format("model: \"{}\"\ntbs: {:g}\nsamples: {:.15g}\n", job.model, job.target_batch_size,
                      job.samples);
  text += fmt::format("pattern: {}\n", to_string(job.pattern));
  text += settings_text(settings_of(job));
  text += fmt::format("cluster: \"{}\"\n", to_string(plan.chosen.peers));
  text += "peers:\n" + peer_lines(market, plan) + "anchors:" + anchor_lines(market, plan);
  return text;
}

}  // namespace tw::plan
