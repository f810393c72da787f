// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "measure/testbed/testbed.h"

namespace tw::measure {
namespace {

/// The fastest that tw-wan takes.
constexpr double kFastestLink_bit_s = 100e9;

/// Rates count whole packets; of a vector, less goes through. Infinite: no limit.
double payload_bytes_per_s(const nlohmann::json& bit_s, double payload_share) {
  return bit_s.is_null() ? std::numeric_limits<double>::infinity() : bit_s.get<double>() / 8 * payload_share;
}

/// Rate for a Participant, where 0 means that a rate is not known.
double known(double rate) { return rate == std::numeric_limits<double>::infinity() ? 1e15 : rate; }

struct SiteRates {
  PeerId number;
  double up = 0, down = 0;
};

double bit_s_of(const nlohmann::json& rate) {
  return rate.is_null() ? kFastestLink_bit_s : std::min(rate.get<double>(), kFastestLink_bit_s);
}

std::vector<SiteLink> links_of_first_site(const nlohmann::json& testbed) {
  const nlohmann::json& first = testbed.at("hosts").at(0);
  const double host_bit_s = std::min(bit_s_of(first.at("up_bit_s")), bit_s_of(first.at("down_bit_s")));
  std::vector<SiteLink> links;
  for (const nlohmann::json& link : testbed.at("links")) {
    if (link.at("from") != first.at("site") || link.at("to") == link.at("from")) continue;
    const nlohmann::json& own = link.at("bit_s");
    links.push_back({link.at("from"), link.at("to"), own.is_null() ? host_bit_s : bit_s_of(own)});
  }
  return links;
}

TestbedPlan plan_of(const nlohmann::json& testbed, std::size_t hosts) {
  TestbedPlan plan{
      .name = testbed.at("topology"), .about = testbed.at("about"), .scale = testbed.at("scale")};
  const double share = testbed.at("payload_share");
  std::map<std::string, SiteRates> sites;
  for (const nlohmann::json& host : testbed.at("hosts")) {
    if (plan.hosts.size() == hosts) break;
    plan.hosts.push_back(
        {.name = host.at("name"), .enter = {}, .address = host.at("address"), .site = host.at("site")});
    const double up = payload_bytes_per_s(host.at("up_bit_s"), share);
    const double down = payload_bytes_per_s(host.at("down_bit_s"), share);
    plan.cards.push_back({.peer = PeerId{plan.hosts.size()}, .bandwidth = {known(up), known(down), {}}});
    SiteRates& site = sites[host.at("site")];
    if (site.number == PeerId{}) site.number = PeerId{sites.size()};
    site.up += up;
    site.down += down;
  }
  for (const nlohmann::json& site : testbed.at("sites")) {
    const auto found = sites.find(site.at("name"));
    if (found == sites.end()) continue;
    const SiteRates& rates = found->second;
    const double up = std::min(rates.up, payload_bytes_per_s(site.at("egress_bit_s"), share));
    const double down = std::min(rates.down, payload_bytes_per_s(site.at("ingress_bit_s"), share));
    swarm::Participant participant{.peer = rates.number, .bandwidth = {known(up), known(down), {}}};
    for (const nlohmann::json& link : testbed.at("links")) {
      const auto to = sites.find(link.at("to"));
      if (link.at("from") != site.at("name") || to == sites.end() || to == found) continue;
      const double rate = payload_bytes_per_s(link.at("bit_s"), share);
      if (rate < up) participant.bandwidth.slow.push_back({to->second.number, rate});
    }
    plan.fences.push_back(std::move(participant));
  }
  plan.links = links_of_first_site(testbed);
  return plan;
}

}  // namespace

Result<TestbedPlan> parse_testbed(const std::string& show_json, std::size_t hosts) {
  const nlohmann::json testbed = nlohmann::json::parse(show_json, nullptr, false);
  if (!testbed.is_object()) return Error{"cannot read what tw-wan shows: " + show_json};
  const std::size_t all = testbed.at("hosts").size();
  if (hosts > all)
    return Error{fmt::format("--peers {}: {} has {} hosts, for example --peers {}", hosts,
                             testbed.at("topology").get<std::string>(), all, all)};
  return plan_of(testbed, hosts == 0 ? all : hosts);
}

Result<BoxReport> parse_box(const std::string& status_json) {
  const nlohmann::json status = nlohmann::json::parse(status_json, nullptr, false);
  if (!status.is_object()) return Error{"cannot read what tw-wan says: " + status_json};
  const nlohmann::json& box = status.at("box");
  BoxReport report{.cpu_share_max = box.at("cpu_share_max"), .limited_by = {}};
  if (box.at("overloaded").get<bool>())
    report.limited_by =
        fmt::format("{} s: {}", box.at("overloaded_s").get<int>(), box.at("why").get<std::string>());
  return report;
}

}  // namespace tw::measure
