// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/token.h"

struct evp_pkey_st;

namespace tw::host {

/// The key that makes the tokens of a run. Its holder can admit peers; no peer needs it.
class Authority {
 public:
  /// A new run; name: at most 64 bytes.
  static Authority create(const std::string& name);

  /// Reads what save wrote. The error names the file and the command that makes it.
  static Result<Authority> open(const std::string& folder);

  ~Authority();
  Authority(Authority&&) noexcept;

  /// Writes ca.key, readable only by its owner, and ca.crt. Refuses a folder that holds either.
  Status save(const std::string& folder) const;

  struct Terms {
    wire::Role role = wire::Role::peer;
    std::int64_t from_unix_s = 0;
    std::int64_t expires_unix_s = 0;
    std::vector<std::string> addresses{};
  };

  wire::Token issue(const Terms& terms) const;

  const std::string& name() const { return name_; }

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };

  using Key = std::unique_ptr<evp_pkey_st, Free>;

  Authority(std::string name, Key key);

  std::string name_;
  Key key_;
};

/// A token of a new run, valid from now on; its key is discarded, so no other token can be made.
wire::Token token_for_one_run(const std::string& name, std::int64_t lifetime_s);

/// A new file that only its owner may read. Refuses to replace one.
Status write_secret_file(const std::string& path, const std::string& text);

/// "2026-11-21 18:00 UTC"
std::string date_of(std::int64_t unix_s);

}  // namespace tw::host
