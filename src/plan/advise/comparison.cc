// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "base/text/quantity.h"

namespace tw::plan {
namespace {

/// Hourly price of our own plan's machines.
double machines_usd_per_h(const MarketSpace& market, const Option& plan) {
  double usd = 0;
  for (std::size_t i = 0; i < plan.counts.size(); ++i) usd += plan.counts[i] * market.candidates[i].usd_per_h;
  return usd;
}

/// DeepVM's price limit: as given for it, else the job's, else the price of our own plan.
Result<double> price_limit(const Job& job, const MarketSpace& market, std::int64_t now_unix_s) {
  if (job.methods.deepvm_usd_per_h > 0) return job.methods.deepvm_usd_per_h;
  if (job.budget_usd_per_h > 0) return job.budget_usd_per_h;
  const auto ours = recommend(job, market, now_unix_s);
  if (ours) return machines_usd_per_h(market, ours.value().chosen);
  return Error{
      fmt::format("deepvm.usd_per_h: not given, and our own plan's price cannot stand for it ({}); expected "
                  "a price limit "
                  "in JOB.yaml",
                  ours.error().message)};
}

std::string why_it_lost(const Job& job, const Option& other, const Option& ours) {
  return other.counts == ours.counts ? "the same machines" : verdict_on(job, other, ours);
}

std::string comparison_row(const std::string& name, const Option& one, std::size_t width) {
  return fmt::format("{:<17} {:<{}} {:>9} {:>8} {:>8} {:>9} {:>8} {:>7}  {}\n", name, to_string(one.peers),
                     width, significant(one.samples_per_s, 4), significant(one.hours, 3),
                     significant(one.usd, 4), significant(one.usd_per_h, 4),
                     significant(one.usd_per_million, 4), significant(one.losses, 3), one.verdict);
}

}  // namespace

Result<Comparison> compare(const Job& job, const MarketSpace& market, std::int64_t now_unix_s) {
  TW_TRY(auto ours, recommend(job, market, now_unix_s));
  Comparison comparison{.ours = std::move(ours)};
  const Option& chosen = comparison.ours.chosen;
  comparison.usd_per_h = job.methods.deepvm_usd_per_h > 0 ? job.methods.deepvm_usd_per_h
                         : job.budget_usd_per_h > 0       ? job.budget_usd_per_h
                                                          : machines_usd_per_h(market, chosen);
  for (const Method method : all_methods()) {
    const auto choice = choose(method, {job, market, comparison.usd_per_h});
    MethodRow row{.method = method};
    row.reason = choice ? choice.value().reason : choice.error().message;
    if (choice) {
      Option one = evaluate(job, market, choice.value().counts, std::string(to_string(method)));
      one.verdict = why_it_lost(job, one, chosen);
      row.option = std::move(one);
      for (const std::string& assumption : choice.value().assumptions)
        comparison.assumptions.push_back(assumption);
    }
    comparison.rows.push_back(std::move(row));
  }
  return comparison;
}

Result<Recommendation> recommend_by(Method method, const Job& job, const MarketSpace& market,
                                    std::int64_t now_unix_s) {
  double limit = 0;
  if (is_priced_per_hour(method)) {
    TW_TRY(const auto price, price_limit(job, market, now_unix_s));
    limit = price;
  }
  const std::string name(to_string(method));
  const auto choice = choose(method, {job, market, limit});
  if (!choice) return Error{fmt::format("{}: {}", name, choice.error().message)};
  Recommendation plan = described(job, market, choice.value().counts, name, now_unix_s);
  plan.misses = missed_limit(job, plan.chosen);
  plan.method = fmt::format("{}: {}", name, choice.value().reason);
  for (const std::string& assumption : choice.value().assumptions) plan.assumptions.push_back(assumption);
  return plan;
}

std::string to_text(const Job& job, const Comparison& comparison) {
  const Option& ours = comparison.ours.chosen;
  std::size_t width = to_string(ours.peers).size();
  for (const MethodRow& row : comparison.rows)
    if (row.option) width = std::max(width, to_string(row.option->peers).size());
  std::string text = fmt::format("{:<17} {:<{}} {:>9} {:>8} {:>8} {:>9} {:>8} {:>7}  {}\n", "method", "peers",
                                 width, "samples/s", "hours", "$", "$/h", "$/1M", "taken", "why it lost");
  text += comparison_row("tradewind", ours, width);
  for (const MethodRow& row : comparison.rows) {
    const std::string name(to_string(row.method));
    text += row.option ? comparison_row(name, *row.option, width)
                       : fmt::format("{:<17} {}\n", name, "has no choice");
  }
  text += fmt::format(
      "\nAll rows are priced and timed by the same model; the goal is {}. By what each chose (price limit "
      "{} $/h):\n",
      to_string(job.goal), significant(comparison.usd_per_h, 4));
  for (const MethodRow& row : comparison.rows)
    text += fmt::format("  {}: {}\n", to_string(row.method), row.reason);
  text += "\nAssumptions\n";
  for (const std::string& assumption : comparison.assumptions) text += "  " + assumption + "\n";
  for (const std::string& assumption : comparison.ours.assumptions) text += "  " + assumption + "\n";
  return text;
}

}  // namespace tw::plan
