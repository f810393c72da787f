// SPDX-License-Identifier: Apache-2.0
#include "measure/testbed/testbed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/result.h"
#include "base/time.h"
#include "host/system/temporary_folder.h"
#include "launch/local/child.h"
#include "swarm/shares/bound.h"

namespace tw::measure {
namespace {

constexpr Duration kLookAtTestbedEvery = std::chrono::milliseconds(5);

std::string wan_program() { return std::filesystem::path(launch::own_path()).parent_path() / "tw-wan"; }

std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Output of a command of tw-wan; an error when it fails.
Result<std::string> ask_wan(const std::string& topology, const std::vector<std::string>& words) {
  if (access(wan_program().c_str(), X_OK) != 0)
    return Error{fmt::format("--wan {}: there is no {}; build it with: make", topology, wan_program())};
  const host::TemporaryFolder folder;
  const std::string output = folder.path() + "/wan.log";
  std::vector<std::string> command = {wan_program(), topology};
  command.insert(command.end(), words.begin(), words.end());
  TW_TRY(auto child, launch::Child::start(command, output));
  // Takes a second or two; an interrupt comes after it, so that no testbed is left.
  while (!child.ending()) std::this_thread::sleep_for(kLookAtTestbedEvery);
  if (child.ending() != 0) return Error{"--wan: " + launch::last_words(output)};
  return whole_file(output);
}

}  // namespace

double bound_seconds(std::uint64_t wire_bytes, const TestbedPlan& plan) {
  const double by_cards = swarm::bound_seconds(wire_bytes, plan.cards);
  return plan.fences.size() < 2 ? by_cards
                                : std::max(by_cards, swarm::bound_seconds(wire_bytes, plan.fences));
}

Result<Testbed> Testbed::up(const std::string& topology, std::size_t hosts) {
  TW_TRY(const auto shown, ask_wan(topology, {"show"}));
  TW_TRY(auto plan, parse_testbed(shown, hosts));
  TW_TRY(ask_wan(topology, {"up"}));
  return Testbed(topology, std::move(plan));
}

Testbed::~Testbed() {
  if (!topology_.empty()) (void)ask_wan(topology_, {"down"});
}

std::vector<Host> Testbed::hosts() const {
  std::vector<Host> hosts = plan_.hosts;
  for (Host& host : hosts) host.enter = {wan_program(), topology_, "exec", host.name};
  return hosts;
}

Result<BoxReport> Testbed::box() const {
  TW_TRY(const auto status, ask_wan(topology_, {"status", "--json"}));
  return parse_box(status);
}

Status Testbed::limit_first_site(double share) const {
  for (const SiteLink& link : plan_.links) {
    const std::string rate = fmt::format("{:.0f}kbit", share * link.bit_s / 1000);
    TW_TRY(ask_wan(topology_, {"set", link.from + ":" + link.to, "bandwidth", rate}));
  }
  return Unit{};
}

}  // namespace tw::measure
