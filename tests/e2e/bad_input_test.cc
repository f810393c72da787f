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
  struct Complaint {
    std::vector<std::string> arguments;
    int code;
    std::vector<std::string> parts;  ///< of the message
  };

  void expect(const Complaint& complaint) { expect(complaint, tw(complaint.arguments, "refused")); }

  /// The arguments are settings of a peer.
  void expect_of_peer(const Complaint& complaint) { expect(complaint, toy("refused", complaint.arguments)); }

 private:
  static void expect(const Complaint& complaint, Program program) {
    const std::string line = testing::PrintToString(complaint.arguments);
    EXPECT_EQ(program.wait(), complaint.code) << line << "\n" << program.output();
    for (const std::string& part : complaint.parts)
      EXPECT_TRUE(program.says(part)) << line << "\nlacks: " << part << "\n" << program.output();
  }
};

TEST_F(BadInput, on_the_command_line_is_named_with_what_was_expected) {
  const std::string run = write_run({.rounds = 5});
  const Complaint table[] = {
      {{}, 2, {"Usage"}},
      {{"--help"}, 0, {"tw report", "Exit codes"}},
      {{"--version"}, 0, {"tw 0."}},
      {{"run", "--help"}, 0, {"Examples:", "--join", "--wait-for", "--rejoin", "--peers"}},
      {{"report", "--help"}, 0, {"Examples:", "--json"}},
      {{"report", folder(), "--csv", ""}, 2, {"tw report: --csv: found an empty text", "tables of rounds"}},
      {{"run", "--token", "", "--", "true"}, 2, {"tw run: --token: found an empty text", "TOKEN or @FILE"}},
      {{"init", ""}, 2, {"tw init: FOLDER: found an empty text", "new folder"}},
      {{"rnu"}, 2, {"rnu", "did you mean \"run\""}},
      {{"run"}, 2, {"nothing to run", "tw run --peers 2 -- python3 train.py"}},
      {{"run", run, "--pears", "3", "--", "true"}, 2, {"--pears", "did you mean \"--peers\""}},
      {{"run", run, "--peers", "65", "--", "true"}, 2, {"--peers 65", "1 to 64", "--peers 64"}},
      {{"run", run, "--peers", "three", "--", "true"}, 2, {"--peers three", "whole number"}},
      {{"run", path("none.yaml"), "--", "true"}, 2, {"none.yaml"}},
      {{"run", run, "--set", "rounds", "--", "true"}, 2, {"--set rounds", "KEY=VALUE"}},
      {{"run", run, "--insecure", "--run", path("run"), "--", "true"},
       2,
       {"--insecure", "give one of the two"}},
      {{"init", path("run")}, 1, {path("run/ca.key"), "exists already"}},
      {{"init", path("other"), "--name", "a\x1b[31mb"}, 2, {"--name a\\x1b[31mb", "bytes of text"}},
      {{"token", path("nowhere")}, 2, {path("nowhere/ca.key"), "tw init"}},
      {{"token", path("run"), "--out", path("run/token")}, 1, {"--out", "exists already"}},
      {{"catalog", "lst"}, 2, {"lst", "did you mean \"list\""}},
      {{"catalog", "ls"}, 2, {"unknown argument ls; expected one of ", "list"}},
      {{"run", "python3", "train.py"},
       2,
       {"unknown argument train.py; write the program after --, as in: tw run -- python3"}},
      {{"data", "ls", path("none.twi")}, 2, {path("none.twi")}},
      {{"doctor", "--probe", "127.0.0.1:1"}, 2, {"--probe 127.0.0.1:1", "tw doctor @FILE", "--insecure"}},
      {{"net", "prob"}, 2, {"prob", "did you mean \"probe\""}},
      {{"token", path("run"), "--expires", "30"}, 2, {"--expires 30", "30d"}},
      {{"token", path("run"), "--role", "pear"}, 2, {"--role pear", "did you mean \"peer\""}},
      {{"token", path("run"), "--address", "host"}, 2, {"--address host", "host:7000"}},
      {{"report", path("none")}, 2, {path("none")}},
      {{"report", path("")}, 2, {"no event log"}},
  };
  for (const Complaint& complaint : table) expect(complaint);
}

TEST_F(BadInput, in_options_of_a_program_is_told_once_before_a_process_begins) {
  const std::string begun = path("begun");
  std::ofstream(path("bad.yaml")) << "training: {ruonds: 3}\n";
  const auto expect_once = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), {"run", "--peers", "2"});
    words.insert(words.end(), {"--", "touch", begun});
    Program program = tw(words, "refused");
    EXPECT_EQ(program.wait(), 2) << program.output();
    EXPECT_TRUE(program.output().starts_with("tw: " + message)) << message << "\n" << program.output();
    EXPECT_EQ(std::ranges::count(program.output(), '\n'), 1) << program.output();
    EXPECT_FALSE(std::filesystem::exists(begun)) << message;
  };
  const std::pair<std::string, std::string> options[] = {
      {"--grace", "25"},       {"--log-limit", "5XB"}, {"--notices", "foo"},  {"--watch", "8080"},
      {"--listen", "1.2.3.4"}, {"--role", "chef"},     {"--site", "a b"},     {"--wait-for", "0"},
      {"--usd-per-h", "-1"},   {"--progress", "loud"}, {"--threads", "0"},    {"--set", "foo=1"},
      {"--set", "rounds=1e3"}, {"--set", "mode=fast"}, {"--set", "grace=25"},
  };
  for (const auto& [option, value] : options) expect_once({option, value}, option + " " + value + ": ");
  const std::string nowhere = path("nowhere");
  const std::vector<std::string> others[] = {{}, {"--join", "192.0.2.1:7000"}, {"--rejoin"}};
  for (const std::vector<std::string>& more : others) {
    std::vector<std::string> words = {"--run", nowhere};
    words.insert(words.end(), more.begin(), more.end());
    expect_once(words, "--run " + nowhere + ": " + nowhere + "/token: ");
  }
  expect_once({"--token", "@" + nowhere, "--join", "192.0.2.1:7000"}, "--token @" + nowhere + ": ");
  expect_once({"--no-rejoin", "--set", "rejoin=1"}, "--rejoin and --no-rejoin: ");
  expect_once({path("bad.yaml")}, path("bad.yaml") + ":1: training.ruonds: unknown key");
}

TEST_F(BadInput, in_the_settings_of_a_peer_is_named_with_what_was_expected) {
  const std::string meets = "run=" + path("run");
  const Complaint table[] = {
      {{"training.ruonds=3"}, 2, {"training.ruonds", "rounds"}},
      {{"training.microbatch=32"}, 2, {"training.microbatch", "unknown key"}},
      {{"id=0"}, 2, {"id=0", "id=1"}},
      {{"insecure=true", "join=somewhere"}, 2, {"join=somewhere", "HOST:PORT"}},
      {{"listen=0.0.0.0:7000"}, 2, {"token", "tw init", "insecure=True"}},
      {{"wait_for=2"}, 2, {"wait_for=2", "nobody could join", "token", "insecure=True"}},
      {{"join=192.0.2.1:7000"}, 2, {"token", "insecure=True"}},
      {{"insecure=true", meets}, 2, {"insecure=True", "one of the two"}},
      {{"run=" + path("nowhere")}, 2, {path("nowhere/token"), "tw token"}},
      {{meets, "listen=none"}, 2, {"listen=none", "join"}},
      {{"token=rubbish"}, 2, {"token", "is no token", "tw token"}},
      {{"log_limit=3"}, 2, {"log_limit=3", "64 KiB", "256MiB"}},
      {{"log_limit=1TiB"}, 2, {"log_limit=1TiB", "256MiB"}},
      {{"run_file=" + path("none.yaml")}, 2, {"none.yaml"}},
      {{"run_file=" + write_run({}, "chekpoint:\n  folder: none\n")},
       2,
       {"run.yaml", "chekpoint", "checkpoint"}},
  };
  for (const Complaint& complaint : table) expect_of_peer(complaint);
}

TEST_F(BadInput, that_is_no_regular_file_is_refused_and_never_waited_for) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(path("pipe.yaml").c_str(), 0600), 0);
  std::ofstream(path("cluster.yaml")) << "model: pipe.yaml\ntbs: 1\npeers: 1xT4@gcp:us\n";
  std::filesystem::create_directories(path("logs"));
  ASSERT_EQ(mkfifo(path("logs/events-1.jsonl").c_str(), 0600), 0);
  const std::pair<std::string, std::string> kinds[] = {
      {folder(), "it is a folder"}, {"/dev/zero", "it is a device"}, {pipe, "it is a pipe"}};
  for (const auto& [file, kind] : kinds) {
    const std::vector<std::string> commands[] = {
        {"sim", file},
        {"sim", "--trace-spot", file},
        {"predict", file},
        {"predict", "--batch", file},
        {"plan", file},
        {"replay", file},
        {"net", "show", "--profile", file},
        {"catalog", "list", "--offers", file},
    };
    for (const std::vector<std::string>& command : commands)
      expect({command, 2, {file, "cannot be read", kind, "expected a regular file"}});
    for (const std::string& setting : {"run_file=" + file, "token=@" + file})
      expect_of_peer({{setting}, 2, {file, "cannot be read", kind, "expected a regular file"}});
  }
  expect({{"predict", path("cluster.yaml")}, 2, {"cluster.yaml", "model", "it is a pipe"}});
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
  expect_of_peer({{"run_file=" + write_run({.batch = 4611686018427387904})},
                  2,
                  {"run.yaml:2: training.target_batch_size", "from 1 to 1000000000", "4611686018427387904"}});
  for (const std::string gpus : {"0", "1e12", "nan"}) {
    std::ofstream(path("offers.csv"))
        << "provider,region,gpu,gpus,purchase,usd_per_h\na,b,T4," << gpus << ",owned,1\n";
    expect({{"catalog", "list", "--offers", path("offers.csv")}, 2, {"offers.csv:2: gpus " + gpus, "1024"}});
  }
  expect({{"replay", path("spot.csv"), "--work-h", "inf"}, 2, {"--work-h inf", "a number from"}});
}

TEST_F(BadInput, never_reaches_the_terminal_as_control_characters) {
  const std::string red = "\x1b[31m";
  std::ofstream(path("offers.csv"), std::ios::binary)
      << "provider,region,gpu,purchase,usd_per_h\na,b," << red << "T4" << '\0' << ",owned,1\n";
  std::ofstream(path("key.yaml")) << "\"mod\\e[31mel\": 3\n";
  const auto expect_clean = [&](Program program, const std::vector<std::string>& words) {
    EXPECT_EQ(program.wait(), 2) << testing::PrintToString(words) << program.output();
    EXPECT_FALSE(program.says("\x1b")) << testing::PrintToString(words);
    EXPECT_FALSE(program.output().find('\0') != std::string::npos) << testing::PrintToString(words);
  };
  const std::vector<std::string> commands[] = {
      {red},
      {"run", red + ".yaml", "--", "true"},
      {"run", "--" + red, "--", "true"},
      {"sim", path("key.yaml")},
      {"predict", path("key.yaml")},
      {"report", red},
      {"catalog", "list", "--offers", path("offers.csv")},
      {"catalog", "list", "--gpu", red},
      {"plan", path("key.yaml")},
  };
  for (const auto& words : commands) expect_clean(tw(words, "refused"), words);
  for (const std::string& setting : {"run_file=" + red, "run_file=" + path("key.yaml"),
                                     "training." + red + "=1", red + "=1", "join=" + red, "token=" + red})
    expect_clean(toy("refused", {setting}), {setting});
}

TEST_F(BadInput, keys_are_named_each_with_the_one_that_was_meant) {
  const auto complaint = [&](const std::string& command, const std::string& yaml) {
    std::ofstream(path("keys.yaml")) << yaml;
    const std::string file = path("keys.yaml");
    Program program = command == "peer" ? toy("keys", {"run_file=" + file}) : tw({command, file}, "keys");
    EXPECT_EQ(program.wait(), 2) << program.output();
    return program.output();
  };
  const std::tuple<const char*, const char*, std::vector<const char*>> table[] = {
      {"peer", "chekpoint:\n  every: 2\ntraining:\n  ruonds: 3\n", {"\"checkpoint\"", "\"rounds\""}},
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

  const auto trained = [&](const std::string& token) {
    const std::string setting = "token=@" + path(token);
    Program peer = toy("peer", {setting, "training.rounds=1", "checkpoint.folder=none"});
    EXPECT_EQ(peer.wait(), 0);
    return peer.output();
  };
  const std::string open = trained("theirs");
  EXPECT_NE(open.find(path("theirs") + " holds a token and is open to other users"), std::string::npos)
      << open;
  EXPECT_NE(open.find("chmod 600"), std::string::npos) << open;
  EXPECT_TRUE(trained("mine").starts_with("w ")) << "nothing but its result";
}

TEST_F(BadInput, to_the_report_is_a_broken_line_with_its_place) {
  std::filesystem::create_directories(path("out"));
  std::ofstream(path("out/events-1.jsonl")) << "not json\n{}\n";
  expect({{"report", path("out")}, 2, {"events-1.jsonl:1:"}});
  const std::string head = R"({"t":1.5,"time":"2026-01-02T03:04:05Z","peer":1,"round":1,"phase":"commit")";
  std::ofstream(path("out/events-1.jsonl")) << head << ",\"samples\":[]}\n";
  expect({{"report", path("out")}, 2, {"events-1.jsonl:1:"}});
  expect({{"report", path("out"), "--csv", path("tables")}, 2, {"events-1.jsonl:1:"}});
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
  const auto refused_for = [&](event::Cause cause) {
    return wait_until([&] {
      const auto is_for = [&](const world::Event& e) { return e.as<event::Refuse>()->cause == cause; };
      return std::ranges::any_of(events_of(1, world::Phase::refuse), is_for);
    });
  };
  EXPECT_TRUE(refused_for(event::Cause::broken)) << first.output();

  const auto expect_refusal = [&](std::vector<std::string> words, const std::vector<std::string>& parts) {
    words.insert(words.end(), {"run=" + path("run"), "join=" + address});
    expect_of_peer({words, 1, parts});
  };
  expect_refusal({"run_file=" + run, "training.seed=7"},
                 {"cannot join " + address, "another run: expected \"seed=", "this peer has",
                  "same model, data, optimizer"});
  expect_refusal({"run_file=" + run, "--values", "20"}, {"cannot join " + address, "parameters"});
  EXPECT_TRUE(refused_for(event::Cause::run)) << first.output();
  EXPECT_TRUE(refused_for(event::Cause::parameters)) << first.output();
  expect_of_peer({{"run_file=" + run, "run=" + path("run"), "listen=" + address}, 1, {address, "in use"}});

  ASSERT_TRUE(wait_for_round(1, last_round(1) + 3)) << "it trains on";
  first.send(SIGTERM);
  EXPECT_EQ(first.wait(), kGoesOn);
}

}  // namespace
}  // namespace tw
