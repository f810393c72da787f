// SPDX-License-Identifier: Apache-2.0
#include "plan/input/named_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/text/fields.h"
#include "base/text/text_file.h"
#include "plan/input/fields_yaml.h"
#include "plan/input/model_profile_yaml.h"

namespace tw::plan {
namespace {

/// Bytes of a parameter on the wire, the mean of contributions and means; int8 and int4 carry a scale of 2
/// bytes for 256 and 64 values. The mean of contributions in int4 travels as int8.
constexpr double kInt8Bytes = 1 + 2.0 / 256, kInt4Bytes = 0.5 + 2.0 / 64;
constexpr std::array<std::pair<std::string_view, double>, 5> kCodecBytes{
    {{"fp32", 4}, {"fp16", 2}, {"bf16", 2}, {"int8", kInt8Bytes}, {"int4", (kInt4Bytes + kInt8Bytes) / 2}}};
constexpr CsvRange kFragmentsRange{.least = 1, .most = 64}, kBatchRange{.least = 1, .most = 1e9};

/// What training.mode takes. For the model local costs as much as sync, and streaming as much as delayed
/// with a part of the parameters.
constexpr std::string_view kModes[] = {"sync", "delayed", "local", "streaming"};

bool set_codec(NamedWork& work, const std::string& name) {
  for (const auto& [codec, bytes] : kCodecBytes) {
    if (name != codec) continue;
    work.codec = name;
    work.bytes_per_param = bytes;
    return true;
  }
  return false;
}

bool set_mode(NamedWork& work, const std::string& name) {
  if (std::ranges::find(kModes, name) == std::end(kModes)) return false;
  work.mode = name;
  return true;
}

bool set_fragments(NamedWork& work, double parts) {
  if (parts != std::floor(parts)) return false;
  work.parts = parts;
  return true;
}

void take_data(YamlFields& fields, NamedWork& work) {
  work.samples_a_read = fields.number_or("samples_a_read", 0, {.least = 1, .most = 1e9});
  work.data.named = fields.has("data_store") || fields.has("data_usd_per_gb");
  if (fields.has("data_store") && fields.has("data_usd_per_gb"))
    fields.complain("data_usd_per_gb", "either data_store (with its prices) or data_usd_per_gb");
  work.data.usd_per_gb = fields.number_or("data_usd_per_gb", work.data.usd_per_gb, {.least = 0, .most = 1e6});
  if (!fields.has("data_store")) return;
  const auto store = market::Tariffs::built_in().store(fields.text("data_store"));
  if (!store)
    fields.complain("data_store", store.error().message.substr(store.error().message.find("one of")));
  if (store) work.data.store = store.value();
}

/// `model: {params_m: 124, sequence: 1024}`: a transformer by its size.
void take_model_by_size(YamlFields& fields, NamedWork& work) {
  constexpr double kTensors = 148, kBytesOfToken = 2;  // of GPT-2
  ModelProfile& model = work.own_model;
  model.params_m = fields.number("model.params_m", {.least = 1e-3, .most = 1e7});
  model.sequence = fields.number("model.sequence", {.least = 1, .most = 1e8});
  model.microbatch = fields.number_or("model.microbatch", 8, kBatchRange);
  model.tensors = fields.count_or("model.tensors", kTensors, {.least = 1, .most = 1e7});
  model.data_mb_per_sample = kBytesOfToken * model.sequence / 1e6;
  model.name = fmt::format("{:g}M parameters", model.params_m);
  work.model = model.name;
}

void take_model(YamlFields& fields, NamedWork& work) {
  if (fields.has("model.params_m")) {
    take_model_by_size(fields, work);
  } else {
    work.model = fields.text("model");
    if (work.model.empty())
      fields.complain(
          "model",
          "a name of the catalog, a file of tw profile (model.yaml), or the size of a transformer: "
          "{params_m: 124, sequence: 1024}");
  }
  work.sequence = fields.number_or("work.sequence", work.own_model.sequence, {.least = 1, .most = 1e8});
}

Result<ModelProfile> model_of(const NamedWork& work, const std::string& file) {
  if (!work.own_model.name.empty()) return work.own_model;
  if (!work.model.ends_with(".yaml") && !work.model.ends_with(".yml"))
    return Models::built_in().find(work.model);
  const std::string path = (std::filesystem::path(file).parent_path() / work.model).string();
  const auto text = read_text_file(path, kMostYamlBytes);
  if (!text) return Error{"model " + text.error().message};
  return read_profile(path, text.value());
}

}  // namespace

void take_work(YamlFields& fields, NamedWork& work, const std::set<std::string>& open) {
  take_model(fields, work);
  const auto is_given = [&](const char* name) { return !open.contains(name) && fields.has(name); };
  if (!open.contains("tbs")) work.target_batch_size = fields.count("tbs", kBatchRange);
  if (const std::string name = fields.text("pattern"); !name.empty()) {
    const auto pattern = parse_pattern(name);
    if (pattern) work.pattern = pattern.value();
    if (!pattern) fields.complain("pattern", "one of " + pattern_names());
  }
  if (is_given("codec") && !set_codec(work, fields.text("codec")))
    fields.complain("codec", "fp32, fp16, bf16, int8 or int4");
  work.streams = fields.count_or("streams", work.streams, {.least = 1, .most = 64});
  if (is_given("mode") && !set_mode(work, fields.text("mode")))
    fields.complain("mode", "sync, delayed, local or streaming");
  if (is_given("fragments")) {
    const bool is_whole = set_fragments(work, fields.number("fragments", kFragmentsRange));
    if (!is_whole || (work.mode != "streaming" && !open.contains("mode")))
      fields.complain("fragments", "a whole number from 1 to 64, beside mode: streaming");
  }
  take_data(fields, work);
}

bool take_setting(std::string_view key, const std::string& value, NamedWork& work) {
  if (key == "mode") return set_mode(work, value);
  if (key == "codec") return set_codec(work, value);
  const auto within = [&](const CsvRange& range) {
    return number_in<double>(value, {.low = range.least, .high = range.most});
  };
  if (key == "fragments") {
    const auto parts = within(kFragmentsRange);
    return parts && set_fragments(work, *parts);
  }
  if (key != "target_batch_size") return false;
  const auto samples = within(kBatchRange);
  const bool whole = samples && *samples == std::floor(*samples);
  if (whole) work.target_batch_size = *samples;
  return whole;
}

std::vector<market::Purchase> take_purchases(YamlFields& fields) {
  std::vector<market::Purchase> purchases;
  for (const std::string& word : fields.words("purchase")) {
    const auto purchase = market::parse_purchase(word);
    if (!purchase) fields.complain("purchase", "spot, on-demand or owned, or a list of them");
    if (purchase) purchases.push_back(*purchase);
  }
  return purchases;
}

Result<Workload> workload_of(const NamedWork& work, const std::string& file) {
  auto model = model_of(work, file);
  if (!model) return Error{fmt::format("{}: {}", file, model.error().message)};
  if (work.sequence > 0) model.value().sequence = work.sequence;
  return in_mode_of(work, {.model = std::move(model).value(),
                           .pattern = work.pattern,
                           .streams = work.streams,
                           .samples_a_read = work.samples_a_read});
}

Workload in_mode_of(const NamedWork& work, Workload workload) {
  workload.target_batch_size = work.target_batch_size;
  workload.bytes_per_param = work.bytes_per_param;
  workload.fragments = work.fragments();
  workload.delayed = work.delayed();
  return workload;
}

}  // namespace tw::plan
