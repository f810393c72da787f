// SPDX-License-Identifier: Apache-2.0
#include "plan/input/named_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/text/text_file.h"
#include "plan/input/fields_yaml.h"
#include "plan/input/model_profile_yaml.h"

namespace tw::plan {
namespace {

/// Bytes of a parameter on the wire; int8 and int4 carry a scale of 2 bytes for 256 and 64 values.
constexpr std::array<std::pair<std::string_view, double>, 5> kCodecBytes{
    {{"fp32", 4}, {"fp16", 2}, {"bf16", 2}, {"int8", 1 + 2.0 / 256}, {"int4", 0.5 + 2.0 / 64}}};

/// What training.mode takes. For the model local costs as much as sync, and streaming as much as delayed
/// with a part of the parameters.
constexpr std::string_view kModes[] = {"sync", "delayed", "local", "streaming"};

void take_codec(YamlFields& fields, NamedWork& work) {
  if (fields.has("codec")) work.codec = fields.text("codec");
  for (const auto& [codec, bytes] : kCodecBytes) {
    if (work.codec != codec) continue;
    work.bytes_per_param = bytes;
    return;
  }
  fields.complain("codec", "fp32, fp16, bf16, int8 or int4");
}

void take_data(YamlFields& fields, NamedWork& work) {
  work.samples_a_read = fields.number_or("samples_a_read", 0, {.least = 1, .most = 1e9});
  work.data.named = fields.has("data_store") || fields.has("data_usd_per_gb");
  if (fields.has("data_store") && fields.has("data_usd_per_gb"))
    fields.complain("data_usd_per_gb", "either data_store (with its prices) or data_usd_per_gb");
  work.data.usd_per_gb = fields.number_or("data_usd_per_gb", work.data.usd_per_gb, {.least = 0});
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
  model.microbatch = fields.number_or("model.microbatch", 8, {.least = 1});
  model.tensors = static_cast<int>(fields.number_or("model.tensors", kTensors, {.least = 1, .most = 1e7}));
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

void take_work(YamlFields& fields, NamedWork& work) {
  take_model(fields, work);
  work.target_batch_size = fields.number("tbs", {.least = 1});
  if (const std::string name = fields.text("pattern"); !name.empty()) {
    const auto pattern = parse_pattern(name);
    if (pattern) work.pattern = pattern.value();
    if (!pattern) fields.complain("pattern", "one of " + pattern_names());
  }
  take_codec(fields, work);
  work.streams = static_cast<int>(fields.number_or("streams", work.streams, {.least = 1, .most = 64}));
  if (fields.has("mode")) work.mode = fields.text("mode");
  if (std::ranges::find(kModes, work.mode) == std::end(kModes))
    fields.complain("mode", "sync, delayed, local or streaming");
  take_data(fields, work);
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
  return Workload{.model = std::move(model).value(),
                  .target_batch_size = work.target_batch_size,
                  .pattern = work.pattern,
                  .bytes_per_param = work.bytes_per_param / work.fragments(),
                  .streams = work.streams,
                  .delayed = work.delayed(),
                  .samples_a_read = work.samples_a_read};
}

}  // namespace tw::plan
