// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace tw::host {

/// Ties calls that are still to come to the life of an object: once its Lifeline is gone, they do nothing.
/// The Lifeline must end on the thread on which the tied calls come.
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
