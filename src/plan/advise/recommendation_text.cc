// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/recommendation_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::plan {
namespace {

std::string row_of(const Option& option, std::size_t width) {
  return fmt::format("{:<15} {:<{}} {:>9.4g} {:>8.3g} {:>8.4g} {:>9.4g} {:>8.4g}  {}\n", option.name,
                     to_string(option.peers), width, option.samples_per_s, option.hours, option.usd,
                     option.usd_per_h, option.usd_per_million, option.verdict);
}

constexpr double kNotLookedFor = 1.001e-4;  ///< plan/search/search.h

std::string choice_line(const Job& job, const Recommendation& plan) {
  if (job.goal != Goal::pareto) return "";
  return fmt::format("Chosen is {}, {}: {}; --point N chooses another.\n", plan.chosen.name,
                     to_string(plan.chosen.peers),
                     job.front_point > 0 ? "by --point" : "the knee of the front");
}

std::string search_line(const Recommendation& plan) {
  if (plan.exact) return "The search was exact: no other plan is better by this model.\n";
  if (plan.gap <= kNotLookedFor) return "No other plan is better by this model by more than 0.01 %.\n";
  return fmt::format("The search was cut short: no plan is better by more than {:.2g} %.\n", 100 * plan.gap);
}

std::string spread_lines(const Job& job, const Option& plan) {
  std::string text = fmt::format(
      "Over 256 scenarios of interruptions and prediction errors ({:.2g} machines are taken on average):\n"
      "  time  P10 {:.3g} h, P50 {:.3g} h, P90 {:.3g} h\n"
      "  cost  P10 {:.4g} $, P50 {:.4g} $, P90 {:.4g} $\n",
      plan.losses, plan.hours_spread.p10, plan.hours_spread.p50, plan.hours_spread.p90, plan.usd_spread.p10,
      plan.usd_spread.p50, plan.usd_spread.p90);
  if (job.deadline_h > 0 || job.budget_usd > 0)
    text += fmt::format("  in {:.3g} % of them at most {:.3g} h and {:.4g} $\n", 100 * (1 - job.risk),
                        plan.risky_hours, plan.risky_usd);
  return text;
}

std::string checkpoint_lines(const Recommendation& plan) {
  if (plan.checkpoint_interval_s == 0) return "Checkpoints: no machine of this plan is taken.\n";
  return fmt::format(
      "A checkpoint of {:.3g} s every {:.0f} s (exact; Young {:.0f} s, Daly {:.0f} s), should all peers be "
      "lost "
      "at once\n",
      plan.checkpoint_s, plan.checkpoint_interval_s, plan.young_s, plan.daly_s);
}

/// On-demand and owned machines.
bool is_anchor(const Candidate& one) { return one.offer.purchase != market::Purchase::spot; }

std::string machine_lines(const MarketSpace& market, const Recommendation& plan, bool anchors) {
  std::string text;
  for (std::size_t i = 0; i < plan.chosen.counts.size(); ++i) {
    const Candidate& one = market.candidates[i];
    if (plan.chosen.counts[i] == 0 || (anchors && !is_anchor(one))) continue;
    text += fmt::format(
        "  - {{site: \"{}\", vm: \"{}\", gpu: \"{}\", count: {}, purchase: {}, usd_per_h: {:.6g}}}\n",
        to_string(site_of(one.offer)), one.offer.vm_type, machine_name(one.offer), plan.chosen.counts[i],
        to_string(one.offer.purchase), one.usd_per_h);
  }
  return text.empty() ? " []\n" : "\n" + text;
}

struct Dot {
  double x = 0;
  double y = 0;
};

/// Pixels of a value.
class Axes {
 public:
  Axes(double most_sps, double most_usd) : most_sps_(most_sps), most_usd_(most_usd) {}

  Dot at(const Option& one) const {
    return {kLeft + kWidth * one.samples_per_s / most_sps_, kTop + kHeight * (1 - one.usd_per_h / most_usd_)};
  }

  std::string frame() const {
    std::string svg = fmt::format(
        "<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#444\"/>\n"
        "<text x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">samples/s</text>\n"
        "<text x=\"16\" y=\"{6}\" transform=\"rotate(-90 16 {6})\" text-anchor=\"middle\">$ per "
        "hour</text>\n",
        kLeft, kTop, kTop + kHeight, kLeft + kWidth, kLeft + kWidth / 2, kTop + kHeight + 44,
        kTop + kHeight / 2);
    for (int tick = 0; tick <= 4; ++tick) {
      const double share = tick / 4.0;
      svg += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{:.3g}</text>\n",
                         kLeft + kWidth * share, kTop + kHeight + 20, most_sps_ * share);
      svg += fmt::format("<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{:.3g}</text>\n", kLeft - 8,
                         kTop + kHeight * (1 - share) + 4, most_usd_ * share);
    }
    return svg;
  }

 private:
  static constexpr int kLeft = 80, kTop = 30, kWidth = 640, kHeight = 400;

  double most_sps_;
  double most_usd_;
};

std::string dot(const Axes& axes, const Option& one, const char* colour, bool named) {
  const Dot at = axes.at(one);
  const std::string label =
      fmt::format("{} {}: {:.4g} samples/s, {:.4g} $/h, {:.4g} $ per million", one.name, to_string(one.peers),
                  one.samples_per_s, one.usd_per_h, one.usd_per_million);
  std::string svg =
      fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}</title></circle>\n",
                  at.x, at.y, named ? 6 : 4, colour, label);
  if (named) svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at.x + 9, at.y + 4, one.name);
  return svg;
}

}  // namespace

std::string to_text(const Job& job, const Recommendation& plan) {
  std::size_t width = 10;
  for (const auto* options : {&plan.others, &plan.front})
    for (const Option& one : *options) width = std::max(width, to_string(one.peers).size());
  width = std::max(width, to_string(plan.chosen.peers).size());
  std::string text = fmt::format("{:<15} {:<{}} {:>9} {:>8} {:>8} {:>9} {:>8}  {}\n", "plan", "peers", width,
                                 "samples/s", "hours", "$", "$/h", "$/1M",
                                 job.goal == Goal::pareto ? "against the chosen one" : "why it lost");
  if (job.goal != Goal::pareto) text += row_of(plan.chosen, width);
  if (job.goal == Goal::pareto)
    for (const Option& one : plan.front) text += row_of(one, width);
  for (const Option& one : plan.others) text += row_of(one, width);
  text += "\n" + choice_line(job, plan) + search_line(plan) + spread_lines(job, plan.chosen) +
          checkpoint_lines(plan) + "\nAssumptions\n";
  for (const std::string& assumption : plan.assumptions) text += "  " + assumption + "\n";
  return text;
}

std::string to_plan_file(const Job& job, const MarketSpace& market, const Recommendation& plan) {
  std::string text = fmt::format("# By `tw plan`: {:.4g} samples/s, {:.3g} h, {:.4g} $ expected.\n",
                                 plan.chosen.samples_per_s, plan.chosen.hours, plan.chosen.usd);
  text += fmt::format("model: \"{}\"\ntbs: {:g}\nsamples: {:.15g}\n",
                      job.model.empty() ? job.profile : job.model, job.target_batch_size, job.samples);
  text += fmt::format("pattern: {}\ncodec: {}\nstreams: {}\nmode: {}\n", to_string(job.pattern), job.codec,
                      job.streams, job.delayed ? "delayed" : "sync");
  text += fmt::format("cluster: \"{}\"\n", to_string(plan.chosen.peers));
  text += "peers:" + machine_lines(market, plan, false) + "anchors:" + machine_lines(market, plan, true);
  if (plan.checkpoint_interval_s > 0)
    text += fmt::format("checkpoint_interval_s: {:.0f}\n", plan.checkpoint_interval_s);
  text += "fallback:\n  rule: on-demand when the spot machines seen so far would not do the rest in time\n";
  if (job.deadline_h > 0) text += fmt::format("  deadline_h: {:g}\n", job.deadline_h);
  return text;
}

std::string to_svg(const Recommendation& plan) {
  double most_sps = plan.chosen.samples_per_s;
  double most_usd = plan.chosen.usd_per_h;
  for (const auto* options : {&plan.others, &plan.front}) {
    for (const Option& one : *options) {
      most_sps = std::max(most_sps, one.samples_per_s);
      most_usd = std::max(most_usd, one.usd_per_h);
    }
  }
  const Axes axes(1.1 * most_sps, std::max(1.1 * most_usd, 1e-6));
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"490\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"800\" height=\"490\" fill=\"white\"/>\n" +
      axes.frame();
  std::string line;
  for (const Option& one : plan.front) {
    const Dot at = axes.at(one);
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", at.x, at.y);
  }
  if (!line.empty()) svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#9bb8d3\"/>\n", line);
  for (const Option& one : plan.front) svg += dot(axes, one, "#9bb8d3", false);
  for (const Option& one : plan.others) svg += dot(axes, one, "#888", one.name != "runner-up");
  return svg + dot(axes, plan.chosen, "#d1495b", true) + "</svg>\n";
}

}  // namespace tw::plan
