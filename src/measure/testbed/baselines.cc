// SPDX-License-Identifier: Apache-2.0
#include "measure/testbed/baselines.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "launch/local/child.h"
#include "measure/bench/board.h"
#include "measure/bench/watch.h"

namespace tw::measure {
namespace {

using Words = std::vector<std::string>;

constexpr Duration kLookAtBaselineEvery = std::chrono::milliseconds(5);

Words task_words(const BaselineTask& task) {
  return {"--peers",  std::to_string(task.hosts.size()),          "--bytes", std::to_string(task.bytes),
          "--rounds", std::to_string(task.warm_up + task.rounds), "--board", task.folder + "/board"};
}

/// A command for each rank, with the words that lead to its host.
std::vector<Words> rank_commands(const std::string& program, const BaselineTask& task,
                                 const Words& algorithm) {
  Words more = task_words(task);
  more.insert(more.end(), algorithm.begin(), algorithm.end());
  std::vector<Words> commands;
  for (std::size_t rank = 0; rank < task.hosts.size(); ++rank) {
    const Host& host = task.hosts[rank];
    Words words = host.enter;
    words.insert(words.end(), {program, "--rank", std::to_string(rank), "--address", host.address, "--store",
                               task.folder});
    words.insert(words.end(), more.begin(), more.end());
    commands.push_back(std::move(words));
  }
  return commands;
}

/// With what mpirun gets to a host: "agent ADDRESS COMMAND".
Result<std::string> write_agent(const BaselineTask& task) {
  const std::string path = task.folder + "/agent";
  std::ofstream file(path);
  file << "#!/bin/sh\naddress=$1\nshift\ncase $address in\n";
  for (const Host& host : task.hosts)
    file << host.address << ") exec '" << fmt::format("{}", fmt::join(host.enter, "' '"))
         << "' /bin/sh -c \"$*\";;\n";
  file << "esac\n";
  file.close();
  if (!file || chmod(path.c_str(), 0700) != 0) return Error{"cannot write " + path};
  return path;
}

/// One mpirun for all ranks; on a testbed it runs on the first host. --bind-to none: with more ranks than
/// cores; yield: ranks that wait leave the core to others.
Result<std::vector<Words>> mpi_commands(const std::string& program, const BaselineTask& task) {
  const Host& first = task.hosts.front();
  Words words = first.enter;
  words.insert(words.end(),
               {"mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
                "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include"});
  if (first.enter.empty()) {
    words.emplace_back("lo");
  } else {
    TW_TRY(const auto agent, write_agent(task));
    std::vector<std::string> places;
    for (const Host& host : task.hosts) places.push_back(host.address + ":1");
    const std::string network = first.address.substr(0, first.address.find('.', 3)) + ".0.0/16";
    words.insert(words.end(),
                 {network, "--mca", "oob_tcp_if_include", network, "--mca", "orte_keep_fqdn_hostnames", "1",
                  "--mca", "plm_rsh_agent", agent, "-H", fmt::format("{}", fmt::join(places, ","))});
  }
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {"-n", std::to_string(task.hosts.size()), program});
  const Words more = task_words(task);
  words.insert(words.end(), more.begin(), more.end());
  return std::vector<Words>{words};
}

Result<std::vector<Words>> commands_of(const std::string& baseline, const std::string& program,
                                       const BaselineTask& task) {
  if (baseline == "openmpi") return mpi_commands(program, task);
  if (baseline == "butterfly") return rank_commands(program, task, {});
  return rank_commands(program, task, {"--algorithm", baseline == "gloo-ring" ? "ring_chunked" : "default"});
}

Status until(std::vector<launch::Child>& ranks, const std::string& what, const std::function<bool()>& holds) {
  bool failed = false;
  const auto fails = [](launch::Child& rank) { return rank.ending().value_or(0) != 0; };
  const Status in_time = wait_until(what, kLookAtBaselineEvery, [&] {
    failed = std::any_of(ranks.begin(), ranks.end(), fails);
    return failed || holds();
  });
  if (failed) return Error{"a rank failed"};
  return in_time;
}

Status race(std::vector<launch::Child>& ranks, const BaselineTask& task, Board& board) {
  for (int round = 1; round <= task.warm_up + task.rounds + 1; ++round) {  // the last: to end together
    const auto turn = static_cast<std::uint32_t>(round);
    const auto ready = [&] {
      return std::all_of(board.ready, board.ready + task.hosts.size(),
                         [&](const auto& at) { return at.load() >= turn; });
    };
    if (const Status all = until(ranks, fmt::format("not all ranks are ready for round {}", round), ready);
        !all)
      return all;
    board.release(turn);
  }
  return until(ranks, "not all ranks end", [&] {
    return std::all_of(ranks.begin(), ranks.end(),
                       [](launch::Child& rank) { return rank.ending().has_value(); });
  });
}

BaselineTimes times_on(const Board& board, const BaselineTask& task) {
  BaselineTimes times;
  for (int round = task.warm_up + 1; round <= task.warm_up + task.rounds; ++round) {
    Stamp all = board.of[0][round];
    for (std::size_t rank = 1; rank < task.hosts.size(); ++rank) {
      const Stamp& one = board.of[rank][round];
      all = {std::min(all.begin_s, one.begin_s), std::max(all.end_s, one.end_s), all.cpu_s + one.cpu_s};
    }
    times.seconds.push_back(all.end_s - all.begin_s);
    times.cpu_s.push_back(all.cpu_s);
  }
  return times;
}

}  // namespace

Result<std::string> baseline_program(const std::string& baseline) {
  const std::string name = baseline == "openmpi"     ? "bench_mpi_reduce"
                           : baseline == "butterfly" ? "bench_butterfly_reduce"
                                                     : "bench_gloo_reduce";
  const std::string path = std::filesystem::path(launch::own_path()).parent_path() / "bench" / name;
  if (access(path.c_str(), X_OK) == 0) return path;
  return Error{fmt::format("--vs {}: there is no {}; build it with: make bench", baseline, path)};
}

Result<BaselineTimes> run_baseline(const std::string& baseline, const BaselineTask& task) {
  TW_TRY(const auto program, baseline_program(baseline));
  TW_TRY(auto board, map_board(task.folder + "/board"));
  TW_TRY(const auto commands, commands_of(baseline, program, task));
  const std::string output = task.folder + "/ranks.log";
  std::vector<launch::Child> ranks;
  for (const Words& words : commands) {
    TW_TRY(auto rank, launch::Child::start(words, output));
    ranks.push_back(std::move(rank));
  }
  if (const Status raced = race(ranks, task, *board); !raced) {
    if (interrupted()) return raced.error();
    return Error{fmt::format("{}: {}: {}", baseline, raced.error().message, launch::last_words(output))};
  }
  return times_on(*board, task);
}

}  // namespace tw::measure
