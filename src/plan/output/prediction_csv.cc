// SPDX-License-Identifier: Apache-2.0
#include "plan/output/prediction_csv.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/text/csv.h"

namespace tw::plan {
namespace {

/// Empty if there is no number, as for the granularity of a lone peer.
std::string text_of(double number) { return std::isfinite(number) ? fmt::format("{:.6g}", number) : ""; }

void add(std::vector<std::string>& fields, const Estimate& estimate) {
  for (const double number : {estimate.value, estimate.low, estimate.high}) fields.push_back(text_of(number));
}

std::vector<std::string> header() {
  std::vector<std::string> fields{"exp_id", "model", "tbs", "peers"};
  for (const char* name :
       {"throughput_sps", "local_sps", "calc_s", "comm_s", "granularity", "sent_mb_per_peer_round",
        "usd_per_h_vm", "usd_per_h_egress", "usd_per_h_data", "usd_per_h_total", "usd_per_million_samples"}) {
    for (const char* end : {"", "_low", "_high"}) fields.push_back(std::string(name) + end);
  }
  fields.push_back("limit");
  return fields;
}

Result<std::string> predict_row(CsvRow row, Workload workload, const Models& models, const Prices& prices) {
  const std::string name = row.word("model");
  workload.target_batch_size = row.number("tbs", {.least = 1});
  const std::string list = row.word("peers");
  if (!row.status()) return row.status().error();
  auto model = models.find(name);
  if (!model) return model.error();
  const auto peers = parse_peers(list);
  if (!peers) return peers.error();
  workload.model = std::move(model).value();
  const auto prediction = predict(workload, peers.value());
  if (!prediction) return prediction.error();
  const Prediction& p = prediction.value();
  const Cost cost = cost_of(workload, peers.value(), p, prices);
  std::vector<std::string> fields{row.text("exp_id"), name, row.text("tbs"), list};
  for (const Estimate& estimate : {p.throughput_sps, p.local_sps, p.calc_s, p.comm_s, p.granularity,
                                   p.sent_mb_per_peer_round, cost.vm_usd_per_h, cost.egress_usd_per_h,
                                   cost.data_usd_per_h, cost.total_usd_per_h, cost.usd_per_million_samples}) {
    add(fields, estimate);
  }
  fields.push_back(p.limit);
  return csv_line(fields);
}

}  // namespace

Result<std::string> predict_rows(const std::string& file, std::string_view text, const Workload& like,
                                 const Models& models, const Prices& prices) {
  const auto table = CsvTable::parse(file, text, {"model", "tbs", "peers"});
  if (!table) return table.error();
  std::string answer = csv_line(header());
  for (std::size_t i = 0; i < table.value().size(); ++i) {
    const CsvRow row = table.value().row(i);
    const auto line = predict_row(row, like, models, prices);
    if (!line) {
      const std::string where = fmt::format("{}:{}: ", file, row.line());
      const std::string& why = line.error().message;
      return Error{why.starts_with(where) ? why : where + why};
    }
    answer += line.value();
  }
  return answer;
}

}  // namespace tw::plan
