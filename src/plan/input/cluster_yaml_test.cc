// SPDX-License-Identifier: Apache-2.0
#include "plan/input/cluster_yaml.h"

#include <gtest/gtest.h>

#include "plan/input/model_profile_yaml.h"
#include "plan/output/prediction_json.h"

namespace tw::plan {
namespace {

std::string cluster_error(const std::string& text) {
  const auto read = read_cluster("c.yaml", text);
  return read ? "" : read.error().message;
}

TEST(ClusterFile, is_read) {
  const auto read = read_cluster(
      "c.yaml",
      "model: RXLM\ntbs: 32768\npeers: [4xT4@gc:us, 2xA10@lambda:us-west]\npattern: hivemind\ncodec: int8\n"
      "streams: 4\nmode: delayed\npurchase: on-demand\ndata_usd_per_gb: 0.02\nusd_per_h:\n  T4@gc:us: 0.2\n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const ClusterFile& c = read.value();
  EXPECT_EQ(c.model, "RXLM");
  EXPECT_EQ(c.peers, parse_peers("4xT4@gc:us;2xA10@lambda:us-west").value());
  EXPECT_EQ(c.pattern, Pattern::hivemind);
  EXPECT_EQ(c.bytes_per_param, 1 + 2.0 / 256);
  EXPECT_EQ(c.streams, 4);
  EXPECT_TRUE(c.delayed());
  EXPECT_EQ(c.purchases, std::vector{market::Purchase::on_demand});
  EXPECT_EQ(c.data.usd_per_gb, 0.02);
  ASSERT_EQ(c.own_prices.size(), 1U);
  EXPECT_EQ(c.own_prices[0].usd_per_h, 0.2);
}

TEST(ClusterFile, names_the_store_that_samples_are_read_from) {
  const auto c = read_cluster("c.yaml",
                              "model: RXLM\ntbs: 32768\npeers: 2xT4@gc:us\n"
                              "data_store: s3:us-east-1\nsamples_a_read: 8\n");
  ASSERT_TRUE(c.ok()) << c.error().message;
  ASSERT_TRUE(c.value().data.store.has_value());
  EXPECT_EQ(c.value().data.store->site, "aws:us-east-1");
  EXPECT_EQ(workload_of(c.value(), "c.yaml").value().samples_a_read, 8);
}

TEST(ClusterFile, names_what_is_wrong) {
  const std::string fine = "model: RXLM\ntbs: 32768\npeers: 2xT4@gc:us\n";
  EXPECT_EQ(cluster_error(fine), "");
  EXPECT_EQ(
      cluster_error("tbs: 1\npeers: 2xT4@gc:us\n"),
      "c.yaml: model is missing: expected a name of the catalog, a file of tw profile (model.yaml), or the "
      "size of a transformer: {params_m: 124, sequence: 1024}");
  EXPECT_EQ(
      cluster_error(fine + "pattern: star\n"),
      "c.yaml:4: pattern star: expected one of tradewind, tradewind-sites, hivemind, ring, parameter-server");
  EXPECT_EQ(cluster_error(fine + "codec: fp8\n"),
            "c.yaml:4: codec fp8: expected fp32, fp16, bf16, int8 or int4");
  EXPECT_EQ(cluster_error(fine + "purchase: [spot, lease]\n"),
            "c.yaml:4: purchase spot;lease: expected spot, on-demand or owned, or a list of them");
  EXPECT_EQ(cluster_error(fine + "streams: 0\n"),
            "c.yaml:4: streams 0: expected a whole number from 1 to 64");
  EXPECT_EQ(cluster_error(fine + "streams: 2.5\n"),
            "c.yaml:4: streams 2.5: expected a whole number from 1 to 64");
  EXPECT_EQ(cluster_error(fine + "mode: fast\n"),
            "c.yaml:4: mode fast: expected sync, delayed, local or streaming");
  EXPECT_EQ(cluster_error(fine + "usd_per_h: {T4: 3}\n"),
            "c.yaml:4: usd_per_h.T4 3: expected a machine such as T4@gcp:us");
  EXPECT_EQ(cluster_error(fine + "usd_per_h: {A10@gc:us: 0.1}\n"),
            "c.yaml:4: usd_per_h.A10@gc:us 0.1: expected a machine of peers");
  EXPECT_EQ(cluster_error(fine + "usd_per_h: {T4@gc:us: 1e300}\n"),
            "c.yaml:4: usd_per_h.T4@gc:us 1e300: expected USD per hour of a machine, from 0 to 1000000");
  EXPECT_EQ(cluster_error(fine + "usd_per_h: {T4@gcp:us-west1: 0.1}\n"), "") << "a region of that area";
  EXPECT_EQ(cluster_error(fine + "usd_per_h: 0.2\n"),
            "c.yaml:4: usd_per_h 0.2: expected a map, MACHINE: USD");
  EXPECT_EQ(cluster_error(fine + "peer: 3\ncodek: fp16\n"),
            "c.yaml:5: codek: unknown key; did you mean \"codec\"?\n"
            "c.yaml:4: peer: unknown key; did you mean \"peers\"?");
  EXPECT_EQ(cluster_error("model: CONV\ntsb: 3\npeers: 1xT4@gcp:us\n"),
            "c.yaml:2: tsb: unknown key; did you mean \"tbs\"?\n"
            "c.yaml: tbs is missing: expected a whole number from 1 to 1000000000");
  EXPECT_EQ(cluster_error(fine + "colour: red\n"),
            "c.yaml:4: colour: unknown key; known here: codec, data_store, data_usd_per_gb, fragments, mode, "
            "model, model.params_m, pattern, peers, purchase, samples_a_read, streams, tbs, usd_per_h, "
            "work.sequence");
  EXPECT_EQ(cluster_error(fine + "data_store: s3\n"),
            "c.yaml:4: data_store s3: expected one of az:REGION, b2, gcs:REGION, r2, s3:REGION");
  EXPECT_EQ(cluster_error(fine + "data_store: b2\ndata_usd_per_gb: 1\n"),
            "c.yaml:5: data_usd_per_gb 1: expected either data_store (with its prices) or data_usd_per_gb");
  EXPECT_EQ(cluster_error(fine + "samples_a_read: 0\n"),
            "c.yaml:4: samples_a_read 0: expected a number from 1 to 1000000000");
  EXPECT_EQ(cluster_error(fine + "codec: fp16\ncodec: fp32\n"), "c.yaml:5: codec: given twice");
  EXPECT_EQ(cluster_error("model: CONV\n<<: {tbs: 1}\n"),
            "c.yaml:2: <<: merge keys are not read; expected the keys themselves");
  EXPECT_TRUE(cluster_error("model: [\n").starts_with("c.yaml:2: "));
  EXPECT_EQ(cluster_error("just words\n"), "c.yaml:1: expected names with values");
}

TEST(ClusterFile, of_aliases_that_stand_for_more_values_than_a_memory_holds_is_refused) {
  const auto level = [](int number, const std::string& value) {
    std::string text = "l" + std::to_string(number) + ": &l" + std::to_string(number) + " {";
    for (char key = 'a'; key < 'k'; ++key) text += std::string(1, key) + ": " + value + ", ";
    return text + "z: 1}\n";
  };
  std::string text = level(0, "1");
  for (int number = 1; number < 12; ++number) text += level(number, "*l" + std::to_string(number - 1));
  EXPECT_NE(cluster_error(text).find("expected at most 10000 values in 100 levels"), std::string::npos)
      << cluster_error(text);
}

TEST(Profile, is_what_was_written) {
  ModelProfile model{
      .name = "net", .params_m = 0.1, .tensors = 8, .microbatch = 64, .data_mb_per_sample = 0.001};
  model.accumulating["cpu"] = {7900, 1.05, "p.yaml"};
  model.file = "p.yaml";
  const auto read = read_profile("p.yaml", write_profile(model));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value(), model);
  EXPECT_EQ(read_profile("p.yaml", "model: a\nparams_m: 1\ntensors: 2\nalone: {cpu: -1}\n").error().message,
            "p.yaml:4: alone.cpu -1: expected samples per second, above 0 and up to 1e12");
}

TEST(PredictionJson, has_the_keys_that_scripts_read) {
  const Workload w{.model = Models::built_in().find("RXLM").value(), .target_batch_size = 32768};
  const auto alone = parse_peers("1xT4@gc:us").value();
  const Prediction p = predict(w, alone).value();
  const std::string json = to_json(p, cost_of(w, alone, p));
  for (const char* key : {"throughput_sps", "local_sps", "calc_s", "comm_s", "sent_mb_per_peer_round",
                          "usd_per_h", "vm", "egress", "data", "total", "usd_per_million_samples", "limit",
                          "reads", "requests_per_s", "mbit_s", "card_mbit_s"})
    EXPECT_NE(json.find('"' + std::string(key) + "\": "), std::string::npos) << key;
  EXPECT_NE(json.find("\"granularity\": null"), std::string::npos);
}

}  // namespace
}  // namespace tw::plan
