// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "e2e/program.h"
#include "host/identity/authority.h"

namespace tw {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Security : public ProgramTest {
 protected:
  /// A file with a token of this run folder; valid for so long.
  std::string token_of(const std::string& folder, std::int64_t seconds,
                       const std::vector<std::string>& addresses) {
    const auto authority = host::Authority::open(path(folder));
    const std::int64_t now = std::time(nullptr);
    const wire::Token token = authority.value().issue(
        {.from_unix_s = now - 86400, .expires_unix_s = now + seconds, .addresses = addresses});
    const std::string file = path("token-" + std::to_string(++tokens_));
    EXPECT_TRUE(host::write_secret_file(file, to_text(token) + "\n"));
    return "@" + file;
  }

  /// A peer that joins with what is given; what it says in the end.
  std::string refusal(const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run_file=" + run};
    words.insert(words.end(), more.begin(), more.end());
    Program program = toy("refused", words);
    EXPECT_NE(program.wait(), 0) << program.output();
    return program.output();
  }

 private:
  int tokens_ = 0;
};

TEST_F(Security, admits_by_token_alone_and_tells_the_others_why_not) {
  const std::string run = write_run({.rounds = 100'000});
  Program first = peer(run, 1, {"wait_for=2"});
  const std::string address = address_of(1);

  Program other_run = tw({"init", path("other"), "--name", "pictures"}, "init");
  ASSERT_EQ(other_run.wait(), 0);
  EXPECT_THAT(refusal(run, {"token=" + token_of("other", 600, {address})}),
              AllOf(HasSubstr("cannot join " + address), HasSubstr("not of run"), HasSubstr("tw token")));
  EXPECT_THAT(refusal(run, {"token=" + token_of("run", -60, {address})}),
              AllOf(HasSubstr("token: "), HasSubstr("expired on"), HasSubstr("tw token")));
  EXPECT_THAT(refusal(run, {"insecure=true", "join=" + address}),
              AllOf(HasSubstr("cannot join " + address), HasSubstr("it speaks TLS"), HasSubstr("token")));
  EXPECT_TRUE(events_of(1, world::Phase::join).empty());
  EXPECT_TRUE(events_of(1, world::Phase::commit).empty()) << "it waits for a second peer still";
  EXPECT_TRUE(wait_until([&] { return first.says("the token is not of run"); })) << first.output();
  // A refusal of the same cause, so told after 10 s.
  EXPECT_TRUE(wait_until([&] { return first.says("it speaks without TLS"); })) << first.output();

  // One that only dials, by a token that says where to.
  Program second = toy(
      "peer-2", words_of(2, {"run_file=" + run, "listen=none", "token=" + token_of("run", 600, {address})}));
  EXPECT_TRUE(wait_for_round(2, 3)) << second.output();
  EXPECT_TRUE(second.says("dials others, and listens nowhere")) << second.output();
  for (const Program* program : {&second, &first}) program->send(SIGTERM);
  for (Program* program : {&second, &first}) EXPECT_EQ(program->wait(), kGoesOn);
  EXPECT_EQ(summary().insecure, false);
}

TEST_F(Security, says_everywhere_when_it_is_off) {
  Program program =
      tw({"run", write_run({.rounds = 2}), "--peers", "2", "--insecure", "--out", path("out"), "--", TW_TOY});
  ASSERT_EQ(program.wait(), 0) << program.output();
  EXPECT_TRUE(program.says("without TLS (insecure)")) << program.output();
  EXPECT_EQ(summary().insecure, true);
}

TEST_F(Security, says_why_nobody_is_found) {
  const std::string run = write_run({.rounds = 100'000}, "rendezvous: " + path("nobody") + "\n");
  Program port =
      toy("port", {"run_file=" + run, "run=" + path("run"), "join=127.0.0.1:9", "out=" + path("out")});
  EXPECT_NE(port.wait(), 0);
  EXPECT_THAT(port.output(),
              AllOf(HasSubstr("cannot connect to 127.0.0.1:9"), HasSubstr("connection refused"),
                    HasSubstr(path("nobody") + " shows nobody alive (0 notices have expired)"),
                    HasSubstr("nor by way of " + path("nobody"))));
}

TEST_F(Security, says_what_to_give_instead_of_bootstrap) {
  const std::string run = write_run({.rounds = 2});
  Program of_python =
      toy("python", {"run_file=" + run, "run=" + path("run"), "bootstrap=10.0.0.5", "out=" + path("out")});
  Program of_shell = tw({"run", "--bootstrap=10.0.0.5", "--", TW_TOY}, "shell");
  for (Program* program : {&of_python, &of_shell}) {
    EXPECT_NE(program->wait(), 0);
    EXPECT_THAT(program->output(), HasSubstr("is no more: give join the address of any living peer"));
  }
}

}  // namespace
}  // namespace tw
