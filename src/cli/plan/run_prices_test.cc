// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/run_prices.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launch/test_deployment.h"

namespace tw::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

/// p1 owned, p2 at 0.2 $/h, p3 without a price.
launch::RunState launched_by(const std::string& engine) {
  launch::RunState state{.engine = engine,
                         .plan_file = "/plan.yaml",
                         .job_file = {},
                         .next_number = 4,
                         .deployment = launch::three_peers()};
  const double prices[] = {0, 0.2, 0};
  for (std::size_t i = 0; i < 3; ++i) state.deployment.peers[i].machine.usd_per_h = prices[i];
  return state;
}

const std::vector<PeerId> kStarts = {PeerId{1000}, PeerId{2000}, PeerId{2001}, PeerId{3000}, PeerId{9000}};

TEST(RunPrices, are_those_of_the_machine_whose_number_the_id_has) {
  for (const char* engine : {"ssh", "slurm", "local"})
    EXPECT_THAT(prices_by_state(launched_by(engine), kStarts),
                ElementsAre(Pair(PeerId{1000}, 0), Pair(PeerId{2000}, 0.2), Pair(PeerId{2001}, 0.2)))
        << engine;
}

TEST(RunPrices, are_known_where_ids_tell_nothing_only_if_all_machines_have_the_same) {
  launch::RunState state = launched_by("k8s");
  EXPECT_THAT(prices_by_state(state, kStarts), IsEmpty());
  for (launch::PeerJob& peer : state.deployment.peers) peer.machine.usd_per_h = 0.3;
  EXPECT_THAT(prices_by_state(state, {PeerId{77}}), ElementsAre(Pair(PeerId{77}, 0.3)));
  state.deployment.peers[1].alternatives = {state.deployment.peers[1].machine};
  EXPECT_THAT(prices_by_state(state, {PeerId{77}}), ElementsAre(Pair(PeerId{77}, 0.3)));
  state.deployment.peers[1].alternatives[0].usd_per_h = 0.4;
  EXPECT_THAT(prices_by_state(state, {PeerId{77}}), IsEmpty());
}

class PricesOfFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_ + "/logs"); }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  std::string trouble(const std::string& plan) const {
    const auto prices = prices_for(folder_, write("plan.yaml", plan), {PeerId{1}});
    return prices ? "" : prices.error().message;
  }

  std::string folder_ = testing::TempDir() + "tw-prices-" + std::to_string(getpid());
};

TEST_F(PricesOfFiles, come_from_the_state_beside_the_logs_or_above_them) {
  EXPECT_THAT(prices_for(folder_ + "/logs", "", kStarts).value(), IsEmpty());
  write("state.json", "{\"version\": 3}");
  EXPECT_THAT(prices_for(folder_ + "/logs", "", kStarts).value(), IsEmpty()) << "of another program";
  write("state.json", to_json(launched_by("ssh")));
  for (const char* logs : {"/logs", "/logs/", ""})
    EXPECT_EQ(prices_for(folder_ + logs, "", kStarts).value().size(), 3U) << logs;
  write("state.json", "{\"tradewind_run\": 1");
  const auto damaged = prices_for(folder_ + "/logs", "", kStarts);
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("state.json: damaged"));
}

TEST_F(PricesOfFiles, of_a_plan_are_known_where_it_has_one_price) {
  const std::string one =
      "peers:\n  - {site: \"gcp:us-west1\", gpu: T4, count: 3, purchase: spot, usd_per_h: 0.18}\n";
  EXPECT_THAT(prices_for(folder_, write("plan.yaml", one), {PeerId{1}, PeerId{8}}).value(),
              ElementsAre(Pair(PeerId{1}, 0.18), Pair(PeerId{8}, 0.18)));
  const std::string owned = "  - {site: \"onprem:eu\", gpu: T4, purchase: owned}\n";
  EXPECT_THAT(trouble(one + owned), HasSubstr("plan.yaml: its machines have 2 prices"));
  EXPECT_THAT(trouble("peers:\n  - {site: \"aws:eu\", gpu: T4, purchase: spot}\n"),
              HasSubstr("plan.yaml: T4 at aws:eu has no usd_per_h"));
  EXPECT_THAT(trouble("peers: 3"), HasSubstr("plan.yaml: no list of peers"));
  const auto missing = prices_for(folder_, folder_ + "/none.yaml", {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("none.yaml"));
}

}  // namespace
}  // namespace tw::cli
