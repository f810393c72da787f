// SPDX-License-Identifier: Apache-2.0
#include "world/store.h"

#include <fmt/format.h>

#include <future>
#include <memory>

namespace tw::world {

std::string text_of(const Extent& extent) {
  // What follows a question mark may be a signature.
  const std::string object = extent.object.substr(0, extent.object.find('?'));
  return fmt::format("{}, bytes {}-{}", object, extent.offset, extent.offset + extent.length - 1);
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
