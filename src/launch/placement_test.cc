// SPDX-License-Identifier: Apache-2.0
#include "launch/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tw::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

plan::PlannedGroup group(const char* site, int count, market::Purchase purchase) {
  return {.site = market::parse_site(site).value(),
          .gpu = "T4",
          .count = count,
          .purchase = purchase,
          .usd_per_h = 0.1,
          .anchor = purchase != market::Purchase::spot};
}

const plan::PlannedGroup kSpot = group("gcp:us-west1", 2, market::Purchase::spot);
const plan::PlannedGroup kAnchor = group("aws:us-east-1", 1, market::Purchase::on_demand);

std::vector<std::uint32_t> numbers(const std::vector<PeerJob>& peers) {
  std::vector<std::uint32_t> all;
  for (const PeerJob& peer : peers) all.push_back(peer.number);
  return all;
}

std::vector<PeerJob> placed(const std::vector<plan::PlannedGroup>& plan, const std::vector<PeerJob>& before,
                            std::uint32_t next = 1, const std::vector<Host>& hosts = {}) {
  auto peers = place({.plan = plan, .before = before, .hosts = hosts, .next_number = next});
  EXPECT_TRUE(peers.ok()) << peers.error().message;
  return std::move(peers).value();
}

TEST(Placement, the_same_plan_again_changes_nothing) {
  const auto once = placed({kSpot, kAnchor}, {});
  EXPECT_THAT(numbers(once), ElementsAre(1, 2, 3));
  EXPECT_TRUE(once[2].anchor);
  const auto twice = placed({kSpot, kAnchor}, once, 4);
  EXPECT_EQ(twice, once);
  const Difference difference = tw::launch::difference(once, twice);
  EXPECT_THAT(difference.add, IsEmpty());
  EXPECT_THAT(difference.drop, IsEmpty());
  EXPECT_THAT(numbers(difference.keep), ElementsAre(1, 2, 3));
}

TEST(Placement, another_plan_adds_and_removes_the_difference_and_no_number_comes_again) {
  const auto before = placed({kSpot, kAnchor}, {});
  plan::PlannedGroup fewer = kSpot;
  fewer.count = 1;
  plan::PlannedGroup elsewhere = group("azure:westeurope", 2, market::Purchase::spot);
  const auto after = placed({fewer, kAnchor, elsewhere}, before, 4);
  const Difference difference = tw::launch::difference(before, after);
  EXPECT_THAT(numbers(difference.keep), ElementsAre(1, 3));
  EXPECT_THAT(numbers(difference.drop), ElementsAre(2));
  EXPECT_THAT(numbers(difference.add), ElementsAre(4, 5));
}

TEST(Placement, a_new_price_moves_nobody) {
  const auto before = placed({kSpot}, {});
  plan::PlannedGroup dearer = kSpot;
  dearer.usd_per_h = 0.2;
  const auto after = placed({dearer}, before, 3);
  EXPECT_THAT(tw::launch::difference(before, after).add, IsEmpty());
  EXPECT_EQ(after[0].machine.usd_per_h, 0.2);
}

TEST(Placement, hosts_take_what_fits_them_each_peer_at_a_port_of_its_own) {
  const auto hosts = read_hosts("hosts.txt",
                                "# ours\n"
                                "ada@east site=aws:us-east-1 address=10.0.0.9\n"
                                "west peers=2 gpu=t4 port=7100 home=/data\n");
  ASSERT_TRUE(hosts.ok()) << hosts.error().message;
  const auto peers = placed({kSpot, kAnchor}, {}, 1, hosts.value());
  EXPECT_EQ(peers[0].host, "west");
  EXPECT_EQ(peers[0].port, 7100);
  EXPECT_EQ(peers[1].port, 7101);
  EXPECT_EQ(peers[1].home, "/data");
  EXPECT_EQ(peers[2].host, "ada@east");
  EXPECT_EQ(peers[2].address, "10.0.0.9");
  EXPECT_EQ(peers[2].port, 7000);
}

TEST(Placement, too_few_hosts_are_told_with_the_group_that_lacks_them) {
  const auto hosts = read_hosts("hosts.txt", "west\n");
  const auto peers = place({.plan = {kSpot}, .before = {}, .hosts = hosts.value()});
  ASSERT_FALSE(peers.ok());
  EXPECT_THAT(peers.error().message, HasSubstr("2 peers of T4 at gcp:us-west1 (spot) are planned"));
  EXPECT_THAT(peers.error().message, HasSubstr("room for 1"));
}

TEST(Placement, a_host_that_is_barred_keeps_its_peers_and_gets_no_new_one) {
  const auto hosts = read_hosts("hosts.txt", "a peers=2\nb\n").value();
  const auto before = placed({kSpot}, {}, 1, hosts);
  ASSERT_EQ(before[1].host, "a") << "both are there";
  const auto after = place(
      {.plan = {kSpot}, .before = {before[1]}, .hosts = hosts, .next_number = 3, .barred = before[0].host});
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_THAT(numbers(after.value()), ElementsAre(2, 3));
  EXPECT_EQ(after.value()[0].host, "a");
  EXPECT_EQ(after.value()[1].host, "b");
}

TEST(Placement, a_peer_that_was_never_reached_follows_its_corrected_line_and_no_other_one) {
  auto before = placed({kSpot}, {}, 1, read_hosts("hosts.txt", "a peers=2 home=/wrong\n").value());
  before[0].untried = false;
  const auto corrected = read_hosts("hosts.txt", "a peers=2 home=/data address=10.0.0.7 port=7100\n").value();
  const auto after = placed({kSpot}, before, 3, corrected);
  EXPECT_EQ(after[0], before[0]) << "its checkpoints are there";
  EXPECT_EQ(after[1].number, 2U);
  EXPECT_EQ(after[1].home, "/data");
  EXPECT_EQ(after[1].address, "10.0.0.7");
  EXPECT_EQ(after[1].port, 7100);
}

TEST(Placement, a_corrected_line_gives_no_port_of_a_peer_of_a_later_group) {
  auto before = placed({kSpot, kAnchor}, {}, 1, read_hosts("hosts.txt", "a peers=3 port=7000\n").value());
  before[1].untried = before[2].untried = false;
  before[2].port = 7100;
  const auto after =
      placed({kSpot, kAnchor}, before, 4, read_hosts("hosts.txt", "a peers=3 port=7100\n").value());
  EXPECT_EQ(after[0].port, 7101);
  EXPECT_EQ(after[2].port, 7100) << "it was started there";
}

TEST(Placement, a_host_that_is_no_longer_listed_loses_its_peer) {
  const auto two = read_hosts("hosts.txt", "a\nb\n").value();
  const auto before = placed({kSpot}, {}, 1, two);
  const auto other = read_hosts("hosts.txt", "b\nc\n").value();
  const auto after = placed({kSpot}, before, 3, other);
  EXPECT_THAT(numbers(after), ElementsAre(2, 3));
  EXPECT_EQ(after[1].host, "c");
}

TEST(Hosts, two_lines_for_the_same_ports_of_a_host_are_refused) {
  const auto complaint = [](const char* text) {
    const auto hosts = read_hosts("hosts.txt", text);
    return hosts.ok() ? "" : hosts.error().message;
  };
  EXPECT_EQ(
      complaint("gpu1\n# the same\nada@gpu1\n"),
      "hosts.txt:3: ada@gpu1: peers of gpu1 listen at gpu1:7000, too; expected another port=, or one line "
      "with peers=N");
  EXPECT_THAT(complaint("gpu1 peers=2\nada@gpu1 port=7001\n"), HasSubstr("hosts.txt:2: "));
  EXPECT_EQ(complaint("gpu1 peers=2\nada@gpu1 port=7002\n"), "");
  EXPECT_EQ(complaint("a address=10.0.0.5\nb address=10.0.0.6\n"), "");
}

TEST(Hosts, every_error_names_file_line_and_what_was_expected) {
  const auto complaint = [](const char* text) {
    const auto hosts = read_hosts("hosts.txt", text);
    return hosts.ok() ? "" : hosts.error().message;
  };
  EXPECT_EQ(complaint("# nothing\n\n"),
            "hosts.txt: no host; expected a line such as user@10.0.0.5 site=onprem:eu");
  EXPECT_EQ(
      complaint("a\nb prot=1\n"),
      "hosts.txt:2: prot: unknown key; did you mean \"port\"?; expected address, port, peers, site, gpu "
      "or home");
  EXPECT_EQ(complaint("a port=0"), "hosts.txt:1: port: expected a whole number from 1 to 65535, found \"0\"");
  EXPECT_EQ(complaint("a peers=x"), "hosts.txt:1: peers: expected a whole number from 1 to 64, found \"x\"");
  EXPECT_EQ(complaint("a site=moon"), "hosts.txt:1: site: " + market::parse_site("moon").error().message);
  EXPECT_EQ(
      complaint("-oProxyCommand=x"),
      "hosts.txt:1: -oProxyCommand=x: expected HOST or USER@HOST first, then keys such as site=onprem:eu");
}

}  // namespace
}  // namespace tw::launch
