// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/arguments/look_arguments.h"
#include "cli/arguments/run_arguments.h"
#include "cli/plan/plan_sources.h"
#include "cli/plan/price_sources.h"
#include "cli/sim/sim_what_if.h"
#include "launch/exit_codes.h"
#include "peer/link_options.h"
#include "plan/advise/live_market.h"

namespace CLI {
class App;
}

/// The commands of `tw`, a file each. What the user wrote stays text here: the commands check it, so that
/// every message about it can name the value.
namespace tw::cli {

/// Exit codes of every command.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kGoesOn = launch::kGoesOn;
inline constexpr int kInterrupted = 130;

/// "tw: ..." on stderr; returns the code.
int complain(const std::string& message, int code);

/// The same for a warning.
void warn(const std::string& message);

struct InitArguments {
  std::string folder;
  std::string name;
};

void describe_init(CLI::App& app, InitArguments& arguments);
int init(const InitArguments& arguments);

struct TokenArguments {
  std::string folder;
  std::string expires = "30d";
  std::string role = "peer";
  std::string out;
  std::vector<std::string> addresses;
};

void describe_token(CLI::App& app, TokenArguments& arguments);
int token(const TokenArguments& arguments);

void describe_run(CLI::App& app, RunArguments& arguments);
int run_program(const RunArguments& arguments);

struct PredictArguments {
  std::string cluster;
  std::string batch;
  std::string pattern;
  std::string html;
  std::string sweep;
  bool modes = false;
  bool json = false;
  MarketArguments market;
};

void describe_predict(CLI::App& app, PredictArguments& arguments);
int predict(const PredictArguments& arguments);

struct ProfileArguments {
  std::string run_file;
  std::string name;
  double seconds = 10;
  std::string threads;
  double data_mb_per_sample = 0;
  std::string out;
  std::vector<std::string> words;  ///< the command, after --
};

void describe_profile(CLI::App& app, ProfileArguments& arguments);
int profile(const ProfileArguments& arguments);

struct SimArguments {
  std::string scenario;
  std::string seeds;
  std::string seed;
  std::string jobs;
  std::string out;
  std::string html;
  bool once = false;
  bool trace = false;
  bool json = false;
  WhatIfArguments what_if;
};

/// Arguments of the processes that `tw bench reduce` and tests start; written only by programs.
struct BenchPeerArguments {
  std::uint64_t id = 0;
  std::uint64_t peers = 0;
  std::uint64_t bytes = 0;
  std::string codec;
  std::uint64_t rounds = 0;
  std::string board;  ///< file of measure/bench/board.h, which releases the rounds; empty: they follow each
                      ///< other at once
  std::uint64_t streams = 64;  ///< at most, of data, to each other peer
  std::uint64_t work_ms = 0;   ///< of a microbatch
  bool adamw = false;          ///< a state of three vectors; means are not checked
  std::string out;
  std::string listen;
  std::string site;            ///< PROVIDER:REGION:ZONE; empty: one of its own
  std::string sites = "auto";  ///< names of SiteUse
  std::vector<std::string> join;
  std::string token;        ///< empty: without TLS
  std::string checkpoints;  ///< folder; empty: none
  bool progress = false;    ///< on stdout
};

void describe_bench_peer(CLI::App& bench, BenchPeerArguments& arguments);
int bench_peer(const BenchPeerArguments& arguments);

struct BenchJoinArguments {
  std::string bytes = "256MB";
  std::string peers = "2";
  std::string work = "500";
  std::string turns = "3";
  bool json = false;
};

void describe_bench_join(CLI::App& bench, BenchJoinArguments& arguments);
int bench_join(const BenchJoinArguments& arguments);

struct BenchArguments {
  std::string peers;
  std::string bytes = "64MiB";
  std::string codec = "fp32";
  std::string topology;
  std::string versus;
  std::string rounds = "10";
  std::string warm_up = "3";
  std::string turns = "1";
  std::string streams;
  std::string sites = "auto";
  std::string kill;
  std::string disturb;
  std::string stop;
  bool tls = false;
  bool json = false;
  BenchPeerArguments peer;
  BenchJoinArguments join;
};

void describe_bench(CLI::App& app, BenchArguments& arguments);
/// command: "reduce", "join" or "peer".
int run_bench(const BenchArguments& arguments, const std::string& command);

void describe_sim(CLI::App& app, SimArguments& arguments);
int sim(const SimArguments& arguments);

struct CatalogArguments {
  std::string gpu;
  bool spot = false;
  bool on_demand = false;
  bool owned = false;
  std::string provider;
  std::string region;
  std::string limit = "20";
  bool csv = false;
  bool json = false;
  bool left_out = false;
  MarketArguments market;
  std::string law;
  std::vector<std::string> learn;
  std::vector<std::string> clouds;
  std::string from;
  std::string into;
};

void describe_catalog(CLI::App& app, CatalogArguments& arguments);
/// what: the name of its command.
int run_catalog(const CatalogArguments& arguments, const std::string& what);

struct PlanArguments {
  std::string job;
  std::string out = ".";
  std::string point;   ///< row of the front, from 1; empty: its knee
  std::string method;  ///< of the literature; empty: the search
  bool compare = false;
  bool json = false;
  PlanSources sources;
};

void describe_plan(CLI::App& app, PlanArguments& arguments);
int plan(const PlanArguments& arguments);

struct ReplanArguments {
  std::string plan;  ///< PLAN.yaml of the run, which names its job
  std::string logs;  ///< folder or log of the run
  bool json = false;
  PlanSources sources;
  std::vector<plan::ZoneSeen> asked{};  ///< zones that were asked for machines, and gave none yet
};

void describe_replan(CLI::App& app, ReplanArguments& arguments);
int replan(const ReplanArguments& arguments);

struct ReplayArguments {
  std::string trace;
  std::string only;
  std::string zones;
  std::string policy;
  std::string chart;
  std::string work_h = "48";
  std::string deadline_h = "64";
  std::string change_over_s = "720";
  std::string machines;
  std::string spot_usd_h = "0.3";
  std::string on_demand_usd_h = "1";
  std::string move_usd = "0";
  std::string every_h = "24";
  bool json = false;
};

void describe_replay(CLI::App& app, ReplayArguments& arguments);
int replay(const ReplayArguments& arguments);

struct NetArguments {
  std::vector<std::string> words;  ///< sites, or addresses
  std::string streams = "16";
  std::string profile;
  std::string site;
  std::string listen;
  std::string ms = "1000";
  std::string out;
  std::string token;
  std::string run;
  bool insecure = false;
};

void describe_net(CLI::App& app, NetArguments& arguments);
/// command: "show" or "probe".
int run_net(const NetArguments& arguments, const std::string& command);

}  // namespace tw::cli
