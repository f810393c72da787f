// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/token.h"

namespace tw::host {

/// Decides who may see a run: the holders of its tokens, of any role; an observer may do nothing else.
/// Stateless. A viewer that showed its token gets a pass, which is valid until the token expires.
class Viewers {
 public:
  /// own: a token of the run, whose secret also makes the passes.
  explicit Viewers(const wire::Token& own);

  /// The time until which the token lets its holder watch. The error is for the holder; it contains no part
  /// of the token.
  Result<std::int64_t> judge(const std::string& token, std::int64_t now_unix_s) const;

  /// A word of letters, digits and a dot.
  std::string pass_until(std::int64_t unix_s) const;

  bool knows(const std::string& pass, std::int64_t now_unix_s) const;

 private:
  std::string run_;
  wire::Token::Key run_key_;
  wire::Token::Key pass_key_;
};

}  // namespace tw::host
