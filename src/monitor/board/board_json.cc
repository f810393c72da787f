// SPDX-License-Identifier: Apache-2.0
#include "monitor/board/board_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <type_traits>

namespace tw::monitor {
namespace {

using Json = nlohmann::ordered_json;

struct Writer {
  Json& object;

  void operator()(const char* key, const auto& value) { object[key] = json_of(value); }

  void computed(const char* key, const auto& value) { (*this)(key, value); }

  static Json json_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

  static Json json_of(bool value) { return value; }

  static Json json_of(std::uint64_t value) { return value; }

  static Json json_of(const std::string& value) { return value; }

  static Json json_of(PeerId peer) { return peer.value; }

  static Json json_of(PeerState state) { return name_of(state); }

  static Json json_of(Interruption::Kind kind) { return name_of(kind); }

  static Json json_of(Delay::Cause cause) { return name_of(cause); }

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
    Struct::fields(value, writer);
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

  template <class T>
  void computed(const char* key, T ignored) {
    (*this)(key, ignored);
  }

  void expect(bool holds, const std::string& where, std::string_view what) const {
    if (!holds && error.empty()) error = fmt::format("{}: expected {}", where, what);
  }

  void read(const Json& json, const std::string& where, double& value) const {
    expect(json.is_number() || json.is_null(), where, "a number or null");
    if (!error.empty()) return;
    value = json.is_null() ? 0 : json.get<double>();  // 0: not known
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

  void read(const Json& json, const std::string& where, Delay::Cause& value) const {
    read_name(json, where, value, Delay::Cause::link);
  }

  void read(const Json& json, const std::string& where, Interruption::Kind& value) const {
    read_name(json, where, value, Interruption::Kind::resumed);
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
    Struct::fields(value, inner);
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

std::string to_json(const Delay& delay) { return Writer::json_of(delay).dump(); }

std::string to_json(const std::optional<WhatIf>& answers) { return Writer::json_of(answers).dump(); }

std::string frozen_json(const Board& board) {
  std::string text = to_json(board);
  text.pop_back();
  return text + ",\"answers\":" + to_json(what_if(board)) + "}";
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
