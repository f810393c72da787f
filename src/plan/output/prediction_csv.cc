// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "base/result.h"
#include "base/text/csv.h"

namespace tw::plan {
namespace {

/// Empty if there is no number, as for the granularity of a lone peer.
std::string text_of(double number) { return std::isfinite(number) ? fmt::format("{:.6g}", number) : ""; }

void add(std::vector<std::string>& fields, const Estimate& estimate) {
  for (const double number : {estimate.value, estimate.low, estimate.high}) fields.push_back(text_of(number));
}

void add(std::vector<std::string>& fields, const std::optional<Estimate>& priced) {
  if (priced) return add(fields, *priced);
  fields.insert(fields.end(), 3, "");
}

std::vector<std::string> header() {
  std::vector<std::string> fields{"exp_id", "model", "tbs", "peers"};
  for (const char* name :
       {"throughput_sps", "local_sps", "calc_s", "comm_s", "granularity", "sent_mb_per_peer_round",
        "usd_per_h_vm", "usd_per_h_egress", "usd_per_h_data", "usd_per_h_total", "usd_per_million_samples"}) {
    for (const char* end : {"", "_low", "_high"}) fields.push_back(std::string(name) + end);
  }
  fields.push_back("limit");
  fields.push_back("unpriced");
  return fields;
}

/// What a row asks for.
struct Question {
  std::string id;
  std::string model;
  std::string target_batch_size;  ///< as it stands there
  std::string peers;
};

Result<Question> question_in(CsvRow row, Workload& workload) {
  Question question{row.text("exp_id"), row.word("model"), row.text("tbs"), {}};
  workload.target_batch_size = row.number("tbs", {.least = 1});
  question.peers = row.word("peers");
  if (!row.status()) return row.status().error();
  return question;
}

Result<std::string> predict_row(const Question& question, Workload workload, const Models& models,
                                const Prices& prices) {
  const auto& [id, name, target_batch_size, list] = question;
  TW_TRY(auto model, models.find(name));
  TW_TRY(const auto peers, parse_peers(list));
  workload.model = std::move(model);
  TW_TRY(const auto prediction, predict(workload, peers));
  const Prediction& p = prediction;
  const Cost cost = cost_of(workload, peers, p, prices);
  std::vector<std::string> fields{id, name, target_batch_size, list};
  for (const Estimate& estimate :
       {p.throughput_sps, p.local_sps, p.calc_s, p.comm_s, p.granularity, p.sent_mb_per_peer_round})
    add(fields, estimate);
  add(fields, cost.vm_usd_per_h);
  add(fields, cost.egress_usd_per_h);
  add(fields, cost.data_usd_per_h);
  add(fields, cost.total_usd_per_h);
  add(fields, cost.usd_per_million_samples);
  fields.push_back(p.limit);
  fields.push_back(fmt::format("{}", fmt::join(cost.unpriced, "; ")));
  return csv_line(fields);
}

}  // namespace

Result<std::string> predict_rows(const std::string& file, std::string_view text, const Workload& like,
                                 const Models& models, const Prices& prices) {
  TW_TRY(const auto table, CsvTable::parse(file, text, {"model", "tbs", "peers"}));
  std::string answer = csv_line(header());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const CsvRow row = table.row(i);
    Workload workload = like;
    TW_TRY(const auto question, question_in(row, workload));
    const auto line = predict_row(question, std::move(workload), models, prices);
    if (!line) return Error{fmt::format("{}:{}: {}", file, row.line(), line.error().message)};
    answer += line.value();
  }
  return answer;
}

}  // namespace tw::plan
