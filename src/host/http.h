// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace tw::host {

struct HttpAnswer {
  int status = 0;  ///< 200: the body is what was asked for
  std::string body;
};

struct HttpLimits {
  Duration patience = std::chrono::seconds(120);
  std::size_t most_bytes = std::size_t{256} << 20;
};

/// GET over http or https, redirects followed; blocks. An error names the address and what went wrong on the
/// way; an answer of the server other than 200 is no error.
Result<HttpAnswer> http_get(const std::string& url, const HttpLimits& limits = {});

}  // namespace tw::host
