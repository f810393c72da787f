// SPDX-License-Identifier: Apache-2.0
#include "launch/engine_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

EngineChoice choice(const std::vector<std::string>& texts) {
  auto parsed = EngineChoice::parse(texts);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return std::move(parsed).value();
}

std::string trouble(const std::vector<std::string>& texts) {
  const auto parsed = EngineChoice::parse(texts);
  return parsed.ok() ? "" : parsed.error().message;
}

std::vector<std::string> engines_of(const EngineChoice& choice, const std::vector<PeerJob>& peers) {
  std::vector<std::string> engines;
  for (const PeerJob& peer : peers) engines.push_back(choice.engine_of(peer));
  return engines;
}

std::vector<plan::PlannedGroup> plan_of(const std::vector<PeerJob>& peers) {
  std::vector<plan::PlannedGroup> plan;
  for (const PeerJob& peer : peers)
    plan.push_back({.site = peer.machine.site,
                    .gpu = peer.machine.gpu,
                    .count = 1,
                    .purchase = peer.machine.purchase,
                    .anchor = peer.anchor});
  return plan;
}

TEST(EngineChoice, one_engine_starts_all) {
  const EngineChoice ssh = choice({"ssh"});
  EXPECT_TRUE(ssh.is_one());
  EXPECT_THAT(engines_of(ssh, three_peers().peers), ElementsAre("ssh", "ssh", "ssh"));
  EXPECT_EQ(ssh.text(), "ssh");
  EXPECT_EQ(ssh.key_of("ssh", "control"), "control");
}

TEST(EngineChoice, machines_are_named_by_purchase_anchor_provider_or_site) {
  auto peers = three_peers().peers;  // an owned anchor at onprem:eu, two spot machines at gcp:us-west1
  peers[2].machine.site = market::parse_site("gcp:us-west10").value();
  for (const char* first : {"owned=ssh", "anchor=ssh", "onprem=ssh", "onprem:eu=ssh"})
    EXPECT_THAT(engines_of(choice({first, "skypilot"}), peers), ElementsAre("ssh", "skypilot", "skypilot"))
        << first;
  EXPECT_THAT(engines_of(choice({"gcp:us-west1=k8s", "spot=slurm"}), peers), ElementsAre("", "k8s", "slurm"));
}

TEST(EngineChoice, the_engine_of_all_others_comes_last_wherever_it_stands) {
  const EngineChoice mixed = choice({"skypilot", "owned=ssh"});
  EXPECT_THAT(engines_of(mixed, three_peers().peers), ElementsAre("ssh", "skypilot", "skypilot"));
  EXPECT_EQ(mixed.text(), "owned=ssh,skypilot");
  EXPECT_EQ(choice({mixed.text()}).text(), mixed.text()) << "as the state of a run keeps it";
  EXPECT_THAT(mixed.engines(), ElementsAre("ssh", "skypilot"));
  EXPECT_EQ(mixed.key_of("ssh", "control"), "ssh.control");
}

TEST(EngineChoice, an_error_names_the_text) {
  EXPECT_THAT(trouble({"owned=shh"}), HasSubstr("--on shh: expected one of ssh"));
  EXPECT_THAT(trouble({"=ssh"}), HasSubstr("--on =ssh: expected ENGINE, or WHICH=ENGINE"));
  EXPECT_THAT(trouble({"ssh", "k8s"}),
              HasSubstr("--on k8s: an engine for all machines is given a second time"));
  EXPECT_THAT(trouble({"spot=ssh", "spot=k8s"}), HasSubstr("--on spot=k8s: spot is given a second time"));
}

TEST(EngineChoice, a_text_without_machines_is_named) {
  const auto plan = plan_of(three_peers().peers);
  EXPECT_TRUE(choice({"owned=ssh", "spot=skypilot"}).check(plan).ok());
  const Status typo = choice({"spott=skypilot", "ssh"}).check(plan);
  ASSERT_FALSE(typo.ok());
  EXPECT_EQ(typo.error().message,
            "--on spott=skypilot: no machine of the plan is spott; expected one of anchor, owned, spot, gcp, "
            "onprem");
}

}  // namespace
}  // namespace tw::launch
