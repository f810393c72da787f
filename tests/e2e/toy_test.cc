// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "e2e/program.h"

namespace tw {
namespace {

using ::testing::HasSubstr;
using world::Phase;

/// Peers of the small program over the C interface.
class Toy : public ProgramTest {
 protected:
  static constexpr Round kRounds = 60;
  static constexpr std::uint64_t kBatch = 256;

  Program start(std::uint64_t id, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"insecure=true", "training.target_batch_size=" + std::to_string(kBatch),
                               "training.rounds=" + std::to_string(kRounds), "training.exact_batches=true"});
    return toy("peer-" + std::to_string(id), words_of(id, more));
  }

  Program join(std::uint64_t id) const { return start(id, {"join=" + address_of(1)}); }

  /// What the program found: the last line that begins with "w".
  static std::vector<double> line_of(const Program& program) {
    const std::string said = program.output();
    const std::size_t at = said.rfind("\nw ") != std::string::npos ? said.rfind("\nw ") + 2 : 1;
    std::istringstream words(said.substr(std::min(at, said.size())));
    std::vector<double> values;
    for (double value = 0; words >> value;) values.push_back(value);
    return values;
  }
};

TEST_F(Toy, three_peers_compute_what_one_computes_though_one_of_them_is_killed) {
  Program alone = start(9, {"--work-ms", "0"});
  ASSERT_EQ(alone.wait(), 0) << alone.output();
  const std::vector<double> expected = line_of(alone);
  ASSERT_EQ(expected.size(), 9U) << alone.output();
  EXPECT_GT(std::abs(expected[7] - expected[1]), 0.1) << "it learned";
  std::filesystem::remove_all(path("out"));

  Program first = start(1, {"wait_for=3"});
  Program second = join(2), third = join(3);
  ASSERT_TRUE(wait_for_round(1, 10)) << first.output();
  second.send(SIGKILL);
  for (Program* program : {&first, &third}) EXPECT_EQ(program->wait(), 0) << program->output();
  for (const Program* program : {&first, &third}) {
    const std::vector<double> found = line_of(*program);
    ASSERT_EQ(found.size(), expected.size()) << program->output();
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
  }
  const monitor::Summary end = summary();
  EXPECT_TRUE(end.identical) << end.difference;
  EXPECT_EQ(end.samples, kRounds * kBatch);
  EXPECT_EQ(end.lost.size(), 1U);
  EXPECT_THAT(first.output(), HasSubstr("lost peer 2"));
}

TEST_F(Toy, exit_codes_say_how_a_peer_ended) {
  Program first = start(1, {"wait_for=2", "training.rounds=100000"});
  Program second = start(2, {"join=" + address_of(1), "training.rounds=100000"});
  ASSERT_TRUE(wait_for_round(2, 3)) << second.output();
  second.send(SIGTERM);
  EXPECT_EQ(second.wait(), kGoesOn) << second.output();
  first.send(SIGINT);
  EXPECT_EQ(first.wait(), 130) << first.output();
  Program wrong = start(3, {"training.ruonds=3"});
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_THAT(wrong.output(), HasSubstr("\"rounds\""));
}

TEST_F(Toy, the_example_in_cpp_trains_on_when_a_peer_is_killed) {
  if (!std::filesystem::exists(TW_EXAMPLE_CPP)) GTEST_SKIP() << "no libtorch";
  if (!std::filesystem::exists("data-cache/mnist")) GTEST_SKIP() << "no MNIST (tools/fetch_data.sh)";
  const auto example = [&](std::uint64_t id, std::vector<std::string> words) {
    words.insert(words.begin(), {"data-cache/mnist", "insecure=true", "out=" + path("out"),
                                 "id=" + std::to_string(id), "training.rounds=60"});
    return Program(std::move(words), {.output = path("example-" + std::to_string(id) + ".txt"),
                                      .separate_errors = {},
                                      .largest_file_bytes = {},
                                      .program = TW_EXAMPLE_CPP});
  };
  setenv("OMP_NUM_THREADS", "1", 1);
  Program first = example(1, {"wait_for=2"});
  Program second = example(2, {"join=" + address_of(1)});
  ASSERT_TRUE(wait_for_round(1, 10)) << first.output();
  second.send(SIGKILL);
  EXPECT_EQ(first.wait(120s), 0) << first.output();
  EXPECT_EQ(last_round(1), 60U);
  EXPECT_THAT(first.output(), testing::ContainsRegex("at the end: (8[5-9]|9[0-9])"));
}

}  // namespace
}  // namespace tw
