// SPDX-License-Identifier: Apache-2.0
#include "cli/sim/sim_what_if.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/arguments/number_option.h"
#include "cli/commands.h"
#include "cli/sim/sim_policy.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "cli/watch/frozen_file.h"
#include "sim/scenarios/machine_lifetimes.h"
#include "sim/scenarios/what_if_json.h"

namespace tw::cli {
namespace {

constexpr const char* kGroup = "What if (docs/simulation.md)";
constexpr double kMostHours = 8784;  ///< a year
constexpr double kDefaultHours = 4;  ///< where neither the user nor the trace says how long

std::vector<std::string> names_of_codecs() { return {codec::kCodecNames.begin(), codec::kCodecNames.end()}; }

Duration hours(double h) { return from_seconds(3600 * h); }

Status take_trace(const WhatIfArguments& arguments, sim::WhatIf& what) {
  TW_TRY(const std::string text, read_text("--trace-spot", arguments.trace_file));
  TW_TRY(const auto traces, sim::read_traces(arguments.trace_file, text, arguments.trace_id));
  const double length_h = to_seconds(traces.front().length) / 3600;
  const double asked_h =
      arguments.hours > 0 ? arguments.hours : (length_h - arguments.from_h) / arguments.speed;
  if (asked_h > kMostHours)
    return Error{fmt::format("--trace-spot {}: is {:.0f} h long; give --hours, at most {:g}",
                             arguments.trace_file, length_h, kMostHours)};
  if (arguments.from_h + asked_h * arguments.speed > length_h + 1e-9 || asked_h <= 0) {
    return Error{
        fmt::format("--from {:g} --hours {:g}: expected to lie within the trace, which is {:.2f} h long",
                    arguments.from_h, asked_h, length_h)};
  }
  what.length = hours(asked_h);
  what.lifetimes =
      lifetimes_in(traces, {arguments.peers, hours(arguments.from_h), what.length, arguments.speed});
  return Unit{};
}

Status take_lifetimes(const WhatIfArguments& arguments, sim::WhatIf& what) {
  const Result<market::LifetimeLaw> law = market::lifetimes_named(arguments.lifetimes);
  if (!law) return Error{"--" + law.error().message};
  what.length = hours(arguments.hours > 0 ? arguments.hours : kDefaultHours);
  what.lifetimes = sim::generate_lifetimes({.lifetimes = law.value(),
                                            .replacement = market::start_times_for(law.value().name),
                                            .shocks = {arguments.shocks_per_day, arguments.shock_share},
                                            .zones = arguments.zones,
                                            .peers = arguments.peers,
                                            .length = what.length},
                                           what.seed);
  return Unit{};
}

/// Machines of the trace, of the trace as a policy uses it, or drawn.
Status take_machines(const WhatIfArguments& arguments, plan::SpotPolicy* policy, sim::WhatIf& what) {
  if (!arguments.policy.empty() && arguments.trace_file.empty())
    return Error{
        fmt::format("--policy {}: expected --trace-spot FILE, the market that it sees", arguments.policy)};
  if (policy != nullptr) return take_policy(arguments, *policy, what);
  return arguments.trace_file.empty() ? take_lifetimes(arguments, what) : take_trace(arguments, what);
}

void describe_machines(CLI::App& command, WhatIfArguments& a) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return command.add_option(name, value, text)->group(kGroup)->capture_default_str();
  };
  add("--trace-spot", a.trace_file, "CSV: when spot machines came and went");
  add("--trace-id", a.trace_id, "trace of the file; a final * matches all with this prefix");
  add("--lifetimes", a.lifetimes, "measured lifetimes instead of a trace, such as gcp-v100-us-central1");
  add("--peers", a.peers, "spot machines at most")->check(CLI::Range(1, 1024));
  add("--anchors", a.what.anchors, "machines that are never taken")->check(CLI::Range(0, 1024));
  add("--hours", a.hours, "length of the run; 0: to the end of the trace, or 4")
      ->check(number_within(0, kMostHours));
  add("--from", a.from_h, "hour of the trace at which the run begins")->check(number_within(0, kMostHours));
  add("--speed", a.speed, "hours of the trace in one hour of the run")->check(number_within(1e-3, 1e6));
  add("--policy", a.policy, "spot policy on the trace: live, greedy, ... or a command, as of tw replay");
  add("--work-h", a.work_h, "with --policy: hours that all machines work")
      ->check(number_within(0, kMostHours));
  add("--deadline-h", a.deadline_h, "with --policy: hours until the work must be done")
      ->check(number_within(0, kMostHours));
  add("--notice-s", a.notice_s, "notice before a machine is taken; 0: none")->check(number_within(0, 86400));
  add("--start-s", a.start_s, "time from a new machine to its process")->check(number_within(0, 86400));
  add("--zones", a.zones, "with --lifetimes: zones of the machines")->check(CLI::Range(1, 64));
  add("--shocks-per-day", a.shocks_per_day, "with --lifetimes: shortages of a zone")
      ->check(number_within(0, 1000));
  add("--shock-share", a.shock_share, "share of a zone's machines that a shortage takes")
      ->check(number_within(0, 1));
}

void describe_work(CLI::App& command, WhatIfArguments& a) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return command.add_option(name, value, text)->group(kGroup)->capture_default_str();
  };
  const auto millions = [&a](const double& m) { a.what.parameters = m * 1e6; };
  command.add_option_function<double>("--parameters-m", millions, "millions of parameters of the model")
      ->group(kGroup)
      ->check(number_within(1e-3, 1e7))
      ->default_str("25");
  add("--model-mb", a.model_mb, "size of the model in fp32, instead of --parameters-m")
      ->check(number_within(0, 4e7));
  add("--samples-per-s", a.what.samples_per_s, "speed of one machine")->check(number_within(1e-6, 1e9));
  add("--tbs", a.what.target_batch_size, "target batch size: samples of a round")
      ->check(number_within(1, 1e9));
  add("--microbatch", a.what.microbatch, "samples of a microbatch")->check(number_within(1, 1 << 20));
  add("--codec", a.codec, "encoding of gradients on the wire")->check(CLI::IsMember(names_of_codecs()));
  add("--link-mbit", a.what.link_mbit, "bandwidth of a machine")->check(number_within(1e-3, 1e7));
  add("--rtt-ms", a.what.rtt_ms, "round trip between machines")->check(number_within(1e-3, 1e5));
  add("--usd-per-h", a.what.usd_per_h, "price of a spot machine")->check(number_within(0, 1e6));
  add("--on-demand-usd-per-h", a.on_demand_usd_per_h, "with --policy: price of an on-demand machine")
      ->check(number_within(0, 1e6));
  add("--anchor-usd-per-h", a.what.anchor_usd_per_h, "price of an anchor")->check(number_within(0, 1e6));
  add("--egress-usd-per-gb", a.what.egress_usd_per_gb, "price of all traffic")->check(number_within(0, 1e6));
}

/// The simulated machines, in a line.
std::string machines_of(const WhatIfArguments& a) {
  const std::string spot = a.trace_file.empty()
                               ? fmt::format("{} spot machines by {}", a.peers, a.lifetimes)
                               : fmt::format("spot machines of {} {}", a.trace_file, a.trace_id);
  const std::string by = a.policy.empty() ? "" : fmt::format(", as the policy {} takes them,", a.policy);
  return fmt::format("{}{} and {} {}", spot, by, a.what.anchors, a.what.anchors == 1 ? "anchor" : "anchors");
}

sim::WhatIfReport with_progress(const sim::WhatIf& what) {
  ProgressLine line;
  const double length_h = to_seconds(what.length) / 3600;
  return what_if(what, [&](double share) {
    line.show(fmt::format("{:.1f} of {:.1f} hours are simulated", share * length_h, length_h), share);
  });
}

}  // namespace

void describe_what_if(CLI::App& command, WhatIfArguments& arguments) {
  describe_machines(command, arguments);
  describe_work(command, arguments);
}

Result<sim::WhatIf> what_if_of(const WhatIfArguments& arguments, plan::SpotPolicy* policy) {
  if (!arguments.trace_file.empty() && !arguments.lifetimes.empty()) {
    return Error{fmt::format("--lifetimes {}: and --trace-spot {}; give one of the two", arguments.lifetimes,
                             arguments.trace_file)};
  }
  sim::WhatIf what = arguments.what;
  what.notice = from_seconds(arguments.notice_s);
  what.start_up = from_seconds(arguments.start_s);
  what.codec = codec::codec_named(arguments.codec).value();
  if (arguments.model_mb > 0) what.parameters = arguments.model_mb * 1e6 / sizeof(float);
  TW_TRY(take_machines(arguments, policy, what));
  return what;
}

int run_what_if(const WhatIfArguments& arguments, bool json, const std::string& html) {
  auto policy = arguments.policy.empty() ? Result<std::unique_ptr<plan::SpotPolicy>>(nullptr)
                                         : policy_of(arguments.policy);
  if (!policy) return complain("--policy " + policy.error().message, kUsage);
  plan::SpotPolicy* const chosen = policy.value().get();
  const Result<sim::WhatIf> what = what_if_of(arguments, chosen);
  if (const auto trouble = chosen ? trouble_of(arguments.policy, *chosen) : std::nullopt)
    return complain(trouble->message, kFailed);
  if (!what) return complain(what.error().message, kUsage);
  const sim::WhatIfReport report = with_progress(what.value());
  if (!html.empty()) {
    const std::string fields = page_fields(what.value(), report, machines_of(arguments));
    if (const Status done = write_dated_page(html, monitor::PageKind::what_if, "what-if", fields); !done)
      return complain("--html " + done.error().message, kFailed);
  }
  print_out("{}", json ? to_json(what.value(), report) : to_string(what.value(), report));
  return report.violations.empty() && report.rounds_lost == 0 ? kDone : kFailed;
}

}  // namespace tw::cli
