// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/tree_yaml.h"
#include "market/gpu_name.h"
#include "plan/input/fields_yaml.h"
#include "plan/input/job.h"

namespace tw::plan {
namespace {

std::string provider_name(const std::string& word) { return market::site_at(word, "").provider; }

/// `us-west1`, or `gc:us-west1` with any name of the provider.
std::string region_name(const std::string& word) {
  const std::size_t colon = word.find(':');
  return colon == std::string::npos ? word : provider_name(word.substr(0, colon)) + word.substr(colon);
}

/// Samples to reach `loss`, if the loss falls as floor + scale * samples^-exponent.
double samples_for_loss(YamlFields& fields) {
  const double loss = fields.number("loss", {.least = 0});
  const double floor = fields.number("loss_law.floor", {.least = 0});
  const double scale = fields.number("loss_law.scale", {.least = 1e-12});
  const double exponent = fields.number("loss_law.exponent", {.least = 1e-6, .most = 10});
  if (loss > floor) return std::pow(scale / (loss - floor), 1 / exponent);
  fields.complain("loss", fmt::format("more than loss_law.floor, {:g}, which it never reaches", floor));
  return 0;
}

constexpr CsvRange kBudget{.least = 1e-6, .most = 1e12};

/// More than that no search ends with.
constexpr double kMostSamples = 1e13;

/// The length of the training: samples, or what users count in.
void take_samples(YamlFields& fields, Job& job) {
  const std::array names{"samples", "loss", "work.tokens", "work.images", "work.epochs"};
  const auto given = [&](const char* name) { return fields.has(name); };
  const auto count = std::ranges::count_if(names, given);
  if (count != 1)
    fields.complain(count == 0 ? "samples" : *std::ranges::find_if(names, given),
                    "one of samples, loss with a loss_law, work: {tokens, sequence}, work: {images} and "
                    "work: {epochs, dataset}");
  if (fields.has("loss")) {
    job.samples = samples_for_loss(fields);
  } else if (fields.has("work.tokens")) {
    if (job.sequence == 0) fields.complain("work.sequence", "the tokens of a sample, from 1");
    job.samples = fields.number("work.tokens", {.least = 1}) / std::max(1.0, job.sequence);
  } else if (fields.has("work.epochs")) {
    job.samples = fields.number("work.epochs", {.least = 1e-3}) * fields.number("work.dataset", {.least = 1});
  } else {
    job.samples = fields.number(fields.has("work.images") ? "work.images" : "samples", {.least = 1});
  }
  if (count == 1 && job.samples > kMostSamples)
    fields.complain(*std::ranges::find_if(names, given),
                    fmt::format("up to {:g} samples in all", kMostSamples));
}

constexpr double kMostOfQuota = 1e6, kMostScore = 1e9;

void take_limits(YamlFields& fields, Job& job) {
  const std::string goal = fields.text("goal");
  const std::array goals{Goal::cheapest, Goal::fastest, Goal::pareto};
  const auto named =
      std::find_if(goals.begin(), goals.end(), [&](Goal one) { return goal == to_string(one); });
  if (!goal.empty() && named == goals.end()) fields.complain("goal", "cheapest, fastest or pareto");
  if (named != goals.end()) job.goal = *named;
  job.deadline_h = fields.number_or("deadline_h", 0, {.least = 1e-3, .most = 1e6});
  job.budget_usd = fields.number_or("budget_usd", 0, kBudget);
  job.budget_usd_per_h = fields.number_or("budget_usd_per_h", 0, kBudget);
  job.risk = fields.number_or("risk", 0.1, {.least = 0.005, .most = 0.5});
  job.peers_max = fields.count_or("peers_max", 16, {.least = 1, .most = 256});
  job.offer_max = fields.count_or("offer_max", 0, {.least = 1, .most = 256});
  job.domains_min = fields.count_or("domains_min", 1, {.least = 1, .most = 16});
  job.shocks.per_day = fields.number_or("shocks_per_day", 0, {.least = 0, .most = 100});
  job.shocks.share = fields.number_or("shock_share", job.shocks.share, {.least = 0, .most = 1});
  std::set<std::string> known;
  for (const auto& [name, value] : fields.map("quotas", "NAME: PEERS")) {
    const auto peers = number_in<double>(value, {.high = kMostOfQuota});
    if (!peers || *peers != std::floor(*peers))
      fields.complain("quotas." + name,
                      fmt::format("a whole number of peers, from 0 to {:.0f}", kMostOfQuota));
    if (!known.insert(market_name(name)).second)
      fields.complain("quotas." + name, "one number for " + market_name(name));
    job.quotas.emplace(name, peers.value_or(0));
  }
}

void take_market(YamlFields& fields, Job& job) {
  const auto take = [&](const char* key, std::vector<std::string>& list,
                        std::string (*name_of)(const std::string&)) {
    for (const std::string& word : fields.words(key)) {
      list.push_back(name_of(word));
      if (list.back() != word) job.written.emplace(std::pair(key, list.back()), word);
    }
  };
  take("providers", job.providers, provider_name);
  take("regions", job.regions, region_name);
  take("gpus", job.gpus, market::gpu_name);
  take("exclude", job.exclude, market_name);
  job.purchases = take_purchases(fields);
  if (!fields.has("owned")) return;
  auto owned = parse_peers(fields.text("owned"));
  if (!owned) fields.complain("owned", "groups such as 1xRTX8000@onprem:eu; " + owned.error().message);
  if (!owned) return;
  for (PeerGroup& group : owned.value()) {
    if (group.purchase.value_or(market::Purchase::owned) != market::Purchase::owned)
      fields.complain("owned",
                      fmt::format("your own machines; leave out the word {}", to_string(*group.purchase)));
    group.purchase.reset();
    const auto same = std::ranges::find_if(job.owned, [&](const PeerGroup& other) {
      return other.gpu == group.gpu && other.site == group.site;
    });
    if (same == job.owned.end())
      job.owned.push_back(group);
    else
      same->count += group.count;
  }
}

void take_method_inputs(YamlFields& fields, MethodInputs& inputs) {
  inputs.deepvm_usd_per_h = fields.number_or("deepvm.usd_per_h", 0, kBudget);
  inputs.deepvm_buffers =
      fields.number_or("deepvm.buffers", inputs.deepvm_buffers, {.least = 0, .most = 1e3});
  inputs.deepvm_checkpoint_gib = fields.number_or("deepvm.checkpoint_gib", 0, {.least = 1e-6, .most = 1e6});
  for (const GpuField& one : fields.gpu_map("deepvm.scores", "GPU: SCORE")) {
    const NumberBounds bounds{.high = kMostScore, .above_low = true};
    const auto score = number_in<double>(one.value, bounds);
    if (!score) fields.complain(one.name, number_text(bounds));
    inputs.deepvm_scores[one.gpu] = score.value_or(0);
  }
  const auto rate = [&](const char* name, double& mb_s) {
    mb_s = fields.number_or(name, mb_s, {.least = 1e-3, .most = 1e6});
  };
  rate("spotdnn.worker_mb_s", inputs.spotdnn_worker_mb_s);
  rate("spotdnn.server_mb_s", inputs.spotdnn_server_mb_s);
  rate("spotdnn.pcie_mb_s", inputs.spotdnn_pcie_mb_s);
  inputs.batch_per_gpu = fields.number_or("batch_per_gpu", 0, {.least = 1, .most = 1e9});
}

constexpr std::string_view kBatch = "target_batch_size";

/// Keys that a JOB may leave open, and their names in a run file.
constexpr std::pair<const char*, std::string_view> kOpenKeys[] = {
    {"mode", "mode"}, {"codec", "codec"}, {"tbs", kBatch}, {"fragments", "fragments"}};
constexpr const char* kOpen = "auto";

void take_open(YamlFields& fields, Job& job) {
  for (const auto& [key, name] : kOpenKeys)
    if (const std::string value = fields.text(key); value.empty() || value == kOpen) job.open.insert(key);
  job.open.insert("outer");
  if (job.open.contains("tbs")) job.target_batch_size = kUsualBatch;
}

}  // namespace

std::string_view to_string(Goal goal) {
  switch (goal) {
    case Goal::cheapest:
      return "cheapest";
    case Goal::fastest:
      return "fastest";
    case Goal::pareto:
      return "pareto";
  }
  return "";
}

const std::string& as_written(const Job& job, const std::string& list, const std::string& name) {
  const auto found = job.written.find({list, name});
  return found == job.written.end() ? name : found->second;
}

std::string market_name(const std::string& word) {
  if (const auto purchase = market::parse_purchase(word)) return std::string(to_string(*purchase));
  const std::string gpu = market::gpu_name(word);
  const auto several = market::several_gpus(gpu);
  if (gpu != word || Gpus::built_in().find(several ? several->gpu : gpu)) return gpu;
  return word.find(':') != std::string::npos ? region_name(word) : provider_name(word);
}

Result<Job> read_job(const std::string& file, std::string_view text) {
  TW_TRY(const auto tree, parse_yaml(file, text));
  for (const char* section : {"training", "program", "checkpoint"})
    if (tree.find(section) != nullptr)
      return Error{
          fmt::format("{}: {} is of a run file; expected a JOB.yaml (docs/planner.md), whose key run "
                      "names that file",
                      file, section)};
  TW_TRY(auto fields, YamlFields::read(file, text));
  Job job;
  take_open(fields, job);
  take_work(fields, job, job.open);
  take_samples(fields, job);
  take_limits(fields, job);
  take_market(fields, job);
  take_method_inputs(fields, job.methods);
  job.run = fields.text("run");
  TW_TRY(fields.finish());
  return job;
}

void take_run_file(Job& job, std::string_view text) {
  const auto file = parse_yaml("", text);
  const Tree* training = file ? file.value().find("training") : nullptr;
  if (training == nullptr) return;
  for (const auto& [key, name] : kOpenKeys) {
    const Tree* value = training->find(name);
    if (value == nullptr || !job.open.contains(key)) continue;
    if (take_setting(name, value->word, job)) job.open.erase(key);
    if (name == kBatch) job.leaders_choose_batch = value->word == kOpen;
  }
  if (training->find("outer") != nullptr) job.open.erase("outer");
}

std::vector<std::string> settings_of(const Job& job) {
  std::vector<std::string> settings = {fmt::format("training.codec={}", job.codec),
                                       fmt::format("training.mode={}", job.mode)};
  if (!job.leaders_choose_batch)
    settings.push_back(fmt::format("training.{}={:.0f}", kBatch, job.target_batch_size));
  if (job.mode == "streaming") settings.push_back(fmt::format("training.fragments={:g}", job.parts));
  if (!job.outer.empty()) settings.push_back(fmt::format("training.outer={}", job.outer));
  return settings;
}

Job with_settings(Job job, const std::vector<std::string>& settings) {
  constexpr std::string_view kTraining = "training.";
  for (const std::string_view setting : settings) {
    const std::size_t equals = setting.find('=');
    if (!setting.starts_with(kTraining) || equals == std::string_view::npos) continue;
    take_setting(setting.substr(kTraining.size(), equals - kTraining.size()),
                 std::string(setting.substr(equals + 1)), job);
  }
  job.open.clear();
  return job;
}

}  // namespace tw::plan
