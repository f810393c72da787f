// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/result.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "base/text/quantity.h"
#include "launch/local/child.h"
#include "measure/bench/arguments.h"

namespace tw::measure {
namespace {

/// The first line that a command prints; empty when it fails.
std::string first_line_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 256> line{};
  if (!pipe || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  std::string text = line.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string row(const std::string& name, const SystemTimes& times, const BenchResult& result) {
  const std::string share =
      result.bound_s ? fmt::format("{:.1f} %", 100 * *result.bound_s / times.seconds) : "";
  return fmt::format("{:<14}{:>10.4f}{:>10.4f}{:>10.4f}{:>10}{:>10.2f}{:>10.2f}\n", name, times.seconds,
                     times.fastest_s, times.slowest_s, share, times.cpu_s_per_gb,
                     times.seconds / result.tradewind.seconds);
}

constexpr std::size_t kMostShown = 20;

std::string text_of(const TroubleTimes& trouble) {
  std::string text = fmt::format("{}: before it {:.4f} s; under it", trouble.what, trouble.before_s);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(trouble.under_s.size(), kMostShown));
  for (const double seconds : std::vector(trouble.under_s.begin(), trouble.under_s.begin() + shown))
    text += fmt::format(" {:.2f}", seconds);
  if (trouble.under_s.size() > kMostShown) text += fmt::format(" ... ({} rounds)", trouble.under_s.size());
  text += fmt::format(" s, in the end {:.2f} times", trouble.steady_s / trouble.before_s);
  for (const auto& [baseline, slowdown] : trouble.baselines_slowdown)
    text += fmt::format("; {} {:.2f} times", baseline, slowdown);
  text += "\nspeed after it, of that before:";
  for (const double seconds : trouble.after_s)
    text += fmt::format(" {:.0f}", 100 * trouble.before_s / seconds);
  return text + " %\n";
}

}  // namespace

std::string render(const BenchResult& result) {
  std::string text =
      fmt::format("{} peers, {} {}, {}, {}; medians of {} turns of {} rounds\n", result.peers,
                  size_text(result.bytes), result.codec, result.topology,
                  result.tls ? "TLS (the others without)" : "without TLS", result.turns, result.rounds);
  text += fmt::format("{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "", "seconds", "fastest", "slowest",
                      "of bound", "CPU s/GB", "relative");
  if (result.bound_s) {
    const std::string cpu =
        result.bound_cpu_s_per_gb ? fmt::format("{:.2f}", *result.bound_cpu_s_per_gb) : "";
    text += fmt::format("{:<14}{:>10.4f}{:>40}\n", "bound", *result.bound_s, cpu);
  }
  text += row("tradewind", result.tradewind, result);
  for (const auto& [name, times] : result.baselines) text += row(name, times, result);
  text +=
      fmt::format("sent by a peer in a round: {:.2f} MB on average; {}\n", result.bytes_sent_per_peer / 1e6,
                  result.identical ? "identical on all peers" : "DIFFERENT: " + result.difference);
  const RoundParts& parts = result.parts;
  text += fmt::format(
      "a round: call {:.4f} s, contributions {:.4f} s, mean {:.4f} s, commit {:.4f} s; CPU s/GB: kernel "
      "{:.2f}, "
      "own {:.2f}; memory of a peer: {:.1f} vectors\n",
      parts.call_s, parts.sums_s, parts.mean_s, parts.commit_s, parts.kernel_s_per_gb, parts.own_s_per_gb,
      parts.memory_vectors);
  if (result.bound_s) {
    text += "share of the bound, round by round:";
    for (const double seconds : result.round_s)
      text += fmt::format(" {:.0f}", 100 * *result.bound_s / seconds);
    text += " %\n";
  }
  if (const auto& d = result.disturbed)
    text += fmt::format("{}: {:.4f} s until committed, undisturbed {:.4f} s ({:.2f} times)\n", d->what,
                        d->disturbed_s, d->undisturbed_s, d->disturbed_s / d->undisturbed_s);
  if (result.trouble) text += text_of(*result.trouble);
  if (result.box)
    text +=
        fmt::format("the box: at most {:.0f} % of a core{}\n", 100 * result.box->cpu_share_max,
                    result.box->limited_by.empty() ? "" : "; LIMITED BY IT for " + result.box->limited_by);
  text += fmt::format("{}, commit {}, {}, load before {:.2f}\n", result.date, result.commit, result.machine,
                      result.load_before);
  return text;
}

void sign(BenchResult& result) {
  const std::string folder = std::filesystem::path(launch::own_path()).parent_path();
  result.commit = first_line_of("git -C '" + folder + "' describe --always --dirty 2>/dev/null");
  if (result.commit.empty()) result.commit = "unknown";
  result.date = fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr)));
  result.machine = fmt::format("{} x {}", std::thread::hardware_concurrency(), processor());
  double load = 0;
  if (getloadavg(&load, 1) == 1) result.load_before = load;
}

}  // namespace tw::measure
