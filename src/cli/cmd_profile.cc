// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "base/text/text_file.h"
#include "base/text/write_file.h"
#include "cli/arguments/number_option.h"
#include "cli/commands.h"
#include "cli/plan/measured_peer.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "host/system/temporary_folder.h"
#include "launch/command_run.h"
#include "launch/local/child.h"
#include "launch/local/gpus.h"
#include "market/gpu_name.h"
#include "monitor/logs/event_log_tail.h"
#include "monitor/terminal/terminal_numbers.h"
#include "peer/link_options.h"
#include "peer/spelling.h"
#include "plan/input/model_profile_yaml.h"
#include "plan/model/cluster.h"

namespace tw::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How often the log of the program is looked at: seldom enough not to slow it down.
constexpr milliseconds kLookEvery{500};
/// The tools of drivers take a second of CPU time.
constexpr seconds kAskGpusEvery{3};
/// A program of its own may need the end of a round to leave.
constexpr seconds kLeaves{10};
constexpr seconds kBeginsWithin{30};
/// What a program has to hold on a GPU to be one that uses it.
constexpr double kUsed_mb = 64;
constexpr double kMB = 1e6;

/// GPUs over the time of the program.
class GpuWatch {
 public:
  GpuWatch() : before_(launch::ask_gpus(launch::GpuSources::of_this_machine())), most_(before_) {}

  void look() {
    if (before_.empty() || Clock::now() < next_) return;
    next_ = Clock::now() + kAskGpusEvery;
    const std::vector<launch::Gpu> now = launch::ask_gpus(launch::GpuSources::of_this_machine());
    for (std::size_t i = 0; i < std::min(now.size(), most_.size()); ++i)
      most_[i].used_mb = std::max(most_[i].used_mb, now[i].used_mb);
  }

  /// Those that the program used, with the memory that it took there.
  std::vector<launch::Gpu> used() const {
    std::vector<launch::Gpu> used;
    for (std::size_t i = 0; i < most_.size(); ++i)
      if (const double mb = most_[i].used_mb - before_[i].used_mb; mb >= kUsed_mb)
        used.push_back({most_[i].name, mb});
    return used;
  }

  bool has_any() const { return !before_.empty(); }

 private:
  std::vector<launch::Gpu> before_, most_;
  Clock::time_point next_ = Clock::now();
};

/// As peers are named in lists: "T4", "4xT4", "cpu".
std::string machine_name(const std::vector<launch::Gpu>& used) {
  if (used.empty()) return "cpu";
  const std::string name = market::name_of_driver(used.front().name);
  return used.size() == 1 ? name : fmt::format("{}x{}", used.size(), name);
}

std::string hardware_words(const std::string& processor, const std::vector<launch::Gpu>& used) {
  if (used.empty()) return processor;
  const std::string gpus =
      used.size() == 1 ? used.front().name : fmt::format("{} x {}", used.size(), used.front().name);
  if (used.size() == 1 && processor.ends_with(gpus)) return processor;  // the program said it
  return processor.empty() ? gpus : processor + "; " + gpus;
}

double cores_of(const ProfileArguments& arguments) {
  const auto threads = parse_number<double>(arguments.threads);
  return threads.value_or(std::max(1U, std::thread::hardware_concurrency()));
}

/// "train" for python3 train.py --size small.
std::string model_name(const std::vector<std::string>& words) {
  const auto script =
      std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  return std::filesystem::path(script == words.end() ? words.front() : *script).stem().string();
}

Status check(const ProfileArguments& arguments) {
  if (arguments.words.empty())
    return Error{
        "nothing to profile; write the command after --, as in: tw profile -o model.yaml -- python3 "
        "train.py"};
  if (arguments.name.empty()) return Unit{};
  const auto named = plan::parse_peers("1x" + arguments.name + "@own:here");
  if (named && named.value().size() == 1) return Unit{};
  return Error{fmt::format("--name {}: expected a name that tw knows, or one without spaces, @ and ;",
                           arguments.name)};
}

/// The profile that is there already, to which a machine is added; nothing: none is.
Result<std::optional<plan::ModelProfile>> profile_before(const std::string& file) {
  if (file.empty()) return std::optional<plan::ModelProfile>();
  std::error_code error;
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (!std::filesystem::is_directory(folder, error))
    return Error{fmt::format("{}: there is no folder {}", file, folder.string())};
  if (!std::filesystem::exists(file, error)) return std::optional<plan::ModelProfile>();
  TW_TRY(const auto text, read_text_file(file));
  auto before = plan::read_profile(file, text);
  if (!before)
    return Error{
        fmt::format("{}; expected a profile that tw profile wrote, or a new file", before.error().message)};
  return std::optional(std::move(before).value());
}

std::vector<std::string> words_of_run(const ProfileArguments& arguments, const std::string& folder) {
  std::vector<std::string> words{"run",
                                 "--out",
                                 folder,
                                 "--progress",
                                 "off",
                                 "--set",
                                 "checkpoint.folder=" + folder + "/checkpoints",
                                 "--set",
                                 "checkpoint.logs=false"};
  if (!arguments.threads.empty()) words.insert(words.end(), {"--threads", arguments.threads});
  if (!arguments.run_file.empty()) words.push_back(arguments.run_file);
  words.emplace_back("--");
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  return words;
}

/// The log that the only peer of a run writes.
class PeerLog {
 public:
  explicit PeerLog(std::string folder) : folder_(std::move(folder)) {}

  /// Reads what was written since. Error: a line that cannot be read.
  Status look() {
    std::error_code error;
    if (!tail_)
      for (const std::string& log : monitor::logs_in_folder(folder_, error)) tail_.emplace(log);
    if (!tail_) return Unit{};
    return tail_->each_new(monitor::kAllPhases,
                           [this](const monitor::LogEntry& entry) { meter_.take(entry); });
  }

  const PeerMeter& meter() const { return meter_; }

 private:
  std::string folder_;
  std::optional<monitor::EventLogTail> tail_;  ///< once there is a log
  PeerMeter meter_;
};

/// Until it has trained for so long after its warm-up, or has ended.
void watch(launch::Child& program, PeerLog& log, double lasts_s, GpuWatch& gpus) {
  ProgressLine line;
  std::optional<Clock::time_point> warm;
  auto patience = Clock::now() + kBeginsWithin;
  while (!program.ending()) {
    std::this_thread::sleep_for(kLookEvery);
    gpus.look();
    (void)log.look();  // the last look says what is wrong
    const int rounds = log.meter().rounds();
    if (rounds == 0 && Clock::now() > patience) {
      show_aside(fmt::format(
          "no round yet after {} s; rounds begin with tradewind.join() and the first opt.step() of "
          "the program; Ctrl-C ends it",
          kBeginsWithin.count()));
      patience = Clock::time_point::max();
    }
    if (rounds >= kWarmUpRounds && !warm) warm = Clock::now();
    const double since_s = warm ? std::chrono::duration<double>(Clock::now() - *warm).count() : 0;
    if (since_s >= lasts_s && rounds >= kWarmUpRounds + kLeastRounds) return;
    line.show(rounds == 0 ? "no round yet" : fmt::format("{} round{}", rounds, rounds == 1 ? "" : "s"),
              since_s / lasts_s);
  }
}

/// It leaves after its round; at the second signal at once.
void end(launch::Child& program) {
  for (int signals = 0; signals < 2 && !program.ending(); ++signals) {
    program.send_signal(SIGINT);
    const auto until = Clock::now() + kLeaves;
    while (!program.ending() && Clock::now() < until) std::this_thread::sleep_for(milliseconds(20));
  }
}

Status add(const ProfileArguments& arguments, const MeasuredPeer& measured,
           const std::vector<launch::Gpu>& used, plan::ModelProfile& model) {
  const std::string name = arguments.name.empty() ? machine_name(used) : market::gpu_name(arguments.name);
  const double params_m = measured.parameters / 1e6;
  if (model.params_m > 0 && std::abs(model.params_m / params_m - 1) > 1e-3)
    return Error{
        fmt::format("{}: it is of a model with {:.6g} million parameters, and this one has {:.6g}; give -o "
                    "another file",
                    arguments.out, model.params_m, params_m)};
  double gpu_mb = 0;  // a GPU has to hold it, so the fullest counts
  for (const launch::Gpu& gpu : used) gpu_mb = std::max(gpu_mb, gpu.used_mb);
  model.name = model_name(arguments.words);
  model.command = launch::to_line({.words = arguments.words});
  model.params_m = params_m;
  model.tensors = static_cast<int>(measured.tensors);
  if (arguments.data_mb_per_sample > 0) model.data_mb_per_sample = arguments.data_mb_per_sample;
  model.state_mb = measured.state_bytes / kMB;
  model.memory_mb = std::max(model.memory_mb, measured.peak_memory_bytes / kMB);
  model.gpu_memory_mb = std::max(model.gpu_memory_mb, gpu_mb);
  if (used.empty()) model.cpu_cores = cores_of(arguments);
  model.accumulating[name] = {measured.samples_per_s, std::max(1.01, measured.spread), arguments.out};
  model.hardware[name] = hardware_words(measured.hardware, used);
  show_aside(fmt::format(
      "{}: {} samples/s, 80 % of {} rounds within a factor of {:.3g} ({} before them left "
      "out); {} million parameters, a checkpoint of {} MB, {:.0f} MB of memory{}; {}",
      name, monitor::rate_text(measured.samples_per_s), measured.rounds, measured.spread, measured.warm_up,
      significant(params_m, 4), significant(model.state_mb, 4), measured.peak_memory_bytes / kMB,
      used.empty() ? "" : fmt::format(", {:.0f} MB of the GPU's", gpu_mb), model.hardware[name]));
  return Unit{};
}

}  // namespace

void describe_profile(CLI::App& app, ProfileArguments& arguments) {
  CLI::App* command = app.add_subcommand("profile", "Measure your program on this machine, for tw plan");
  command->add_option("RUN.yaml", arguments.run_file,
                      "run file that tradewind.join() reads; default: the program sets it");
  command->add_option("-o,--out", arguments.out,
                      "profile to write; adds this machine to an existing one; default: stdout");
  command->add_option("--name", arguments.name,
                      "name of this machine in lists of peers; default: its GPU, or cpu");
  command->add_option("--seconds", arguments.seconds, "time to measure, after the first rounds")
      ->check(number_within(0.01, 86400))
      ->capture_default_str();
  command->add_option("--threads", arguments.threads, "threads of the program (TRADEWIND_THREADS)");
  command
      ->add_option("--data-mb-per-sample", arguments.data_mb_per_sample,
                   "MB that a sample reads from a store that charges for it")
      ->check(number_within(0, 1e6));
  command->footer(
      "The command comes after --. It runs as the only peer, without checkpoints, and leaves when enough\n"
      "rounds are measured. `model: model.yaml` in JOB.yaml or CLUSTER.yaml reads the profile. GPUs are\n"
      "those that nvidia-smi or rocm-smi names, and whose memory the program uses.\n"
      "Exit codes: 0 measured, 1 too few rounds or the file cannot be written, 2 wrong usage; that of the\n"
      "program where it fails.\n"
      "\n"
      "Examples:\n"
      "  tw profile -o model.yaml -- python3 train.py\n"
      "  tw profile -o model.yaml --name T4 run.yaml -- python3 train.py   # adds this machine");
}

int profile(const ProfileArguments& arguments) {
  if (const Status right = check(arguments); !right) return complain(right.error().message, kUsage);
  auto before = profile_before(arguments.out);
  if (!before) return complain("--out " + before.error().message, kUsage);
  const host::TemporaryFolder folder;
  const std::string logs = folder.path() + "/logs", output = folder.path() + "/output";
  GpuWatch gpus;
  // The environment may name a run that goes on elsewhere; this one is alone.
  for (const peer::LinkField& field : peer::link_fields()) unsetenv(peer::variable_of(field.name).c_str());
  auto program = launch::Child::start_self(words_of_run(arguments, logs), output);
  if (!program) return complain(program.error().message, kFailed);
  PeerLog log(logs);
  watch(program.value(), log, arguments.seconds, gpus);
  if (const auto code = program.value().ending(); code.value_or(0) != 0) {
    show_aside(launch::last_words(output));  // why, and with which exit code the program ended
    return complain("nothing was measured", *code);
  }
  end(program.value());
  if (const Status read = log.look(); !read) return complain(read.error().message, kFailed);
  const auto measured = log.meter().measured();
  if (!measured) return complain(measured.error().message, kFailed);
  plan::ModelProfile model = before.value().value_or(plan::ModelProfile{});
  if (gpus.has_any() && gpus.used().empty())
    warn("the program used no GPU of this machine; it was measured on the CPU");
  if (const Status added = add(arguments, measured.value(), gpus.used(), model); !added)
    return complain(added.error().message, kUsage);
  const std::string text = write_profile(model);
  if (arguments.out.empty()) {
    print_out("{}", text);
    return kDone;
  }
  const Status written = write_file(arguments.out, text);
  if (written) return kDone;
  print_out("{}", text);  // what was measured is not lost
  return complain("--out " + written.error().message, kFailed);
}

}  // namespace tw::cli
