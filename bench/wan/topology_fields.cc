// SPDX-License-Identifier: Apache-2.0
#include "wan/topology_fields.h"

#include <algorithm>

#include "base/text/fields.h"
#include "wan/units.h"

namespace tw::wan {
namespace {

template <class Number, class Stored>
bool store(std::optional<Number> number, Number least, Number most, Stored& stored) {
  if (!number || !(*number >= least && *number <= most)) return false;
  stored = static_cast<Stored>(*number);
  return true;
}

constexpr std::string_view kRate = "a rate from 8kbit to 100gbit, such as 500mbit";

bool store_rate(std::string_view value, double& bit_s) {
  return store(parse_bit_s(value), 8e3, 100e9, bit_s);
}

constexpr std::string_view kTime = "a time from 0ms to 10s, such as 51.5ms";

bool store_time(std::string_view value, Duration& duration) {
  return store(parse_duration(value), Duration{}, Duration(std::chrono::seconds(10)), duration);
}

constexpr std::string_view kBuffer = "bytes from 4KiB to 1024MiB, such as 6291456";

bool store_buffer(std::string_view value, double& bytes) {
  return store(parse_bytes(value), 4096.0, 0x1p30, bytes);
}

bool store_flag(std::string_view value, bool& flag) {
  const auto truth = truth_in(value);
  flag = truth.value_or(false);
  return truth.has_value();
}

bool is_word(std::string_view value, std::size_t longest) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !value.empty() && value.size() <= longest && std::all_of(value.begin(), value.end(), plain);
}

bool store_word(std::string_view value, std::string& word) {
  word = value;
  return is_word(value, 24);
}

constexpr Field<TopEntry> kTop[] = {
    {"", "about", "a text", "one line on what the testbed is",
     [](std::string_view value, TopEntry& top) {
       top.topology.about = value;
       return true;
     }},
    {"", "scale", "a number from 1 to 10000",
     "all rates of the file are divided by it, where two cores cannot carry them",
     [](std::string_view value, TopEntry& top) {
       return store(parse_number<double>(value), 1.0, 1e4, top.topology.scale);
     }},
    {"", "scale_buffers", "true or false",
     "`rmem_max` and `wmem_max` are divided too, so that a stream keeps its part of a link",
     [](std::string_view value, TopEntry& top) { return store_flag(value, top.topology.scaled_buffers); }},
    {"", "mtu", "bytes from 576 to 65535", "largest IP packet",
     [](std::string_view value, TopEntry& top) {
       return store(parse_number<int>(value), 576, 65535, top.topology.mtu);
     }},
    {"", "queue", kTime, "longest wait before a limited link; what would wait longer is dropped",
     [](std::string_view value, TopEntry& top) { return store_time(value, top.topology.queue); }},
    {"", "congestion", "a name such as cubic", "`tcp_congestion_control` of the hosts",
     [](std::string_view value, TopEntry& top) { return store_word(value, top.topology.congestion); }},
    {"", "rmem_max", kBuffer, "third number of `tcp_rmem` of the hosts",
     [](std::string_view value, TopEntry& top) { return store_buffer(value, top.tcp.receive_bytes); }},
    {"", "wmem_max", kBuffer, "third number of `tcp_wmem` of the hosts",
     [](std::string_view value, TopEntry& top) { return store_buffer(value, top.tcp.send_bytes); }},
};

constexpr Field<SiteEntry> kSite[] = {
    {"sites", "name", "1 to 24 of a-z, 0-9 and _",
     "of the site; its hosts are NAME, or NAME-1, NAME-2 and so on",
     [](std::string_view value, SiteEntry& entry) { return store_word(value, entry.site.name); }},
    {"sites", "hosts", "a number from 1 to 64", "hosts of the site, which share a LAN",
     [](std::string_view value, SiteEntry& entry) {
       return store(parse_number<int>(value), 1, 64, entry.site.hosts);
     }},
    {"sites", "nic", kRate, "rate of each host, in both directions",
     [](std::string_view value, SiteEntry& entry) {
       return store_rate(value, entry.site.nic_up_bit_s) && store_rate(value, entry.site.nic_down_bit_s);
     }},
    {"sites", "nic_up", kRate, "rate at which each host sends",
     [](std::string_view value, SiteEntry& entry) { return store_rate(value, entry.site.nic_up_bit_s); }},
    {"sites", "nic_down", kRate, "rate at which each host receives",
     [](std::string_view value, SiteEntry& entry) { return store_rate(value, entry.site.nic_down_bit_s); }},
    {"sites", "egress", kRate, "rate at which all its hosts together send to other sites",
     [](std::string_view value, SiteEntry& entry) { return store_rate(value, entry.site.egress_bit_s); }},
    {"sites", "ingress", kRate, "rate at which all its hosts together receive from other sites",
     [](std::string_view value, SiteEntry& entry) { return store_rate(value, entry.site.ingress_bit_s); }},
    {"sites", "lan_rtt", kTime, "round trip between its hosts",
     [](std::string_view value, SiteEntry& entry) { return store_time(value, entry.lan_rtt); }},
    {"sites", "rmem_max", kBuffer, "as at the top, for its hosts",
     [](std::string_view value, SiteEntry& entry) {
       return store_buffer(value, entry.site.tcp.receive_bytes);
     }},
    {"sites", "wmem_max", kBuffer, "as at the top, for its hosts",
     [](std::string_view value, SiteEntry& entry) { return store_buffer(value, entry.site.tcp.send_bytes); }},
};

constexpr Field<Link> kLink[] = {
    {"links", "bandwidth", kRate, "rate of each direction",
     [](std::string_view value, Link& link) { return store_rate(value, link.bit_s); }},
    {"links", "delay", kTime, "one way",
     [](std::string_view value, Link& link) { return store_time(value, link.delay); }},
    {"links", "rtt", kTime, "twice the delay of each direction",
     [](std::string_view value, Link& link) {
       const bool sound = store_time(value, link.delay);
       link.delay /= 2;
       return sound;
     }},
    {"links", "jitter", kTime,
     "each packet takes up to so much more or less, uniform; packets keep their order",
     [](std::string_view value, Link& link) { return store_time(value, link.jitter); }},
    {"links", "loss", "a share from 0 to 0.5 or 50%",
     "chance of each packet; any above 0 switches offloads off",
     [](std::string_view value, Link& link) { return store(parse_share(value), 0.0, 0.5, link.loss); }},
    {"links", "outage", "on or off", "all packets are dropped",
     [](std::string_view value, Link& link) {
       link.outage = value == "on" || value == "true";
       return link.outage || value == "off" || value == "false";
     }},
};

}  // namespace

std::span<const Field<TopEntry>> top_fields() { return kTop; }

std::span<const Field<SiteEntry>> site_fields() { return kSite; }

std::span<const Field<Link>> link_fields() { return kLink; }

}  // namespace tw::wan
