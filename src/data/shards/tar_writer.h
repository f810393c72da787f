// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tw::data {

/// Writes a tar in memory, in GNU format. The same members give the same bytes.
class TarWriter {
 public:
  TarWriter();
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;
  ~TarWriter();

  /// The error names the member.
  Status add(const std::string& name, std::string_view content);

  /// Bytes so far.
  std::size_t bytes() const;

  /// The whole tar; nothing may be added after that.
  Result<std::string> finish();

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace tw::data
