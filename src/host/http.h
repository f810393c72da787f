// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "base/result.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/system/environment.h"
#include "world/http.h"

namespace tw::host {

struct HttpLimits {
  Duration patience = std::chrono::seconds(120);
  Duration silence{};  ///< longest time without a byte; 0: no limit but patience
  std::size_t most_bytes = std::size_t{256} << 20;
  std::function<void()> meanwhile{};  ///< called about every second
};

/// The file of certificates of authorities that servers are checked against: SSL_CERT_FILE, or where this
/// system keeps its own; empty: none was found.
std::string authority_file(const Environment& environment = environment_value);

/// GET over http or https, redirects followed; blocks. An error names the address and the failure of the
/// transfer; an answer other than 200 is no error.
Result<world::HttpAnswer> http_get(const std::string& url, const HttpLimits& limits = {});

/// One exchange; blocks. Redirects are not followed. An error does not name the address, which may hold a
/// signature. Error::lasting: no further try will help, as with a certificate that is not trusted.
/// is_over: asked about every second; true breaks the exchange off, which is a lasting error. Empty: never.
Result<world::HttpAnswer> http_exchange(const world::HttpRequest& request,
                                        const std::function<bool()>& is_over = {});

/// Exchanges on one thread of its own, over connections that stay open; begun from any thread. Redirects are
/// not followed.
class HttpPool {
 public:
  /// What an exchange came to, and what of a 206 had come when it broke off: status 0 where nothing had.
  /// Called on the thread of the pool. Errors are those of http_exchange().
  using Tell = std::function<void(Result<world::HttpAnswer> answer, world::HttpAnswer partial)>;

  static constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

  explicit HttpPool(std::size_t at_once = kAnyNumber);
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;
  /// Drops exchanges under way without calls.
  ~HttpPool();

  /// Begins it after `later`, as soon as fewer than `at_once` are under way.
  void add(world::HttpRequest request, Tell tell, Duration later = {});

 private:
  class Worker;

  std::unique_ptr<Worker> worker_;
};

/// The Http door over libcurl: one thread, from the first request on. No proxy is used for this machine and
/// the metadata service (169.254.169.254, metadata.google.internal). The loop outlives it.
class CurlHttp final : public world::Http {
 public:
  explicit CurlHttp(Loop& loop);
  CurlHttp(const CurlHttp&) = delete;
  CurlHttp& operator=(const CurlHttp&) = delete;
  ~CurlHttp() override;

  void request(world::HttpRequest request, Done done) override;

 private:
  Loop& loop_;
  Lifeline life_;
  std::unique_ptr<HttpPool> pool_;
};

}  // namespace tw::host
