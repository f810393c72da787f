// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/spot_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text/duration.h"

namespace tw::plan {
namespace {

constexpr double kRelearn_h = 16;
constexpr double kMovesWorth = 2;  ///< a move must save more than this many times its cost
constexpr double kSameZonePrice = 0.05;

/// A spot machine or none; on-demand only by the safety net.
class Greedy : public SpotPolicy {
 public:
  std::string_view name() const override { return "greedy"; }

  SpotDecision decide(const SpotView& view) override {
    if (view.mode != Mode::idle) return {SpotAction::stay, view.zone, "the machine runs"};
    const auto zone = best_zone(view);
    if (!zone) return {SpotAction::wait, 0, "no zone has a spot machine"};
    return {SpotAction::move, *zone, "a spot machine is available"};
  }
};

class AllOnDemand : public SpotPolicy {
 public:
  std::string_view name() const override { return "all on-demand"; }

  SpotDecision decide(const SpotView& view) override {
    return {view.mode == Mode::on_demand ? SpotAction::stay : SpotAction::on_demand, 0, "always on-demand"};
  }
};

/// As published: on-demand while behind a schedule of uniform progress, until ahead by two change-overs.
class UniformProgress : public SpotPolicy {
 public:
  std::string_view name() const override { return "uniform progress"; }

  SpotDecision decide(const SpotView& view) override {
    if (catching_up_ && view.work_done_h >= scheduled_h(view, 2 * view.change_over_h)) catching_up_ = false;
    if (!catching_up_ && view.work_done_h < scheduled_h(view, 0)) catching_up_ = true;
    if (view.mode == Mode::on_demand && catching_up_) return {SpotAction::stay, 0, "behind schedule"};
    if (view.mode == Mode::spot) return {SpotAction::stay, view.zone, "the spot machine runs"};
    if (const auto zone = best_zone(view)) return {SpotAction::move, *zone, "a spot machine is available"};
    if (catching_up_) return {SpotAction::on_demand, 0, "behind schedule"};
    return {SpotAction::wait, 0, "ahead of schedule"};
  }

 private:
  static double scheduled_h(const SpotView& view, double later_h) {
    const double all_h = view.passed_h + view.time_left_h;
    return (view.work_done_h + view.work_left_h) * std::min(1.0, (view.passed_h + later_h) / all_h);
  }

  bool catching_up_ = false;
};

std::string minutes(double hours) { return fmt::format("{:.0f} min", 60 * hours); }

std::string_view word_of(Mode mode) {
  switch (mode) {
    case Mode::idle:
      return "waiting";
    case Mode::spot:
      return "spot";
    case Mode::on_demand:
      return "on-demand";
  }
  return "";
}

/// Work now rather than later where it costs the same.
std::size_t cheapest(const std::array<double, 3>& usd) {
  constexpr double kSame = 1e-4;
  const double most = *std::min_element(usd.begin(), usd.end()) * (1 + kSame);
  return usd[1] <= most ? 1 : usd[2] <= most ? 2 : 0;
}

/// "12.3 $ expected with spot in aws:us-east-1a (available for 95 min, lasts 6.1 h), 13.0 $ waiting, ..."
std::string reason_for(const SpotView& view, const std::array<double, 3>& usd, std::size_t least,
                       std::size_t zone) {
  const auto part = [&](std::size_t mode) {
    std::string text = usd[mode] > ExpectedCost::kImpossible * view.on_demand_usd_h
                           ? "too late "
                           : fmt::format("{:.4g} $ ", usd[mode]);
    return text += word_of(static_cast<Mode>(mode));
  };
  std::string text = "expected for the rest: " + part(least);
  if (static_cast<Mode>(least) == Mode::spot)
    text += fmt::format(" in {} (available for {}, lasts {:.3g} h)", view.zones[zone].name,
                        minutes(view.zones[zone].sight.age_h), view.zones[zone].lasts_h());
  for (const std::size_t mode : {1U, 2U, 0U})
    if (mode != least && (mode != 1 || view.zones[zone].sight.up)) text += ", " + part(mode);
  return text;
}

}  // namespace

double ZoneView::lasts_h() const { return mean_time_left_h(hazards.lost_per_h, sight.age_h, kSpotHorizon_h); }

double ZoneView::avoid_h() const {
  return sight.up ? 0 : std::max(0.0, time_until_ended_h(hazards.found_per_h, 0, 0.5) - sight.age_h);
}

std::string_view to_string(SpotAction action) {
  switch (action) {
    case SpotAction::stay:
      return "stay";
    case SpotAction::move:
      return "move";
    case SpotAction::on_demand:
      return "on-demand";
    case SpotAction::wait:
      return "wait";
  }
  return "";
}

std::optional<std::size_t> best_zone(const SpotView& view) {
  std::optional<std::size_t> best;
  double least_usd_h = 0;
  for (std::size_t z = 0; z < view.zones.size(); ++z) {
    const ZoneView& zone = view.zones[z];
    if (!zone.sight.up) continue;
    const bool here = view.mode == Mode::spot && view.zone == z;
    // An interruption costs a change-over, too, so a machine that lasts is worth more.
    const double lasts_h = std::max(zone.lasts_h(), 1e-3);
    const double used_h = std::min(lasts_h, std::max(view.work_left_h, 1e-3));
    const double usd_h = zone.spot_usd_h * (1 + (here ? 1 : 2) * view.change_over_h / lasts_h) +
                         (here ? 0 : zone.move_usd / used_h);
    if (!best || usd_h < least_usd_h - 1e-12) {
      best = z;
      least_usd_h = usd_h;
    }
  }
  return best;
}

std::optional<SpotDecision> LivePolicy::move_to_cheaper(const SpotView& view, std::size_t best) const {
  if (view.mode != Mode::spot || best == view.zone) return std::nullopt;
  const ZoneView& here = view.zones[view.zone];
  const ZoneView& there = view.zones[best];
  const double both_last_h = std::min({here.lasts_h(), there.lasts_h(), view.work_left_h});
  const double saved_usd = (here.spot_usd_h - there.spot_usd_h) * both_last_h;
  const double move_usd = view.change_over_h * there.spot_usd_h + there.move_usd;
  const double slack_h = view.time_left_h - view.starting_h - view.work_left_h;
  if (saved_usd <= kMovesWorth * move_usd || slack_h < 3 * view.change_over_h) return std::nullopt;
  return SpotDecision{
      SpotAction::move, best,
      fmt::format(
          "{} costs {:.4g} $/h, {} {:.4g}: {:.3g} $ less while both last {:.3g} h, "
          "for a change-over of {:.3g} ${}",
          there.name, there.spot_usd_h, here.name, here.spot_usd_h, saved_usd, both_last_h, move_usd,
          there.move_usd > 0 ? fmt::format(", {:.3g} $ of it to send the state", there.move_usd) : "")};
}

const ExpectedCost& LivePolicy::costs_for(const SpotView& view, double spot_usd_h) {
  const bool same_price = std::abs(spot_usd_h - learned_usd_h_) <= kSameZonePrice * learned_usd_h_;
  if (costs_ && same_price && learned_at_h_ - view.time_left_h < kRelearn_h) return *costs_;
  learned_at_h_ = view.time_left_h;
  learned_usd_h_ = spot_usd_h;
  return costs_.emplace(SpotOutlook{.hazards = view.outlook,
                                    .elsewhere = view.elsewhere,
                                    .spot_usd_h = spot_usd_h,
                                    .on_demand_usd_h = view.on_demand_usd_h},
                        ExpectedCost::Span{view.time_left_h, view.work_left_h, view.change_over_h});
}

SpotDecision LivePolicy::decide(const SpotView& view) {
  TW_CHECK(!view.zones.empty());
  if (view.mode == Mode::on_demand && view.starting_h > 0)
    return {SpotAction::stay, 0, "the on-demand machine is on its way"};
  if (view.mode != Mode::on_demand && view.time_left_h < view.starting_h + view.work_left_h)
    return {SpotAction::on_demand, 0,
            fmt::format("{:.3g} h of work do not fit into {:.3g} h", view.starting_h + view.work_left_h,
                        view.time_left_h)};
  const auto best = best_zone(view);
  if (best)
    if (auto move = move_to_cheaper(view, *best)) return *std::move(move);
  std::size_t zone = best.value_or(0);
  if (view.mode == Mode::spot) zone = view.zone;
  const SpotSight market = best || view.mode == Mode::spot ? view.zones[zone].sight : view.together;
  auto usd = costs_for(view, view.zones[zone].spot_usd_h)
                 .usd(view.time_left_h - view.starting_h, view.work_left_h, market, view.mode);
  if (view.mode != Mode::spot) usd[static_cast<std::size_t>(Mode::spot)] += view.zones[zone].move_usd;
  const std::size_t least = cheapest(usd);
  SpotDecision decision{.zone = zone, .reason = reason_for(view, usd, least, zone)};
  const auto chosen = static_cast<Mode>(least);
  if (chosen == view.mode && chosen != Mode::idle)
    decision.action = SpotAction::stay;
  else if (chosen == Mode::spot)
    decision.action = SpotAction::move;
  else
    decision.action = chosen == Mode::on_demand ? SpotAction::on_demand : SpotAction::wait;
  return decision;
}

std::vector<std::unique_ptr<SpotPolicy>> spot_policies() {
  std::vector<std::unique_ptr<SpotPolicy>> all;
  all.push_back(std::make_unique<AllOnDemand>());
  all.push_back(std::make_unique<Greedy>());
  all.push_back(std::make_unique<UniformProgress>());
  all.push_back(std::make_unique<LivePolicy>());
  return all;
}

bool can_still_turn_back(const std::vector<Standing>& machines, double work_left_h, double time_left_h,
                         double change_over_h, double step_h) {
  double done_h = 0;
  const double left_h = time_left_h - step_h;
  for (const Standing& one : machines) {
    if (one.mode != Mode::idle && one.starting_h <= 0) done_h += step_h;
    const double delay_h =
        one.mode == Mode::on_demand ? std::max(0.0, one.starting_h - step_h) : change_over_h;
    done_h += std::max(0.0, left_h - delay_h);
  }
  return done_h >= work_left_h - 1e-9;
}

}  // namespace tw::plan
