// SPDX-License-Identifier: Apache-2.0
#include "plan/output/replay_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw::plan {
namespace {

using Zones = std::vector<AvailabilityTrace>;
using Percents = std::vector<double>;

constexpr int kMostStarts = 1000;

double mean_of(const Percents& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// As much as the optimum is 0, not -0.0 by rounding.
double per_cent_over(double usd, double least) {
  constexpr double kRounding = 1e-6;
  const double over = 100 * (usd / least - 1);
  return std::abs(over) < kRounding ? 0 : over;
}

OverOptimum over_of(Percents percents, double mean) {
  std::ranges::sort(percents);
  const auto quantile = [&](double share) {
    return percents[static_cast<std::size_t>(std::lround(share * static_cast<double>(percents.size() - 1)))];
  };
  return {.mean = mean, .median = quantile(0.5), .p90 = quantile(0.9), .worst = percents.back()};
}

/// What is added up over starts, or over traces.
void add(PolicyResult& sum, const PolicyResult& more) {
  sum.usd += more.usd;
  sum.makespan_h += more.makespan_h;
  sum.spot_h += more.spot_h;
  sum.interruptions += more.interruptions;
  sum.moves += more.moves;
  sum.late += more.late;
}

void divide(PolicyResult& sum, double by) {
  for (double* value : {&sum.usd, &sum.makespan_h, &sum.spot_h, &sum.interruptions, &sum.moves}) *value /= by;
}

/// Runs each policy from each start of each row, and keeps what quantiles need.
class Replays {
 public:
  /// rows: that play() is called for, at most.
  Replays(const ReplayTask& task, std::size_t rows, const OnShare& on_share)
      : task_(task), rows_(static_cast<double>(rows)), on_share_(on_share) {}

  /// False: on_share stopped it.
  bool play(const std::string& name, const Zones& zones, const DeadlineJob& job) {
    ReplayRow row{.trace = name,
                  .zones = static_cast<int>(zones.size()),
                  .machines = job.machines,
                  .policies = std::vector<PolicyResult>(count())};
    std::vector<Percents> over(count());
    const double length_s = CoveredTime(zones).length_s;
    for (double from_s = 0; from_s + job.deadline_s <= length_s; from_s += task_.every_s) {
      ++row.starts;
      std::vector<double> usd(count());
      // The user's own goes first: where it cannot answer, nobody waits for the others.
      if (task_.own != nullptr) usd.back() = start(job, zones, from_s, *task_.own, row.policies.back());
      if (!goes_on(from_s / length_s)) return false;
      const auto policies = spot_policies();
      for (std::size_t p = 0; p < policies.size(); ++p)
        usd[p] = start(job, zones, from_s, *policies[p], row.policies[p]);
      const double least = least_usd_in_hindsight(job, zones, from_s);
      row.least_usd += least;
      for (std::size_t p = 0; p < count(); ++p) over[p].push_back(per_cent_over(usd[p], least));
    }
    finish(row, over);
    table_.rows.push_back(std::move(row));
    return true;
  }

  void leave_out(const std::string& trace) { table_.too_short.push_back(trace); }

  ReplayTable table() const {
    ReplayTable table = table_;
    if (table.rows.empty()) return table;
    table.policies.resize(count());
    for (std::size_t p = 0; p < count(); ++p) {
      PolicyResult& all = table.policies[p];
      Percents means;
      for (const ReplayRow& row : table.rows) {
        all.name = row.policies[p].name;
        add(all, row.policies[p]);
        means.push_back(row.policies[p].over.mean);
      }
      divide(all, static_cast<double>(table.rows.size()));
      all.over = over_of(over_[p], mean_of(means));
    }
    return table;
  }

 private:
  /// part: of this row.
  bool goes_on(double part) const {
    return !on_share_ ||
           on_share_((static_cast<double>(table_.rows.size() + table_.too_short.size()) + part) / rows_);
  }

  std::size_t count() const { return spot_policies().size() + (task_.own != nullptr ? 1 : 0); }

  static double start(const DeadlineJob& job, const Zones& zones, double from_s, SpotPolicy& policy,
                      PolicyResult& sum) {
    const Replay run = replay(job, zones, from_s, policy);
    sum.name = policy.name();
    add(sum, {.usd = run.usd,
              .makespan_h = run.finished_s / 3600,
              .spot_h = run.spot_h,
              .interruptions = static_cast<double>(run.interruptions),
              .moves = static_cast<double>(run.moves),
              .late = run.late ? 1 : 0});
    return run.usd;
  }

  void finish(ReplayRow& row, const std::vector<Percents>& over) {
    over_.resize(count());
    row.least_usd /= row.starts;
    for (std::size_t p = 0; p < count(); ++p) {
      divide(row.policies[p], row.starts);
      row.policies[p].over = over_of(over[p], mean_of(over[p]));
      over_[p].insert(over_[p].end(), over[p].begin(), over[p].end());
    }
  }

  const ReplayTask& task_;
  double rows_;
  const OnShare& on_share_;
  ReplayTable table_;
  std::vector<Percents> over_;  ///< by policy, of all starts
};

/// "a ends at 100000 s, b begins at 500000 s"; empty: they overlap.
std::string gap_text(const Zones& zones) {
  const auto begin = [](const AvailabilityTrace& zone) { return zone.changes.front().at_s; };
  const auto end = [](const AvailabilityTrace& zone) { return zone.changes.back().at_s; };
  const auto last = std::ranges::max_element(zones, {}, begin);
  const auto first = std::ranges::min_element(zones, {}, end);
  if (end(*first) > begin(*last)) return "";
  return fmt::format("{} ends at {} s, {} begins at {} s", first->id, end(*first), last->id, begin(*last));
}

Error nothing_replayed(const ReplayTask& task, const std::vector<AvailabilityTrace>& traces,
                       const std::vector<Zones>& rows) {
  if (rows.empty()) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, traces.size()); ++i) ids.push_back(traces[i].id);
    const std::string asked = task.only.empty() ? "--zones " + task.market : "--trace " + task.only;
    return Error{fmt::format("{}: no such trace; there are {} such as {}", asked, traces.size(),
                             fmt::join(ids, ", "))};
  }
  double longest_s = 0;
  for (const Zones& zones : rows) longest_s = std::max(longest_s, CoveredTime(zones).length_s);
  if (rows.front().size() == 1)
    return Error{fmt::format("--deadline-h {:g}: no trace is as long; the longest has {:.4g} h",
                             task.job.deadline_s / 3600, longest_s / 3600)};
  const std::string gap = gap_text(rows.front());
  return Error{fmt::format("--deadline-h {:g}: the traces of --zones {} have only {:.4g} h in common{}",
                           task.job.deadline_s / 3600, task.market, longest_s / 3600,
                           gap.empty() ? "" : ": " + gap)};
}

/// Each trace alone, or those of the market together.
std::vector<Zones> rows_of(const ReplayTask& task, const std::vector<AvailabilityTrace>& traces) {
  std::vector<Zones> rows;
  for (const AvailabilityTrace& trace : traces) {
    if (!task.only.empty() && trace.id != task.only) continue;
    if (!task.market.empty() && !trace.id.starts_with(task.market)) continue;
    if (task.market.empty() || rows.empty()) rows.emplace_back();
    rows.back().push_back(trace);
  }
  return rows;
}

std::string line_of(const PolicyResult& one) {
  return fmt::format(
      "{:<17} {:>9.2f} {:>8.1f} {:>8.1f} {:>8.1f} {:>7.1f} {:>5} {:>8.1f} {:>7.1f} {:>7.1f} "
      "{:>7.1f}\n",
      one.name, one.usd, one.makespan_h, one.spot_h, one.interruptions, one.moves, one.late, one.over.mean,
      one.over.median, one.over.p90, one.over.worst);
}

}  // namespace

Result<ReplayTable> replay_table(const ReplayTask& task, const std::vector<AvailabilityTrace>& traces,
                                 const OnShare& on_share) {
  DeadlineJob job = task.job;
  job.machines = std::max(1, job.machines);
  if (!feasible(job))
    return Error{
        fmt::format("--deadline-h {:g}: too short for --work-h {:g} and a change-over; {:.4g} can be kept",
                    job.deadline_s / 3600, job.work_s / 3600,
                    (job.work_s + job.change_over_s + ticks_of(job).tick_s) / 3600)};
  const std::vector<Zones> rows = rows_of(task, traces);
  Replays replays(task, rows.size(), on_share);
  for (const Zones& zones : rows) {
    if (CoveredTime(zones).length_s < job.deadline_s) {
      for (const AvailabilityTrace& zone : zones) replays.leave_out(zone.id);
      continue;
    }
    if (task.job.machines <= 0) job.machines = zones.size() > 1 ? 1 : std::max(1, zones.front().most());
    if (job.machines > kMostReplayMachines)
      return Error{
          fmt::format("{}: {} machines are available at most, and a replay has up to {}; give "
                      "--machines N",
                      zones.front().id, job.machines, kMostReplayMachines)};
    if ((CoveredTime(zones).length_s - job.deadline_s) / task.every_s >= kMostStarts)
      return Error{fmt::format("--every-h {:g}: more than {} starts along {}; expected fewer",
                               task.every_s / 3600, kMostStarts, zones.front().id)};
    if (!replays.play(zones.size() > 1 ? task.market : zones.front().id, zones, job))
      return Error{fmt::format("the replay of {} was stopped", zones.front().id)};
  }
  ReplayTable table = replays.table();
  if (table.rows.empty()) return nothing_replayed(task, traces, rows);
  return table;
}

std::string to_text(const ReplayTable& table) {
  std::size_t width = 5;
  for (const ReplayRow& row : table.rows) width = std::max(width, row.trace.size());
  std::string text = fmt::format("{:<{}} {:>5} {:>6} {:>8} {:>10}", "trace", width, "zones", "starts",
                                 "machines", "optimum $");
  for (const PolicyResult& policy : table.policies) text += fmt::format(" {:>16}", policy.name);
  text += "\n";
  for (const ReplayRow& row : table.rows) {
    text += fmt::format("{:<{}} {:>5} {:>6} {:>8} {:>10.2f}", row.trace, width, row.zones, row.starts,
                        row.machines, row.least_usd);
    for (const PolicyResult& policy : row.policies)
      text += fmt::format(" {:>16}", fmt::format("+{:.1f} %", policy.over.mean));
    text += "\n";
  }
  text += fmt::format("\n{:<17} {:>9} {:>8} {:>8} {:>8} {:>7} {:>5} {:>32}\n", "", "", "", "spot", "inter-",
                      "", "", "per cent over the optimum");
  text +=
      fmt::format("{:<17} {:>9} {:>8} {:>8} {:>8} {:>7} {:>5} {:>8} {:>7} {:>7} {:>7}\n", "policy", "cost $",
                  "hours", "hours", "rupted", "moves", "late", "mean", "median", "p90", "worst");
  for (const PolicyResult& policy : table.policies) text += line_of(policy);
  text +=
      "live: what tw replan and tw up --keep follow. Optimum: with the whole trace known; with several\n"
      "machines a bound below it. Means count each trace once; median, p90 and worst are of all starts.\n";
  if (!table.too_short.empty())
    text += fmt::format("shorter than the deadline: {}\n", fmt::join(table.too_short, ", "));
  return text;
}

}  // namespace tw::plan
