// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/summary_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text/write_file.h"
#include "monitor/board/board_json.h"

namespace tw::monitor {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json all(const auto& items, auto&& object_of) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(object_of(item));
  return list;
}

Json of_store(const StoreTraffic& traffic) {
  return Json{{"bytes", traffic.bytes},
              {"requests", traffic.requests},
              {"usd", or_null(traffic.usd)},
              {"requests_usd", or_null(traffic.requests_usd)}};
}

/// Null where no event of the peer is known, or none that tells of its bytes.
Json of_peer(const BoardPeer& peer) {
  const BoardUsage& usage = peer.usage;
  const bool has_bytes = usage.bytes_sent + usage.bytes_received > 0, has_hours = peer.heard_s > 0;
  const auto usd_of = [&](double usd_per_h) { return Json(usd_per_h * usage.hours); };
  return Json{{"id", peer.peer.value},
              {"rounds", peer.rounds},
              {"samples", peer.samples},
              {"digest", peer.digest},
              {"bytes_sent", has_bytes ? Json(usage.bytes_sent) : Json(nullptr)},
              {"bytes_received", has_bytes ? Json(usage.bytes_received) : Json(nullptr)},
              {"hours", has_hours ? Json(usage.hours) : Json(nullptr)},
              {"usd", has_hours && peer.usd_per_h ? usd_of(*peer.usd_per_h) : Json(nullptr)}};
}

void add_what_left(Json& json, const Summary& summary) {
  json["handovers"] = nullptr;
  if (summary.handovers)
    json["handovers"] = all(*summary.handovers, [](const HandOver& handover) {
      return Json{{"peer", handover.peer.value},
                  {"round", handover.round},
                  {"to", handover.to.value},
                  {"samples", handover.samples},
                  {"bytes", handover.bytes},
                  {"took_s", or_null(handover.took_s)},
                  {"round_left_s", or_null(handover.round_left_s)}};
    });
  const Money& money = summary.board.money;
  json["samples_handed_over"] = summary.board.ledger.handed_over;
  json["microbatches_again"] = or_null(summary.microbatches_again);
  json["samples_again"] = or_null(summary.samples_again);
  json["machine_hours"] = money.machine_hours;
  json["priced_hours"] = money.priced_hours;
  json["usd"] = or_null(money.usd());
  json["egress_usd"] = or_null(money.egress_usd);
  json["requests_usd"] = or_null(money.requests_usd);
  json["usd_again"] = or_null(summary.usd_again());
  if (const std::vector<StoreUsed> stores = stores_of(summary.board.links); !stores.empty())
    json["stores"] = all(stores, [](const StoreUsed& used) {
      return Json{{"store", used.store}, {"read", of_store(used.read)}, {"written", of_store(used.written)}};
    });
}

void add_dropped(Json& json, const Summary& summary) {
  if (!summary.dropped.empty())
    json["dropped"] = all(summary.dropped, [](const DroppedRounds& dropped) {
      Json peers = Json::array();
      for (const PeerId peer : dropped.peers) peers.push_back(peer.value);
      return Json{{"first_round", dropped.first},
                  {"last_round", dropped.last},
                  {"rounds", dropped.rounds},
                  {"samples", dropped.samples},
                  {"peers", std::move(peers)},
                  {"from", calendar_time(dropped.begun_unix_nanos)},
                  {"to", calendar_time(dropped.ended_unix_nanos)},
                  {"usd", or_null(dropped.usd)}};
    });
}

}  // namespace

std::string to_json(const Summary& summary) {
  Json json;
  json["rounds"] = summary.rounds;
  json["last_round"] = or_null(summary.board.last_round);
  json["ended"] = summary.board.ended.empty() ? Json(nullptr) : Json(summary.board.ended);
  json["samples"] = summary.samples;
  json["samples_skipped"] = summary.board.ledger.skipped;
  json["samples_carried"] = or_null(summary.samples_carried);
  json["samples_per_s"] = or_null(summary.samples_per_s);
  json["loss"] = or_null(summary.loss);
  json["evaluations"] = all(summary.board.evaluations, [](const BoardEvaluation& one) {
    return Json{{"round", one.round}, {"peer", one.peer.value}, {"name", one.name}, {"value", one.value}};
  });
  json["granularity"] = or_null(summary.granularity());
  json["calc_s"] = or_null(summary.calc_s);
  json["comm_s"] = or_null(summary.comm_s);
  json["hidden"] = or_null(summary.board.speed.hidden);
  json["peers"] = all(summary.board.peers, of_peer);
  json["identical"] = summary.identical;
  json["insecure"] = or_null(summary.insecure);
  if (!summary.difference.empty()) json["difference"] = summary.difference;
  json["lost"] = all(summary.lost, [](const LostPeer& lost) {
    return Json{{"peer", lost.peer.value},
                {"round", lost.round},
                {"detected_s", or_null(lost.detected_s)},
                {"extra_s", or_null(lost.extra_s)},
                {"why", lost.why},
                {"microbatches_again", or_null(lost.microbatches_again)}};
  });
  json["joined"] = all(summary.joined, [](const JoinedPeer& joined) {
    return Json{{"peer", joined.peer.value}, {"round", joined.round}, {"seconds", or_null(joined.seconds)}};
  });
  json["left"] = Json::array();
  for (const Interruption& one : summary.board.interruptions)
    if (one.kind == Interruption::Kind::left)
      json["left"].push_back({{"peer", one.peer.value}, {"round", one.round}});
  json["notices"] = all(summary.notices, [](const GivenNotice& notice) {
    return Json{{"peer", notice.peer.value},
                {"round", notice.round},
                {"source", notice.source},
                {"kind", notice.kind},
                {"deadline_s", or_null(notice.deadline_s)},
                {"used_s", or_null(notice.used_s)}};
  });
  add_what_left(json, summary);
  json["delays"] = all(summary.board.delays, [](const Delay& delay) { return Json::parse(to_json(delay)); });
  add_dropped(json, summary);
  if (summary.unlogged_rounds > 0) json["unlogged_rounds"] = summary.unlogged_rounds;
  if (!summary.missing.empty())
    json["missing"] = all(summary.missing, [](const MissingEvents& gap) {
      return Json{{"peer", gap.peer.value},
                  {"events", or_null(gap.events)},
                  {"from", calendar_time(gap.from_unix_nanos)},
                  {"to", gap.to_unix_nanos ? Json(calendar_time(*gap.to_unix_nanos)) : Json()},
                  {"why", gap.why}};
    });
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Status write_summary(const std::string& folder, const Summary& summary) {
  return write_file(folder + "/summary.json", to_json(summary));
}

}  // namespace tw::monitor
