// SPDX-License-Identifier: Apache-2.0
#include "plan/model/cluster.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "base/result.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "market/gpu_name.h"

namespace tw::plan {
namespace {

constexpr int kMostPeers = 100'000;

/// Cuts the word after the machine, " spot", off the text. A GPU before the @ may have several words.
Result<std::optional<market::Purchase>> take_purchase(std::string& text) {
  const std::size_t at = text.find('@');
  const std::size_t space = text.find(' ', at == std::string::npos ? 0 : at);
  if (space == std::string::npos) return std::optional<market::Purchase>();
  const auto purchase = market::parse_purchase(trimmed(std::string_view(text).substr(space)));
  if (!purchase) return Error{fmt::format("{}: expected spot, on-demand or owned after the machine", text)};
  text.erase(space);
  return purchase;
}

Result<PeerGroup> parse_group(std::string text) {
  const Error wrong{
      fmt::format("{}: not a group of peers; expected COUNTxGPU@PROVIDER:REGION, such as 4xT4@gc:us",
                  text.empty() ? "an empty part of the list" : text)};
  TW_TRY(const auto purchase, take_purchase(text));
  const std::size_t x = text.find_first_of("xX");
  const std::size_t at = text.find('@');
  if (x == std::string::npos || at == std::string::npos || at <= x + 1 || at != text.rfind('@')) return wrong;
  const auto count = parse_number<int>(std::string_view(text).substr(0, x));
  if (!count || *count < 1 || *count > kMostPeers) return wrong;
  const auto site = market::parse_site(text.substr(at + 1));
  if (!site) return Error{fmt::format("{}: {}", text, site.error().message)};
  const std::string gpu = market::gpu_name(text.substr(x + 1, at - x - 1));
  if (gpu.find(' ') != std::string::npos) return wrong;
  return PeerGroup{*count, gpu, site.value(), purchase};
}

}  // namespace

Result<std::vector<PeerGroup>> parse_peers(const std::string& list) {
  std::vector<PeerGroup> groups;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(';', begin), list.size());
    TW_TRY(const auto group,
           parse_group(std::string(trimmed(std::string_view(list).substr(begin, end - begin)))));
    groups.push_back(group);
    begin = end + 1;
  }
  return groups;
}

std::string to_string(const std::vector<PeerGroup>& groups) {
  std::string text;
  for (const PeerGroup& group : groups) {
    text += fmt::format("{}{}x{}@{}", text.empty() ? "" : ";", group.count, group.gpu, to_string(group.site));
    if (group.purchase) text += fmt::format(" {}", to_string(*group.purchase));
  }
  return text;
}

int count_of(const std::vector<PeerGroup>& groups) {
  return std::accumulate(groups.begin(), groups.end(), 0,
                         [](int sum, const PeerGroup& group) { return sum + group.count; });
}

market::Site network_site(const PeerGroup& group) { return site_of_host(group.site, group.gpu); }

bool on_premise(const market::Site& site) { return site.provider.starts_with("onprem"); }

}  // namespace tw::plan
