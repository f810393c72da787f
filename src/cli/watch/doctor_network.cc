// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/doctor_network.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/result.h"
#include "base/text/text_file.h"
#include "cli/plan/price_sources.h"
#include "host/http.h"
#include "host/identity/holder.h"
#include "host/system/calendar.h"
#include "host/system/machine_signs.h"
#include "measure/net_probe.h"
#include "peer/notice_watch.h"
#include "peer/token_file.h"
#include "plan/advise/replan.h"
#include "spot/sources.h"

namespace tw::cli {
namespace {

constexpr int kStreams = 16;  ///< as tw net show assumes
constexpr double kBytesOfMbit = 1e6 / 8;
constexpr Duration kNoticeTime = std::chrono::seconds(5);

Result<DoctorNetwork::Places> places_of(const DoctorArguments& arguments) {
  DoctorNetwork::Places places;
  if (!arguments.site.empty()) {
    const auto site = market::parse_site(arguments.site);
    if (!site) return Error{"--site " + site.error().message};
    places.own = site.value();
  }
  if (arguments.plan.empty()) return places;
  const auto text = read_text_file(arguments.plan, kMostYamlBytes);
  if (!text) return Error{"--plan " + text.error().message};
  const auto plan = plan::read_plan_file(arguments.plan, text.value());
  if (!plan) return plan.error();
  std::set<market::Site> sites;
  std::uint64_t peers = 0;
  for (const plan::PlannedGroup& group : plan.value()) {
    if (!plan::trains(group)) continue;
    sites.insert(group.site);
    peers += static_cast<std::uint64_t>(std::max(0, group.count));
  }
  if (arguments.site.empty() && sites.size() == 1) places.own = *sites.begin();
  places.others = {sites.begin(), sites.end()};
  places.peers = peers;
  return places;
}

}  // namespace

DoctorNetwork::DoctorNetwork(const DoctorArguments& arguments, std::optional<wire::Token> token,
                             Places places)
    : arguments_(arguments), token_(std::move(token)), places_(std::move(places)) {}

Result<DoctorNetwork> open_doctor_network(const DoctorArguments& arguments, const std::string& token) {
  TW_TRY(auto places, places_of(arguments));
  if (token.empty()) return DoctorNetwork(arguments, std::nullopt, std::move(places));
  auto read = peer::read_token("TOKEN", token, [](const std::string& line) { warn(line); });
  if (!read) return read.error();
  return DoctorNetwork(arguments, std::move(read).value(), std::move(places));
}

measure::Finding DoctorNetwork::look_at_token() {
  if (!token_) return measure::judge_token(std::nullopt);
  const std::int64_t now = host::now_unix_s();
  measure::TokenFacts facts{.run = run_of(*token_),
                            .role = wire::name_of(token_->role),
                            .trains = token_->role != wire::Role::observer,
                            .left_s = static_cast<double>(token_->expires_unix_s - now)};
  if (const auto begin = host::begin_of(*token_))
    facts.begins_in_s = token_begins_in_s_ = static_cast<double>(*begin - now);
  auto tls = host::Tls::open(*token_, now);
  if (tls) {
    tls_ = std::move(tls).value();
  } else {
    facts.bad = tls.error().message;
  }
  return judge_token(facts);
}

/// The probe last: clock and bandwidth are its.
std::vector<std::string> DoctorNetwork::addresses() const {
  std::vector<std::string> all;
  if (token_ && tls_) all = token_->addresses;
  if (!arguments_.probe.empty()) {
    std::erase(all, arguments_.probe);
    all.push_back(arguments_.probe);
  }
  return all;
}

std::optional<double> DoctorNetwork::assumed_mbit_s(const market::Site& there) const {
  if (places_.own.provider.empty()) return std::nullopt;
  const auto network = network_at_hand("");
  if (!network) return std::nullopt;
  return network.value().bytes_per_s(places_.own, there, kStreams) / kBytesOfMbit;
}

market::Site DoctorNetwork::own_site() const {
  return places_.own.provider.empty() ? market::site_at("onprem", "here") : places_.own;
}

std::optional<measure::Finding> DoctorNetwork::look_at_mode(const plan::ModelProfile& model,
                                                            double samples) const {
  return judge_mode(model, own_site(), links_, samples);
}

std::vector<measure::Finding> DoctorNetwork::look() {
  std::vector<measure::Finding> findings{look_at_token()};
  std::optional<double> skew_s;
  measure::DoorFacts door{.own_addresses = measure::interface_addresses(),
                          .listen = arguments_.listen,
                          .provider = places_.own.provider};
  const bool can_dial = tls_ != nullptr || arguments_.insecure;
  const std::vector<std::string> dialed = addresses();
  if (can_dial && !dialed.empty()) {
    measure::Probe end({.site = own_site(), .listen = arguments_.listen, .tls = std::move(tls_)});
    const auto opened = end.open();
    if (!opened) {
      findings.push_back({"door", measure::Verdict::hurts, opened.error().message,
                          "give --listen an address of this machine and a port that is free"});
      return findings;
    }
    for (const std::string& address : dialed) {
      measure::PeerFacts peer = end.meet(address);
      findings.push_back(judge_reach(peer));
      if (peer.answer != measure::PeerFacts::Answer::probe) continue;
      peer.assumed_mbit_s = assumed_mbit_s(end.site_of(address));
      findings.push_back(judge_bandwidth(peer));
      links_.push_back({end.site_of(address), peer.rtt_s.value_or(0), peer.out_mbit_s * kBytesOfMbit,
                        peer.in_mbit_s * kBytesOfMbit});
      skew_s = end.skew_s(address);
      door.probe = address;
      if (!arguments_.listen.empty()) door.failed = end.refusal_of(address, opened.value());
    }
  }
  findings.push_back(judge_clock(measure::ask_clock(), skew_s, token_begins_in_s_));
  findings.push_back(judge_door(door));
  return findings;
}

measure::Finding look_at_notices() {
  const world::MachineSigns signs = host::read_machine_signs();
  measure::NoticeFacts facts;
  if (const auto provider = spot::provider_of(signs)) {
    facts.provider = name_of(*provider);
    facts.sources = {"169.254.169.254"};
  } else if (signs.kubernetes || signs.slurm) {
    facts.provider = signs.kubernetes ? "kubernetes" : "slurm";
    facts.sources = {"signals"};
  }
  auto sources = spot::sources_of({.ask = spot::NoticeOptions::Ask::automatic}, signs);
  if (sources.empty()) return judge_notices(facts);
  host::Loop loop;
  peer::NoticeWatch watch(loop, std::make_unique<host::CurlHttp>(loop), std::move(sources),
                          {.heed = [](const spot::Notice&) {},
                           .warn = [&](const std::string& line) { facts.warnings.push_back(line); }});
  watch.start();
  const bool answered = loop.run_until([&] { return watch.has_looked(); }, kNoticeTime);
  if (!answered && facts.warnings.empty()) facts.warnings = {"169.254.169.254 does not answer"};
  return judge_notices(facts);
}

}  // namespace tw::cli
