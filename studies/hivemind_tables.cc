// SPDX-License-Identifier: Apache-2.0
#include "studies/hivemind_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/median.h"
#include "base/text/csv.h"
#include "base/text/text_file.h"

namespace tw::studies {
namespace {

constexpr double kBytesPerGbit = 125e6;
constexpr double kEightGpuMicrobatch = 256;  // of the DGX-2; experiments.csv gives the median over peers

Result<CsvTable> read_table(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return text.error();
  return CsvTable::parse(path, text.value(), {});
}

/// 0 where the field is empty.
double number(CsvRow& row, const std::string& name) { return row.number_or(name, 0); }

bool is_clean(const std::string& flags) {
  return flags.empty() || flags == "azure_net_counters_doubled_halved_here";
}

Result<PublishedRun> published_run(CsvRow row) {
  Result<std::vector<plan::PeerGroup>> peers = plan::parse_peers(row.text("peers"));
  if (!peers) return Error{row.text("exp_id") + ": " + peers.error().message};
  PublishedRun run;
  run.id = row.text("exp_id");
  run.group = row.text("group");
  run.domain = row.text("domain");
  run.model = row.text("model");
  run.params_m = number(row, "params_m");
  run.target_batch_size = static_cast<std::uint64_t>(number(row, "tbs"));
  run.microbatch = static_cast<std::uint64_t>(number(row, "micro_batch"));
  run.peers = std::move(peers).value();
  run.clean = is_clean(row.text("flags"));
  run.samples_per_s = number(row, "global_sps");
  run.samples_per_s_std = number(row, "global_sps_std");
  run.local_samples_per_s = number(row, "local_sps");
  run.communication_s = number(row, "comm_s");
  run.granularity = number(row, "granularity_wall");
  if (const Status read = row.status(); !read) return read.error();
  return run;
}

std::map<std::pair<std::string, std::string>, double> baselines(const CsvTable& table) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> all;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CsvRow row = table.row(i);
    const double speed = number(row, "sps_wall");
    if (row.text("used_in_paper") == "yes" && speed > 0) {
      all[{row.text("gpu"), row.text("model")}].push_back(speed);
    }
  }
  std::map<std::pair<std::string, std::string>, double> medians;
  for (const auto& [key, speeds] : all) medians[key] = median(speeds);
  return medians;
}

/// GB/s of the data sheets; of the DGX-2 one of its GPUs, each accumulates by itself.
double memory_gb_per_s(const std::string& gpu) {
  static const std::map<std::string, double> kBandwidth{
      {"T4", 320}, {"A10", 600}, {"RTX8000", 672}, {"DGX2-8xV100", 900}};
  const auto found = kBandwidth.find(gpu);
  return found == kBandwidth.end() ? 0 : found->second;
}

/// Trainable tensors of the model definitions (torchvision, Hugging Face transformers).
int tensor_count(const std::string& model) {
  static const std::map<std::string, int> kTensors{
      {"RN18", 62},         {"RN50", 161},        {"RN152", 467},       {"WRN101", 314},
      {"CONV", 344},        {"RBase", 202},       {"RLrg", 394},        {"RXLM", 394},
      {"WhisperTiny", 167}, {"WhisperBase", 245}, {"WhisperSmall", 479}};
  const auto found = kTensors.find(model);
  return found == kTensors.end() ? 0 : found->second;
}

std::uint64_t microbatch_of(const PublishedRun& run, const std::string& gpu) {
  if (gpu.starts_with("DGX2")) return static_cast<std::uint64_t>(kEightGpuMicrobatch);
  return std::min<std::uint64_t>(run.microbatch, 32);
}

}  // namespace

std::optional<PublishedPath> Reference::path(const market::Site& from, const market::Site& to) const {
  auto found = paths.find({from, to});
  if (found == paths.end()) found = paths.find({to, from});
  if (found == paths.end()) return std::nullopt;
  return found->second;
}

double Reference::nic_bytes_per_s(const market::Site& site) const {
  const auto found = nics_.find(site);
  return found == nics_.end() ? HivemindPeer{}.nic_bytes_per_s : found->second;
}

Result<Reference> read_reference(const std::string& folder) {
  Reference reference;
  const Result<CsvTable> experiments = read_table(folder + "/experiments.csv");
  const Result<CsvTable> machines = read_table(folder + "/baselines.csv");
  const Result<CsvTable> single = read_table(folder + "/network.csv");
  const Result<CsvTable> many = read_table(folder + "/multistream.csv");
  for (const auto* table : {&experiments, &machines, &single, &many}) {
    if (!table->ok()) return table->error();
  }
  for (std::size_t i = 0; i < experiments.value().size(); ++i) {
    Result<PublishedRun> run = published_run(experiments.value().row(i));
    if (!run) return run.error();
    reference.runs.push_back(std::move(run).value());
  }
  reference.baseline = baselines(machines.value());
  for (const auto* table : {&single, &many}) {
    for (std::size_t i = 0; i < table->value().size(); ++i) {
      CsvRow row = table->value().row(i);
      const double bytes_per_s = number(row, "gbit_s") * kBytesPerGbit;
      const Result<market::Site> from = market::parse_site(row.text("src"));
      const Result<market::Site> to = market::parse_site(row.text("dst"));
      if (!from || !to) return (from ? to : from).error();
      if (table == &single) {
        reference.paths[{from.value(), to.value()}] = {bytes_per_s, number(row, "rtt_ms") / 1e3};
      }
      for (const market::Site& end : {from.value(), to.value()}) {
        double& nic = reference.nics_[end];
        nic = std::max(nic, bytes_per_s);
      }
    }
  }
  return reference;
}

std::optional<double> speed_from_baseline(const Reference& reference, const PublishedRun& run,
                                          const std::string& gpu, double passes) {
  const auto found = reference.baseline.find({gpu, run.model});
  const double bandwidth = memory_gb_per_s(gpu) * 1e9;
  if (found == reference.baseline.end() || bandwidth == 0) return std::nullopt;
  const double microbatch = static_cast<double>(microbatch_of(run, gpu));
  const double added_s = passes * run.params_m * 1e6 * 4 / bandwidth;
  return microbatch / (microbatch / found->second + added_s);
}

std::optional<double> speed_from_others(const Reference& reference, const PublishedRun& run,
                                        const std::string& gpu) {
  std::vector<double> speeds;
  for (const PublishedRun& other : reference.runs) {
    const bool same_gpu = std::all_of(other.peers.begin(), other.peers.end(),
                                      [&](const plan::PeerGroup& some) { return some.gpu == gpu; });
    if (!same_gpu || !other.clean || other.id == run.id || other.model != run.model) continue;
    speeds.push_back(other.local_samples_per_s / count_of(other.peers));
  }
  if (speeds.empty()) return std::nullopt;
  return median(std::move(speeds));
}

Result<HivemindRun> hivemind_run(const Reference& reference, const PublishedRun& run,
                                 const HivemindCosts& costs, double passes) {
  HivemindRun simulated;
  std::vector<market::Site> sites;
  for (const plan::PeerGroup& group : run.peers) {
    std::optional<double> speed = speed_from_others(reference, run, group.gpu);
    if (!speed) speed = speed_from_baseline(reference, run, group.gpu, passes);
    if (!speed) return Error{fmt::format("{}: no speed of {} on {}", run.id, run.model, group.gpu)};
    HivemindPeer peer;
    peer.samples_per_s = *speed;
    peer.microbatch = microbatch_of(run, group.gpu);
    peer.nic_bytes_per_s = reference.nic_bytes_per_s(network_site(group));
    peer.host = group.gpu == "T4" ? 1 : costs.fast_host;
    const auto count = static_cast<std::size_t>(group.count);
    simulated.peers.insert(simulated.peers.end(), count, peer);
    sites.insert(sites.end(), count, network_site(group));
  }
  for (const market::Site& from : sites) {
    auto& row = simulated.streams.emplace_back();
    for (const market::Site& to : sites) {
      const std::optional<PublishedPath> path = reference.path(from, to);
      if (path) {
        const double gain = plan::on_premise(from) || plan::on_premise(to) ? costs.on_premises_gain : 1;
        row.push_back({path->bytes_per_s * gain, path->rtt_s, from != to});
      } else if (from == to) {
        row.push_back({reference.nic_bytes_per_s(from), 1e-3, false});
      } else {
        return Error{
            fmt::format("{}: no measurement between {} and {}", run.id, to_string(from), to_string(to))};
      }
    }
  }
  simulated.params_m = run.params_m;
  simulated.tensors = tensor_count(run.model);
  if (simulated.tensors == 0) return Error{fmt::format("{}: {} is an unknown model", run.id, run.model)};
  simulated.target_batch_size = run.target_batch_size;
  simulated.matchmaking_floor_s = run.domain == "ASR" ? 20 : 5;
  return simulated;
}

}  // namespace tw::studies
