// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/result.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "market/gpu_name.h"
#include "plan/search/market_limits.h"

namespace tw::plan {
namespace {

constexpr double kLeastSaving = 0.05;  ///< of the rest; less is within the errors of prediction
constexpr double kSwitches = 2;        ///< a change must save more than this many times its cost
constexpr double kSamePrice = 0.01;
constexpr double kLater = 4;  ///< times the work: a run without a deadline ends whenever it does

bool matches(const PlannedGroup& group, const market::Offer& offer) {
  const bool same =
      trains(group) ? machine_name(offer) == group.gpu : offer.gpu.empty() && offer.vm_type == group.vm_type;
  return same && site_of(offer) == group.site && offer.purchase == group.purchase;
}

class Replanner {
 public:
  explicit Replanner(const ReplanInputs& inputs)
      : in_(inputs), market_(inputs.market), left_(inputs.job), counts_(inputs.market.candidates.size()) {}

  Result<Replan> run() {
    replan_.progress = in_.progress;
    replan_.samples_left = in_.job.samples - in_.progress.samples;
    const Status found = find_plan();
    count_spent();
    if (replan_.samples_left <= 0) {
      replan_.advice = Advice::done;
      replan_.reason = "all samples are trained";
      return replan_;
    }
    TW_TRY(found);
    take_measured_speed();
    TW_TRY(set_limits());
    replan_.current = evaluate(left_, market_, counts_, "as planned");
    ask_policy();
    if (net_is_due()) return turn_to_on_demand();
    return look_for_better();
  }

 private:
  Status find_plan() {
    Status found = Unit{};
    int planned = 0;
    for (const PlannedGroup& group : in_.plan) {
      planned += group.count;
      const Status one = find_group(group);
      if (found) found = one;
    }
    replan_.missing = std::max(0, planned - in_.progress.peers);
    mean_usd_per_h_ = mean_usd_per_h();
    return found;
  }

  Status find_group(const PlannedGroup& group) {
    const auto now = candidate_for(group);
    if (!now)
      return Error{
          fmt::format("{}x{}@{} of the plan: left out by providers, regions, gpus or purchase of the "
                      "job, or its speed is not known",
                      group.count, group.gpu, to_string(group.site))};
    counts_[*now] += group.count;
    int& most = market_.space.choices[*now].most;
    most = std::max(most, counts_[*now]);
    if (!usd_per_h_of(group))
      return Error{
          fmt::format("{}x{}@{} of the plan: no longer offered, and without usd_per_h; expected its "
                      "price in the plan",
                      group.count, group.gpu, to_string(group.site))};
    if (!is_unpriced(group)) note_price(group, market_.candidates[*now]);
    return Unit{};
  }

  /// Among twins that match, the one of the group's type of machine, else the cheapest.
  std::optional<std::size_t> candidate_for(const PlannedGroup& group) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < market_.candidates.size(); ++i) {
      if (!matches(group, offer(i))) continue;
      if (offer(i).vm_type == group.vm_type) return i;
      if (!found) found = i;
    }
    return found;
  }

  static bool is_unpriced(const PlannedGroup& group) {
    return group.usd_per_h == 0 && group.purchase != market::Purchase::owned;
  }

  /// In the plan, else today's; nothing: nobody knows it.
  std::optional<double> usd_per_h_of(const PlannedGroup& group) const {
    if (!is_unpriced(group)) return group.usd_per_h;
    const auto now = candidate_for(group);
    if (!now || offer(*now).source == kNoLongerOffered) return std::nullopt;
    return market_.candidates[*now].usd_per_h;
  }

  /// The mean of the plan's machines that have a price.
  double mean_usd_per_h() const {
    double usd_per_h = 0;
    int priced = 0;
    for (const PlannedGroup& group : in_.plan)
      if (const auto usd = usd_per_h_of(group)) {
        usd_per_h += group.count * *usd;
        priced += group.count;
      }
    return priced > 0 ? usd_per_h / priced : 0;
  }

  void count_spent() {
    const Paid& paid = in_.progress.paid;
    const double samples = in_.progress.samples;
    replan_.usd_estimated = std::max(0.0, in_.progress.peer_hours - paid.priced_hours) * mean_usd_per_h_;
    if (!paid.averaging_usd)
      replan_.usd_estimated += samples * round_of(usual()).usd / in_.job.target_batch_size;
    // Without data in the JOB, the plan's price of them is a guess that nobody paid.
    if (!paid.reads_usd && in_.job.data.named)
      replan_.usd_estimated +=
          samples * (market_.space.usd_per_sample + dearer_reads_usd(market_.space, counts_));
    replan_.usd_spent = replan_.usd_estimated + paid.machines_usd + paid.averaging_usd.value_or(0) +
                        paid.reads_usd.value_or(0) + paid.writes_usd;
  }

  void note_price(const PlannedGroup& group, const Candidate& now) {
    const std::string name =
        fmt::format("{}@{} {}", group.gpu, to_string(group.site), to_string(group.purchase));
    if (now.offer.source == kNoLongerOffered)
      replan_.prices.push_back(fmt::format("{}: no longer offered; {} $/h at the time of the plan", name,
                                           significant(group.usd_per_h, 4)));
    else if (std::abs(now.usd_per_h - group.usd_per_h) > kSamePrice * group.usd_per_h)
      replan_.prices.push_back(fmt::format("{}: {} $/h now, {} when planned", name,
                                           significant(now.usd_per_h, 4), significant(group.usd_per_h, 4)));
  }

  std::vector<int> living() const { return without(replan_.missing); }

  /// As many as there were in the mean of the run so far.
  std::vector<int> usual() const {
    const RunProgress& at = in_.progress;
    if (at.elapsed_h <= 0 || at.peer_hours <= 0) return counts_;
    return without(std::accumulate(counts_.begin(), counts_.end(), 0) -
                   rounded_peers(at.peer_hours / at.elapsed_h));
  }

  /// As many as made the measured speed.
  std::vector<int> measured() const {
    if (in_.progress.measured.peers <= 0) return living();
    return without(training(counts_) - rounded_peers(in_.progress.measured.peers));
  }

  static int rounded_peers(double peers) { return std::max(1, static_cast<int>(std::lround(peers))); }

  /// The number of machines that train.
  int training(const std::vector<int>& counts) const {
    int all = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (market_.candidates[i].samples_per_s > 0) all += counts[i];
    return all;
  }

  /// Counts without so many missing machines, taken from the most frequent spot kinds. Machines that do not
  /// train are the last of the market, on-demand, so they stay while one that trains is left.
  std::vector<int> without(int missing) const {
    std::vector<int> counts = counts_;
    for (int n = 0; n < missing; ++n) {
      std::size_t from = counts.size();
      for (std::size_t i = 0; i < counts.size(); ++i) {
        const bool spot = market_.candidates[i].offer.purchase == market::Purchase::spot;
        if (counts[i] > 0 && (from == counts.size() || (spot && counts[i] > counts[from]))) from = i;
      }
      if (from < counts.size()) --counts[from];
    }
    return counts;
  }

  /// Sites of machines that have the state: as the run has seen them, else as living() guesses.
  std::vector<market::Site> holders() const {
    std::vector<market::Site> sites;
    for (const ZoneSeen& met : in_.progress.zones)
      if (met.living > 0) sites.push_back(met.site);
    const std::vector<int> counts = living();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const market::Site site = site_of(offer(i));
      const bool seen = is_spot(i) && std::ranges::find(in_.progress.zones, site, &ZoneSeen::site) !=
                                          in_.progress.zones.end();
      if (counts[i] > 0 && !seen) sites.push_back(site);
    }
    return sites;
  }

  Averaging round_of(const std::vector<int>& counts) const {
    std::vector<int> peers(market_.space.sites);
    for (std::size_t i = 0; i < counts.size(); ++i) peers[market_.space.choices[i].site] += counts[i];
    const int all = std::accumulate(peers.begin(), peers.end(), 0);
    return all > 1 ? market_.space.averaging(peers) : Averaging{};
  }

  /// Speed of the model for the peers that made the measured one.
  double model_speed(const std::vector<int>& counts) const {
    double speed = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) speed += counts[i] * market_.candidates[i].samples_per_s;
    const double peers = in_.progress.measured.peers;
    return peers > 0 && speed > 0 ? speed * peers / training(counts) : speed;
  }

  /// Scales all speeds like the measured speed of the plan's machines; averaging takes the time of the model.
  void take_measured_speed() {
    const std::vector<int> counts = measured();
    const Averaging round = round_of(counts);
    const double speed = model_speed(counts);
    if (in_.progress.measured.samples_per_s > 0 && speed > 0) {
      const double batch = in_.job.target_batch_size;
      const double round_s = batch / in_.progress.measured.samples_per_s;
      const double calc_s = left_.delayed() ? round_s : round_s - round.seconds;
      const double model_s = batch / speed;
      replan_.speed_factor = calc_s > 0.1 * round_s
                                 ? model_s / calc_s
                                 : (left_.delayed() ? model_s : model_s + round.seconds) / round_s;
    }
    for (std::size_t i = 0; i < market_.candidates.size(); ++i) {
      market_.candidates[i].samples_per_s *= replan_.speed_factor;
      market_.space.choices[i].samples_per_s *= replan_.speed_factor;
    }
  }

  Status set_limits() {
    left_.samples = replan_.samples_left;
    if (left_.goal == Goal::pareto) left_.goal = Goal::cheapest;
    if (in_.job.budget_usd > 0) {
      left_.budget_usd = in_.job.budget_usd - replan_.usd_spent;
      if (left_.budget_usd <= 0)
        return Error{fmt::format("budget_usd {:g}: {} $ are spent, with {} % of the samples left",
                                 in_.job.budget_usd, significant(replan_.usd_spent, 4),
                                 significant(100 * replan_.samples_left / in_.job.samples, 3))};
    }
    if (in_.job.deadline_h <= 0) return Unit{};
    replan_.hours_left = left_.deadline_h = in_.job.deadline_h - in_.progress.elapsed_h;
    if (left_.deadline_h > 0) return Unit{};
    return Error{fmt::format("deadline_h {:g}: has passed {:.3g} h ago, with {:.3g} % of the samples left",
                             in_.job.deadline_h, -left_.deadline_h,
                             100 * replan_.samples_left / in_.job.samples)};
  }

  bool is_spot(std::size_t i) const { return market_.candidates[i].offer.purchase == market::Purchase::spot; }

  MarketSpace without_spot() const {
    MarketSpace market = market_;
    for (std::size_t i = 0; i < market.candidates.size(); ++i)
      if (is_spot(i)) market.space.choices[i].most = 0;
    return market;
  }

  /// Spot machines of the plan stay, but in an avoided zone only those that live; more_spot: others may come.
  MarketSpace allowed(bool more_spot) const {
    MarketSpace market = market_;
    for (std::size_t i = 0; i < market.candidates.size(); ++i) {
      if (!is_spot(i)) continue;
      int& most = market.space.choices[i].most;
      if (!more_spot) most = std::min(most, counts_[i]);
      if (const ZoneView* zone = avoided_zone(i)) most = std::min({most, counts_[i], living_in(*zone)});
    }
    return market;
  }

  void ask_policy() {
    avoided_ = avoided_zones(market_, in_.progress.zones);
    for (const ZoneView& zone : avoided_) replan_.avoided.push_back(avoidance(zone));
    const Option& now = replan_.current;
    if (now.samples_per_s <= 0) return;
    const double work_h = replan_.samples_left / now.samples_per_s / 3600;
    const bool limited = left_.deadline_h > 0;
    if (limited) replan_.to_spare_h = left_.deadline_h - work_h;
    view_ = live_view(market_, counts_, in_.progress.zones,
                      {.work_left_h = work_h,
                       .time_left_h = limited ? left_.deadline_h : kLater * work_h,
                       .passed_h = in_.progress.elapsed_h,
                       .change_over_h = start_h(),
                       .samples_per_s = now.samples_per_s,
                       .complete = replan_.missing == 0,
                       .holders = holders()});
    if (view_ && limited) replan_.policy = LivePolicy().decide(*view_);
  }

  /// nullptr: the candidate's zone is not avoided.
  const ZoneView* avoided_zone(std::size_t candidate) const {
    const std::string site = to_string(site_of(market_.candidates[candidate].offer));
    const auto zone = std::ranges::find(avoided_, site, &ZoneView::name);
    return zone != avoided_.end() ? &*zone : nullptr;
  }

  int living_in(const ZoneView& zone) const {
    for (const ZoneSeen& seen : in_.progress.zones)
      if (to_string(seen.site) == zone.name) return seen.living;
    return 0;
  }

  /// A zone of the plan that is avoided and where machines of it are missing.
  const ZoneView* zone_to_leave() const {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      if (const ZoneView* zone = is_spot(i) ? avoided_zone(i) : nullptr)
        if (counts_[i] > living_in(*zone)) return zone;
    return nullptr;
  }

  bool has_spot() const {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      if (counts_[i] > 0 && market_.candidates[i].offer.purchase == market::Purchase::spot) return true;
    return false;
  }

  /// The longest time until an added machine works.
  double start_h() const {
    double longest = 0;
    for (const Candidate& one : market_.candidates) longest = std::max(longest, one.start_s / 3600);
    return longest;
  }

  Result<Recommendation> fastest_on_demand() const {
    Job job = left_;
    job.goal = Goal::fastest;
    job.deadline_h = 0;
    return recommend(job, without_spot(), in_.now_unix_s);
  }

  /// True two change-overs before on-demand machines alone would be late.
  bool net_is_due() const {
    if (left_.deadline_h <= 0 || !has_spot()) return false;
    const auto fastest = fastest_on_demand();
    return fastest && left_.deadline_h <= fastest.value().chosen.hours + 2 * start_h() &&
           left_.deadline_h < replan_.current.risky_hours;
  }

  Result<Replan> turn_to_on_demand() {
    const MarketSpace market = without_spot();
    auto plan = recommend(left_, market, in_.now_unix_s);
    if (!plan) plan = fastest_on_demand();
    if (!plan) return plan.error();
    propose(plan.value().chosen);
    replan_.advice = Advice::safety_net;
    replan_.reason = fmt::format("{} h are left; on-demand machines alone need {} h",
                                 significant(left_.deadline_h, 3), significant(plan.value().chosen.hours, 3));
    return replan_;
  }

  Result<Replan> look_for_better() {
    const bool on_demand = wants_on_demand();
    if (zone_to_leave() != nullptr && !misses_a_limit()) return replace_elsewhere(on_demand);
    auto plan = recommend(left_, allowed(!on_demand), in_.now_unix_s);
    if (!plan) plan = recommend(left_, market_, in_.now_unix_s);
    if (!plan) return plan.error();
    propose(plan.value().chosen);
    decide(on_demand);
    if (replan_.advice == Advice::keep) {
      replan_.proposed = replan_.current;
      replan_.add.clear();
      replan_.drop.clear();
    }
    return replan_;
  }

  bool wants_on_demand() const {
    if (!replan_.policy) return false;
    const SpotAction action = replan_.policy->action;
    return action == SpotAction::on_demand || (action == SpotAction::stay && view_->mode == Mode::on_demand);
  }

  bool misses_a_limit() const {
    const Option& now = replan_.current;
    return (left_.deadline_h > 0 && now.risky_hours > left_.deadline_h) ||
           (left_.budget_usd > 0 && now.risky_usd > left_.budget_usd);
  }

  /// The cheapest candidate of the same machines that is not in an avoided zone and has one more.
  std::optional<std::size_t> elsewhere(std::size_t missing, std::vector<int> counts, bool on_demand) const {
    const auto wanted = on_demand ? market::Purchase::on_demand : market::Purchase::spot;
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const Candidate& one = market_.candidates[i];
      if (one.offer.purchase != wanted || machine_name(one.offer) != machine_name(offer(missing))) continue;
      if ((is_spot(i) && avoided_zone(i)) || (best && market_.candidates[*best].usd_per_h <= one.usd_per_h))
        continue;
      ++counts[i];
      if (counts[i] <= market_.space.choices[i].most && plan::allowed(market_.space, counts)) best = i;
      --counts[i];
    }
    return best;
  }

  const market::Offer& offer(std::size_t i) const { return market_.candidates[i].offer; }

  /// All living machines stay: only what an avoided zone lacks moves, or waits where no other site has it.
  Replan replace_elsewhere(bool on_demand) {
    std::vector<int> counts = counts_;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const ZoneView* zone = is_spot(i) ? avoided_zone(i) : nullptr;
      while (zone != nullptr && counts[i] > living_in(*zone)) {
        --counts[i];
        const auto other = elsewhere(i, counts, on_demand);
        ++counts[other.value_or(i)];
        if (!other) break;
      }
    }
    replan_.reason = avoidance(*zone_to_leave());
    if (counts == counts_) {
      replan_.reason += "; no other site has what is missing, so it waits";
      replan_.proposed = replan_.current;
      return replan_;
    }
    propose(evaluate(left_, market_, counts, "proposed"));
    replan_.advice = Advice::change;
    return replan_;
  }

  void propose(const Option& option) {
    replan_.proposed = option;
    replan_.proposed.name = "proposed";
    const std::vector<int> here = living();
    const std::vector<market::Site> from = holders();
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const Candidate& one = market_.candidates[i];
      const int more = option.counts[i] - counts_[i];
      const int started = option.counts[i] - here[i];
      if (started > 0) {
        const double state = started * state_usd(market_, from, site_of(one.offer));
        replan_.switch_usd += started * one.usd_per_h * one.start_s / 3600 + state;
        replan_.switch_state_usd += state;
        replan_.switch_h = std::max(replan_.switch_h, one.start_s / 3600);
      }
      if (more == 0) continue;
      const PeerGroup peers{std::abs(more), machine_name(one.offer), site_of(one.offer)};
      (more > 0 ? replan_.add : replan_.drop).push_back({peers, one.offer.purchase, one.usd_per_h});
    }
  }

  void decide(bool on_demand) {
    const Option& now = replan_.current;
    const Option& then = replan_.proposed;
    const bool fast = left_.goal == Goal::fastest;
    const double saving = fast ? now.hours - then.hours : now.usd - then.usd;
    const double least = std::max(kLeastSaving * (fast ? now.hours : now.usd),
                                  kSwitches * (fast ? replan_.switch_h : replan_.switch_usd));
    const char* unit = fast ? "h" : "$";
    if (replan_.add.empty() && replan_.drop.empty()) {
      replan_.reason = "the plan's machines are still the best";
    } else if (misses_a_limit()) {
      replan_.advice = Advice::change;
      replan_.reason = "the plan's machines miss a limit";
      if (on_demand) replan_.reason += ", and what is added is on-demand: " + replan_.policy->reason;
    } else if (saving <= least) {
      replan_.reason = fmt::format("a change saves {} {}, less than the {} {} that make it worth while",
                                   significant(saving, 3), unit, significant(least, 3), unit);
    } else {
      replan_.advice = Advice::change;
      replan_.reason = fmt::format("saves {} {}", significant(saving, 3), unit);
    }
  }

  const ReplanInputs& in_;
  MarketSpace market_;
  Job left_;
  std::vector<int> counts_;    ///< of the plan, by candidate
  double mean_usd_per_h_ = 0;  ///< of the plan's machines; 0: one of them is not in the market
  std::vector<ZoneView> avoided_;
  std::optional<SpotView> view_;
  Replan replan_;
};

void add_changes(std::string& text, const char* what, const std::vector<Change>& changes) {
  for (const Change& one : changes)
    text += fmt::format("  {} {}: {}, {} $/h each\n", what, to_string({one.peers}), to_string(one.purchase),
                        significant(one.usd_per_h, 4));
}

/// What the logs do not price; empty: nothing that shows.
std::string estimated_part(const Replan& replan) {
  if (replan.usd_estimated < 1e-3 * replan.usd_spent || replan.usd_estimated == 0) return "";
  return fmt::format(" ({} of it estimated, without a price in the logs)",
                     significant(replan.usd_estimated, 4));
}

/// " by 2.9 peers"; empty: not known how many.
std::string measured_peers_text(double peers) {
  if (peers <= 0) return "";
  const std::string number = significant(peers, 2);
  return fmt::format(" by {} peer{}", number, number == "1" ? "" : "s");
}

std::string line_of(const Option& option) {
  return fmt::format("  {:<11} {}: {} samples/s, {} h and {} $ more, P90 {} h and {} $\n", option.name,
                     to_string(option.peers), significant(option.samples_per_s, 4),
                     significant(option.hours, 3), significant(option.usd, 4),
                     significant(option.hours_spread.p90, 3), significant(option.usd_spread.p90, 4));
}

}  // namespace

std::string_view to_string(Advice advice) {
  switch (advice) {
    case Advice::keep:
      return "keep";
    case Advice::change:
      return "change";
    case Advice::safety_net:
      return "on-demand";
    case Advice::done:
      return "done";
  }
  return "";
}

std::vector<market::Offer> offers_of(const std::vector<PlannedGroup>& plan, const Job& job,
                                     const std::vector<market::Offer>& now) {
  const std::vector<market::Offer> all = all_offers(job, now);
  std::vector<market::Offer> gone;
  for (const PlannedGroup& group : plan) {
    if (std::ranges::any_of(all, [&](const market::Offer& offer) { return matches(group, offer); })) continue;
    const auto several = market::several_gpus(group.gpu);
    market::Offer offer{.provider = group.site.provider,
                        .region = group.site.region,
                        .zone = group.site.zone,
                        .vm_type = group.vm_type,
                        .gpu = several ? several->gpu : group.gpu,
                        .gpus = several         ? several->count
                                : trains(group) ? 1.0
                                                : 0.0,
                        .purchase = group.purchase,
                        .usd_per_h = group.usd_per_h,
                        .source = kNoLongerOffered};
    fill_in(offer);
    gone.push_back(std::move(offer));
  }
  return gone;
}

Result<Replan> replan(const ReplanInputs& inputs) { return Replanner(inputs).run(); }

std::string to_text(const Replan& replan) {
  const RunProgress& at = replan.progress;
  std::string text = fmt::format(
      "{} samples in {} h by {} ({} lost), {} $ spent{}; {} samples left\n", significant(at.samples, 4),
      significant(at.elapsed_h, 3), counted(static_cast<std::uint64_t>(at.peers), "peer"), at.losses,
      significant(replan.usd_spent, 4), estimated_part(replan), significant(replan.samples_left, 4));
  if (at.measured.samples_per_s > 0)
    text += fmt::format("measured {} samples/s{}: machines are {} times as fast as the model says\n",
                        significant(at.measured.samples_per_s, 4), measured_peers_text(at.measured.peers),
                        significant(replan.speed_factor, 3));
  if (replan.hours_left > 0)
    text += fmt::format("{} h to the deadline, {} h {} than the plan's machines need\n",
                        significant(replan.hours_left, 3), significant(std::abs(replan.to_spare_h), 3),
                        replan.to_spare_h < 0 ? "less" : "more");
  if (replan.policy)
    text += fmt::format("spot policy: {}; {}\n", to_string(replan.policy->action), replan.policy->reason);
  for (const std::string& zone : replan.avoided) text += zone + "\n";
  for (const std::string& price : replan.prices) text += price + "\n";
  text += fmt::format("\n{}: {}\n", to_string(replan.advice), replan.reason);
  add_changes(text, "add", replan.add);
  add_changes(text, "drop", replan.drop);
  if (replan.missing > 0 && replan.advice == Advice::keep)
    text +=
        fmt::format("  replace {}\n", counted(static_cast<std::uint64_t>(replan.missing), "missing machine"));
  if (replan.advice == Advice::done) return text;
  text += line_of(replan.current);
  if (replan.advice != Advice::keep)
    text += line_of(replan.proposed) +
            fmt::format(
                "  switching costs {} ${} and {} h until all work\n", significant(replan.switch_usd, 3),
                replan.switch_state_usd > 0
                    ? fmt::format(" ({} $ of it to send the state)", significant(replan.switch_state_usd, 3))
                    : "",
                significant(replan.switch_h, 2));
  return text;
}

}  // namespace tw::plan
