// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

#include "e2e/program.h"
#include "host/address.h"

namespace tw {
namespace {

class BadInput : public ProgramTest {
 protected:
  struct StallCause {
    std::vector<std::string> arguments;
    int code;
    std::vector<std::string> parts;  ///< of the message
  };

  void expect(const StallCause& complaint) {
    std::string line = "tw";
    for (const std::string& argument : complaint.arguments) line += " " + argument;
    Program program = tw(complaint.arguments, "refused");
    EXPECT_EQ(program.wait(), complaint.code) << line << "\n" << program.output();
    for (const std::string& part : complaint.parts)
      EXPECT_TRUE(program.says(part)) << line << "\nlacks: " << part << "\n" << program.output();
  }
};

TEST_F(BadInput, on_the_command_line_is_named_with_what_was_expected) {
  const std::string run = write_run({.rounds = 5});
  const StallCause table[] = {
      {{}, 2, {"Usage"}},
      {{"--help"}, 0, {"tw local", "Exit codes"}},
      {{"--version"}, 0, {"tw 0."}},
      {{"train", "--help"}, 0, {"Examples:", "--join", "--wait-for", "--rejoin"}},
      {{"local", "--help"}, 0, {"Examples:", "--kill", "--peers"}},
      {{"report", "--help"}, 0, {"Examples:", "--json"}},
      {{"trian"}, 2, {"trian", "did you mean \"train\""}},
      {{"train"}, 2, {"RUN.yaml", "tw train --help"}},
      {{"local", run}, 2, {"--peers"}},
      {{"local", run, "--pears", "3"}, 2, {"--pears", "did you mean \"--peers\""}},
      {{"local", run, "--peers", "65"}, 2, {"--peers 65", "1 to 64", "--peers 64"}},
      {{"local", run, "--peers", "three"}, 2, {"--peers three", "whole number"}},
      {{"local", run, "--peers", "3", "--kill", "4@2"}, 2, {"--kill 4@2", "peers 1 to 3", "--kill 3@2"}},
      {{"local", run, "--peers", "3", "--kill", "2@9"}, 2, {"--kill 2@9", "5 rounds", "--kill 2@5"}},
      {{"local", run, "--peers", "3", "--kill", "ledaer@2"}, 2, {"did you mean \"leader\""}},
      {{"local", run, "--peers", "3", "--join", "0"}, 2, {"--join 0", "1 to 5"}},
      {{"local", path("none.yaml"), "--peers", "3"}, 2, {"none.yaml"}},
      {{"train", run, "--set", "training.ruonds=3"}, 2, {"training.ruonds", "rounds"}},
      {{"train", run, "--set", "rounds"}, 2, {"--set rounds", "KEY=VALUE"}},
      {{"train", run, "--id", "0"}, 2, {"--id 0", "--id 1"}},
      {{"train", run, "--insecure", "--join", "somewhere"}, 2, {"--join somewhere", "HOST:PORT"}},
      {{"train", run, "--listen", "0.0.0.0:7000"}, 2, {"--token", "tw init", "--insecure"}},
      {{"train", run, "--join", "192.0.2.1:7000"}, 2, {"--token", "--insecure"}},
      {{"train", run, "--insecure", "--run", path("run")}, 2, {"--insecure", "one of the two"}},
      {{"train", run, "--run", path("nowhere")}, 2, {path("nowhere/token"), "tw token"}},
      {{"train", run, "--run", path("run"), "--listen", "none"}, 2, {"--listen none", "--join"}},
      {{"train", run, "--token", "rubbish"}, 2, {"--token", "is no token", "tw token"}},
      {{"init", path("run")}, 1, {path("run/ca.key"), "exists already"}},
      {{"init", path("other"), "--name", "a\x1b[31mb"}, 2, {"--name a\\x1b[31mb", "bytes of text"}},
      {{"token", path("nowhere")}, 2, {path("nowhere/ca.key"), "tw init"}},
      {{"token", path("run"), "--out", path("run/token")}, 1, {"--out", "exists already"}},
      {{"catalog", "lst"}, 2, {"lst", "did you mean \"list\""}},
      {{"net", "prob"}, 2, {"prob", "did you mean \"probe\""}},
      {{"train", run, "--log-limit", "3"}, 2, {"--log-limit 3", "64 KiB", "256MiB"}},
      {{"local", run, "--peers", "1", "--log-limit", "1TiB"}, 2, {"--log-limit 1TiB", "256MiB"}},
      {{"token", path("run"), "--expires", "30"}, 2, {"--expires 30", "30d"}},
      {{"token", path("run"), "--role", "pear"}, 2, {"--role pear", "did you mean \"peer\""}},
      {{"token", path("run"), "--address", "host"}, 2, {"--address host", "host:7000"}},
      {{"report", path("none")}, 2, {path("none")}},
      {{"report", path("")}, 2, {"no event log"}},
  };
  for (const StallCause& complaint : table) expect(complaint);
}

TEST_F(BadInput, in_the_run_file_is_named_with_its_line) {
  expect({{"train", write_run({}, "optimiser:\n  kind: sgd\n")}, 2, {"run.yaml", "optimiser", "optimizer"}});
  expect({{"train", write_run({.microbatch = 512})}, 2, {"512", "256"}});
  std::filesystem::remove(path("train-x"));
  expect({{"train", write_run({})}, 2, {"run.yaml", "no such file", "train-x"}});
}

TEST_F(BadInput, that_is_no_regular_file_is_refused_and_never_waited_for) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(path("cluster.yaml")) << "profile: pipe\ntbs: 1\npeers: 1xT4@gcp:us\n";
  std::ofstream(path("piped.yaml")) << "model: char-transformer\ndata:\n  text: pipe\n";
  std::filesystem::create_directories(path("logs"));
  ASSERT_EQ(mkfifo(path("logs/events-1.jsonl").c_str(), 0600), 0);
  const std::string run = write_run({});
  const std::pair<std::string, std::string> kinds[] = {
      {folder(), "it is a folder"}, {"/dev/zero", "it is a device"}, {pipe, "it is a pipe"}};
  for (const auto& [file, kind] : kinds) {
    const std::vector<std::string> commands[] = {
        {"train", file},
        {"local", file, "--peers", "2"},
        {"profile", file},
        {"sim", file},
        {"sim", "--trace-spot", file},
        {"predict", file},
        {"predict", "--batch", file},
        {"plan", file},
        {"plan", "--replay", file},
        {"net", "show", "--profile", file},
        {"catalog", "list", "--offers", file},
        {"train", run, "--token", "@" + file},
    };
    for (const std::vector<std::string>& command : commands)
      expect({command, 2, {file, "cannot be read", kind, "expected a regular file"}});
  }
  expect({{"predict", path("cluster.yaml")}, 2, {"cluster.yaml", "profile", "it is a pipe"}});
  expect({{"train", path("piped.yaml")}, 2, {"data.text", "no such file"}});
  expect({{"report", path("logs")}, 2, {"events-1.jsonl", "it is a pipe"}});
}

TEST_F(BadInput, with_numbers_beyond_all_bounds_is_named_with_its_line) {
  const auto trace = [&](const std::string& rows) {
    std::ofstream(path("spot.csv")) << "t_seconds,available\n0,2\n" << rows;
    return std::vector<std::string>{"sim", "--trace-spot", path("spot.csv")};
  };
  for (const std::string time : {"nan", "inf", "1e300"})
    expect({trace(time + ",2\n"), 2, {"spot.csv:3: t_seconds " + time, "0 to 100000000"}});
  expect({trace("5,1e300\n"), 2, {"spot.csv:3: available 1e300", "0 to 10000"}});
  expect({trace("100000000,2\n"), 2, {"spot.csv", "27778 h", "--hours"}});
  for (const std::string option : {"--hours", "--from", "--speed", "--samples-per-s", "--rtt-ms", "--tbs"})
    for (const std::string number : {"nan", "inf", "1e300"})
      expect({{"sim", "--lifetimes", "exponential:4", option, number}, 2, {option, number, "a number from"}});
  expect({{"train", write_run({.microbatch = 1099511627776})},
          2,
          {"run.yaml:9: training.microbatch", "from 1 to 1048576", "1099511627776"}});
  expect({{"train", write_run({.batch = 4611686018427387904})},
          2,
          {"run.yaml:8: training.target_batch_size", "from 1 to 1000000000", "4611686018427387904"}});
  for (const std::string gpus : {"0", "1e12", "nan"}) {
    std::ofstream(path("offers.csv"))
        << "provider,region,gpu,gpus,purchase,usd_per_h\na,b,T4," << gpus << ",owned,1\n";
    expect({{"catalog", "list", "--offers", path("offers.csv")}, 2, {"offers.csv:2: gpus " + gpus, "1024"}});
  }
  expect({{"plan", "--replay", path("spot.csv"), "--work-h", "inf"}, 2, {"--work-h inf", "a number from"}});
}

TEST_F(BadInput, never_reaches_the_terminal_as_control_characters) {
  const std::string red = "\x1b[31m";
  std::ofstream(path("offers.csv"), std::ios::binary)
      << "provider,region,gpu,purchase,usd_per_h\na,b," << red << "T4" << '\0' << ",owned,1\n";
  std::ofstream(path("key.yaml")) << "\"mod\\e[31mel\": 3\n";
  const std::string run = write_run({});
  const std::vector<std::string> commands[] = {
      {"train", red + ".yaml"},
      {"train", path("key.yaml")},
      {"sim", path("key.yaml")},
      {"predict", path("key.yaml")},
      {"train", run, "--set", "training." + red + "=1"},
      {"train", run, "--" + red},
      {red},
      {"train", run, "--join", red},
      {"train", run, "--token", red},
      {"report", red},
      {"catalog", "list", "--offers", path("offers.csv")},
      {"catalog", "list", "--gpu", red},
      {"plan", path("key.yaml")},
  };
  for (const std::vector<std::string>& command : commands) {
    Program program = tw(command, "refused");
    EXPECT_EQ(program.wait(), 2) << testing::PrintToString(command) << program.output();
    EXPECT_FALSE(program.says("\x1b")) << testing::PrintToString(command);
    EXPECT_FALSE(program.output().find('\0') != std::string::npos) << testing::PrintToString(command);
  }
}

TEST_F(BadInput, keys_are_named_each_with_the_one_that_was_meant) {
  const auto complaint = [&](const std::string& command, const std::string& yaml) {
    std::ofstream(path("keys.yaml")) << yaml;
    Program program = tw({command, path("keys.yaml")}, "keys");
    EXPECT_EQ(program.wait(), 2) << program.output();
    return program.output();
  };
  const std::tuple<const char*, const char*, std::vector<const char*>> table[] = {
      {"train", "optimiser:\n  kind: sgd\ntraining:\n  ruonds: 3\n", {"\"optimizer\"", "\"rounds\""}},
      {"sim", "sits: []\nworkload: {ruonds: 3}\n", {"\"sites\"", "\"rounds\""}},
      {"plan", "modle: CONV\ntsb: 1\nsample: 9\n", {"\"model\"", "\"tbs\"", "\"samples\""}},
      {"predict", "modle: CONV\ncodek: fp16\npeer: 1xT4@gcp:us\n", {"\"model\"", "\"codec\"", "\"peers\""}},
  };
  for (const auto& [command, yaml, meant] : table)
    for (const char* name : meant) {
      const std::string text = complaint(command, yaml);
      EXPECT_NE(text.find(std::string("did you mean ") + name), std::string::npos) << command << "\n" << text;
    }
}

TEST_F(BadInput, a_token_that_others_can_read_is_warned_of_and_made_for_its_owner_alone) {
  Program made = tw({"token", path("run"), "--out", path("mine")}, "made");
  EXPECT_EQ(made.wait(), 0) << made.output();
  EXPECT_EQ(std::filesystem::status(path("mine")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(made.output(), "");

  Program shown({"token", path("run")}, {.output = path("theirs"), .separate_errors = path("errors.txt")});
  EXPECT_EQ(shown.wait(), 0);
  EXPECT_NE(content_of(path("errors.txt")).find("warning"), std::string::npos);
  EXPECT_EQ(content_of(path("theirs")).find("warning"), std::string::npos);

  const std::string run = write_run({.rounds = 1}, "checkpoint: {folder: none}\n");
  Program open = tw({"train", run, "--token", "@" + path("theirs"), "--quiet"}, "open");
  EXPECT_EQ(open.wait(), 0);
  EXPECT_TRUE(open.says(path("theirs") + " holds a token and is open to other users")) << open.output();
  EXPECT_TRUE(open.says("chmod 600"));
  Program closed = tw({"train", run, "--token", "@" + path("mine"), "--quiet"}, "closed");
  EXPECT_EQ(closed.wait(), 0);
  EXPECT_EQ(closed.output(), "");
}

TEST_F(BadInput, to_the_report_is_a_broken_line_with_its_place) {
  std::filesystem::create_directories(path("out"));
  std::ofstream(path("out/events-1.jsonl")) << "not json\n{}\n";
  expect({{"report", path("out")}, 2, {"events-1.jsonl:1:"}});
}

/// Sends raw bytes to a peer and reads until it closes, or for a second.
void send_raw(const std::string& address, const std::string& bytes) {
  const auto to = host::parse_address(address);
  ASSERT_TRUE(to);
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(to.value().port);
  ASSERT_EQ(inet_pton(AF_INET, to.value().host.c_str(), &target.sin_addr), 1);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&target), sizeof(target)), 0);
  ASSERT_EQ(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  const timeval second{.tv_sec = 1, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
  char sink[4096];
  while (recv(socket, sink, sizeof(sink), 0) > 0) {
  }
  close(socket);
}

TEST_F(BadInput, from_the_network_does_not_disturb_a_run) {
  const std::string run = write_run({.rounds = 100'000});
  Program first = peer(run, 1);
  const std::string address = address_of(1);
  ASSERT_TRUE(wait_for_round(1, 1));

  send_raw(address, "GET / HTTP/1.1\r\nHost: peer\r\n\r\n");
  send_raw(address, std::string(100'000, '\xff'));
  send_raw(address, "");
  const auto refused_for = [&](world::Cause cause) {
    return wait_until([&] {
      return std::ranges::count(events_of(1, world::Phase::refuse), cause, &world::Event::cause) > 0;
    });
  };
  EXPECT_TRUE(refused_for(world::Cause::broken)) << first.output();

  expect({{"train", write_run({.rounds = 100'000}, "  warmup_rounds: 3\n", "other.yaml"), "--run",
           path("run"), "--join", address},
          1,
          {"cannot join " + address, "another run: expected \"schedule: learning_rate=", "this peer has",
           "same run file"}});
  std::ofstream(path("text")) << std::string(20'000, 'a');
  std::ofstream(path("text.yaml")) << "model: char-transformer\ndata:\n  text: text\n";
  expect({{"train", path("text.yaml"), "--run", path("run"), "--join", address},
          1,
          {"cannot join " + address, "parameters"}});
  EXPECT_TRUE(refused_for(world::Cause::run)) << first.output();
  EXPECT_TRUE(refused_for(world::Cause::parameters)) << first.output();
  expect({{"train", run, "--run", path("run"), "--listen", address}, 1, {address, "in use"}});

  ASSERT_TRUE(wait_for_round(1, last_round(1) + 3)) << "it trains on";
  first.send(SIGTERM);
  EXPECT_EQ(first.wait(), kGoesOn);
}

}  // namespace
}  // namespace tw
