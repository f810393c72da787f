// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/summary_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text/write_file.h"

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

void add_what_left(Json& json, const Summary& summary) {
  json["handovers"] = all(summary.handovers, [](const HandOver& handover) {
    return Json{{"peer", handover.peer.value},
                {"round", handover.round},
                {"to", handover.to.value},
                {"samples", handover.samples},
                {"bytes", handover.bytes},
                {"took_s", or_null(handover.took_s)},
                {"round_left_s", or_null(handover.round_left_s)}};
  });
  json["samples_handed_over"] = summary.leavings.samples_handed_over;
  json["microbatches_again"] = summary.leavings.microbatches_again;
  json["samples_again"] = or_null(summary.leavings.samples_again);
  json["machine_hours"] = summary.cost.machine_hours;
  json["priced_hours"] = summary.cost.priced_hours;
  json["usd"] = or_null(summary.cost.usd);
  json["egress_usd"] = or_null(summary.cost.egress_usd);
  json["requests_usd"] = or_null(summary.cost.requests_usd);
  json["usd_again"] = or_null(summary.cost.usd_again);
  if (!summary.stores.empty())
    json["stores"] = all(summary.stores, [](const StoreUsed& used) {
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
  json["samples"] = summary.samples;
  json["samples_skipped"] = summary.samples_skipped;
  json["samples_carried"] = or_null(summary.samples_carried);
  json["samples_per_s"] = summary.samples_per_s;
  json["loss"] = or_null(summary.loss);
  json["granularity"] = or_null(summary.granularity);
  json["calc_s"] = or_null(summary.calc_s);
  json["comm_s"] = or_null(summary.comm_s);
  json["peers"] = all(summary.peers, [](const PeerSummary& peer) {
    return Json{{"id", peer.id.value},
                {"rounds", peer.rounds},
                {"samples", peer.samples},
                {"digest", peer.digest},
                {"bytes_sent", or_null(peer.bytes_sent)},
                {"bytes_received", or_null(peer.bytes_received)},
                {"hours", or_null(peer.hours)},
                {"usd", or_null(peer.usd)}};
  });
  json["identical"] = summary.identical;
  json["insecure"] = summary.insecure;
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
  json["left"] = all(summary.left, [](const LeftPeer& left) {
    return Json{{"peer", left.peer.value}, {"round", left.round}};
  });
  json["notices"] = all(summary.notices, [](const GivenNotice& notice) {
    return Json{{"peer", notice.peer.value},
                {"round", notice.round},
                {"source", notice.source},
                {"kind", notice.kind},
                {"deadline_s", or_null(notice.deadline_s)},
                {"used_s", or_null(notice.used_s)}};
  });
  add_what_left(json, summary);
  add_dropped(json, summary);
  if (summary.unlogged_rounds > 0) json["unlogged_rounds"] = summary.unlogged_rounds;
  if (!summary.missing.empty())
    json["missing"] = all(summary.missing, [](const MissingEvents& gap) {
      return Json{{"peer", gap.peer.value},
                  {"events", or_null(gap.events)},
                  {"from", calendar_time(gap.from_unix_nanos)},
                  {"to", calendar_time(gap.to_unix_nanos)},
                  {"why", gap.why}};
    });
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Status write_summary(const std::string& folder, const Summary& summary) {
  return write_file(folder + "/summary.json", to_json(summary));
}

}  // namespace tw::monitor
