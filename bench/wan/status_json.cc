// SPDX-License-Identifier: Apache-2.0
#include "wan/status_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "wan/units.h"

namespace tw::wan {
namespace {

using nlohmann::ordered_json;

ordered_json limit(double bit_s) { return std::isinf(bit_s) ? ordered_json() : ordered_json(bit_s); }

ordered_json describe(const Link& link) {
  return {{"bit_s", limit(link.bit_s)},
          {"delay_ms", to_seconds(link.delay) * 1e3},
          {"jitter_ms", to_seconds(link.jitter) * 1e3},
          {"loss", link.loss},
          {"outage", link.outage}};
}

ordered_json describe(const Topology& topology) {
  ordered_json json = {{"topology", topology.name},
                       {"about", topology.about},
                       {"scale", topology.scale},
                       {"scaled_buffers", topology.scaled_buffers},
                       {"mtu", topology.mtu},
                       {"payload_share", payload_share(topology)},
                       {"congestion", topology.congestion},
                       {"queue_ms", to_seconds(topology.queue) * 1e3}};
  for (const Site& site : topology.sites) {
    json["sites"].push_back({{"name", site.name},
                             {"egress_bit_s", limit(site.egress_bit_s)},
                             {"ingress_bit_s", limit(site.ingress_bit_s)},
                             {"rmem_max", site.tcp.receive_bytes},
                             {"wmem_max", site.tcp.send_bytes}});
  }
  for (const Host& host : topology.hosts()) {
    const Site& site = topology.sites[host.site];
    json["hosts"].push_back({{"name", host.name},
                             {"site", site.name},
                             {"number", host.number},
                             {"address", host.address},
                             {"up_bit_s", limit(site.nic_up_bit_s)},
                             {"down_bit_s", limit(site.nic_down_bit_s)}});
  }
  return json;
}

template <class Visit>
void for_each_pair(const Topology& topology, Visit visit) {
  for (std::size_t from = 0; from < topology.sites.size(); ++from)
    for (std::size_t to = 0; to < topology.sites.size(); ++to)
      visit(from * topology.sites.size() + to,
            ordered_json{{"from", topology.sites[from].name}, {"to", topology.sites[to].name}});
}

ordered_json describe(const BoxState& state) {
  const Load& load = state.load;
  return {{"pid", state.pid},
          {"up_s", state.up_s},
          {"cpu_share", load.last().cpu_share},
          {"cpu_share_max", load.worst_cpu_share()},
          {"cpu_s", state.cpu_s},
          {"cpu_s_per_gb", state.wire_bytes == 0 ? 0 : state.cpu_s / (double(state.wire_bytes) / 1e9)},
          {"lag_ms", to_seconds(load.last().worst_lag) * 1e3},
          {"lag_ms_max", to_seconds(load.worst_lag()) * 1e3},
          {"unread", load.last().unread},
          {"overloaded", load.overloaded_seconds() > 0},
          {"overloaded_s", load.overloaded_seconds()},
          {"why", load.why()}};
}

ordered_json with_queues(ordered_json list, const std::vector<Queued>& queued) {
  for (std::size_t i = 0; i < queued.size(); ++i) {
    list[i]["queued_up_bytes"] = std::llround(queued[i].up_bytes);
    list[i]["queued_down_bytes"] = std::llround(queued[i].down_bytes);
  }
  return list;
}

std::string rate_of(const ordered_json& json) {
  return format_bit_s(json.is_null() ? kUnlimited : json.get<double>());
}

std::string box_line(const ordered_json& status) {
  const ordered_json& box = status["box"];
  std::string text = fmt::format(
      "{}: up {:.0f} s, box {} with {:.0f} % of a core (most {:.0f} %), worst lag {:.2f} ms, {:.2f} CPU "
      "s/GB\n",
      status["topology"].get<std::string>(), box["up_s"].get<double>(), box["pid"].get<int>(),
      100 * box["cpu_share"].get<double>(), 100 * box["cpu_share_max"].get<double>(),
      box["lag_ms_max"].get<double>(), box["cpu_s_per_gb"].get<double>());
  if (status["scale"].get<double>() != 1) {
    text += fmt::format("rates are those of the file divided by {:g}{}\n", status["scale"].get<double>(),
                        status["scaled_buffers"].get<bool>() ? ", TCP buffers too" : "");
  }
  if (box["overloaded"].get<bool>()) {
    text += fmt::format("OVERLOADED in {} s: {}; what was measured then is the box, not the links\n",
                        box["overloaded_s"].get<int>(), box["why"].get<std::string>());
  }
  return text;
}

/// A site with one host has a LAN only by name.
bool worth_a_line(const ordered_json& status, const ordered_json& link) {
  const auto hosts = std::count_if(status["hosts"].begin(), status["hosts"].end(),
                                   [&](const auto& host) { return host["site"] == link["from"]; });
  return link["from"] != link["to"] || hosts > 1;
}

}  // namespace

std::string topology_json(const Topology& topology) {
  ordered_json json = describe(topology);
  for_each_pair(topology, [&](std::size_t pair, ordered_json link) {
    link.update(describe(topology.links[pair]));
    json["links"].push_back(link);
  });
  return json.dump(2);
}

std::string status_json(const Topology& topology, const BoxState& state) {
  ordered_json json = describe(topology);
  json["box"] = describe(state);
  json["hosts"] = with_queues(json["hosts"], state.hosts);
  json["sites"] = with_queues(json["sites"], state.sites);
  for_each_pair(topology, [&](std::size_t pair, ordered_json link) {
    const Traffic& traffic = state.traffic[pair];
    link.update(describe(state.links[pair]));
    link.update({{"carried_bit_s", state.bit_s[pair]},
                 {"bytes", traffic.bytes},
                 {"packets", traffic.packets},
                 {"dropped", traffic.dropped},
                 {"lost", traffic.lost},
                 {"queued_bytes", std::llround(traffic.queued_bytes)},
                 {"flying_bytes", traffic.flying_bytes}});
    json["links"].push_back(link);
  });
  return json.dump(2);
}

std::string status_text(const std::string& json) {
  const auto status = ordered_json::parse(json);
  std::string text = box_line(status);
  text += fmt::format("\n{:<12} {:<16} {:>14} {:>14} {:>12} {:>12}\n", "host", "address", "up", "down",
                      "queued up", "queued down");
  for (const auto& host : status["hosts"]) {
    text += fmt::format("{:<12} {:<16} {:>14} {:>14} {:>12} {:>12}\n", host["name"].get<std::string>(),
                        host["address"].get<std::string>(), rate_of(host["up_bit_s"]),
                        rate_of(host["down_bit_s"]), format_bytes(host["queued_up_bytes"].get<double>()),
                        format_bytes(host["queued_down_bytes"].get<double>()));
  }
  text += fmt::format("\n{:<20} {:>10} {:>14} {:>14} {:>12} {:>8} {:>8}\n", "link", "one way", "rate",
                      "last second", "under way", "dropped", "lost");
  for (const auto& link : status["links"]) {
    if (!worth_a_line(status, link)) continue;
    const auto pair = fmt::format("{}:{}", link["from"].get<std::string>(), link["to"].get<std::string>());
    text += fmt::format("{:<20} {:>10} {:>14} {:>14} {:>12} {:>8} {:>8}{}\n", pair,
                        fmt::format("{:.4g} ms", link["delay_ms"].get<double>()), rate_of(link["bit_s"]),
                        format_bit_s(link["carried_bit_s"].get<double>()),
                        format_bytes(link["flying_bytes"].get<double>()), link["dropped"].get<int>(),
                        link["lost"].get<int>(), link["outage"].get<bool>() ? " outage" : "");
  }
  return text;
}

}  // namespace tw::wan
