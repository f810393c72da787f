// SPDX-License-Identifier: Apache-2.0
#include "plan/output/replay_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tw::plan {
namespace {

ReplayRow row_of(const DeadlineJob& job, const AvailabilityTrace& trace, double every_s) {
  ReplayRow row{.trace = trace.id, .machines = job.machines};
  for (double from_s = 0; from_s + job.deadline_s <= trace.length_s(); from_s += every_s) {
    ++row.beginnings;
    for (std::size_t p = 0; p < kPolicies.size(); ++p) {
      const Replay run = replay(job, trace, from_s, kPolicies[p]);
      row.usd[p] += run.usd;
      row.late += run.late ? 1 : 0;
    }
    row.least_usd += least_usd_in_hindsight(job, trace, from_s);
  }
  for (double& usd : row.usd) usd /= row.beginnings;
  row.least_usd /= row.beginnings;
  return row;
}

Error nothing_replayed(const ReplayTask& task, const std::vector<AvailabilityTrace>& traces,
                       const ReplayTable& table) {
  if (table.too_short.empty()) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, traces.size()); ++i) ids.push_back(traces[i].id);
    return Error{fmt::format("--trace {}: no such trace; there are {} such as {}", task.only, traces.size(),
                             fmt::join(ids, ", "))};
  }
  double longest_s = 0;
  for (const AvailabilityTrace& trace : traces) longest_s = std::max(longest_s, trace.length_s());
  return Error{fmt::format("--deadline-h {:g}: no trace is as long; the longest has {:.4g} h",
                           task.job.deadline_s / 3600, longest_s / 3600)};
}

}  // namespace

Result<ReplayTable> replay_table(const ReplayTask& task, const std::vector<AvailabilityTrace>& traces) {
  ReplayTable table;
  DeadlineJob job = task.job;
  job.machines = std::max(1, job.machines);
  if (!feasible(job))
    return Error{
        fmt::format("--deadline-h {:g}: too short for --work-h {:g} and a change-over; {:.4g} can be kept",
                    job.deadline_s / 3600, job.work_s / 3600,
                    (job.work_s + job.change_over_s + ticks_of(job).tick_s) / 3600)};
  for (const AvailabilityTrace& trace : traces) {
    if (!task.only.empty() && trace.id != task.only) continue;
    if (trace.length_s() < job.deadline_s) {
      table.too_short.push_back(trace.id);
      continue;
    }
    job.machines = task.job.machines > 0 ? task.job.machines : std::max(1, trace.most());
    table.rows.push_back(row_of(job, trace, task.every_s));
  }
  if (table.rows.empty()) return nothing_replayed(task, traces, table);
  return table;
}

std::string to_text(const ReplayTable& table) {
  std::size_t width = 5;
  for (const ReplayRow& row : table.rows) width = std::max(width, row.trace.size());
  std::string text = fmt::format("{:<{}} {:>6} {:>8}", "trace", width, "starts", "machines");
  for (Policy policy : kPolicies) text += fmt::format(" {:>16}", to_string(policy));
  text += fmt::format(" {:>12} {:>5}\n", "in hindsight", "late");
  ReplayRow mean{.trace = "mean"};
  for (const ReplayRow& row : table.rows) {
    text += fmt::format("{:<{}} {:>6} {:>8}", row.trace, width, row.beginnings, row.machines);
    for (double usd : row.usd) text += fmt::format(" {:>16.2f}", usd);
    text += fmt::format(" {:>12.2f} {:>5}\n", row.least_usd, row.late);
    for (std::size_t p = 0; p < row.usd.size(); ++p)
      mean.usd[p] += row.usd[p] / static_cast<double>(table.rows.size());
    mean.least_usd += row.least_usd / static_cast<double>(table.rows.size());
    mean.beginnings += row.beginnings;
    mean.late += row.late;
  }
  if (table.rows.size() > 1) {
    text += fmt::format("{:<{}} {:>6} {:>8}", mean.trace, width, mean.beginnings, "");
    for (double usd : mean.usd) text += fmt::format(" {:>16.2f}", usd);
    text += fmt::format(" {:>12.2f} {:>5}\n", mean.least_usd, mean.late);
  }
  text += "USD, means over the starts. In hindsight: the optimum, with several machines a bound below it.\n";
  if (!table.too_short.empty())
    text += fmt::format("shorter than the deadline: {}\n", fmt::join(table.too_short, ", "));
  return text;
}

}  // namespace tw::plan
