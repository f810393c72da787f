// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "plan/advise/comparison.h"
#include "plan/output/recommendation_text.h"

namespace tw::plan {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Spread& spread) { return {{"p10", spread.p10}, {"p50", spread.p50}, {"p90", spread.p90}}; }

Json json_of(const Option& option) {
  Json json{{"name", option.name},
            {"peers", to_string(option.peers)},
            {"bought", option.bought},
            {"estimated", option.estimated},
            {"throughput_sps", option.samples_per_s},
            {"hours", option.hours},
            {"usd", option.usd},
            {"usd_per_h", option.usd_per_h},
            {"usd_per_million_samples", option.usd_per_million},
            {"comm_s", option.round.seconds},
            {"machines_taken", option.losses},
            {"hours_spread", json_of(option.hours_spread)},
            {"usd_spread", json_of(option.usd_spread)}};
  if (const ReadRate& reads = option.reads; !reads.peer.empty())
    json["reads"] = {{"requests_per_s", reads.requests_per_s},
                     {"mbit_s", reads.mbit_s},
                     {"card_mbit_s", reads.card_mbit_s},
                     {"peer", reads.peer}};
  if (!option.verdict.empty()) json["why_it_lost"] = option.verdict;
  return json;
}

Json json_of(const std::vector<Option>& options) {
  Json list = Json::array();
  for (const Option& option : options) list.push_back(json_of(option));
  return list;
}

Json mode_of(const Job& job, const Recommendation& plan) {
  Json compared = Json::array();
  for (const ModePoint& point : plan.modes)
    compared.push_back({{"mode", point.mode},
                        {"codec", point.codec},
                        {"round_samples", point.round_samples},
                        {"waits", point.waits()},
                        {"throughput_sps", point.prediction.throughput_sps.value}});
  return {{"codec", job.codec},
          {"round_samples", job.target_batch_size},
          {"settings", settings_of(job)},
          {"reasons", plan.mode_reasons},
          {"compared", std::move(compared)}};
}

}  // namespace

std::string to_json(const Job& job, const Recommendation& plan, const std::string& plan_file) {
  const Json json{{"goal", to_string(job.goal)},
                  {"samples", job.samples},
                  {"mode", job.mode},
                  {"averaging", mode_of(job, plan)},
                  {"method", plan.method.empty() ? Json() : Json(plan.method)},
                  {"misses", plan.misses.empty() ? Json() : Json(plan.misses)},
                  {"chosen", json_of(plan.chosen)},
                  {"others", json_of(plan.others)},
                  {"front", json_of(plan.front)},
                  {"next", next_command(job, plan, plan_file)},
                  {"exact", plan.exact},
                  {"gap", plan.gap},
                  {"checkpoint",
                   {{"write_s", plan.checkpoint_s},
                    {"interval_s", plan.checkpoint_interval_s},
                    {"all_lost_h", plan.all_lost_h},
                    {"share", plan.checkpoint_share},
                    {"young_s", plan.young_s},
                    {"daly_s", plan.daly_s}}},
                  {"assumptions", plan.assumptions}};
  return json.dump(2) + "\n";
}

std::string page_fields(const Job& job, const Recommendation& plan, const std::string& plan_file,
                        const std::string& svg) {
  return R"("plan":)" + to_json(job, plan, plan_file) + R"(,"svg":)" + Json(svg).dump();
}

std::string to_json(const Job& job, const Comparison& comparison) {
  Json methods = Json::array();
  for (const MethodRow& row : comparison.rows) {
    Json json{{"method", to_string(row.method)}, {"has_choice", row.option.has_value()}};
    if (row.option) json.update(json_of(*row.option));
    json["chosen_by"] = row.reason;
    methods.push_back(std::move(json));
  }
  const Json json{{"goal", to_string(job.goal)},
                  {"samples", job.samples},
                  {"mode", job.mode},
                  {"price_limit_usd_per_h", comparison.usd_per_h},
                  {"tradewind", json_of(comparison.ours.chosen)},
                  {"methods", std::move(methods)},
                  {"method_assumptions", comparison.assumptions},
                  {"assumptions", comparison.ours.assumptions}};
  return json.dump(2) + "\n";
}

}  // namespace tw::plan
