// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/mode_choice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "base/averaging_wait.h"

namespace tw::plan {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const market::Site kHere = market::site_at("onprem", "here");

/// Four peers of 100 samples/s each and 30 M parameters, all on links of one bandwidth.
class Choosing {
 public:
  explicit Choosing(double mbit_s) {
    workload_.model.name = "own";
    workload_.model.params_m = 30;
    workload_.model.tensors = 20;
    workload_.model.microbatch = 16;
    workload_.model.accumulating["cpu"] = {.samples_per_s = 100};
    const double bytes_per_s = mbit_s * 1e6 / 8;
    network_.set(kHere, kHere,
                 {.rtt_s = 1e-3, .stream_bytes_per_s = bytes_per_s, .path_bytes_per_s = bytes_per_s});
    work.target_batch_size = 4000;
  }

  ModeChoice choice(const std::set<std::string>& open, std::size_t from = 0) const {
    return choose_mode({work, workload_, peers_, {.network = network_}, open}, from).value();
  }

  ModePoint best(const std::set<std::string>& open) const { return choice(open).best(); }

  const ModelProfile& model() const { return workload_.model; }

  NamedWork work;

 private:
  Workload workload_;
  std::vector<PeerGroup> peers_ = {{4, "cpu", kHere}};
  market::NetworkProfile network_ = market::NetworkProfile::built_in();
};

const std::set<std::string> kAll = {"mode", "codec", "tbs"};

TEST(ModeChoice, goes_by_what_choices_cost_in_convergence) {
  std::string order;
  for (const ModePoint& one : choices_of({}, kAll))
    order += one.mode + " " + one.codec + (one.is_enlarged ? " more; " : "; ");
  EXPECT_EQ(order,
            "sync fp16; delayed fp16; delayed int8; delayed int4; streaming fp16; streaming int8; "
            "streaming int4; streaming int4 more; ");
  EXPECT_EQ(choices_of({}, {}).size(), 1U);
}

TEST(ModeChoice, takes_the_next_one_only_where_it_gains_more_than_a_twentieth) {
  std::vector<ModePoint> points(4);
  const double speeds[] = {100, 104, 107, 112};
  for (std::size_t i = 0; i < 4; ++i) points[i].prediction.throughput_sps.value = speeds[i];
  EXPECT_EQ(cheapest_of(points).chosen, 2U) << "of 104 and 112 neither gains enough";
  points[2].prediction.throughput_sps.value = 104.9;
  EXPECT_EQ(cheapest_of(points).chosen, 3U);
  EXPECT_EQ(cheapest_of(points, 1).chosen, 3U);
}

TEST(ModeChoice, hides_more_the_thinner_the_links_are) {
  EXPECT_EQ(Choosing(10'000).best(kAll).mode, "sync");
  const ModePoint wide = Choosing(100).best(kAll);
  EXPECT_EQ(wide.mode, "delayed");
  EXPECT_EQ(wide.codec, "fp16");
  const ModePoint thin = Choosing(5).best(kAll);
  EXPECT_EQ(thin.mode, "streaming");
  EXPECT_EQ(thin.codec, "int4");
  EXPECT_TRUE(thin.is_enlarged);
  EXPECT_GT(thin.round_samples, 4000);
  EXPECT_LT(thin.waits(), 0.001);
}

TEST(ModeChoice, keeps_what_is_not_open) {
  Choosing thin(5);
  EXPECT_EQ(thin.best({"codec"}).mode, "sync");
  EXPECT_EQ(thin.best({"mode"}).codec, "fp16");
  EXPECT_EQ(thin.best({"mode", "codec"}).round_samples, 4000);
  Choosing wide(500);
  wide.work.mode = "local";
  const ModePoint local = wide.best({"tbs"});
  EXPECT_EQ(local.mode, "local");
  EXPECT_NEAR(local.waits(), kAcceptedWait, 1e-3) << "peers wait in local";
}

TEST(ModeChoice, has_no_more_samples_than_leaders_may_choose) {
  Choosing thin(0.1);
  EXPECT_EQ(thin.best(kAll).round_samples, kMostBatch);
}

TEST(ModeChoice, is_explained_with_numbers) {
  EXPECT_EQ(reason_of(Choosing(10'000).choice(kAll)),
            "sync waits 2 % of the time; no other choice gains more than 5 %.");
  EXPECT_EQ(reason_of(Choosing(100).choice(kAll)),
            "sync would wait 43 % of the time; delayed hides all of it: 1.7 times the samples/s.");
  EXPECT_THAT(reason_of(Choosing(20).choice({"mode", "codec"})),
              StartsWith("sync would wait 79 % of the time, delayed 73 %; "));
  const ModeChoice open = Choosing(100).choice(kAll), named = Choosing(100).choice({});
  EXPECT_EQ(better_text(named.best(), open.best()), "delayed would hide all of it: 1.7 times the samples/s");
  EXPECT_EQ(better_text(open.best(), open.best()), "");
}

TEST(ModeChoice, says_what_the_mode_was_measured_to_cost_in_loss) {
  const Choosing four(100);
  const auto loss = [&](const std::string& mode, double samples, double run_samples) {
    return loss_of({.mode = mode, .codec = "fp16", .round_samples = samples}, four.work, four.model(), 4,
                   run_samples);
  };
  EXPECT_THAT(loss("delayed", 4000, 1e6).text, HasSubstr("-2 % of sync's"));
  // 640 samples of 4 peers in microbatches of 16 are 10 steps, and a parameter is in each fourth round.
  const ModeLoss streaming = loss("streaming", 640, 1e6);
  EXPECT_THAT(streaming.text, HasSubstr("with 40 steps between averagings of a parameter"));
  EXPECT_THAT(streaming.text,
              HasSubstr("with 32 steps: +14 % of sync's with outer nesterov, +35 % with mean"));
  EXPECT_EQ(streaming.outer, "nesterov");
  EXPECT_EQ(loss("streaming", 640, 63 * 640).outer, "mean") << "fewer than 16 rounds for each fragment";
  EXPECT_EQ(loss("streaming", 6400, 1e9).outer, "mean") << "momentum is worse with 128 steps";
  EXPECT_THAT(loss("local", 640, 1e6).text, HasSubstr("with 8 steps: -9 %"));
  EXPECT_EQ(loss("sync", 640, 1e6).text, "");
}

TEST(ModeChoice, says_the_losses_of_docs_modes) {
  std::ifstream file(std::string(TW_SOURCE_DIR) + "/docs/modes.md");
  const std::regex row(R"(\| `(local|streaming)`, `outer: (\w+)` \|(.*))"), percent(R"([+-]\d+ %)");
  std::map<std::string, std::vector<std::string>> found;  // by mode and outer
  for (std::string line; std::getline(file, line);) {
    std::smatch words;
    if (!std::regex_match(line, words, row)) continue;
    const std::string cells = words[3];
    for (std::sregex_iterator cell(cells.begin(), cells.end(), percent), end; cell != end; ++cell)
      found[words[1].str() + " " + words[2].str()].push_back(cell->str());
  }
  const Choosing four(100);
  for (const std::string mode : {"local", "streaming"}) {
    const double samples_of_a_step = mode == "streaming" ? 16 : 64;
    for (const std::size_t at : {0, 1, 2}) {
      const double steps = std::vector<double>{8, 32, 128}[at];
      const ModeLoss loss =
          loss_of({.mode = mode, .codec = "fp16", .round_samples = steps * samples_of_a_step}, four.work,
                  four.model(), 4, 1e9);
      EXPECT_THAT(loss.text, HasSubstr(fmt::format(
                                 "with {} steps: {} of sync's with outer nesterov, {} with mean", steps,
                                 found[mode + " nesterov"].at(at), found[mode + " mean"].at(at))));
    }
  }
}

}  // namespace
}  // namespace tw::plan
