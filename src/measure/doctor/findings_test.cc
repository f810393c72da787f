// SPDX-License-Identifier: Apache-2.0
#include "measure/doctor/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::measure {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kGB = 1'000'000'000;

/// A model of 100 million parameters with Adam: a state of 1.2 GB.
const Needs kLarge{.state_bytes = 1'200'000'000, .memory_bytes = 3'200'000'000};

TEST(Findings, of_a_cpu_compare_what_was_got_with_the_cores) {
  EXPECT_EQ(judge_cpu({.threads = 4, .got = 3.95}).verdict, Verdict::ok);
  EXPECT_EQ(judge_cpu({.threads = 4, .got = 3.5}).verdict, Verdict::note);
  const Finding limited = judge_cpu({.threads = 8, .got = 2, .quota = 2, .throttled = 0.9});
  EXPECT_EQ(limited.verdict, Verdict::hurts);
  EXPECT_THAT(limited.text, HasSubstr("2.0 of 8 cores"));
  EXPECT_THAT(limited.text, HasSubstr("stopped in 90 %"));
  EXPECT_THAT(limited.remedy, HasSubstr("--threads 2"));
  EXPECT_THAT(judge_cpu({.threads = 2, .got = 1.4, .steal = 0.3}).remedy, HasSubstr("machine type"));
  EXPECT_EQ(judge_cpu({.threads = 2, .got = 2, .frequency = 0.5}).verdict, Verdict::note);
}

TEST(Findings, of_memory_compare_with_what_the_model_takes) {
  const MemoryFacts large{.total = 64 * kGB, .available = 60 * kGB};
  EXPECT_EQ(judge_memory(large, kLarge).verdict, Verdict::ok);
  EXPECT_EQ(judge_memory(large, {}).verdict, Verdict::ok);
  const MemoryFacts limited{.total = 64 * kGB, .available = 60 * kGB, .limit = 4 * kGB, .used = kGB};
  const Finding finding = judge_memory(limited, kLarge);
  EXPECT_EQ(finding.verdict, Verdict::hurts);
  EXPECT_THAT(finding.text, HasSubstr("2.8 GiB free, limit of the cgroup 3.7 GiB"));
  EXPECT_THAT(finding.remedy, HasSubstr("container"));
  EXPECT_EQ(judge_memory({.total = 4 * kGB, .available = 4 * kGB}, kLarge).verdict, Verdict::note);
}

TEST(Findings, of_memory_know_the_limit_of_a_process) {
  const Finding bare =
      judge_memory({.total = 16 * kGB, .available = 12 * kGB, .mapped_limit = 300 << 20}, {});
  EXPECT_EQ(bare.verdict, Verdict::note);
  EXPECT_EQ(bare.text, "300 MiB free, limit of a process (ulimit -v) 300 MiB");
  EXPECT_THAT(bare.remedy, HasSubstr("ulimit -v unlimited"));
  const Finding large =
      judge_memory({.total = 16 * kGB, .available = 12 * kGB, .mapped_limit = 2 * kGB}, kLarge);
  EXPECT_EQ(large.verdict, Verdict::hurts);
  EXPECT_THAT(large.remedy, HasSubstr("ulimit -v unlimited"));
  EXPECT_EQ(judge_memory({.total = kGB, .available = kGB, .mapped_limit = 4 * kGB}, {}).verdict, Verdict::ok);
}

TEST(Findings, of_a_disk_that_takes_nothing_name_what_helps) {
  const auto remedy = [](const char* cause) {
    return judge_no_disk(std::string("cannot write t1/x: ") + cause).remedy;
  };
  EXPECT_THAT(remedy("No space left on device"), HasSubstr("make room there, or give --folder"));
  EXPECT_THAT(remedy("Disk quota exceeded"), HasSubstr("make room there"));
  EXPECT_THAT(remedy("File too large"), HasSubstr("ulimit -f"));
  EXPECT_THAT(remedy("Permission denied"), HasSubstr("make the folder writable"));
}

constexpr std::uint64_t kCard = 80ULL << 30;

TEST(Findings, of_gpus_name_those_that_others_use) {
  const host::Gpu idle{"A100", {.busy = 0.0, .memory = 0, .memory_total = kCard}};
  const host::Gpu used{"A100", {.busy = 0.97, .memory = kCard - (1ULL << 30), .memory_total = kCard}};
  const Finding all = judge_gpu({.gpus = {idle, idle}}, {});
  EXPECT_EQ(all.verdict, Verdict::ok);
  EXPECT_EQ(all.text, "2 x A100, 80.0 GiB of 80.0 GiB free, 0 % busy");
  const Finding one = judge_gpu({.gpus = {used, idle}}, {});
  EXPECT_EQ(one.verdict, Verdict::note);
  EXPECT_THAT(one.text, HasSubstr("A100, 1.0 GiB of 80.0 GiB free, 97 % busy; A100, 80.0 GiB"));
  EXPECT_THAT(one.remedy, HasSubstr("a free one with CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(judge_gpu({.gpus = {used, idle}, .visible = "1"}, {.gpu_gib = 12}).verdict, Verdict::ok);
  EXPECT_EQ(judge_gpu({.gpus = {used, idle}, .visible = "0"}, {.gpu_gib = 12}).verdict, Verdict::hurts);
  const Finding none = judge_gpu({.gpus = {used}}, {.gpu_gib = 12});
  EXPECT_EQ(none.verdict, Verdict::hurts);
  EXPECT_THAT(none.text, HasSubstr("the model takes 12.0 GiB"));
  EXPECT_THAT(none.remedy, HasSubstr("nvidia-smi"));
  EXPECT_THAT(judge_gpu({.gpus = {idle}}, {.gpu_gib = 90}).remedy, HasSubstr("more memory"));
}

TEST(Findings, of_gpus_tell_a_card_without_a_driver_from_none) {
  EXPECT_EQ(judge_gpu({.failure = "libnvidia-ml.so.1 cannot be loaded"}, {}).verdict, Verdict::ok);
  const Finding broken = judge_gpu({.built_in = true, .failure = "Driver Not Loaded"}, {.gpu_gib = 1});
  EXPECT_EQ(broken.verdict, Verdict::hurts);
  EXPECT_EQ(judge_gpu({.built_in = true, .failure = "Driver Not Loaded"}, {}).verdict, Verdict::note)
      << "it may be meant to train on the processor";
  EXPECT_THAT(broken.text, HasSubstr("Driver Not Loaded"));
  EXPECT_THAT(broken.remedy, HasSubstr("--gpus all"));
  const host::Gpu idle{"A100", {.memory = 0, .memory_total = kCard}};
  const Finding hidden = judge_gpu({.gpus = {idle}, .visible = "-1"}, {});
  EXPECT_EQ(hidden.verdict, Verdict::note);
  EXPECT_THAT(hidden.text, HasSubstr("CUDA_VISIBLE_DEVICES=-1 hides all"));
}

TEST(Findings, of_open_files_ask_for_the_links_of_the_plan) {
  EXPECT_EQ(judge_files({.soft = 1024, .hard = 4096}, {.peers = 9}).verdict, Verdict::ok);
  const Finding few = judge_files({.soft = 1024, .hard = 4096}, {.peers = 33});
  EXPECT_EQ(few.verdict, Verdict::note);
  EXPECT_EQ(few.remedy, "ulimit -n 2336");
  EXPECT_THAT(judge_files({.soft = 64, .hard = 64}, {.peers = 2}).remedy, HasSubstr("limits.conf"));
  EXPECT_EQ(judge_files({.soft = 64, .hard = 64}, {.peers = 2}).verdict, Verdict::hurts);
}

TEST(Findings, of_a_clock_trust_another_machine_before_the_kernel) {
  EXPECT_EQ(judge_clock({.synchronised = true, .error_s = 0.01}, std::nullopt).verdict, Verdict::ok);
  EXPECT_EQ(judge_clock({}, std::nullopt).verdict, Verdict::note);
  EXPECT_EQ(judge_clock({}, 0.5).verdict, Verdict::ok);
  EXPECT_EQ(judge_clock({.synchronised = true}, -3).verdict, Verdict::note);
  const Finding finding = judge_clock({.synchronised = true}, -400);
  EXPECT_EQ(finding.verdict, Verdict::hurts);
  EXPECT_THAT(finding.text, HasSubstr("400.00 s ahead of that of the other machine"));
  EXPECT_THAT(finding.remedy, HasSubstr("timedatectl"));
}

TEST(Findings, of_a_token_of_the_future_are_about_the_clock) {
  const double year_s = 365 * 86400;
  for (const Finding& finding :
       {judge_token(TokenFacts{
            .run = "mnist", .role = "peer", .left_s = 2 * year_s, .begins_in_s = year_s, .bad = "bad"}),
        judge_clock({}, std::nullopt, year_s)}) {
    EXPECT_EQ(finding.verdict, Verdict::hurts);
    EXPECT_THAT(finding.text, HasSubstr("begins to hold in 365 d 0 h: this clock is behind"));
    EXPECT_THAT(finding.remedy, HasSubstr("timedatectl"));
  }
}

TEST(Findings, of_a_clock_that_is_right_blame_the_one_that_made_the_token) {
  const double day_s = 86400;
  EXPECT_THAT(judge_clock({}, day_s + 1, day_s).text, HasSubstr("this clock is behind"));
  const auto expect_other = [](const Finding& finding) {
    EXPECT_EQ(finding.verdict, Verdict::hurts);
    EXPECT_THAT(finding.text, HasSubstr("the clock of the machine that made it was ahead"));
    EXPECT_THAT(finding.remedy, HasSubstr("make a new one there"));
  };
  expect_other(judge_clock({}, 0.01, day_s));
  expect_other(judge_clock({.synchronised = true}, std::nullopt, day_s));
  const Finding both = judge_clock({}, 100, day_s);
  expect_other(both);
  EXPECT_THAT(both.remedy, HasSubstr("timedatectl"));
  EXPECT_THAT(judge_clock({}, 0.01, day_s).remedy, Not(HasSubstr("timedatectl")));
}

TEST(Findings, of_a_question_end_with_it) {
  EXPECT_THAT(render({{"door", Verdict::hurts, "is it open?", "open it"}}),
              HasSubstr("open? Remedy: open it\n"));
  EXPECT_THAT(render({{"door", Verdict::hurts, "shut", "open it"}}), HasSubstr("shut. Remedy: open it\n"));
}

TEST(Findings, of_a_disk_are_about_checkpoints) {
  const DiskFacts fast{.bytes_per_s = 400e6, .bytes = 1 << 28, .free = 100 * kGB};
  EXPECT_EQ(judge_disk("out", fast, kLarge).verdict, Verdict::ok);
  EXPECT_THAT(judge_disk("out", fast, kLarge).text, HasSubstr("takes 3.0 s"));
  EXPECT_EQ(judge_disk("out", {.bytes_per_s = 20e6, .free = 100 * kGB}, kLarge).verdict, Verdict::note);
  EXPECT_EQ(judge_disk("out", {.bytes_per_s = 9e6, .free = 100 * kGB}, kLarge).verdict, Verdict::hurts);
  EXPECT_EQ(judge_disk("out", {.bytes_per_s = 9e6, .free = 100 * kGB}, {}).verdict, Verdict::note);
  const Finding full = judge_disk("out", {.bytes_per_s = 400e6, .free = 2 * kGB}, kLarge);
  EXPECT_EQ(full.verdict, Verdict::hurts);
  EXPECT_THAT(full.remedy, HasSubstr("free 381 MiB there"));
}

TEST(Findings, of_the_cpu_are_those_of_the_quieter_time) {
  const CpuFacts busy{.threads = 4, .got = 2}, quiet{.threads = 4, .got = 3.9};
  EXPECT_EQ(judge_cpu(quieter(busy, quiet)).verdict, Verdict::ok);
  EXPECT_EQ(quieter(quiet, busy).got, quiet.got);
}

TEST(Findings, of_a_token_tell_when_it_ends) {
  const TokenFacts good{.run = "mnist", .role = "peer", .left_s = 30 * 86400};
  EXPECT_EQ(judge_token(good).verdict, Verdict::ok);
  EXPECT_THAT(judge_token(good).text, HasSubstr("expires in 30 d 0 h"));
  TokenFacts other = good;
  other.left_s = 3600;
  EXPECT_EQ(judge_token(other).verdict, Verdict::note);
  other.left_s = -60;
  EXPECT_EQ(judge_token(other).verdict, Verdict::hurts);
  EXPECT_THAT(judge_token(other).text, HasSubstr("expired 1 min 0 s ago"));
  other = good;
  other.trains = false;
  other.role = "observer";
  other.bad = "role observer: it may watch, not train";
  EXPECT_EQ(judge_token(other).verdict, Verdict::hurts);
  EXPECT_EQ(judge_token(other).text, "run mnist, role observer: it may watch, not train");
  EXPECT_THAT(judge_token(other).remedy, HasSubstr("--role peer"));
  other = good;
  other.bad = "its parts do not fit together";
  EXPECT_THAT(judge_token(other).text, HasSubstr("do not fit"));
  EXPECT_EQ(judge_token(std::nullopt).verdict, Verdict::note);
}

TEST(Findings, of_an_address_tell_who_answers) {
  using Answer = PeerFacts::Answer;
  EXPECT_EQ(judge_reach({.address = "a:1", .answer = Answer::peer}).verdict, Verdict::ok);
  EXPECT_EQ(judge_reach({.address = "a:1", .answer = Answer::probe, .rtt_s = 0.1}).verdict, Verdict::ok);
  const Finding nobody =
      judge_reach({.address = "a:1", .answer = Answer::nobody, .why = "connection refused"});
  EXPECT_EQ(nobody.verdict, Verdict::hurts);
  EXPECT_THAT(nobody.text, HasSubstr("a:1: connection refused"));
}

TEST(Findings, of_bandwidth_compare_the_slower_way_with_the_plan) {
  PeerFacts peer{.address = "a:1", .answer = PeerFacts::Answer::probe, .out_mbit_s = 400, .in_mbit_s = 90};
  EXPECT_EQ(judge_bandwidth(peer).verdict, Verdict::note);
  peer.assumed_mbit_s = 95;
  EXPECT_EQ(judge_bandwidth(peer).verdict, Verdict::ok);
  peer.assumed_mbit_s = 130;
  EXPECT_EQ(judge_bandwidth(peer).verdict, Verdict::note);
  peer.assumed_mbit_s = 400;
  EXPECT_EQ(judge_bandwidth(peer).verdict, Verdict::hurts);
  EXPECT_THAT(judge_bandwidth(peer).remedy, HasSubstr("--profile network.csv"));
}

TEST(Findings, of_the_door_need_another_machine) {
  DoorFacts door{.own_addresses = {"10.0.0.5"}};
  EXPECT_EQ(judge_door(door).verdict, Verdict::note);
  EXPECT_THAT(judge_door(door).text, HasSubstr("private"));
  EXPECT_THAT(judge_door(door).remedy,
              HasSubstr("tw net probe --site SITE --token @FILE --listen HOST:7100"));
  door.probe = "b:7100";
  door.listen = "10.0.0.5:7000";
  EXPECT_EQ(judge_door(door).verdict, Verdict::ok);
  door.failed = "connection timed out";
  EXPECT_EQ(judge_door(door).verdict, Verdict::hurts);
  EXPECT_THAT(judge_door(door).remedy, HasSubstr("--listen none"));
  EXPECT_THAT(judge_door(door).remedy,
              HasSubstr("sudo ufw allow 7000/tcp, and at the router forward port 7000"));
  door.own_addresses = {"10.0.0.5", "34.1.2.3"};
  EXPECT_THAT(judge_door(door).remedy, HasSubstr("sudo ufw allow 7000/tcp;"));
  for (const auto& [provider, command] :
       {std::pair{"aws",
                  "aws ec2 authorize-security-group-ingress --group-id GROUP --protocol tcp --port 7000"},
        std::pair{"gcp", "gcloud compute firewall-rules create tradewind --network NETWORK --allow tcp:7000"},
        std::pair{"azure", "az vm open-port --resource-group GROUP --name MACHINE --port 7000"}}) {
    door.provider = provider;
    EXPECT_THAT(judge_door(door).remedy, HasSubstr(command));
  }
}

TEST(Findings, know_addresses_that_others_cannot_dial) {
  for (const char* address : {"10.1.2.3", "192.168.1.1", "172.16.0.1", "172.31.9.9", "100.64.0.1",
                              "127.0.0.1", "169.254.1.1", "fd00::1", "fe80::1", "::1"})
    EXPECT_TRUE(is_private(address)) << address;
  for (const char* address : {"34.1.2.3", "172.32.0.1", "172.15.0.1", "100.128.0.1", "11.0.0.1", "2a00::1"})
    EXPECT_FALSE(is_private(address)) << address;
}

TEST(Findings, of_notices_tell_who_is_asked) {
  EXPECT_EQ(judge_notices({}).verdict, Verdict::note);
  EXPECT_EQ(judge_notices({.provider = "aws", .sources = {"169.254.169.254"}}).text,
            "aws: asks 169.254.169.254");
  const Finding silent =
      judge_notices({.provider = "aws", .sources = {"169.254.169.254"}, .warnings = {"no answer"}});
  EXPECT_EQ(silent.verdict, Verdict::hurts);
  EXPECT_THAT(silent.remedy, HasSubstr("hop limit"));
}

TEST(Findings, are_printed_a_line_each) {
  const std::vector<Finding> findings{{"disk", Verdict::ok, "fast", ""},
                                      {"open files", Verdict::hurts, "64\nmay be open", "ulimit -n 1024"}};
  EXPECT_EQ(render(findings),
            "disk         ok        fast\n"
            "open files   will hurt 64\\nmay be open. Remedy: ulimit -n 1024\n");
  EXPECT_TRUE(any_hurts(findings));
  EXPECT_FALSE(any_hurts({findings[0]}));
}

}  // namespace
}  // namespace tw::measure
