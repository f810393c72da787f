// SPDX-License-Identifier: Apache-2.0
#include "world/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>

namespace tw::world {

std::string shown_object(const std::string& object) {
  const std::size_t scheme = object.find("://");
  if (scheme == std::string::npos) return object;
  std::string shown = object.substr(0, object.find('?'));
  const std::size_t begin = scheme + 3, host_end = std::min(shown.find('/', begin), shown.size());
  const std::size_t at = shown.rfind('@', host_end);
  if (at != std::string::npos && at >= begin) shown.erase(begin, at + 1 - begin);
  return shown;
}

std::string text_of(const Extent& extent) {
  return fmt::format("{}, bytes {}-{}", shown_object(extent.object), extent.offset,
                     extent.offset + extent.length - 1);
}

void add(StoreUses& sum, const StoreUses& more) {
  for (const auto& [store, use] : more) {
    StoreUse& all = sum[store];
    all = {.reads = all.reads + use.reads,
           .bytes = all.bytes + use.bytes,
           .writes = all.writes + use.writes,
           .written_bytes = all.written_bytes + use.written_bytes};
  }
}

Result<std::string> read_now(Store& store, const Extent& extent) {
  const auto answer = std::make_shared<std::promise<Result<std::string>>>();  // owners: this call, the store
  auto came = answer->get_future();
  store.read(extent, [answer](Result<std::string> bytes) { answer->set_value(std::move(bytes)); });
  return came.get();
}

Result<ObjectFacts> look_now(Store& store, const std::string& object) {
  const auto answer = std::make_shared<std::promise<Result<ObjectFacts>>>();  // owners: this call, the store
  auto came = answer->get_future();
  store.look(object, [answer](Result<ObjectFacts> facts) { answer->set_value(std::move(facts)); });
  return came.get();
}

}  // namespace tw::world
