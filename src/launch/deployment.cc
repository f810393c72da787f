// SPDX-License-Identifier: Apache-2.0
#include "launch/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "base/peer_name.h"

namespace tw::launch {
namespace {

constexpr std::size_t kLongestRunName = 40;
constexpr std::size_t kBootstraps = 2;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:=@%+,").find(c) != std::string_view::npos;
}

std::vector<const PeerJob*> by_number(std::initializer_list<const std::vector<PeerJob>*> lists) {
  std::vector<const PeerJob*> all;
  for (const auto* list : lists)
    for (const PeerJob& peer : *list) all.push_back(&peer);
  std::ranges::sort(all, {}, [](const PeerJob* peer) { return peer->number; });
  return all;
}

/// Peers of all engines, by number.
std::vector<const PeerJob*> all_peers(const Deployment& deployment) {
  return by_number({&deployment.peers, &deployment.elsewhere});
}

const PeerJob& first_among(const std::vector<const PeerJob*>& peers) {
  TW_CHECK(!peers.empty());
  const auto rank = [](const PeerJob* peer) { return std::pair(peer->address.empty(), !peer->anchor); };
  return **std::ranges::min_element(peers, {}, rank);
}

std::string address_of(const PeerJob& peer) { return fmt::format("{}:{}", peer.address, peer.port); }

}  // namespace

bool is_run_name(const std::string& name) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (name.empty() || name.size() > kLongestRunName || !letter(name.front()) || name.back() == '-')
    return false;
  return std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

std::string short_name(const PeerJob& peer) { return peer_name(PeerId{peer.number * kIdsOfMachine}); }

std::string job_name(const Deployment& deployment, const PeerJob& peer) {
  const std::string name = deployment.run + "-" + short_name(peer);
  return peer.restart == 0 ? name : fmt::format("{}-r{}", name, peer.restart);
}

const PeerJob* find_peer(const Deployment& deployment, std::uint32_t number) {
  const auto found = std::ranges::find(deployment.peers, number, &PeerJob::number);
  return found == deployment.peers.end() ? nullptr : &*found;
}

bool has_peer(const std::vector<PeerJob>& peers, std::uint32_t number) {
  return std::ranges::find(peers, number, &PeerJob::number) != peers.end();
}

void mark_started(Deployment& deployment, const std::vector<PeerJob>& peers, std::int64_t unix_s) {
  for (PeerJob& peer : deployment.peers)
    if (has_peer(peers, peer.number)) {
      peer.started_unix_s = unix_s;
      peer.untried = peer.untried && unix_s == 0;
      peer.starts += unix_s == 0 ? 0 : 1;
    }
}

const std::string& token_of(const Deployment& deployment, const PeerJob& peer) {
  return peer.anchor && !deployment.anchor_token.empty() ? deployment.anchor_token : deployment.token;
}

std::vector<std::string> bootstrap_of(const Deployment& deployment) {
  std::vector<std::string> addresses;
  for (const PeerJob* peer : all_peers(deployment))
    if (peer->anchor && !peer->address.empty()) addresses.push_back(address_of(*peer));
  for (const PeerJob* peer : all_peers(deployment))
    if (addresses.size() < kBootstraps && !peer->anchor && !peer->address.empty())
      addresses.push_back(address_of(*peer));
  return addresses;
}

const PeerJob& first_of(const Deployment& deployment) { return first_among(all_peers(deployment)); }

const PeerJob& first_of(const std::vector<PeerJob>& peers) { return first_among(by_number({&peers})); }

bool may_resume(const Deployment& deployment, const PeerJob& peer) {
  return deployment.begun && peer.number == deployment.founder;
}

Start start_of(const Deployment& deployment, const PeerJob& peer) {
  if (deployment.begun) return Start::again;
  return peer.number == first_of(deployment).number ? Start::begin : Start::join;
}

std::optional<double> price_of(const PeerJob& peer) {
  const Machine& machine = peer.machine;
  const bool said =
      machine.usd_per_h > 0 || (machine.usd_per_h == 0 && machine.purchase == market::Purchase::owned);
  const auto differs = [&](const Machine& other) { return other.usd_per_h != machine.usd_per_h; };
  if (!said || std::ranges::any_of(peer.alternatives, differs)) return std::nullopt;
  return machine.usd_per_h;
}

std::vector<std::string> peer_words(const Deployment& deployment, const PeerJob& peer, Start start,
                                    const PeerPaths& paths) {
  std::vector<std::string> words = {"run",   paths.run_file, "--token",  "@" + paths.token_file,
                                    "--out", paths.out,      "--listen", paths.listen};
  if (start == Start::begin)
    words.insert(words.end(), {"--no-rejoin", "--wait-for", std::to_string(deployment.peers.size())});
  if (start == Start::begin && deployment.anew) words.emplace_back("--anew");
  if (start == Start::again) words.emplace_back("--rejoin");
  const bool resumes = !peer.address.empty() && may_resume(deployment, peer);
  const bool dials = start == Start::join || (start == Start::again && !resumes);
  for (const std::string& address : paths.join)
    if (dials && address != paths.listen) words.insert(words.end(), {"--join", address});
  if (!peer.machine.site.provider.empty())
    words.insert(words.end(), {"--site", market::to_string(peer.machine.site)});
  if (const std::optional<double> price = price_of(peer))
    words.insert(words.end(), {"--usd-per-h", fmt::format("{}", *price)});
  const auto grace_s = std::chrono::duration_cast<std::chrono::seconds>(deployment.grace).count();
  words.insert(words.end(), {"--grace", fmt::format("{}s", grace_s)});
  for (const std::string& setting : deployment.settings) words.insert(words.end(), {"--set", setting});
  return words;
}

std::vector<std::string> command_words(const Deployment& deployment) {
  std::vector<std::string> words = deployment.user.command;
  words.insert(words.begin(), "--");
  return words;
}

std::string shell_word(const std::string& word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string heredoc_end(std::string mark, const std::string& text) {
  while (text.find(mark) != std::string::npos) mark += "_";
  return mark;
}

}  // namespace tw::launch
