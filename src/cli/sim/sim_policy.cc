// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/fields.h"
#include "cli/plan/price_sources.h"
#include "launch/policy_program.h"
#include "plan/advise/spot_replay.h"

namespace tw::cli {
namespace {

constexpr double kHour_s = 3600;

plan::DeadlineJob job_of(const WhatIfArguments& arguments) {
  return {.work_s = arguments.work_h * kHour_s,
          .deadline_s = arguments.deadline_h * kHour_s,
          .change_over_s = arguments.start_s,
          .machines = arguments.peers,
          .spot_usd_h = arguments.what.usd_per_h,
          .on_demand_usd_h = arguments.on_demand_usd_per_h};
}

Status check_numbers(const WhatIfArguments& arguments) {
  if (arguments.speed != 1)
    return Error{
        fmt::format("--speed {:g}: a policy decides in hours of the trace; expected 1", arguments.speed)};
  if (arguments.hours > 0)
    return Error{fmt::format("--hours {:g}: with --policy the run lasts until the work is done; leave it out",
                             arguments.hours)};
  if (!(arguments.what.usd_per_h > 0) || !(arguments.on_demand_usd_per_h > 0))
    return Error{"--policy: it compares prices; expected --usd-per-h and --on-demand-usd-per-h above 0"};
  if (!(arguments.work_h > 0) || !(arguments.deadline_h > 0))
    return Error{"--policy: expected --work-h and --deadline-h, the hours of work and until it must be done"};
  if (!feasible(job_of(arguments)))
    return Error{fmt::format("--deadline-h {:g}: too short for --work-h {:g} and a start of {:g} s",
                             arguments.deadline_h, arguments.work_h, arguments.start_s)};
  return Unit{};
}

/// The zones of one market: the trace of --trace-id, or all that begin so.
Result<std::vector<plan::AvailabilityTrace>> zones_of(const WhatIfArguments& arguments) {
  TW_TRY(const std::string text, read_text("--trace-spot", arguments.trace_file));
  TW_TRY(auto zones, plan::read_availability(arguments.trace_file, text));
  std::string prefix = arguments.trace_id;
  const bool many = prefix.ends_with('*');
  if (many) prefix.pop_back();
  std::erase_if(zones, [&](const plan::AvailabilityTrace& zone) {
    return !prefix.empty() && (many ? !zone.id.starts_with(prefix) : zone.id != prefix);
  });
  if (zones.empty())
    return Error{fmt::format("--trace-id {}: no such trace in {}", arguments.trace_id, arguments.trace_file)};
  if (zones.size() > 1 && !many)
    return Error{
        fmt::format("--trace-spot {}: has several traces, such as {} and {}; give --trace-id, with a final * "
                    "for all zones of a market",
                    arguments.trace_file, zones[0].id, zones[1].id)};
  const double covered_h = plan::CoveredTime(zones).length_s / kHour_s;
  if (arguments.from_h + arguments.deadline_h > covered_h)
    return Error{
        fmt::format("--from {:g} --deadline-h {:g}: expected to lie within the trace, which covers {:.2f} h",
                    arguments.from_h, arguments.deadline_h, covered_h)};
  return zones;
}

sim::MachineLifetime lifetime_of(const plan::Stay& stay) {
  const double hours = (stay.to_s - stay.from_s) / kHour_s;
  return {.slot = stay.machine,
          .comes = from_seconds(stay.from_s),
          .goes = from_seconds(stay.to_s),
          .given_up = !stay.taken,
          .on_demand = stay.mode == plan::Mode::on_demand,
          .usd_per_h = stay.usd / hours};
}

}  // namespace

Result<std::unique_ptr<plan::SpotPolicy>> policy_of(const std::string& text) {
  for (auto& policy : plan::spot_policies())
    if (policy->name() == text) return std::move(policy);
  TW_TRY(auto program, launch::PolicyProgram::start(text));
  return std::unique_ptr<plan::SpotPolicy>(std::make_unique<launch::PolicyProgram>(std::move(program)));
}

std::optional<Error> trouble_of(const std::string& text, const plan::SpotPolicy& policy) {
  const auto* own = dynamic_cast<const launch::PolicyProgram*>(&policy);
  if (own == nullptr || !own->trouble()) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& one : plan::spot_policies()) names.emplace_back(one->name());
  const std::span<const std::string> known(names);
  return Error{fmt::format("--policy {}{}", own->trouble()->message, did_you_mean(text, known))};
}

Status take_policy(const WhatIfArguments& arguments, plan::SpotPolicy& policy, sim::WhatIf& what) {
  TW_TRY(check_numbers(arguments));
  TW_TRY(const auto zones, zones_of(arguments));
  const plan::Replay replay = plan::replay(job_of(arguments), zones, arguments.from_h * kHour_s, policy);
  what.length = from_seconds(replay.finished_s);
  for (const plan::Stay& stay : replay.stays) {
    sim::MachineLifetime lifetime = lifetime_of(stay);
    lifetime.taken = lifetime.goes < what.length;
    what.lifetimes.push_back(lifetime);
  }
  std::ranges::stable_sort(what.lifetimes, {}, &sim::MachineLifetime::comes);
  const double finished_h = replay.finished_s / kHour_s;
  what.policy = sim::PolicyCourse{.name = std::string(policy.name()),
                                  .work_h = arguments.work_h * arguments.peers + finished_h * what.anchors,
                                  .finished_h = finished_h,
                                  .deadline_h = arguments.deadline_h,
                                  .interruptions = replay.interruptions,
                                  .starts = replay.moves};
  return Unit{};
}

}  // namespace tw::cli
