// SPDX-License-Identifier: Apache-2.0
#include "measure/doctor/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/text/columns.h"
#include "base/text/duration.h"
#include "base/text/number.h"
#include "base/text/printable.h"
#include "base/text/split.h"

namespace tw::measure {
namespace {

constexpr double kMiB = 1 << 20, kGiB = 1 << 30;

/// Share of the CPU time that busy threads should get.
constexpr double kMostLost = 0.05, kMuchLost = 0.25;
/// A checkpoint that takes longer than the shortest notice of a cloud (GCP, Azure: 30 s) may never end.
constexpr double kShortNotice_s = 30;
/// The longest notice (AWS).
constexpr double kLongNotice_s = 120;
/// A tenth of the shortest round that pays over a wide-area network; certificates are dated in seconds.
constexpr double kSkewed_s = 2, kVerySkewed_s = 60;
/// Files besides links: logs, data, checkpoints, libraries.
constexpr std::uint64_t kOtherFiles = 256;
/// 64 data streams and the control connection of a link.
constexpr std::uint64_t kFilesOfLink = 65;

/// Share of a GPU's time or memory that an idle one may show: the desktop, the driver's own.
constexpr double kIdleGpu = 0.05;

constexpr const char* kSetClock = "timedatectl set-ntp true, or start chronyd";

std::string size_of(double bytes) {
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", bytes / kGiB);
  return fmt::format("{:.0f} MiB", bytes / kMiB);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

Verdict by_limits(double value, double note, double hurts) {
  return value >= hurts ? Verdict::hurts : value >= note ? Verdict::note : Verdict::ok;
}

std::string cpu_remedy(const CpuFacts& cpu) {
  if (cpu.quota && *cpu.quota < cpu.threads)
    return fmt::format("raise the CPU limit of the container (cpu.max), or train with --threads {:.0f}",
                       std::max(1.0, *cpu.quota));
  if (cpu.steal > kMostLost)
    return "take a machine type whose cores are not shared (no t3, e2-micro, B series)";
  return "end what else runs here, or take a machine of its own";
}

std::string words_of(const host::Gpu& gpu) {
  const auto total = static_cast<double>(gpu.use.memory_total), used = static_cast<double>(gpu.use.memory);
  std::string text = gpu.name;
  if (total > 0) text += fmt::format(", {} of {} free", size_of(total - used), size_of(total));
  if (gpu.use.busy) text += fmt::format(", {} busy", percent(*gpu.use.busy));
  return text;
}

/// Those that are alike, together.
std::string words_of(const std::vector<host::Gpu>& gpus) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const host::Gpu& gpu : gpus) {
    const auto alike = std::ranges::find(kinds, words_of(gpu), &std::pair<std::string, int>::first);
    if (alike != kinds.end())
      ++alike->second;
    else
      kinds.emplace_back(words_of(gpu), 1);
  }
  std::string text;
  for (const auto& [words, count] : kinds) {
    if (!text.empty()) text += "; ";
    text += count == 1 ? words : fmt::format("{} x {}", count, words);
  }
  return text;
}

/// Those of CUDA_VISIBLE_DEVICES, where it is a list of numbers; all, where it names them otherwise.
std::vector<host::Gpu> visible_ones(const GpuFacts& facts) {
  if (!facts.visible || facts.visible->starts_with("GPU-") || facts.visible->starts_with("MIG-"))
    return facts.gpus;
  std::vector<host::Gpu> gpus;
  for (const std::string& word : split(*facts.visible, ',')) {
    const auto number = parse_number<std::size_t>(word);
    if (!number || *number >= facts.gpus.size()) break;  // CUDA hides those behind it, too
    gpus.push_back(facts.gpus[*number]);
  }
  return gpus;
}

bool is_used(const host::Gpu& gpu) {
  return gpu.use.busy.value_or(0) > kIdleGpu ||
         static_cast<double>(gpu.use.memory) > kIdleGpu * static_cast<double>(gpu.use.memory_total);
}

double free_gib(const host::Gpu& gpu) {
  return (static_cast<double>(gpu.use.memory_total) - static_cast<double>(gpu.use.memory)) / kGiB;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"ok", "note", "will hurt"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Finding judge_cpu(const CpuFacts& cpu) {
  const double lost = cpu.threads > 0 ? std::max(0.0, 1 - cpu.got / cpu.threads) : 0;
  Finding finding{.check = "cpu", .verdict = by_limits(lost, kMostLost, kMuchLost)};
  finding.text = fmt::format("{:.1f} of {:.0f} cores when all are busy", cpu.got, cpu.threads);
  if (cpu.quota) finding.text += fmt::format(", limit of the cgroup {:.1f}", *cpu.quota);
  if (cpu.throttled > 0)
    finding.text += fmt::format(", stopped in {} of its periods", percent(cpu.throttled));
  if (cpu.steal > 0.005) finding.text += fmt::format(", {} stolen by the hypervisor", percent(cpu.steal));
  if (cpu.frequency) finding.text += fmt::format(", at {} of the highest frequency", percent(*cpu.frequency));
  const bool slow_clock = cpu.frequency && *cpu.frequency < 0.7;
  if (finding.verdict == Verdict::ok && slow_clock) {
    finding.verdict = Verdict::note;
    finding.remedy = "look at cooling and at the governor: cpupower frequency-set -g performance";
  } else if (finding.verdict != Verdict::ok) {
    finding.remedy = cpu_remedy(cpu);
  }
  return finding;
}

CpuFacts quieter(const CpuFacts& first, const CpuFacts& second) {
  return second.got > first.got ? second : first;
}

Finding judge_memory(const MemoryFacts& memory, const Needs& needs) {
  const double of_limit = memory.limit ? static_cast<double>(*memory.limit) - static_cast<double>(memory.used)
                                       : static_cast<double>(memory.total);
  const double of_machine = std::min(of_limit, static_cast<double>(memory.available));
  const auto mapped = static_cast<double>(memory.mapped_limit.value_or(UINT64_MAX));
  const double free = std::min(of_machine, mapped);
  Finding finding{.check = "memory"};
  finding.text =
      fmt::format("{} free{}", size_of(free),
                  memory.limit ? ", limit of the cgroup " + size_of(static_cast<double>(*memory.limit)) : "");
  if (mapped < of_machine) {
    finding.text += ", limit of a process (ulimit -v) " + size_of(mapped);
    finding.verdict = Verdict::note;
    finding.remedy = "ulimit -v unlimited: libraries such as PyTorch map more than they use";
  }
  if (!needs.memory_bytes) return finding;
  const auto need = static_cast<double>(*needs.memory_bytes);
  finding.text += fmt::format("; a peer takes {}", size_of(need));
  finding.verdict = std::max(finding.verdict, by_limits(need / std::max(free, 1.0), 0.7, 1));
  if (finding.verdict != Verdict::ok && finding.remedy.empty())
    finding.remedy =
        memory.limit ? "raise the memory limit of the container" : "take a machine with more memory";
  return finding;
}

Finding judge_gpu(const GpuFacts& facts, const Needs& needs) {
  if (facts.gpus.empty() && facts.built_in)
    return {"gpu", needs.gpu_gib ? Verdict::hurts : Verdict::note,
            "a card of NVIDIA is built in, and its driver names none: " + facts.failure,
            "to train on it install NVIDIA's driver; start a container with --gpus all"};
  if (facts.gpus.empty())
    return {"gpu", Verdict::ok, "no card of NVIDIA; those of others are not looked at", ""};
  const std::vector<host::Gpu> gpus = visible_ones(facts);
  Finding finding{.check = "gpu", .text = words_of(gpus.empty() ? facts.gpus : gpus)};
  if (gpus.empty()) {
    finding.verdict = Verdict::note;
    finding.text += fmt::format("; CUDA_VISIBLE_DEVICES={} hides all", *facts.visible);
    finding.remedy = "unset CUDA_VISIBLE_DEVICES, to train on them";
    return finding;
  }
  const auto freest = std::ranges::max_element(gpus, {}, free_gib);
  if (needs.gpu_gib) {
    finding.text += fmt::format("; the model takes {}", size_of(*needs.gpu_gib * kGiB));
    if (free_gib(*freest) < *needs.gpu_gib) {
      finding.verdict = Verdict::hurts;
      finding.remedy = is_used(*freest)
                           ? "nvidia-smi shows who uses it: end that, or take a machine of its own"
                           : "take a GPU with more memory, or a smaller microbatch";
      return finding;
    }
  }
  if (std::ranges::any_of(gpus, is_used)) {
    finding.verdict = Verdict::note;
    finding.remedy = "nvidia-smi shows who uses it; choose a free one with CUDA_VISIBLE_DEVICES";
  }
  return finding;
}

Finding judge_files(const FileLimit& limit, const Needs& needs) {
  const std::uint64_t need = kOtherFiles + kFilesOfLink * (needs.peers.value_or(9) - 1);
  Finding finding{.check = "open files"};
  finding.text =
      fmt::format("{} may be open; {} {} peers", limit.soft, need,
                  needs.peers ? fmt::format("are enough for {}", *needs.peers) : "are enough for 9");
  if (limit.soft >= need) return finding;
  finding.verdict = limit.soft >= kOtherFiles ? Verdict::note : Verdict::hurts;
  finding.remedy = fmt::format("ulimit -n {}{}", need,
                               limit.hard < need ? ", after raising it in /etc/security/limits.conf" : "");
  return finding;
}

Finding judge_clock(const ClockFacts& clock, std::optional<double> skew_s, double token_begins_in_s) {
  Finding finding{.check = "clock"};
  if (skew_s) {
    finding.verdict = by_limits(std::abs(*skew_s), kSkewed_s, kVerySkewed_s);
    finding.text = fmt::format("{:.2f} s {} that of the other machine", std::abs(*skew_s),
                               *skew_s > 0 ? "behind" : "ahead of");
  } else {
    finding.verdict = clock.synchronised ? Verdict::ok : Verdict::note;
    finding.text = "no other machine to compare with; the kernel ";
    finding.text += clock.synchronised ? fmt::format("has it right within {:.3f} s", clock.error_s)
                                       : std::string("does not know whether it is right");
  }
  if (finding.verdict != Verdict::ok) finding.remedy = kSetClock;
  if (token_begins_in_s <= 0) return finding;
  const bool is_behind = skew_s ? *skew_s >= token_begins_in_s : !clock.synchronised;
  finding.verdict = Verdict::hurts;
  finding.text +=
      fmt::format("; the token begins to hold in {}: {}", duration_text(token_begins_in_s),
                  is_behind ? "this clock is behind" : "the clock of the machine that made it was ahead");
  if (is_behind) return finding;
  if (!finding.remedy.empty()) finding.remedy += "; ";
  finding.remedy += "set the clock of the machine that made the token, and make a new one there (tw token)";
  return finding;
}

Finding judge_disk(const std::string& folder, const DiskFacts& disk, const Needs& needs) {
  Finding finding{.check = "disk"};
  finding.text = fmt::format("{}: {:.0f} MB/s with fsync, {} free", folder, disk.bytes_per_s / 1e6,
                             size_of(static_cast<double>(disk.free)));
  const auto state = needs.state_bytes;
  if (!state) {
    finding.verdict = disk.bytes_per_s < 20e6 ? Verdict::note : Verdict::ok;
    if (finding.verdict == Verdict::note)
      finding.remedy = "give PROFILE.yaml (tw profile), to know how long its checkpoints take";
    return finding;
  }
  const double bytes = static_cast<double>(*state), takes_s = bytes / std::max(disk.bytes_per_s, 1.0);
  finding.text += fmt::format("; a checkpoint of {} takes {}", size_of(bytes),
                              takes_s < 10 ? fmt::format("{:.1f} s", takes_s) : duration_text(takes_s));
  finding.verdict = by_limits(takes_s, kShortNotice_s, kLongNotice_s);
  if (finding.verdict != Verdict::ok)
    finding.remedy = "put checkpoint.folder on a faster disk: a preempted machine has 30 to 120 s";
  // The old one stays until the new one is durable.
  if (static_cast<double>(disk.free) < 2 * bytes) {
    finding.verdict = Verdict::hurts;
    finding.remedy = fmt::format("free {} there, or set checkpoint.folder: two checkpoints must have room",
                                 size_of(2 * bytes - static_cast<double>(disk.free)));
  }
  return finding;
}

Finding judge_no_disk(const std::string& failure) {
  const auto says = [&](std::errc cause) {
    return failure.find(std::make_error_code(cause).message()) != std::string::npos;
  };
  const bool full =
      says(std::errc::no_space_on_device) || failure.find(std::strerror(EDQUOT)) != std::string::npos;
  const std::string first = full                              ? "make room there"
                            : says(std::errc::file_too_large) ? "raise the limit of a file's size (ulimit -f)"
                                                              : "make the folder writable";
  return {"disk", Verdict::hurts, "no checkpoint can be written: " + failure,
          first + ", or give --folder and checkpoint.folder another one"};
}

Finding judge_token(const std::optional<TokenFacts>& token) {
  Finding finding{.check = "token"};
  if (!token) {
    finding.verdict = Verdict::note;
    finding.text = "none was given: TLS is not tried";
    finding.remedy = "tw doctor @FILE, with the token of the run (tw token FOLDER --address HOST:PORT)";
    return finding;
  }
  finding.text = fmt::format("run {}, role {}", token->run, token->role);
  if (!token->trains) {
    finding.verdict = Verdict::hurts;
    finding.text += ": it may watch, not train";
    finding.remedy = "tw token FOLDER --role peer --address HOST:PORT --expires 30d";
    return finding;
  }
  if (token->begins_in_s > 0) {
    finding.verdict = Verdict::hurts;
    finding.text += fmt::format(
        ", begins to hold in {}: this clock is behind, or that of the machine that made it was ahead",
        duration_text(token->begins_in_s));
    finding.remedy =
        fmt::format("set the clock that is wrong, which the line \"clock\" names: {}", kSetClock);
    return finding;
  }
  if (token->left_s <= 0 || token->bad) {
    finding.verdict = Verdict::hurts;
    finding.text +=
        token->left_s <= 0 ? ", expired " + duration_text(-token->left_s) + " ago" : ": " + *token->bad;
    finding.remedy = "a new one: tw token FOLDER --address HOST:PORT --expires 30d";
    return finding;
  }
  finding.text += ", expires in " + duration_text(token->left_s);
  if (token->left_s < 86400) {
    finding.verdict = Verdict::note;
    finding.remedy =
        "a machine that is started again after that needs a new one: tw token FOLDER --expires 30d";
  }
  return finding;
}

Finding judge_notices(const NoticeFacts& notices) {
  Finding finding{.check = "notices"};
  if (notices.provider.empty()) {
    finding.verdict = Verdict::note;
    finding.text = "no cloud that this machine's firmware names; only SIGTERM announces a preemption";
    finding.remedy =
        "on a spot machine name its cloud: --notices aws, gcp or azure; else nothing is to be done";
    return finding;
  }
  finding.text = fmt::format("{}: asks {}", notices.provider, fmt::join(notices.sources, ", "));
  if (notices.warnings.empty()) return finding;
  finding.verdict = Verdict::hurts;
  finding.text = fmt::format("{}: {}", notices.provider, fmt::join(notices.warnings, "; "));
  finding.remedy = "let the process reach 169.254.169.254: no proxy, and a hop limit of 2 for containers";
  return finding;
}

std::string render(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{} {} {}", fitted(finding.check, 12), fitted(name_of(finding.verdict), 9),
                        printable_line(finding.text));
    const std::string_view stop = finding.text.ends_with('?') ? " Remedy: " : ". Remedy: ";
    text += finding.remedy.empty() ? "\n" : fmt::format("{}{}\n", stop, printable_line(finding.remedy));
  }
  return text;
}

bool any_hurts(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.verdict == Verdict::hurts; });
}

}  // namespace tw::measure
