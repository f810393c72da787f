// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "world/http.h"

namespace tw::host {

struct HttpLimits {
  Duration patience = std::chrono::seconds(120);
  std::size_t most_bytes = std::size_t{256} << 20;
};

/// GET over http or https, redirects followed; blocks. An error names the address and what went wrong on the
/// way; an answer of the server other than 200 is no error.
Result<world::HttpAnswer> http_get(const std::string& url, const HttpLimits& limits = {});

/// One exchange; blocks. Redirects are not followed. Errors as of http_get.
Result<world::HttpAnswer> http_exchange(const world::HttpRequest& request);

/// The kernel side of the door: one thread, from the first request on. No proxy stands between a machine and
/// its metadata service (169.254.169.254, metadata.google.internal). The loop outlives it.
class CurlHttp final : public world::Http {
 public:
  explicit CurlHttp(Loop& loop);
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;
  ~CurlHttp() override;

  void request(world::HttpRequest request, Done done) override;

 private:
  class Worker;

  Loop& loop_;
  Lifeline life_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace tw::host
