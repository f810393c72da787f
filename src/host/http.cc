// SPDX-License-Identifier: Apache-2.0
#include "host/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace tw::host {
namespace {

struct Body {
  std::string text;
  std::size_t most_bytes;
};

std::size_t append(char* data, std::size_t size, std::size_t count, void* user) {
  Body& body = *static_cast<Body*>(user);
  if (body.text.size() + size * count > body.most_bytes) return 0;  // ends the transfer
  body.text.append(data, size * count);
  return size * count;
}

}  // namespace

Result<HttpAnswer> http_get(const std::string& url, const HttpLimits& limits) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) return Error{fmt::format("{}: libcurl cannot be started", url)};
  Body body{{}, limits.most_bytes};
  std::array<char, CURL_ERROR_SIZE> why{};
  const auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limits.patience).count();
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(patience_ms));
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "tradewind");
  curl_easy_setopt(curl.get(), CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, why.data());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_WRITE_ERROR)
    return Error{fmt::format("{}: more than the {} bytes that are taken", url, limits.most_bytes)};
  if (code != CURLE_OK)
    return Error{fmt::format("{}: {}", url, why[0] != 0 ? why.data() : curl_easy_strerror(code))};
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  return HttpAnswer{static_cast<int>(status), std::move(body.text)};
}

}  // namespace tw::host
