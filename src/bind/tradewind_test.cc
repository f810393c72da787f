// SPDX-License-Identifier: Apache-2.0
#include "bind/tradewind.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text/text_file.h"
#include "host/system/temporary_folder.h"

namespace tw::bind {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

using Pairs = std::multimap<std::string, std::string>;

/// A program with a model of four values whose gradient is parameters - 1, on the real library.
class Program {
 public:
  explicit Program(Pairs settings) : settings_(std::move(settings)) {
    settings_.insert({"insecure", "true"});
    settings_.insert({"training.target_batch_size", "8"});
    if (!settings_.contains("training.rounds")) settings_.insert({"training.rounds", "5"});
    if (!settings_.contains("checkpoint.folder")) settings_.insert({"checkpoint.folder", "none"});
    settings_.insert({"training.seed", "7"});
  }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  ~Program() {
    tw_close(peer);
    tw_release(memory);
  }

  int open() {
    std::vector<tw_setting> settings;
    for (const auto& [key, value] : settings_) settings.push_back({key.c_str(), value.c_str()});
    const tw_model model{.groups = &group,
                         .group_count = 1,
                         .tensor_sizes = sizes.data(),
                         .tensor_count = sizes.size(),
                         .state_sizes = &extra,
                         .state_count = 1,
                         .clip_norm = 0,
                         .layout = "w(3) b(1)"};
    const tw_calls calls{
        .user = this,
        .settings =
            [](void* user, std::uint64_t round, const char* wanted, tw_group* groups, std::size_t) {
              auto& program = *static_cast<Program*>(user);
              groups->learning_rate = round < 3 ? 0.1 : program.later_rate;
              program.rounds.push_back(round);
              program.agreed.emplace_back(wanted);
              return round == program.fails_in ? 1 : 0;
            },
        .update = nullptr,
        .load = goes_on_from ? [](void* user, std::uint64_t,
                                  int) { return tw_begun(static_cast<Program*>(user)->peer,
                                                         *static_cast<Program*>(user)->goes_on_from); }
                             : decltype(tw_calls::load){},
        .save =
            [](void* user, std::uint32_t) {
              ++static_cast<Program*>(user)->saves;
              return 0;
            },
        .warn = hears ? [](void* user,
                           const char* text) { static_cast<Program*>(user)->warnings.emplace_back(text); }
                      : decltype(tw_calls::warn){},
        .contribution =
            keeps ? [](void* user, std::uint64_t, float* sum,
                       std::uint64_t count) { return static_cast<Program*>(user)->give(sum, count); }
                  : decltype(tw_calls::contribution){}};
    return tw_open(settings.data(), settings.size(), &model, &calls, &peer);
  }

  int start(float value) {
    if (const int opened = peer == nullptr ? open() : int{TW_OK}; opened != TW_OK) return opened;
    const std::vector<float> initial(4, value);
    const std::vector<tw_tensor> tensors = tensors_of(initial);
    if (const int started = tw_start(peer, tensors.data(), tensors.size()); started != TW_OK) return started;
    std::uint64_t count = 0;
    memory = tw_vector(peer, 0, &parameters, &count);
    EXPECT_EQ(4U, count);
    return TW_OK;
  }

  static std::vector<tw_tensor> tensors_of(const std::vector<float>& values) {
    return {{values.data(), 3, TW_FLOAT32, 0}, {values.data() + 3, 1, TW_FLOAT32, 0}};
  }

  /// Trains with batches of this size until the run is over; returns the last status.
  int train(std::uint64_t batch) {
    tw_order order{};
    int status = TW_TIMEOUT;
    while ((status = tw_next(peer, 100, &order)) == TW_GRADIENT || status == TW_TIMEOUT) {
      if (status == TW_TIMEOUT) continue;
      if (on_first_order) std::exchange(on_first_order, nullptr)();
      std::vector<float> gradient(4);
      for (std::size_t i = 0; i < 4; ++i) gradient[i] = parameters[i] - 1;
      const std::uint64_t counted = std::min(batch, order.samples);
      const std::vector<tw_tensor> tensors = tensors_of(gradient);
      const std::string wants = order.round == 3 ? "rate" : "";
      const tw_gradient handed{keeps ? nullptr : tensors.data(),
                               2,
                               static_cast<double>(counted),
                               counted,
                               batch,
                               0,
                               wants.c_str()};
      if (tw_done(peer, &handed) != TW_OK) continue;
      samples += counted;
      for (std::size_t i = 0; i < 4; ++i) kept[i] += static_cast<float>(counted) * gradient[i];
    }
    return status;
  }

  /// tw_calls.contribution
  int give(float* sum, std::uint64_t count) {
    EXPECT_EQ(4U, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += std::exchange(kept[i], 0.0F);
    return 0;
  }

  std::string view() const {
    char* const text = tw_view(peer);
    const std::string json = text != nullptr ? text : "";
    tw_free(text);
    return json;
  }

  std::string events() const {
    char* const text = tw_events(peer);
    const std::string lines = text != nullptr ? text : "";
    tw_free(text);
    return lines;
  }

  std::string address() const {
    const std::string key = "\"address\":\"";
    const std::string text = view();
    const std::size_t at = text.find(key) + key.size();
    return text.substr(at, text.find('"', at) - at);
  }

  std::vector<float> values() const { return {parameters, parameters + 4}; }

  tw_peer* peer = nullptr;
  tw_memory* memory = nullptr;
  float* parameters = nullptr;
  tw_group group{.tensors = 2, .learning_rate = 1, .kind = TW_SGD};
  std::vector<std::uint64_t> sizes{3, 1};
  std::uint64_t extra = 2;
  std::uint64_t samples = 0;
  std::function<void()> on_first_order;
  std::vector<std::uint64_t> rounds;
  std::vector<std::string> agreed;  ///< settings of each round's record
  int saves = 0;                    ///< calls of save
  double later_rate = 0.1;          ///< from round 3 on
  std::uint64_t fails_in = 0;       ///< round whose settings callback fails; 0: none
  bool keeps = false;               ///< its gradients, until the engine asks for their sum
  std::vector<float> kept{0, 0, 0, 0};
  std::optional<std::uint64_t> goes_on_from;  ///< rounds before, known with the state
  bool hears = true;                          ///< has a callback for warnings
  std::vector<std::string> warnings;

 private:
  Pairs settings_;
};

std::string error() { return tw_last_error(); }

TEST(Tradewind, trains_a_programs_model_by_the_mean_of_its_gradients) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  EXPECT_EQ(TW_FINISHED, program.train(3)) << error();
  EXPECT_EQ(TW_FINISHED, program.train(3)) << "again and again";
  EXPECT_EQ(40U, program.samples) << "five rounds of eight";
  EXPECT_THAT(program.rounds, ::testing::ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(program.agreed, ::testing::ElementsAre("", "", "rate", "", ""));
  float expected = 3;
  for (int round = 0; round < 5; ++round) expected -= 0.1F * (expected - 1);
  EXPECT_THAT(program.values(), Each(::testing::FloatNear(expected, 1e-5F)));
  EXPECT_THAT(program.view(), HasSubstr("\"round\":5"));
}

TEST(Tradewind, has_as_many_rounds_as_are_left_of_those_that_count_from_the_beginning) {
  Program alone(Pairs{{"begun", "4"}});
  ASSERT_EQ(TW_OK, alone.start(4)) << tw_last_error();
  EXPECT_EQ(TW_FINISHED, alone.train(8));
  EXPECT_THAT(alone.rounds, ::testing::ElementsAre(1));
  Program program(Pairs{{"begun", "4"}});
  program.goes_on_from = 2;  // what its state turned out to be
  ASSERT_EQ(TW_OK, program.start(4)) << tw_last_error();
  EXPECT_EQ(TW_FINISHED, program.train(8));
  EXPECT_THAT(program.rounds, ::testing::ElementsAre(1, 2, 3));
}

TEST(Tradewind, gives_a_program_whose_run_is_complete_its_parameters_and_ends) {
  const host::TemporaryFolder folder;
  Program first(Pairs{{"listen", "127.0.0.1:0"}, {"checkpoint.folder", folder.path()}});
  ASSERT_EQ(TW_OK, first.start(3)) << error();
  ASSERT_EQ(TW_FINISHED, first.train(8)) << error();
  const Pairs again{{"listen", "127.0.0.1:0"}, {"checkpoint.folder", folder.path()}};
  const Pairs joiner{{"join", "127.0.0.1:1"}, {"checkpoint.folder", folder.path()}};
  for (const Pairs& settings : {again, joiner}) {
    Program late(settings);
    ASSERT_EQ(TW_OK, late.start(7)) << error();
    EXPECT_EQ(TW_FINISHED, late.train(8)) << error();
    EXPECT_EQ(late.values(), first.values());
    EXPECT_EQ(late.samples, 0U);
    const std::string view = late.view();
    EXPECT_THAT(view, HasSubstr("\"round\":5"));
    EXPECT_THAT(view, HasSubstr("\"ending\":\"complete\""));
    EXPECT_THAT(view,
                HasSubstr("the run is complete: round 5, checkpoint " + folder.path() + "/round-000005-"));
    EXPECT_THAT(view, HasSubstr("; raise rounds to go on"));
  }
}

TEST(Tradewind, shows_how_a_peer_has_ended_that_its_program_closes) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  EXPECT_THAT(program.view(), HasSubstr("\"ending\":\"\""));
  ASSERT_EQ(TW_OK, tw_leave(program.peer, 2));
  EXPECT_THAT(program.view(), HasSubstr("\"ending\":\"left\""));
}

TEST(Tradewind, saves_what_no_checkpoint_has_where_the_last_peer_of_a_run_closes) {
  const host::TemporaryFolder folder;
  const Pairs settings{{"listen", "127.0.0.1:0"},
                       {"no_rejoin", "true"},
                       {"training.rounds", "1000"},
                       {"checkpoint.folder", folder.path()}};
  const auto last_of = [](Program& program, int orders) {
    tw_order order{};
    const std::vector<float> gradient(4, 1.0F);
    const std::vector<tw_tensor> tensors = Program::tensors_of(gradient);
    while (orders > 0) {
      if (tw_next(program.peer, 100, &order) != TW_GRADIENT) continue;
      const tw_gradient handed{tensors.data(), 2, 1, order.samples, order.samples, 0, nullptr};
      if (tw_done(program.peer, &handed) == TW_OK) --orders;
    }
    return order.round;
  };
  std::uint64_t last = 0;
  {
    Program program(settings);
    ASSERT_EQ(TW_OK, program.start(3)) << error();
    last = last_of(program, 40);
    ASSERT_GT(last, 2U);
    ASSERT_EQ(TW_OK, tw_leave(program.peer, 3));
    tw_order order{};
    int status = TW_TIMEOUT;
    while ((status = tw_next(program.peer, 100, &order)) != TW_FINISHED)
      if (status == TW_GRADIENT) tw_drop(program.peer);
  }
  Program again(settings);
  ASSERT_EQ(TW_OK, again.start(7)) << error();
  EXPECT_GE(last_of(again, 1), last) << "only the round under way is lost";
}

TEST(Tradewind, ends_the_run_that_its_program_ends) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}, {"training.rounds", "1000"}});
  EXPECT_EQ(TW_MISUSE, tw_end_run(nullptr));
  ASSERT_EQ(TW_OK, program.open());
  EXPECT_EQ(TW_MISUSE, tw_end_run(program.peer));
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  program.on_first_order = [&] { EXPECT_EQ(TW_OK, tw_end_run(program.peer)); };
  EXPECT_EQ(TW_FINISHED, program.train(8)) << error();
  EXPECT_THAT(program.view(), HasSubstr("\"ending\":\"complete\""));
  EXPECT_THAT(program.view(), HasSubstr("the run is over: this program ended it in round"));
}

TEST(Tradewind, serves_a_forked_child_unless_a_peer_was_open) {
  const auto opened_in_a_child = [] {
    const pid_t child = ::fork();
    if (child == 0) {
      tw_after_fork();
      ::_exit(-Program(Pairs{}).open());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return -WEXITSTATUS(status);
  };
  {
    Program open(Pairs{});
    ASSERT_EQ(TW_OK, open.open()) << error();
    EXPECT_EQ(TW_MISUSE, opened_in_a_child());
  }
  EXPECT_EQ(TW_OK, opened_in_a_child());
}

TEST(Tradewind, counts_the_rounds_before_a_checkpoint_where_the_run_is_to_have_others) {
  const host::TemporaryFolder folder;
  const auto trained = [&](const char* rounds) {
    Program program(Pairs{{"listen", "127.0.0.1:0"},
                          {"no_rejoin", "true"},
                          {"begun", "4"},
                          {"training.rounds", rounds},
                          {"checkpoint.folder", folder.path()}});
    EXPECT_EQ(TW_OK, program.start(3)) << error();
    EXPECT_EQ(TW_FINISHED, program.train(8)) << error();
    return program.samples;
  };
  EXPECT_EQ(trained("7"), 24U) << "three rounds";
  EXPECT_EQ(trained("6"), 0U) << "there were more";
  EXPECT_EQ(trained("7"), 0U);
  EXPECT_EQ(trained("8"), 8U) << "one more";
}

TEST(Tradewind, asks_a_program_that_keeps_its_gradients_for_their_sum) {
  for (const char* mode : {"sync", "delayed"}) {
    Program keeps(Pairs{{"listen", "127.0.0.1:0"}, {"training.mode", mode}}),
        hands_in(Pairs{{"listen", "127.0.0.1:0"}, {"training.mode", mode}});
    keeps.keeps = true;
    ASSERT_EQ(TW_OK, keeps.start(3)) << error();
    ASSERT_EQ(TW_OK, hands_in.start(3)) << error();
    EXPECT_EQ(TW_FINISHED, keeps.train(3)) << error();
    EXPECT_EQ(TW_FINISHED, hands_in.train(3)) << error();
    EXPECT_EQ(keeps.values(), hands_in.values()) << mode;
    EXPECT_THAT(keeps.kept, Each(0.0F));
  }
}

TEST(Tradewind, refuses_gradients_beside_a_callback_that_has_them_and_local_modes_without_it) {
  Program keeps(Pairs{{"listen", "127.0.0.1:0"}});
  keeps.keeps = true;
  ASSERT_EQ(TW_OK, keeps.start(3)) << error();
  tw_order order{};
  ASSERT_EQ(TW_GRADIENT, tw_next(keeps.peer, 20'000, &order));
  const std::vector<float> gradient(4);
  const auto tensors = Program::tensors_of(gradient);
  const tw_gradient handed{tensors.data(), 2, 1, 1, 1, 0, nullptr};
  EXPECT_EQ(TW_MISUSE, tw_done(keeps.peer, &handed));
  EXPECT_THAT(error(), HasSubstr("tw_calls.contribution has them"));
  Program local(Pairs{{"training.mode", "local"}});
  EXPECT_EQ(TW_MISUSE, local.open());
  EXPECT_THAT(error(), HasSubstr("training.mode local: it needs tw_calls.contribution"));
}

TEST(Tradewind, counts_what_a_program_kept_before_it_became_busy) {
  Program busy(Pairs{{"listen", "127.0.0.1:0"}});
  busy.keeps = true;
  ASSERT_EQ(TW_OK, busy.start(3)) << error();
  tw_order order{};
  ASSERT_EQ(TW_GRADIENT, tw_next(busy.peer, 20'000, &order));
  const tw_gradient handed{nullptr, 0, 0, 1, 1, 0, nullptr};
  ASSERT_EQ(TW_OK, tw_done(busy.peer, &handed));
  busy.kept = {1, 1, 1, 1};
  ASSERT_EQ(TW_OK, tw_busy(busy.peer, "evaluating"));
  EXPECT_THAT(busy.kept, Each(0.0F));
}

TEST(Tradewind, serves_the_state_of_a_program_that_is_busy) {
  Program founder(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, founder.start(3)) << error();
  tw_order order{};
  ASSERT_EQ(TW_GRADIENT, tw_next(founder.peer, 20'000, &order));
  const int saves = founder.saves;
  ASSERT_EQ(TW_OK, tw_busy(founder.peer, "evaluating"));
  EXPECT_EQ(saves + 1, founder.saves);
  Program joiner(Pairs{{"join", founder.address()}});
  ASSERT_EQ(TW_OK, joiner.start(-5)) << error();
  EXPECT_EQ(TW_GRADIENT, tw_next(joiner.peer, 20'000, &order)) << "the founder's thread never comes";
  EXPECT_THAT(joiner.values(), Each(3.0F));
}

TEST(Tradewind, trains_two_programs_alike_though_they_begin_with_other_parameters) {
  Program founder(Pairs{{"listen", "127.0.0.1:0"}, {"wait_for", "2"}});
  ASSERT_EQ(TW_OK, founder.start(3)) << error();
  const std::string address = founder.address();
  std::vector<float> joined;
  std::uint64_t done_by_other = 0;
  std::thread other([&] {
    Program joiner(Pairs{{"join", address}});
    ASSERT_EQ(TW_OK, joiner.start(-5)) << error();
    EXPECT_EQ(TW_FINISHED, joiner.train(2)) << error();
    joined = joiner.values();
    done_by_other = joiner.samples;
  });
  EXPECT_EQ(TW_FINISHED, founder.train(4)) << error();
  other.join();
  EXPECT_EQ(founder.values(), joined);
  EXPECT_GE(founder.samples + done_by_other, 40U);
}

/// Checkpoints of each round go into a folder that becomes a file.
class ALostFolder {
 public:
  ALostFolder() { std::filesystem::remove_all(path_); }

  ALostFolder(const ALostFolder&) = delete;
  ALostFolder& operator=(const ALostFolder&) = delete;

  ~ALostFolder() { std::filesystem::remove_all(path_); }

  Pairs settings() const {
    return {{"listen", "127.0.0.1:0"}, {"checkpoint.folder", path_}, {"checkpoint.every", "1"}};
  }

  void lose() const {
    std::filesystem::remove_all(path_);
    std::ofstream(path_) << "a file";
  }

 private:
  std::string path_ = ::testing::TempDir() + "tw-lost-folder";
};

TEST(Tradewind, tells_the_program_that_checkpoints_cannot_be_written_and_that_the_last_is_missing) {
  const ALostFolder folder;
  Program program(folder.settings());
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  program.on_first_order = [&] { folder.lose(); };  // the engine has read it by then
  EXPECT_EQ(TW_FINISHED, program.train(8)) << error();
  ASSERT_EQ(program.warnings.size(), 2U);
  EXPECT_THAT(program.warnings[0], HasSubstr("round 1: no checkpoint, training goes on: "));
  EXPECT_THAT(program.warnings[1], HasSubstr("round 5: no checkpoint: "));
  EXPECT_THAT(program.view(), HasSubstr("tw-lost-folder"));
  EXPECT_THAT(program.events(), HasSubstr(R"("phase":"warn")"));
}

TEST(Tradewind, writes_warnings_to_stderr_for_a_program_that_does_not_listen) {
  const ALostFolder folder;
  Program program(folder.settings());
  program.hears = false;
  testing::internal::CaptureStderr();
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  program.on_first_order = [&] { folder.lose(); };  // the engine has read it by then
  EXPECT_EQ(TW_FINISHED, program.train(8)) << error();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              ::testing::StartsWith("tradewind: round 1: no checkpoint, training goes on: "));
}

TEST(Tradewind, tells_which_samples_come_after_those_of_the_order) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}, {"grain", "2"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  const tw_dataset data{100, 1, 0};
  std::size_t none = 16;
  std::vector<std::int64_t> ahead(16);
  EXPECT_EQ(TW_OK, tw_ahead(program.peer, &data, ahead.data(), &none));
  EXPECT_EQ(0U, none) << "no order is in hand";
  const std::vector<float> zeros(4, 0.0F);
  const std::vector<tw_tensor> tensors = Program::tensors_of(zeros);
  std::vector<std::int64_t> came;
  std::map<std::size_t, std::vector<std::int64_t>> told;  // by how many came before
  tw_order order{};
  while (tw_next(program.peer, 1000, &order) == TW_GRADIENT) {
    ASSERT_GE(2U, order.samples);
    std::vector<std::int64_t> now(order.samples);
    ASSERT_EQ(TW_OK, tw_samples(program.peer, &data, now.data(), now.size())) << error();
    came.insert(came.end(), now.begin(), now.end());
    std::size_t count = ahead.size();
    ASSERT_EQ(TW_OK, tw_ahead(program.peer, &data, ahead.data(), &count)) << error();
    told[came.size()].assign(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>(count));
    const tw_gradient handed{tensors.data(), 2, 1, now.size(), 2, 0, nullptr};
    ASSERT_EQ(TW_OK, tw_done(program.peer, &handed)) << error();
  }
  EXPECT_EQ(2U, told[2].size()) << "of a lease of four";
  for (const auto& [before, samples] : told) {
    for (std::size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(came.at(before + i), samples[i]) << before;
  }
}

TEST(Tradewind, warns_once_of_samples_of_another_data_set_in_the_same_run) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  tw_order order{};
  ASSERT_EQ(TW_GRADIENT, tw_next(program.peer, 1000, &order));
  std::int64_t index = -1;
  std::size_t count = 1;
  const tw_dataset data{100, 1, 0}, later{100, 1, 8}, smaller{50, 1, 8}, blocks{100, 4, 8};
  ASSERT_EQ(TW_OK, tw_samples(program.peer, &data, &index, 1)) << error();
  EXPECT_EQ(TW_OK, tw_samples(program.peer, &later, &index, 1)) << "the order of the state that it took";
  EXPECT_EQ(TW_OK, tw_samples(program.peer, &smaller, &index, 1)) << error();
  EXPECT_EQ(TW_OK, tw_ahead(program.peer, &blocks, &index, &count)) << error();
  EXPECT_EQ(TW_OK, tw_samples(program.peer, &data, &index, 1)) << error();
  EXPECT_EQ(TW_FINISHED, program.train(8)) << error();
  ASSERT_EQ(program.warnings.size(), 1U);
  EXPECT_THAT(program.warnings[0],
              ::testing::StartsWith("a data set of 50 samples, while the samples so far were of one of 100 "
                                    "samples: in the epoch under way samples may come twice or not at all"));
}

TEST(Tradewind, logs_how_long_the_program_waited_for_data) {
  const host::TemporaryFolder folder;
  Program program(
      Pairs{{"listen", "127.0.0.1:0"}, {"grain", "2"}, {"id", "1"}, {"out", folder.path()}, {"gpu", "T4"}});
  ASSERT_EQ(TW_OK, program.open());
  EXPECT_EQ(TW_MISUSE, tw_waited(program.peer, 1)) << "it has not started";
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  EXPECT_EQ(TW_MISUSE, tw_waited(program.peer, -1));
  EXPECT_EQ("waited for data for -1 s, expected a number of at least 0", error());
  const std::vector<float> zeros(4, 0.0F);
  const std::vector<tw_tensor> tensors = Program::tensors_of(zeros);
  tw_order order{};
  while (tw_next(program.peer, 1000, &order) == TW_GRADIENT) {
    EXPECT_EQ(TW_OK, tw_waited(program.peer, 1e-9));
    EXPECT_EQ(TW_OK, tw_waited(program.peer, 1e-9)) << "calls add up";
    const tw_gradient handed{tensors.data(), 2, 1, order.samples, 2, 0, nullptr};
    ASSERT_EQ(TW_OK, tw_done(program.peer, &handed)) << error();
  }
  const Result<std::string> log = read_text_file(folder.path() + "/events-1.jsonl");
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(log.value(), ::testing::AllOf(HasSubstr("\"data_s\":"), HasSubstr(", T4\"")));
  EXPECT_EQ(std::string::npos, log.value().find("\"data_s\":0.0,")) << log.value();
}

TEST(Tradewind, logs_what_the_program_measured_during_the_run_and_after_it) {
  const host::TemporaryFolder folder;
  Program program(Pairs{{"listen", "127.0.0.1:0"}, {"id", "1"}, {"out", folder.path()}});
  ASSERT_EQ(TW_OK, program.open());
  EXPECT_EQ(TW_MISUSE, tw_evaluated(program.peer, 1, "accuracy", 0.5)) << "it has not started";
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  EXPECT_EQ(TW_MISUSE, tw_evaluated(program.peer, 1, "", 0.5));
  EXPECT_EQ("an evaluation with a name of 0 bytes, expected 1 to 64", error());
  EXPECT_EQ(TW_MISUSE, tw_evaluated(program.peer, 1, "accuracy", std::nan("")));
  EXPECT_EQ("the evaluation \"accuracy\" is nan, expected a finite number", error());
  EXPECT_EQ(TW_MISUSE, tw_evaluated(program.peer, 1000, "accuracy", 0.5));
  EXPECT_THAT(error(), HasSubstr("an evaluation after round 1000, while the run has "));
  EXPECT_EQ(TW_MISUSE, tw_evaluated(program.peer, 1, "acc\xff", 0.5));
  EXPECT_EQ("an evaluation with the name \"acc\\xff\", expected plain text in UTF-8", error());
  ASSERT_EQ(TW_OK, tw_evaluated(program.peer, 0, "accuracy", 0.125));
  program.train(4);
  ASSERT_EQ(TW_OK, tw_evaluated(program.peer, 3, "accuracy", 0.75));
  tw_close(std::exchange(program.peer, nullptr));
  const Result<std::string> log = read_text_file(folder.path() + "/events-1.jsonl");
  ASSERT_TRUE(log.ok());
  EXPECT_NE(std::string::npos, log.value().find("\"value\":0.125")) << log.value();
  EXPECT_NE(std::string::npos, log.value().find("\"value\":0.75")) << log.value();
}

TEST(Tradewind, gives_a_whole_lease_to_a_program_that_has_not_said_how_much_it_does_at_once) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}, {"grain", "0"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  tw_order order{};
  ASSERT_EQ(TW_GRADIENT, tw_next(program.peer, 10000, &order)) << error();
  EXPECT_LE(4U, order.samples) << "half of what the only peer gets";
  const std::vector<float> zeros(4, 0.0F);
  const std::vector<tw_tensor> tensors = Program::tensors_of(zeros);
  const tw_gradient handed{tensors.data(), 2, 1, 1, 2, 0};
  ASSERT_EQ(TW_OK, tw_done(program.peer, &handed)) << error();
  ASSERT_EQ(TW_GRADIENT, tw_next(program.peer, 10000, &order)) << error();
  EXPECT_EQ(2U, order.samples) << "as many as it had";
}

TEST(Tradewind, refuses_a_gradient_that_is_not_finite_and_takes_the_next_one) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  tw_order order{};
  ASSERT_EQ(TW_GRADIENT, tw_next(program.peer, 10000, &order)) << error();
  std::vector<float> values(4, 0.0F);
  const std::vector<tw_tensor> tensors = Program::tensors_of(values);
  const tw_gradient handed{tensors.data(), 2, 1, 1, 1, 0};
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
    values[3] = bad;
    EXPECT_EQ(TW_MISUSE, tw_done(program.peer, &handed));
    EXPECT_THAT(error(), HasSubstr("the gradient of tensor 1 is not finite"));
  }
  values[3] = std::numeric_limits<float>::max();
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    tw_gradient weighted = handed;
    weighted.weight = bad;
    EXPECT_EQ(TW_MISUSE, tw_done(program.peer, &weighted));
    EXPECT_EQ(fmt::format("a gradient with the weight {}, expected a finite float32", bad), error());
  }
  EXPECT_EQ(TW_OK, tw_done(program.peer, &handed)) << error();
}

TEST(Tradewind, gives_the_number_of_a_closed_stdout_to_nothing_of_its_own) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);
    const bool opened = Program(Pairs{}).open() == TW_OK;
    _exit(opened && fcntl(STDOUT_FILENO, F_GETFD) >= 0 && write(STDOUT_FILENO, "x", 1) < 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Tradewind, refuses_initial_parameters_that_are_not_finite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Program program(Pairs{{"listen", "127.0.0.1:0"}});
    EXPECT_EQ(TW_MISUSE, program.start(bad));
    EXPECT_EQ("the initial value of tensor 0 is not finite", error());
    EXPECT_EQ(TW_OK, program.start(3)) << error();
  }
}

TEST(Tradewind, keeps_a_vector_as_long_as_it_is_looked_at) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  ASSERT_EQ(TW_FINISHED, program.train(8)) << error();
  tw_close(std::exchange(program.peer, nullptr));
  EXPECT_LT(program.parameters[0], 3);
}

TEST(Tradewind, ends_with_a_callback_that_failed) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  program.fails_in = 3;
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  EXPECT_EQ(TW_CALLBACK, program.train(8));
  EXPECT_EQ("a callback of the program failed", error());
  EXPECT_THAT(program.rounds, ::testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(TW_CALLBACK, program.train(8)) << "again and again";
}

TEST(Tradewind, refuses_a_rate_that_the_program_gives_a_round_before_it_reaches_the_parameters) {
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
    Program program(Pairs{{"listen", "127.0.0.1:0"}});
    program.later_rate = wrong;
    ASSERT_EQ(TW_OK, program.start(3)) << error();
    EXPECT_EQ(TW_FAILED, program.train(8));
    EXPECT_EQ(fmt::format("group 0: learning rate {}: expected a number of at least 0", wrong), error());
    EXPECT_THAT(program.rounds, ::testing::ElementsAre(1, 2, 3));
    EXPECT_THAT(program.values(), Each(::testing::FloatNear(1 + 2 * 0.9F * 0.9F, 1e-5F))) << "of two rounds";
  }
}

TEST(Tradewind, says_what_is_wrong_with_settings_and_model) {
  EXPECT_EQ(TW_MISUSE, Program(Pairs{{"training.round", "7"}}).open());
  EXPECT_THAT(error(), HasSubstr("did you mean \"rounds\"?"));
  EXPECT_EQ(TW_MISUSE, Program(Pairs{{"lisen", "x"}}).open());
  EXPECT_THAT(error(), HasSubstr("listen"));
  EXPECT_EQ(TW_MISUSE, Program(Pairs{{"watch", "8080"}}).open());
  EXPECT_EQ("watch=8080: expected HOST:PORT, such as 127.0.0.1:8080", error());
  EXPECT_EQ(TW_MISUSE, Program(Pairs{{"training.microbatch", "4"}}).open());
  EXPECT_THAT(error(), HasSubstr("unknown key"));
  EXPECT_EQ(TW_MISUSE, Program(Pairs{{"training.\x1b[31m", "4"}}).open());
  EXPECT_THAT(error(), HasSubstr("\\x1b[31m")) << "nothing that a terminal would follow";
  Program lost(Pairs{});
  lost.group.tensors = 3;
  EXPECT_EQ(TW_MISUSE, lost.open());
  EXPECT_EQ("group 0: 3 tensors, while 2 are left", error());
  Program counts(Pairs{});
  counts.group = {.tensors = 2, .kind = TW_UPDATES};
  EXPECT_EQ(TW_MISUSE, counts.open());
  EXPECT_EQ("group 0: counts of updates are one tensor, in the first group", error());
  Program own(Pairs{});
  own.group.kind = TW_CALLER;
  EXPECT_EQ(TW_MISUSE, own.open());
  EXPECT_THAT(error(), HasSubstr("tw_calls.update"));
}

/// A variable of the environment, as long as this lives.
class Exported {
 public:
  Exported(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }

  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;

  ~Exported() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Tradewind, takes_what_is_not_given_from_the_environment_that_tw_run_makes) {
  const Exported listen("TRADEWIND_LISTEN", "127.0.0.1:0"), rejoin("TRADEWIND_NO_REJOIN", "1");
  const auto refusal = [](const char* variable, const char* value) {
    const Exported wrong(variable, value);
    EXPECT_EQ(TW_MISUSE, Program(Pairs{}).open());
    return error();
  };
  EXPECT_EQ(refusal("TRADEWIND_REJOIN", "maybe"), "rejoin=maybe: expected true or false");
  EXPECT_THAT(refusal("TRADEWIND_SET", "training.round=3"), HasSubstr("did you mean \"rounds\"?"));
  EXPECT_EQ(refusal("TRADEWIND_SET", "rounds=3"),
            "training.rounds is 5 in the program and 3 in TRADEWIND_SET: leave one of them out");
  const Exported set("TRADEWIND_SET", "rounds=5;checkpoint.keep=9");
  Program program(Pairs{});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  EXPECT_EQ(TW_FINISHED, program.train(8));
  EXPECT_EQ(program.rounds.size(), 5U);
}

/// tw_settings with these settings; empty: one is wrong.
std::string all_settings(std::vector<tw_setting> given) {
  char* text = tw_settings(given.data(), given.size());
  const std::string all = text != nullptr ? text : "";
  tw_free(text);
  return all;
}

TEST(Tradewind, lists_all_settings_with_their_values_and_what_may_stand_there) {
  const Exported wait("TRADEWIND_WAIT_FOR", "3");
  const std::string all = all_settings({{"rounds", "7"}, {"join", "a:1"}, {"join", "b:2"}});
  EXPECT_THAT(all, HasSubstr(R"({"key":"training.rounds","value":"7","default":"100",)"
                             R"("expected":"a whole number from 1","meaning":"updates until the run ends",)"
                             R"("variable":""})"));
  EXPECT_THAT(all, HasSubstr(R"({"key":"wait_for","value":"3","default":"1","expected":"a text",)"));
  EXPECT_THAT(all, HasSubstr(R"({"key":"join","value":"a:1,b:2","default":"","expected":"texts",)"));
  EXPECT_THAT(all, HasSubstr(R"("variable":"TRADEWIND_RUN_FOLDER"})"));
}

TEST(Tradewind, lists_no_settings_where_one_is_wrong) {
  EXPECT_EQ("", all_settings({{"rounds", "7"}, {"training.rounds", "8"}}));
  EXPECT_EQ("training.rounds is given twice, 7 and 8", error());
  EXPECT_EQ("", all_settings({{"roundz", "7"}}));
  EXPECT_EQ("there is no setting roundz; did you mean \"rounds\"?", error());
  EXPECT_EQ("", all_settings({{"rounds", "0"}}));
  EXPECT_THAT(error(), HasSubstr("expected a whole number from 1"));
  EXPECT_EQ("", all_settings({{"site", nullptr}}));
  EXPECT_EQ("", all_settings({{"grace", "25"}}));
  EXPECT_EQ("grace=25: expected a duration from 1s to 1h, such as 25s", error());
  EXPECT_NE("", all_settings({{"token", "@/nowhere/token"}})) << "a token may come later";
}

TEST(Tradewind, tells_tw_run_where_its_peer_stands) {
  const host::TemporaryFolder folder;
  const std::string file = folder.path() + "/verdict";
  const Exported verdict("TRADEWIND_VERDICT", file.c_str());
  const auto word = [&] { return read_text_file(file).value(); };
  {
    Program waits(Pairs{{"listen", "127.0.0.1:0"}, {"wait_for", "2"}});
    ASSERT_EQ(TW_OK, waits.start(3)) << error();
    EXPECT_EQ(word(), "joining") << "it takes no part before a second peer is there";
  }
  EXPECT_EQ(word(), "joining") << "to its end";
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, program.start(3)) << error();
  EXPECT_EQ(TW_FINISHED, program.train(8));
  EXPECT_EQ(word(), "complete");
}

TEST(Tradewind, says_what_is_wrong_with_the_order_of_calls) {
  Program program(Pairs{{"listen", "127.0.0.1:0"}});
  ASSERT_EQ(TW_OK, program.open());
  tw_order order{};
  EXPECT_EQ(TW_MISUSE, tw_next(program.peer, 0, &order));
  EXPECT_THAT(error(), HasSubstr("has not been started"));
  ASSERT_EQ(TW_OK, program.start(1)) << error();
  EXPECT_EQ(TW_MISUSE, tw_drop(program.peer));
  EXPECT_EQ("no order is in hand (tw_next)", error());
  EXPECT_EQ(TW_MISUSE, tw_begun(program.peer, 1));
  EXPECT_EQ("tw_begun: expected in tw_calls.load alone", error());
  EXPECT_EQ(TW_MISUSE, tw_leave(program.peer, 4));
  EXPECT_EQ("tw_leave: at_once is 4, expected 0 to 3", error());
  for (const auto& call : {+[] { return tw_leave(nullptr, 0); }, +[] { return tw_busy(nullptr, "x"); },
                           +[] { return tw_signal(nullptr, SIGTERM); }, +[] { return tw_drop(nullptr); },
                           +[] { return tw_evaluated(nullptr, 1, "x", 0); }}) {
    EXPECT_EQ(TW_MISUSE, call());
    EXPECT_EQ("no peer", error());
  }
  std::thread([&] {
    EXPECT_EQ(TW_MISUSE, tw_next(program.peer, 0, &order));
    EXPECT_EQ("called from another thread than the one that started the peer", error());
  }).join();
}

}  // namespace
}  // namespace tw::bind
