// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/text/fields.h"
#include "market/gpu_name.h"

namespace tw::launch {
namespace {

constexpr NumberBounds kPorts{.low = 1, .high = 65'535};
constexpr NumberBounds kPeersOfHost{.low = 1, .high = 64};

/// The complaint, or nothing.
std::string take_key(const std::string& key, const std::string& value, Host& host) {
  static const std::vector<std::string> kKeys = {"address", "port", "peers", "site", "gpu", "home"};
  if (std::ranges::find(kKeys, key) == kKeys.end())
    return fmt::format("{}: unknown key{}; expected address, port, peers, site, gpu or home", key,
                       did_you_mean(key, kKeys));
  if (value.empty()) return key + ": " + unexpected("a value", value);
  if (key == "address") host.address = value;
  if (key == "address") host.is_named = true;
  if (key == "gpu") host.gpu = market::gpu_name(value);
  if (key == "home") host.home = value;
  if (key == "port") {
    const auto port = number_in<std::uint16_t>(value, kPorts);
    if (!port) return "port: " + unexpected(whole_number_text(kPorts), value);
    host.port = *port;
  }
  if (key == "peers") {
    const auto peers = number_in<int>(value, kPeersOfHost);
    if (!peers) return "peers: " + unexpected(whole_number_text(kPeersOfHost), value);
    host.peers = *peers;
  }
  if (key == "site") {
    const auto site = market::parse_site(value);
    if (!site) return "site: " + site.error().message;
    host.site = site.value();
  }
  return "";
}

Result<Host> host_of(std::istringstream& words, const std::string& first) {
  if (first.starts_with('-') || first.find('=') != std::string::npos)
    return Error{
        fmt::format("{}: expected HOST or USER@HOST first, then keys such as site=onprem:eu", first)};
  Host host{.ssh = first, .address = first.substr(first.find('@') + 1), .port = 7000};
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return Error{fmt::format("{}: expected KEY=VALUE", word)};
    const std::string wrong = take_key(word.substr(0, equals), word.substr(equals + 1), host);
    if (!wrong.empty()) return Error{wrong};
  }
  return host;
}

/// Its peers would listen where those of the other line do.
bool shares_ports(const Host& host, const Host& other) {
  return host.address == other.address && host.port < other.port + other.peers &&
         other.port < host.port + host.peers;
}

}  // namespace

Result<std::vector<Host>> read_hosts(const std::string& file, std::string_view text) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first;
    if (!(words >> first)) continue;
    auto host = host_of(words, first);
    if (!host) return Error{fmt::format("{}:{}: {}", file, number, host.error().message)};
    const auto other =
        std::ranges::find_if(hosts, [&](const Host& before) { return shares_ports(host.value(), before); });
    if (other != hosts.end())
      return Error{
          fmt::format("{}:{}: {}: peers of {} listen at {}:{}, too; expected another port=, or one line with "
                      "peers=N",
                      file, number, host.value().ssh, other->ssh, other->address, other->port)};
    hosts.push_back(std::move(host).value());
  }
  if (hosts.empty())
    return Error{fmt::format("{}: no host; expected a line such as user@10.0.0.5 site=onprem:eu", file)};
  return hosts;
}

}  // namespace tw::launch
