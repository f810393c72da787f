// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace tw::host {

/// Ties future calls to the life of an object: after the end of its Lifeline they do nothing. The Lifeline
/// must end on the thread of the tied calls.
class Lifeline {
 public:
  Lifeline() = default;
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  template <class Call>
  auto tie(Call call) const {
    return [life = std::weak_ptr<const char>(life_), call = std::move(call)](auto&&... arguments) mutable {
      if (!life.expired()) call(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  // owners: this Lifeline alone; the tied calls hold weak references
  std::shared_ptr<const char> life_ = std::make_shared<const char>('\0');
};

}  // namespace tw::host
