// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/fields.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "measure/testbed/baselines.h"

namespace tw::measure {
namespace {

constexpr double kLongestTrouble_s = 240;

}  // namespace

Result<std::uint64_t> parse_bytes(const std::string& option, const std::string& text) {
  const Error wrong{
      fmt::format("{} {}: expected a size such as 64MiB or 256MB, in whole floats of 4 bytes", option, text)};
  const auto bytes = parse_size(text);
  if (!bytes || *bytes % sizeof(float) != 0) return wrong;
  return *bytes;
}

Result<codec::Codec> parse_codec(const std::string& text) {
  if (const std::optional<codec::Codec> codec = codec::codec_named(text)) return *codec;
  return Error{fmt::format("--codec {}: expected {}{}", text, fmt::join(codec::kCodecNames, ", "),
                           did_you_mean(text, codec::kCodecNames))};
}

Result<swarm::SiteUse> parse_site_use(const std::string& text) {
  const auto found = std::ranges::find(swarm::kSiteUseNames, text);
  if (found != swarm::kSiteUseNames.end())
    return static_cast<swarm::SiteUse>(found - swarm::kSiteUseNames.begin());
  return Error{fmt::format("--sites {}: expected {}", text, fmt::join(swarm::kSiteUseNames, ", "))};
}

Result<Disturbance> parse_disturbance(const std::string& option, const std::string& text,
                                      std::uint64_t peers) {
  const std::size_t at = text.find('@');
  const std::string who = text.substr(0, at);
  const auto fraction = at == std::string::npos ? std::nullopt : parse_number<double>(text.substr(at + 1));
  const std::string expected = fmt::format(
      "{} {}: expected PEER@FRACTION such as 2@0.5, or leader@FRACTION: where in its round, from 0 to 1",
      option, text);
  if (!fraction || !(*fraction >= 0) || *fraction > 1) return Error{expected};
  Disturbance disturbance{
      option == "--kill" ? Disturbance::Kind::kill : Disturbance::Kind::stop, {}, *fraction};
  if (who == "leader") return disturbance;
  const auto peer = parse_number<std::uint64_t>(who);
  if (!peer) return Error{expected};
  if (*peer < 1 || *peer > peers)
    return Error{fmt::format("{} {}: there are peers 1 to {}, for example {} {}@{}", option, text, peers,
                             option, peers, *fraction)};
  disturbance.victim = PeerId{*peer};
  return disturbance;
}

Result<TroubleTime> parse_trouble(const std::string& text, bool topology) {
  const std::size_t at = std::min(text.find('@'), text.size());
  const auto found = std::ranges::find(kTroubleNames, text.substr(0, at));
  std::string seconds = text.substr(std::min(at + 1, text.size()));
  if (seconds.ends_with('s')) seconds.pop_back();
  const auto lasts_s = parse_number<double>(seconds);
  if (found == kTroubleNames.end() || !lasts_s || !(*lasts_s >= 1) || *lasts_s > kLongestTrouble_s)
    return Error{fmt::format(
        "--disturb {}: expected busy, link or stop and how long, from 1s to {}s, such as busy@20s", text,
        kLongestTrouble_s)};
  const auto kind = static_cast<TroubleKind>(found - kTroubleNames.begin());
  if (kind == TroubleKind::link && !topology)
    return Error{fmt::format("--disturb {}: the loopback has no link to narrow; add --wan hetero4", text)};
  return TroubleTime{kind, from_seconds(*lasts_s)};
}

std::string to_string(const TroubleTime& trouble) {
  return fmt::format("{}@{:g}s", kTroubleNames[static_cast<std::size_t>(trouble.kind)],
                     to_seconds(trouble.lasts));
}

Result<std::vector<std::string>> parse_baselines(const std::string& text) {
  std::vector<std::string> baselines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    baselines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::vector<std::string> known(kBaselines.begin(), kBaselines.end());
  for (const std::string& baseline : baselines) {
    if (std::find(known.begin(), known.end(), baseline) != known.end()) continue;
    return Error{fmt::format("--vs {}: there is no {}; expected some of {}{}", text, baseline,
                             fmt::join(known, ","), did_you_mean(baseline, known))};
  }
  return baselines;
}

}  // namespace tw::measure
