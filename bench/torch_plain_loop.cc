// SPDX-License-Identifier: Apache-2.0
//
// Trains a run file in one process without any of tradewind's protocols: what `tw train` is compared with.
//   bench_torch_plain_loop RUN.yaml [--rounds N] [--threads N]
// Prints one JSON object. Times cover the rounds, not loading and not evaluation.

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "train/learn/optimizer.h"
#include "train/learn/schedule.h"
#include "train/run/run_file_yaml.h"
#include "train/torch_trainer.h"

namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

nlohmann::json point(tw::Round round, const tw::train::Evaluation& evaluation) {
  nlohmann::json out = {{"round", round}, {"loss", evaluation.loss}};
  if (evaluation.accuracy) out["accuracy"] = *evaluation.accuracy;
  return out;
}

class PlainLoop {
 public:
  PlainLoop(const tw::train::RunOptions& run, tw::train::Trainer& trainer)
      : run_(run),
        trainer_(trainer),
        optimizer_(tw::train::make_optimizer(trainer.groups(run.optimizer), run.clip_norm)),
        parameters_(trainer.parameter_count()),
        gradient_(trainer.parameter_count()) {
    trainer_.initial_parameters(parameters_);
  }

  nlohmann::json train() {
    nlohmann::json evaluations = nlohmann::json::array();
    double loss = 0;
    tw::Round round = 0;
    bool reached = false;
    while (round < run_.rounds && !reached) {
      loss = train_round(++round);
      const bool due = run_.evaluation.every != 0 && round % run_.evaluation.every == 0;
      if (!due && round != run_.rounds) continue;
      const tw::train::Evaluation evaluation = trainer_.evaluate(parameters_);
      evaluations.push_back(point(round, evaluation));
      const auto goal = run_.evaluation.stop_accuracy;
      reached = goal && evaluation.accuracy && *evaluation.accuracy >= *goal;
    }
    const auto samples = static_cast<double>(round * run_.target_batch_size);
    return {{"parameters", parameters_.size()},
            {"rounds", round},
            {"samples", round * run_.target_batch_size},
            {"wall_s", wall_s_},
            {"cpu_s", cpu_s_},
            {"samples_per_s", samples / wall_s_},
            {"round_s", wall_s_ / static_cast<double>(round)},
            {"apply_share", apply_s_ / wall_s_},
            {"last_training_loss", loss},
            {"evaluations", evaluations}};
  }

 private:
  /// Mean training loss of the round.
  double train_round(tw::Round round) {
    const double wall = wall_seconds();
    const double cpu = cpu_seconds();
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    const std::uint64_t batch = run_.target_batch_size;
    double loss_sum = 0;
    for (std::uint64_t done = 0; done < batch; done += run_.microbatch) {
      const tw::train::SampleSpan span{(round - 1) * batch + done, std::min(run_.microbatch, batch - done)};
      loss_sum += trainer_.accumulate(parameters_, span, gradient_);
    }
    const double accumulated = wall_seconds();
    const float share = 1.0F / static_cast<float>(batch);
    for (float& g : gradient_) g *= share;
    const tw::train::MeanGradient whole = [this](const tw::train::TakePiece& take) { take(0, gradient_); };
    optimizer_->apply(parameters_, whole, round, tw::train::learning_rate(run_.schedule, round));
    apply_s_ += wall_seconds() - accumulated;
    wall_s_ += wall_seconds() - wall;
    cpu_s_ += cpu_seconds() - cpu;
    return loss_sum / static_cast<double>(batch);
  }

  const tw::train::RunOptions& run_;
  tw::train::Trainer& trainer_;
  std::unique_ptr<tw::train::Optimizer> optimizer_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
  double wall_s_ = 0;
  double cpu_s_ = 0;
  double apply_s_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a run file in one process, without tradewind's protocols");
  std::string path;
  std::string rounds;
  int threads = 1;
  std::vector<std::string> settings;
  app.add_option("run", path, "run file")->required();
  app.add_option("--rounds", rounds, "instead of training.rounds");
  app.add_option("--threads", threads, "of libtorch")->capture_default_str();
  app.add_option("--set", settings, "KEY=VALUE instead of what the run file says");
  CLI11_PARSE(app, argc, argv);

  std::vector<std::pair<std::string, std::string>> overrides;
  if (!rounds.empty()) overrides.emplace_back("training.rounds", rounds);
  for (const std::string& setting : settings) {
    const std::size_t equals = std::min(setting.find('='), setting.size() - 1);
    overrides.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  const tw::Result<tw::train::RunOptions> run = tw::train::read_run_file(path, overrides);
  if (!run) {
    std::cerr << run.error().message << "\n";
    return 1;
  }
  const auto trainer = tw::train::make_torch_trainer(run.value(), threads);
  if (!trainer) {
    std::cerr << trainer.error().message << "\n";
    return 1;
  }
  std::cout << PlainLoop(run.value(), *trainer.value()).train().dump(2) << "\n";
  return 0;
}
