// SPDX-License-Identifier: Apache-2.0
// The status of a peer for the others: its part of its own board.
#include <algorithm>
#include <charconv>
#include <functional>

#include "monitor/fold/journal.h"

namespace tw::monitor {
namespace {

wire::Doing doing_of(PeerState state) {
  switch (state) {
    case PeerState::starting:
      return wire::Doing::starting;
    case PeerState::computing:
      return wire::Doing::computing;
    case PeerState::averaging:
      return wire::Doing::averaging;
    case PeerState::applying:
      return wire::Doing::applying;
    case PeerState::fetching:
      return wire::Doing::fetching;
    case PeerState::leaving:
      return wire::Doing::leaving;
    case PeerState::left:
    case PeerState::lost:
      return wire::Doing::left;
  }
  return wire::Doing::starting;
}

/// The digest that 32 hexadecimal digits spell.
std::optional<Digest> digest_in(const std::string& text) {
  Digest digest;
  const char* const middle = text.data() + 16;
  const auto is_whole = [](std::from_chars_result result, const char* end) {
    return result.ec == std::errc() && result.ptr == end;
  };
  if (text.size() != 32) return std::nullopt;
  if (!is_whole(std::from_chars(text.data(), middle, digest.high, 16), middle)) return std::nullopt;
  if (!is_whole(std::from_chars(middle, middle + 16, digest.low, 16), middle + 16)) return std::nullopt;
  return digest;
}

double age(double now_s, double at_s) { return std::max(0.0, now_s - at_s); }

/// No byte of a character is left alone at its end.
std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  text.resize(most);
  return text;
}

template <class T>
std::vector<T> first_of(std::vector<T> items, std::size_t most) {
  if (items.size() > most) items.resize(most);
  return items;
}

void tell_peer(const BoardPeer& peer, double now_s, wire::Status& status) {
  status.site = cut(peer.site, wire::kMostSiteBytes);
  status.hardware = cut(peer.hardware, wire::kMostHardwareBytes);
  status.anchor = peer.anchor;
  status.doing = doing_of(peer.state);
  status.round = peer.round;
  status.since_ago_s = age(now_s, peer.since_s);
  status.rounds = peer.rounds;
  status.samples = peer.samples;
  status.samples_per_s = peer.samples_per_s;
  status.usage = {.hours = peer.usage.hours,
                  .cpu_s = peer.usage.cpu_s,
                  .peak_memory = peer.usage.peak_memory,
                  .bytes_sent = peer.usage.bytes_sent,
                  .bytes_received = peer.usage.bytes_received};
  status.usd_per_h = peer.usd_per_h;
  if (const auto digest = digest_in(peer.digest))
    status.parameters = wire::ParametersWord{.round = peer.digest_round, .digest = *digest};
  if (const auto& notice = peer.notice) {
    status.notice = wire::NoticeWord{.source = cut(notice->source, wire::kMostNoticeBytes),
                                     .kind = cut(notice->kind, wire::kMostNoticeBytes),
                                     .told_ago_s = age(now_s, notice->told_s),
                                     .deadline_in_s = {}};
    if (notice->deadline_s) status.notice->deadline_in_s = *notice->deadline_s - now_s;
  }
  if (const auto& wait = peer.wait)
    status.wait = wire::WaitWord{.text = cut(wait->text, wire::kMostWaitBytes),
                                 .since_ago_s = age(now_s, wait->since_s),
                                 .peers = first_of(wait->peers, wire::kMostWaitPeers)};
}

void tell_shares(std::vector<wire::ShareWord> shares, wire::Status& status) {
  for (wire::ShareWord& share : shares) {
    share.left_out = first_of(std::move(share.left_out), wire::kMostLeftOut);
    for (wire::LeftOutWord& out : share.left_out) out.why = cut(out.why, wire::kMostWhyBytes);
  }
  status.shares = std::move(shares);
}

}  // namespace

wire::LedgerWord Journal::ledger_of_peer(PeerId peer) const {
  wire::LedgerWord sum;
  if (const auto own = own_ledgers_.find(peer); own != own_ledgers_.end()) add(own->second.word(), sum);
  if (const auto told = told_ledgers_.find(peer); told != told_ledgers_.end()) add(told->second.word(), sum);
  return sum;
}

wire::GoneWord Journal::gone_beside(PeerId self) const {
  wire::GoneWord sum = gone_before_.value_or(wire::GoneWord{});
  for (const auto& [id, track] : peers_.all()) {
    if (id == self || !track.is_gone()) continue;
    const BoardPeer peer = priced(track.board(newest_s_));
    sum.hours += peer.usage.hours;
    add(ledger_of_peer(id), sum.ledger);
    const Links::Usd usd = links_.usd_of(id);
    sum.egress_usd += usd.bytes;
    sum.requests_usd += usd.requests;
    if (!peer.usd_per_h) continue;
    sum.priced_hours += peer.usage.hours;
    sum.machines_usd += peer.usage.hours * *peer.usd_per_h;
  }
  return sum;
}

wire::Status Journal::status(PeerId self, double now_s) const {
  wire::Status status;
  const auto own = peers_.all().find(self);
  if (own == peers_.all().end()) return status;
  tell_peer(priced(own->second.board(now_s)), now_s, status);
  status.last = own->second.stages.last(now_s);
  tell_shares(own->second.stages.shares(now_s), status);
  status.line = links_.line_of(self);
  status.sent = links_.sent_by(self);
  std::ranges::sort(status.sent, std::greater{}, &wire::SiteBytes::bytes);
  status.sent = first_of(std::move(status.sent), wire::kMostSentSites);
  status.stores = first_of(links_.stores_of(self), wire::kMostStores);
  status.ledger = ledger_of_peer(self);
  status.gone = gone_beside(self);
  return status;
}

}  // namespace tw::monitor
