// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board_json.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <type_traits>

namespace tw::monitor {
namespace {

using Json = nlohmann::ordered_json;

/// A struct of the board, to be read or to be written.
template <class T, class Struct>
concept Of = std::same_as<std::remove_const_t<T>, Struct>;

void visit(auto& on, Of<BoardNotice> auto& notice) {
  on("source", notice.source);
  on("kind", notice.kind);
  on("told_s", notice.told_s);
  on("deadline_s", notice.deadline_s);
}

void visit(auto& on, Of<BoardWait> auto& wait) {
  on("text", wait.text);
  on("since_s", wait.since_s);
  on("peers", wait.peers);
}

void visit(auto& on, Of<BoardUsage> auto& usage) {
  on("hours", usage.hours);
  on("cpu_s", usage.cpu_s);
  on("peak_memory", usage.peak_memory);
  on("bytes_sent", usage.bytes_sent);
  on("bytes_received", usage.bytes_received);
}

void visit(auto& on, Of<BoardPeer> auto& peer) {
  on("peer", peer.peer);
  on("site", peer.site);
  on("hardware", peer.hardware);
  on("anchor", peer.anchor);
  on("state", peer.state);
  on("since_s", peer.since_s);
  on("heard_s", peer.heard_s);
  on("round", peer.round);
  on("rounds", peer.rounds);
  on("samples", peer.samples);
  on("samples_per_s", peer.samples_per_s);
  on("usage", peer.usage);
  on("digest", peer.digest);
  on("digest_round", peer.digest_round);
  on("notice", peer.notice);
  on("wait", peer.wait);
  on("usd_per_h", peer.usd_per_h);
  on("ended", peer.ended);
}

void visit(auto& on, Of<BoardLink> auto& link) {
  on("from", link.from);
  on("to", link.to);
  on("bytes", link.bytes);
  on("mbit_s", link.mbit_s);
  on("bound_mbit_s", link.bound_mbit_s);
  on("usd_per_gb", link.usd_per_gb);
  on("usd", link.usd);
  on("store", link.store);
  on("requests", link.requests);
  on("requests_usd", link.requests_usd);
}

void visit(auto& on, Of<LeftOut> auto& left_out) {
  on("peer", left_out.peer);
  on("why", left_out.why);
}

void visit(auto& on, Of<BoardRound> auto& round) {
  on("round", round.round);
  on("begun_s", round.begun_s);
  on("called_s", round.called_s);
  on("committed_s", round.committed_s);
  on("calc_s", round.calc_s);
  on("comm_s", round.comm_s);
  on("bound_share", round.bound_share);
  on("samples", round.samples);
  on("samples_total", round.samples_total);
  on("carried", round.carried);
  on("contributors", round.contributors);
  on("left_out", round.left_out);
  on("loss", round.loss);
}

void visit(auto& on, Of<BoardSpan> auto& span) {
  on("peer", span.peer);
  on("round", span.round);
  on("state", span.state);
  on("from_s", span.from_s);
  on("to_s", span.to_s);
  on("why", span.why);
}

void visit(auto& on, Of<Interruption> auto& interruption) {
  on("kind", interruption.kind);
  on("at_s", interruption.at_s);
  on("round", interruption.round);
  on("peer", interruption.peer);
  on("detail", interruption.detail);
}

void visit(auto& on, Of<SampleLedger> auto& ledger) {
  on("committed", ledger.committed);
  on("handed_over", ledger.handed_over);
  on("again", ledger.again);
  on("skipped", ledger.skipped);
}

void visit(auto& on, Of<UsdRange> auto& range) {
  on("low", range.low);
  on("likely", range.likely);
  on("high", range.high);
}

void visit(auto& on, Of<Money> auto& money) {
  on("machine_hours", money.machine_hours);
  on("priced_hours", money.priced_hours);
  on("machines_usd", money.machines_usd);
  on("egress_usd", money.egress_usd);
  on("requests_usd", money.requests_usd);
  on("usd_per_h", money.usd_per_h);
  on("usd_per_million", money.usd_per_million);
  on("forecast", money.forecast);
  on("left_s", money.left_s);
  on("budget_usd", money.budget_usd);
  on.computed("usd", money.usd());
}

void visit(auto& on, Of<BoardSpeed> auto& speed) {
  on("samples_per_s", speed.samples_per_s);
  on("goodput", speed.goodput);
  on("granularity", speed.granularity);
}

void visit(auto& on, Of<Board> auto& board) {
  on("run", board.run);
  on("now_s", board.now_s);
  on("round", board.round);
  on("last_round", board.last_round);
  on("samples", board.samples);
  on("speed", board.speed);
  on("loss", board.loss);
  on("identical", board.identical);
  on("complete", board.complete);
  on("ended", board.ended);
  on("peers", board.peers);
  on("links", board.links);
  on("rounds", board.rounds);
  on("spans", board.spans);
  on("interruptions", board.interruptions);
  on("ledger", board.ledger);
  on("money", board.money);
}

struct Writer {
  Json& object;

  void operator()(const char* key, const auto& value) { object[key] = json_of(value); }

  void computed(const char* key, const std::optional<double>& value) { (*this)(key, value); }

  static Json json_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

  static Json json_of(bool value) { return value; }

  static Json json_of(std::uint64_t value) { return value; }

  static Json json_of(const std::string& value) { return value; }

  static Json json_of(PeerId peer) { return peer.value; }

  static Json json_of(PeerState state) { return name_of(state); }

  static Json json_of(Interruption::Kind kind) { return name_of(kind); }

  template <class T>
  static Json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : Json(nullptr);
  }

  template <class T>
  static Json json_of(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(json_of(value));
    return list;
  }

  template <class Struct>
  requires std::is_class_v<Struct>

  static Json json_of(const Struct& value) {
    Json object = Json::object();
    Writer writer{object};
    visit(writer, value);
    return object;
  }
};

/// The first thing that is wrong is told; what comes after it is not looked at.
struct Reader {
  const Json& object;
  std::string path;
  std::string& error;
  std::set<std::string_view> known = {};

  void operator()(const char* key, auto& value) {
    if (!error.empty()) return;
    known.insert(key);
    const auto found = object.find(key);
    if (found == object.end()) {
      error = fmt::format("{}.{} is missing", path, key);
      return;
    }
    read(*found, fmt::format("{}.{}", path, key), value);
  }

  void computed(const char* key, const std::optional<double>&) {
    double ignored = 0;
    (*this)(key, ignored);
  }

  void expect(bool holds, const std::string& where, std::string_view what) const {
    if (!holds && error.empty()) error = fmt::format("{}: expected {}", where, what);
  }

  void read(const Json& json, const std::string& where, double& value) const {
    expect(json.is_number() || json.is_null(), where, "a number or null");
    if (!error.empty()) return;
    value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  }

  void read(const Json& json, const std::string& where, bool& value) const {
    expect(json.is_boolean(), where, "true or false");
    if (error.empty()) value = json.get<bool>();
  }

  void read(const Json& json, const std::string& where, std::uint64_t& value) const {
    expect(json.is_number_unsigned(), where, "a whole number of at least 0");
    if (error.empty()) value = json.get<std::uint64_t>();
  }

  void read(const Json& json, const std::string& where, std::string& value) const {
    expect(json.is_string(), where, "a text");
    if (error.empty()) value = json.get<std::string>();
  }

  void read(const Json& json, const std::string& where, PeerId& value) const {
    read(json, where, value.value);
  }

  void read(const Json& json, const std::string& where, PeerState& value) const {
    read_name(json, where, value, PeerState::lost);
  }

  void read(const Json& json, const std::string& where, Interruption::Kind& value) const {
    read_name(json, where, value, Interruption::Kind::lost);
  }

  template <class Enum>
  void read_name(const Json& json, const std::string& where, Enum& value, Enum last) const {
    std::string name;
    read(json, where, name);
    if (!error.empty()) return;
    std::string all;
    for (int number = 0; number <= static_cast<int>(last); ++number) {
      value = static_cast<Enum>(number);
      if (name_of(value) == name) return;
      all += fmt::format("{}{}", number > 0 ? ", " : "", name_of(value));
    }
    error = fmt::format("{}: '{}' is none of {}", where, name, all);
  }

  template <class T>
  void read(const Json& json, const std::string& where, std::optional<T>& value) const {
    if (json.is_null()) {
      value.reset();
    } else {
      read(json, where, value.emplace());
    }
  }

  template <class T>
  void read(const Json& json, const std::string& where, std::vector<T>& values) const {
    expect(json.is_array(), where, "a list");
    if (!error.empty()) return;
    values.clear();
    values.reserve(json.size());
    for (const Json& item : json) {
      const std::string place = fmt::format("{}[{}]", where, values.size());
      read(item, place, values.emplace_back());
    }
  }

  template <class Struct>
  requires std::is_class_v<Struct>

  void read(const Json& json, const std::string& where, Struct& value) const {
    expect(json.is_object(), where, "an object");
    if (!error.empty()) return;
    Reader inner{json, where, error};
    visit(inner, value);
    inner.refuse_others();
  }

  void refuse_others() const {
    if (!error.empty()) return;
    for (const auto& [key, value] : object.items()) {
      if (known.contains(key)) continue;
      error = fmt::format("{}.{}: unknown key; it comes from another version of tw", path, key);
      return;
    }
  }
};

}  // namespace

std::string to_json(const Board& board) {
  return Writer::json_of(board).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Board> board_from_json(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Error{fmt::format("no board: {} bytes that are no JSON", text.size())};
  Board board;
  std::string error;
  const Reader reader{json, "board", error};
  reader.read(json, "board", board);
  if (!error.empty()) return Error{error};
  return board;
}

}  // namespace tw::monitor
