// SPDX-License-Identifier: Apache-2.0
#include "plan/model/cost.h"

#include <gtest/gtest.h>

#include "base/text/csv.h"
#include "plan/model/round_time.h"
#include "plan/output/prediction_csv.h"

namespace tw::plan {
namespace {

Workload workload() {
  return {.model = Models::built_in().find("RXLM").value(),
          .target_batch_size = 32768,
          .pattern = Pattern::hivemind};
}

/// A round of 100 s in which each peer sends 3 GB to the others and 1000 samples/s are read.
Prediction round(const std::vector<PeerGroup>& peers) {
  Prediction p;
  p.throughput_sps = within_factor(1000, 1.1);
  p.round_samples = 100'000;
  p.sent_mb = sent_evenly(peers, 3000);
  return p;
}

Cost cost(const std::string& list) {
  const auto peers = parse_peers(list).value();
  return cost_of(workload(), peers, round(peers));
}

TEST(Cost, adds_machines_traffic_and_data) {
  // Each of 2 + 2 peers sends 1 GB to its neighbour (0.01 USD) and 2 GB to the other continent (0.08 USD).
  const Cost c = cost("2xT4@gc:us;2xT4@gc:eu");
  EXPECT_NEAR(c.vm_usd_per_h->value, 4 * 0.18, 1e-9);
  EXPECT_NEAR(c.egress_usd_per_h.value, 36 * 4 * (0.01 + 2 * 0.08), 1e-9);
  EXPECT_NEAR(c.data_usd_per_h.value, 3600 * 1000 * workload().model.data_mb_per_sample / 1e3 * 0.01, 1e-9);
  const double total = c.vm_usd_per_h->value + c.egress_usd_per_h.value + c.data_usd_per_h.value;
  EXPECT_NEAR(c.total_usd_per_h->value, total, 1e-9);
  EXPECT_NEAR(c.usd_per_million_samples->value, total / 3.6, 1e-9);
}

TEST(Cost, of_traffic_is_nothing_where_the_provider_charges_none) {
  EXPECT_EQ(cost("2xA10@lambda:us-west").egress_usd_per_h.value, 0);
}

TEST(Cost, of_a_machine_on_premises_is_nothing_and_an_assumption) {
  const Cost c = cost("1xRTX8000@onprem:eu");
  EXPECT_EQ(c.vm_usd_per_h->value, 0);
  ASSERT_EQ(c.assumptions.size(), 2U);
  EXPECT_EQ(c.assumptions[0], "RTX8000@onprem:eu: your own machine, 0 USD/h; usd_per_h gives it a price");
}

TEST(Cost, of_an_own_machine_is_its_price_whatever_is_bought) {
  const std::vector<market::Offer> offers{{.provider = "onprem",
                                           .region = "eu",
                                           .gpu = "RTX8000",
                                           .gpus = 1,
                                           .purchase = market::Purchase::owned,
                                           .usd_per_h = 0.12}};
  const auto peers = parse_peers("1xRTX8000@onprem:eu").value();
  const Cost c =
      cost_of(workload(), peers, round(peers), {.offers = offers, .purchases = {market::Purchase::spot}});
  EXPECT_EQ(c.vm_usd_per_h->value, 0.12);
}

TEST(Cost, has_no_total_where_a_price_is_not_known_and_names_the_machine) {
  const Cost c = cost("2xT4@gc:us;8xA10@gcp:us");
  EXPECT_FALSE(c.vm_usd_per_h || c.total_usd_per_h || c.usd_per_million_samples);
  ASSERT_EQ(c.unpriced.size(), 1U);
  EXPECT_EQ(c.unpriced[0],
            "A10@gcp:us: no price is known, so there is no total (offered at lambda:us-west); give one: "
            "usd_per_h: {A10@gcp:us: USD}, or --offers FILE");
  EXPECT_GT(c.egress_usd_per_h.value, 0) << "what is known is still said";
}

TEST(Cost, of_a_group_is_that_of_its_own_purchase) {
  EXPECT_NEAR(cost("2xT4@gc:us on-demand;3xT4@gc:us spot").vm_usd_per_h->value, 2 * 0.572 + 3 * 0.18, 1e-9);
  const Cost c = cost("1xA10@lambda:us-west spot");
  EXPECT_FALSE(c.vm_usd_per_h) << "Lambda rents on demand alone";
  EXPECT_TRUE(c.unpriced.at(0).starts_with(
      "A10@lambda:us-west spot: no price is known, so there is no total (offered there as on-demand)"))
      << c.unpriced[0];
  EXPECT_EQ(cost("1xA10@gcp:us owned").vm_usd_per_h->value, 0);
}

TEST(Cost, in_an_area_is_that_of_the_cheapest_region_there) {
  EXPECT_NEAR(cost("8xA10@lambda:us").vm_usd_per_h->value, 8 * 0.6, 1e-9);
  EXPECT_FALSE(cost("8xA10@lambda:eu").vm_usd_per_h);
}

TEST(Cost, of_traffic_without_a_known_tariff_is_an_assumption) {
  const auto said = [](const std::string& list) {
    for (const std::string& assumption : cost(list).assumptions)
      if (assumption.starts_with("egress: no tariff of ")) return assumption;
    return std::string();
  };
  EXPECT_EQ(said("2xT4@runpod:US"), "egress: no tariff of runpod is known, its traffic is counted as free");
  EXPECT_EQ(said("2xT4@onprem:eu;1xA10@lambda:us-west;1xT4@aws:us-east-1"), "");
}

TEST(Cost, of_data_that_a_profile_does_not_name_is_an_assumption) {
  Workload work = workload();
  work.model.data_mb_per_sample = 0;
  const auto peers = parse_peers("1xT4@gc:us").value();
  EXPECT_EQ(cost_of(work, peers, round(peers)).assumptions.back(),
            "data: RXLM names no data_mb_per_sample, so reading samples is counted as free");
}

TEST(Cost, of_data_is_the_tariff_from_the_store_to_each_site_and_its_requests) {
  const auto peers = parse_peers("1xT4@aws:us-east-1;3xT4@gcp:us-central1").value();
  Workload work = workload();
  const double gb = work.model.data_mb_per_sample / 1e3;
  const Prices from_s3{.data = {.store = market::Tariffs::built_in().store("s3:us-east-1").value()}};
  const Cost c = cost_of(work, peers, round(peers), from_s3);
  const double request_usd = 0.4e-6 / work.model.microbatch;
  EXPECT_NEAR(c.data_usd_per_h.value, 3.6e6 * (0.75 * gb * 0.09 + request_usd), 1e-9);
  work.samples_a_read = 1;
  const Cost singly = cost_of(work, peers, round(peers), from_s3);
  EXPECT_NEAR(singly.data_usd_per_h.value, 3.6e6 * (0.75 * gb * 0.09 + 0.4e-6), 1e-9);
  EXPECT_NE(singly.assumptions.back().find("from s3:us-east-1, by the tariff"), std::string::npos);
  EXPECT_NE(singly.assumptions.back().find("0.4 USD a million requests, 1 samples a request"),
            std::string::npos)
      << singly.assumptions.back();
}

TEST(Cost, of_data_weighs_groups_by_the_samples_that_they_read) {
  const auto peers = parse_peers("1xT4@aws:us-east-1;1xT4@gcp:us-central1").value();
  Prediction p = round(peers);
  p.group_sps = {900, 100};
  const Prices from_s3{.data = {.store = market::Tariffs::built_in().store("s3:us-east-1").value()}};
  const double gb = workload().model.data_mb_per_sample / 1e3;
  EXPECT_NEAR(cost_of(workload(), peers, p, from_s3).data_usd_per_h.value,
              3.6e6 * (0.1 * gb * 0.09 + 0.4e-6 / workload().model.microbatch), 1e-9);
}

TEST(Cost, of_data_without_a_store_is_labelled_as_the_default) {
  EXPECT_EQ(cost("1xT4@gc:us").assumptions.back(),
            "data: 0.01 USD/GB (no data_store is named: the default, Backblaze B2's of 2023), requests not "
            "counted");
  const auto peers = parse_peers("1xT4@gc:us").value();
  const Prices from_az{.data = {.store = market::Tariffs::built_in().store("az:eastus").value()}};
  EXPECT_NE(cost_of(workload(), peers, round(peers), from_az)
                .assumptions.back()
                .find("no price of its requests is known"),
            std::string::npos);
}

TEST(Cost, takes_the_purchase_asked_for) {
  const Prices on_demand{.purchases = {market::Purchase::on_demand}};
  const auto peers = parse_peers("2xT4@gc:us").value();
  EXPECT_NEAR(cost_of(workload(), peers, round(peers), on_demand).vm_usd_per_h->value, 2 * 0.572, 1e-9);
}

TEST(Cost, of_traffic_is_the_senders) {
  const auto peers = parse_peers("1xT4@gc:us;1xA10@lambda:us-west").value();
  Prediction p = round(peers);
  p.sent_mb = {{0, 0}, {1000, 0}};
  EXPECT_EQ(cost_of(workload(), peers, p).egress_usd_per_h.value, 0);
  p.sent_mb = {{0, 1000}, {0, 0}};
  EXPECT_GT(cost_of(workload(), peers, p).egress_usd_per_h.value, 0);
}

TEST(Cost, of_a_machine_with_several_gpus_counts_in_part) {
  const auto peers = parse_peers("2xT4@gc:us").value();
  const Prices own{.own = {{.provider = "gcp", .region = "us", .gpu = "T4", .gpus = 4, .usd_per_h = 8}}};
  EXPECT_NEAR(cost_of(workload(), peers, round(peers), own).vm_usd_per_h->value, 4, 1e-9);
}

TEST(Cost, of_a_machine_that_is_one_peer_counts_in_whole) {
  const market::Offer machine{
      .provider = "gcp", .region = "us-west1", .gpu = "T4", .gpus = 4, .usd_per_h = 1.2};
  const Prices prices{.own = {machine}};
  const auto whole = parse_peers("2x4xT4@gcp:us-west1").value(),
             parts = parse_peers("2xT4@gcp:us-west1").value();
  EXPECT_NEAR(cost_of(workload(), whole, round(whole), prices).vm_usd_per_h->value, 2 * 1.2, 1e-9);
  EXPECT_NEAR(cost_of(workload(), parts, round(parts), prices).vm_usd_per_h->value, 2 * 0.3, 1e-9);
}

TEST(Cost, of_a_sample_is_as_uncertain_as_the_speed_by_the_machines_part_alone) {
  const Cost c = cost("2xA10@lambda:us-west");
  const double machines = c.vm_usd_per_h->value / 3.6;
  EXPECT_NEAR(c.usd_per_million_samples->high - c.usd_per_million_samples->value, 0.1 * machines, 1e-9);
  EXPECT_NEAR(c.usd_per_million_samples->value - c.usd_per_million_samples->low, machines * (1 - 1 / 1.1),
              1e-9);
}

TEST(PredictRows, gives_a_row_for_each) {
  const auto text = predict_rows("rows.csv", "exp_id,model,tbs,peers\nNLP A-2,RXLM,32768,2xT4@gc:us\n",
                                 workload(), Models::built_in(), {});
  ASSERT_TRUE(text.ok()) << text.error().message;
  const CsvTable table = CsvTable::parse("answer", text.value(), {"throughput_sps"}).value();
  ASSERT_EQ(table.size(), 1U);
  CsvRow row = table.row(0);
  EXPECT_EQ(row.text("exp_id"), "NLP A-2");
  EXPECT_NEAR(row.number("throughput_sps"), 211.4, 6);
  EXPECT_LT(row.number("throughput_sps_low"), row.number("throughput_sps"));
  EXPECT_GT(row.number("throughput_sps_high"), row.number("throughput_sps"));
  EXPECT_NEAR(row.number("usd_per_h_vm"), 0.36, 1e-9);
  EXPECT_EQ(row.text("limit"), "calculation");
}

TEST(PredictRows, leaves_costs_without_a_price_empty_and_names_the_machine) {
  const auto text = predict_rows("rows.csv", "exp_id,model,tbs,peers\na,CONV,32768,8xA10@gcp:us\n",
                                 workload(), Models::built_in(), {});
  const CsvTable table = CsvTable::parse("answer", text.value(), {}).value();
  CsvRow row = table.row(0);
  EXPECT_TRUE(row.empty("usd_per_h_vm") && row.empty("usd_per_h_total") &&
              row.empty("usd_per_million_samples"));
  EXPECT_FALSE(row.empty("throughput_sps"));
  EXPECT_TRUE(row.text("unpriced").starts_with("A10@gcp:us: no price is known"));
}

TEST(PredictRows, minds_neither_spaces_nor_case) {
  const auto rows = [](const std::string& row) {
    const auto text =
        predict_rows("rows.csv", "exp_id,model,tbs,peers\n" + row, workload(), Models::built_in(), {});
    return CsvTable::parse("answer", text.value(), {}).value();
  };
  const CsvTable odd = rows("a, rxlm ,32768, 2Xt4@GC:US ; 1xA10@lambda:us-west\n");
  const CsvTable plain = rows("a,RXLM,32768,2xT4@gc:us;1xA10@lambda:us-west\n");
  for (const std::string& column : plain.columns()) {
    if (column == "model" || column == "peers") continue;
    EXPECT_EQ(odd.row(0).text(column), plain.row(0).text(column)) << column;
  }
}

TEST(PredictRows, names_the_row_that_is_wrong) {
  const auto error = [](const std::string& row) {
    return predict_rows("rows.csv", "exp_id,model,tbs,peers\n" + row, workload(), Models::built_in(), {})
        .error()
        .message;
  };
  EXPECT_TRUE(error("a,RXLL,1,2xT4@gc:us\n").starts_with("rows.csv:2: RXLL: unknown model"));
  EXPECT_TRUE(error("a,RXLM,1,2xT9@gc:us\n").starts_with("rows.csv:2: T9: unknown GPU"));
  EXPECT_EQ(error("a,RXLM,zero,2xT4@gc:us\n"), "rows.csv:2: tbs zero: expected a number from 1");
  EXPECT_TRUE(error("a,RXLM,1,2xT4\n").starts_with("rows.csv:2: 2xT4: not a group of peers"));
}

}  // namespace
}  // namespace tw::plan
