// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "bind/shard_data.h"

namespace tw::bind {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string facts_json(const data::ShardReader& reader) {
  const data::ShardIndex& index = reader.index();
  return text_of({{"samples", index.size()},
                  {"fields", reader.fields()},
                  {"shards", index.shards().size()},
                  {"bytes", index.bytes()},
                  {"identity", to_string(index.identity())}});
}

std::string sample_json(const data::ShardIndex& index, std::uint64_t sample) {
  const data::ShardIndex::Sample found = index.sample(sample);
  Json fields = Json::object();
  for (const data::FieldPlace& place : found.fields)
    fields[index.field_names()[place.name]] = {place.offset, place.length};
  return text_of({{"key", found.key},
                  {"object", world::shown_object(index.shards()[found.shard].object)},
                  {"fields", fields}});
}

}  // namespace tw::bind
