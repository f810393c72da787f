// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

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

  void expect(const Complaint& complaint) {
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
  const Complaint table[] = {
      {{}, 2, {"Usage"}},
      {{"--help"}, 0, {"tw local", "Exit codes"}},
      {{"--version"}, 0, {"tw 0."}},
      {{"train", "--help"}, 0, {"Examples:", "--join", "--wait-for", "--rejoin"}},
      {{"local", "--help"}, 0, {"Examples:", "--kill", "--peers"}},
      {{"report", "--help"}, 0, {"Examples:", "--json"}},
      {{"trian"}, 2, {"trian", "did you mean tw train"}},
      {{"train"}, 2, {"RUN.yaml", "tw train --help"}},
      {{"local", run}, 2, {"--peers"}},
      {{"local", run, "--pears", "3"}, 2, {"--pears", "did you mean --peers"}},
      {{"local", run, "--peers", "65"}, 2, {"--peers 65", "1 to 64", "--peers 64"}},
      {{"local", run, "--peers", "three"}, 2, {"--peers three", "whole number"}},
      {{"local", run, "--peers", "3", "--kill", "4@2"}, 2, {"--kill 4@2", "peers 1 to 3", "--kill 3@2"}},
      {{"local", run, "--peers", "3", "--kill", "2@9"}, 2, {"--kill 2@9", "5 rounds", "--kill 2@5"}},
      {{"local", run, "--peers", "3", "--kill", "ledaer@2"}, 2, {"did you mean --kill leader@2"}},
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
      {{"token", path("nowhere")}, 2, {path("nowhere/ca.key"), "tw init"}},
      {{"token", path("run"), "--expires", "30"}, 2, {"--expires 30", "30d"}},
      {{"token", path("run"), "--role", "pear"}, 2, {"--role pear", "did you mean --role peer"}},
      {{"token", path("run"), "--address", "host"}, 2, {"--address host", "host:7000"}},
      {{"report", path("none")}, 2, {path("none")}},
      {{"report", path("")}, 2, {"no event log"}},
  };
  for (const Complaint& complaint : table) expect(complaint);
}

TEST_F(BadInput, in_the_run_file_is_named_with_its_line) {
  expect({{"train", write_run({}, "optimiser:\n  kind: sgd\n")}, 2, {"run.yaml", "optimiser", "optimizer"}});
  expect({{"train", write_run({.microbatch = 512})}, 2, {"512", "256"}});
  std::filesystem::remove(path("train-x"));
  expect({{"train", write_run({})}, 2, {"run.yaml", "no such file", "train-x"}});
}

TEST_F(BadInput, to_the_report_is_a_broken_line_with_its_place) {
  std::filesystem::create_directories(path("out"));
  std::ofstream(path("out/events-1.jsonl")) << "not json\n{}\n";
  expect({{"report", path("out")}, 2, {"events-1.jsonl:1:"}});
}

/// Sends raw bytes to a peer and reads until it closes, or for a second.
void send_raw(const std::string& address, const std::string& bytes) {
  const auto to = parse_address(address);
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
  const auto refused_for = [&](Cause cause) {
    return wait_until(
        [&] { return std::ranges::count(events_of(1, Phase::refuse), cause, &Event::cause) > 0; });
  };
  EXPECT_TRUE(refused_for(Cause::broken)) << first.output();

  expect({{"train", write_run({.rounds = 100'000}, "  warmup_rounds: 3\n", "other.yaml"), "--run",
           path("run"), "--join", address},
          1,
          {"cannot join " + address, "another run", "same run file"}});
  std::ofstream(path("text")) << std::string(20'000, 'a');
  std::ofstream(path("text.yaml")) << "model: char-transformer\ndata:\n  text: text\n";
  expect({{"train", path("text.yaml"), "--run", path("run"), "--join", address},
          1,
          {"cannot join " + address, "parameters"}});
  EXPECT_TRUE(refused_for(Cause::run)) << first.output();
  EXPECT_TRUE(refused_for(Cause::parameters)) << first.output();
  expect({{"train", run, "--run", path("run"), "--listen", address}, 1, {address, "in use"}});

  ASSERT_TRUE(wait_for_round(1, last_round(1) + 3)) << "it trains on";
  first.send(SIGTERM);
  EXPECT_EQ(first.wait(), 0);
}

}  // namespace
}  // namespace tw
