// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/arguments/link_arguments.h"
#include "host/system/temporary_folder.h"

namespace tw::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

TEST(RunPlan, of_a_run_that_goes_on_and_begins_anew_is_refused) {
  RunArguments arguments;
  arguments.words = {"true"};
  arguments.links.rejoin = true;
  EXPECT_TRUE(plan_run(arguments));
  arguments.links.anew = true;
  const auto plan = plan_run(arguments);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "--rejoin and --anew: the run goes on or begins anew; give one of the two");
}

TEST(RunPlan, names_what_is_wrong_before_it_starts_a_process) {
  const auto refused = [](void (*give)(RunArguments & arguments)) {
    RunArguments arguments;
    arguments.words = {"true"};
    give(arguments);
    const auto plan = plan_run(arguments);
    return plan ? "nothing" : plan.error().message;
  };
  EXPECT_EQ(refused([](RunArguments& given) { given.threads = "-1"; }),
            "--threads -1: expected a whole number from 1 to 1024");
  EXPECT_EQ(refused([](RunArguments& given) { given.links.join = {"1e2"}; }),
            "--join 1e2: expected HOST:PORT, or ROUND from 1 on");
  EXPECT_EQ(refused([](RunArguments& given) {
              given.set = {"rounds=3", "training.rounds=4"};
            }),
            "--set: training.rounds is given twice, 3 and 4");
  EXPECT_EQ(refused([](RunArguments& given) {
              given.peers = "2";
              given.links.wait_for = "3";
            }),
            "--wait-for 3: 2 peers begin here, and nobody else can join them: raise --peers, or give --token "
            "or --run, "
            "and --listen");
  EXPECT_EQ(refused([](RunArguments& given) { given.links.grace = "25"; }),
            "--grace 25: expected a duration from 1s to 1h, such as 25s");
  EXPECT_EQ(refused([](RunArguments& given) { given.links.log_limit = "5XB"; }),
            "--log-limit 5XB: expected a size from 64 KiB to 16 GiB, such as 256MiB");
  EXPECT_EQ(refused([](RunArguments& given) { given.links.watch = "8080"; }),
            "--watch 8080: expected HOST:PORT, such as 127.0.0.1:8080");
  EXPECT_EQ(refused([](RunArguments& given) {
              given.links.usd_per_h = "catalog";
              given.links.role = "chef";
            }),
            "--role chef: expected peer or anchor");
  EXPECT_THAT(refused([](RunArguments& given) { given.links.run_folder = "/nowhere"; }),
              StartsWith("--run /nowhere: /nowhere/token: "));
  EXPECT_EQ(refused([](RunArguments& given) {
              given.set = {"rounds=3", "rounds=3"};
              given.threads = "1024";
              given.links.join = {"node:7000", "[::1]:7000"};
              given.links.insecure = true;
            }),
            "nothing");
}

TEST(RunPlan, refuses_a_setting_that_the_program_would_refuse) {
  const auto refused = [](const std::string& setting) {
    const auto plan = plan_run({.set = {setting}, .words = {"true"}});
    return plan ? "nothing" : plan.error().message;
  };
  EXPECT_EQ(refused("training.target_batch_size=1e3"),
            "--set training.target_batch_size=1e3: expected a whole number from 1 to 1000000000 or auto, "
            "found \"1e3\"");
  EXPECT_THAT(refused("mode=fast"), StartsWith("--set mode=fast: expected sync"));
  EXPECT_EQ(refused("foo=1"),
            "--set foo=1: there is no setting foo; docs/run_file.md and docs/python.md list all settings");
  EXPECT_EQ(refused("ruonds=1"), "--set ruonds=1: there is no setting ruonds; did you mean \"rounds\"?");
  EXPECT_EQ(
      refused("training.ruonds=1"),
      "--set training.ruonds=1: there is no setting training.ruonds; did you mean \"training.rounds\"?");
  EXPECT_EQ(refused("grace=25"), "--set grace=25: expected a duration from 1s to 1h, such as 25s");
  EXPECT_EQ(refused("threads=0"),
            "--set threads=0: expected a whole number from 1 to 1024, for example threads=1");
  EXPECT_EQ(refused("insecure=perhaps"), "--set insecure=perhaps: expected true or false");
  EXPECT_EQ(refused("begun=0"), "--set begun=0: expected a whole number from 1 on, for example begun=1");
  for (const char* fine :
       {"rounds=3", " training.rounds = 3", "threads=4", "insecure=1", "join=a:1", "rendezvous=none",
        "checkpoint.folder=logs", "grain=4", "begun=2", "gpu=H100", "gpu_uuid=x", "run_file=run.yaml"})
    EXPECT_EQ(refused(fine), "nothing") << fine;
}

TEST(RunPlan, lets_the_program_add_what_a_setting_goes_together_with) {
  peer::LinkOptions nothing;
  forget_defaults(nothing);
  for (const char* setting : {"fragments=8", "outer=mean", "batch_min=64", "rounding=stochastic",
                              "budget_action=drain", "rejoin=1", "wait_for=2"}) {
    const auto plan = plan_run({.links = nothing, .set = {setting}, .words = {"true"}});
    EXPECT_TRUE(plan) << plan.error().message;
  }
}

TEST(RunPlan, refuses_options_and_settings_that_exclude_each_other) {
  const auto refused = [](std::vector<std::string> set, void (*give)(peer::LinkOptions & links)) {
    RunArguments arguments{.set = std::move(set), .words = {"true"}};
    forget_defaults(arguments.links);
    give(arguments.links);
    const auto plan = plan_run(arguments);
    return plan ? "nothing" : plan.error().message;
  };
  const auto nothing = [](peer::LinkOptions&) {};
  EXPECT_THAT(refused({"rejoin=1", "anew=1"}, nothing), StartsWith("--rejoin and --anew: "));
  EXPECT_THAT(refused({"rejoin=1"}, [](auto& links) { links.no_rejoin = true; }),
              StartsWith("--rejoin and --no-rejoin: "));
  EXPECT_THAT(refused({"insecure=1"}, [](auto& links) { links.run_folder = "F"; }),
              StartsWith("--insecure and a token: "));
  EXPECT_EQ(refused({"usd_per_h=1"}, [](auto& links) { links.usd_per_h = "2"; }),
            "--set usd_per_h=1: given twice, also as --usd-per-h 2; leave one of them out");
  EXPECT_EQ(refused({"rejoin=no"}, [](auto& links) { links.rejoin = true; }),
            "--set rejoin=no: given twice, also as --rejoin; leave one of them out");
  EXPECT_EQ(refused({"join=a:1", "grace=9s"},
                    [](auto& links) {
                      links.join = {"a:1"};
                      links.grace = "9s";
                    }),
            "nothing");
  EXPECT_EQ(refused({"anew=1"}, [](auto& links) { links.rejoin = true; }), "nothing")
      << "a process that is started again goes on with its run";
}

TEST(RunPlan, takes_an_option_in_set_for_its_own) {
  RunArguments arguments{.peers = "2", .set = {"wait_for=3"}, .words = {"true"}};
  forget_defaults(arguments.links);
  const auto waits = plan_run(arguments);
  ASSERT_FALSE(waits);
  EXPECT_THAT(waits.error().message,
              StartsWith("--wait-for 3: 2 peers begin here, and nobody else can join"));
  arguments.set = {"id=7"};
  const auto two = plan_run(arguments);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().message, "--id 7: goes with one process, and there are 2");
  arguments.set = {"rounds=3", " wait_for = 1", "out=logs", "anew=no", "progress=off"};
  const auto plan = plan_run(arguments);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan.value().waits_for, 1U);
  EXPECT_EQ(plan.value().arguments.links.out, "logs");
  EXPECT_THAT(plan.value().arguments.set, ElementsAre("rounds=3", "anew=no", "progress=off"));
  const host::TemporaryFolder folder;
  const auto options = crew_options(plan.value(), folder.path());
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_THAT(options.value().environments.front(), Contains(Pair("TRADEWIND_WAIT_FOR", "1")));
  EXPECT_THAT(options.value().environments.front(), Not(Contains(Pair("TRADEWIND_WAIT_FOR", "2"))));
}

TEST(RunPlan, tells_all_peers_the_port_that_was_left_to_it) {
  const auto listens = [](const std::string& peers, const std::string& listen) {
    const host::TemporaryFolder folder;
    RunArguments arguments{.peers = peers, .words = {"true"}};
    forget_defaults(arguments.links);
    arguments.links.listen = listen;
    const auto plan = plan_run(arguments);
    if (!plan) return plan.error().message;
    const auto options = crew_options(plan.value(), folder.path());
    if (!options) return options.error().message;
    const auto& all = options.value().environments;
    std::string first, second;
    for (const auto& [name, value] : all.front())
      if (name == "TRADEWIND_LISTEN") first = value;
    for (const auto& [name, value] : all.back())
      if (name == "TRADEWIND_JOIN") second = value;
    return first + " " + second;
  };
  EXPECT_EQ(listens("1", "127.0.0.1:0"), "127.0.0.1:0 ");
  EXPECT_EQ(listens("2", "127.0.0.1:7000"), "127.0.0.1:7000 127.0.0.1:7000");
  const std::string chosen = listens("2", "127.0.0.1:0");
  EXPECT_THAT(chosen, testing::MatchesRegex("(127.0.0.1:[1-9][0-9]+) 127.0.0.1:[1-9][0-9]+"));
  EXPECT_EQ(chosen.substr(0, chosen.find(' ')), chosen.substr(chosen.find(' ') + 1));
}

TEST(RunPlan, looks_for_the_token_whatever_else_is_given) {
  const auto refused = [](const peer::LinkOptions& links) {
    const auto plan = plan_run({.links = links, .words = {"true"}});
    return plan ? "nothing" : plan.error().message;
  };
  EXPECT_THAT(refused({.join = {"a:1"}, .run_folder = "/nowhere"}), StartsWith("--run /nowhere: "));
  EXPECT_THAT(refused({.run_folder = "/nowhere", .rejoin = true}), StartsWith("--run /nowhere: "));
  EXPECT_THAT(refused({.join = {"a:1"}, .token = "@/nowhere"}), StartsWith("--token @/nowhere: "));
  EXPECT_THAT(refused({.join = {"a:1"}, .token = "rubbish"}), StartsWith("--token: what was given is no"));
  EXPECT_EQ(refused({.token = "@/nowhere", .rejoin = true}), "nothing");
}

TEST(RunPlan, refuses_a_run_file_with_a_misspelt_key_or_a_wrong_value) {
  const host::TemporaryFolder folder;
  const std::string file = folder.path() + "/run.yaml";
  const auto refused = [&](const std::string& yaml) {
    std::ofstream(file) << yaml;
    const auto plan = plan_run({.run_file = file, .words = {"true"}});
    return plan ? "nothing" : plan.error().message;
  };
  EXPECT_EQ(refused("training: {ruonds: 3}\n"),
            file + ":1: training.ruonds: unknown key; did you mean \"rounds\"?");
  EXPECT_EQ(refused("training: {rounds: 1e3}\n"),
            file + ":1: training.rounds: expected a whole number from 1, found \"1e3\"");
  EXPECT_EQ(refused("training: {fragments: 8}\n"), "nothing") << "the program may say mode=streaming";
}

}  // namespace
}  // namespace tw::cli
