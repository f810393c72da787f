// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "bind/settings.h"
#include "peer/spelling.h"
#include "train/run/run_fields.h"

namespace tw::bind {
namespace {

using Json = nlohmann::ordered_json;

std::string expectation(const peer::LinkField& field) {
  if (peer::is_flag(field)) return "true or false";
  return peer::takes_several(field) ? "texts" : "a text";
}

}  // namespace

std::string to_json(const Settings& settings) {
  Json rows = Json::array();
  const std::vector<FieldRow> defaults = train::run_rows({}), now = train::run_rows(settings.run);
  for (std::size_t at = 0; at < now.size(); ++at)
    rows.push_back({{"key", now[at].key},
                    {"value", now[at].written},
                    {"default", defaults[at].written},
                    {"expected", now[at].expected},
                    {"meaning", now[at].meaning},
                    {"variable", ""}});
  for (const peer::LinkField& field : peer::link_fields())
    rows.push_back({{"key", field.name},
                    {"value", value_of(field, settings.links)},
                    {"default", value_of(field, {})},
                    {"expected", expectation(field)},
                    {"meaning", field.meaning},
                    {"variable", peer::variable_of(field.name)}});
  return rows.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tw::bind
