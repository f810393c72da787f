// SPDX-License-Identifier: Apache-2.0
#include "host/web/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace tw::host {
namespace {

constexpr std::string_view kBearer = "bearer ";

/// "[::1]:80" is ::1. Ports do not matter: a tunnel or a container has another one.
std::string without_port(const std::string& text) {
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  return text.substr(0, text.find(':'));
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Every path that means something is a word or two; so no decoding can make another one of it.
bool is_plain(const std::string& path) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '_'; };
  return path.starts_with('/') && std::ranges::all_of(path, plain) && path.find("..") == std::string::npos &&
         path.find("/.") == std::string::npos && path.find("//") == std::string::npos;
}

std::string cookie_in(const std::string& header, const std::string& name) {
  std::string_view rest = header;
  while (!rest.empty()) {
    const std::size_t end = rest.find(';');
    std::string_view pair = rest.substr(0, end);
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.starts_with(name + "=")) return std::string(pair.substr(name.size() + 1));
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
  return "";
}

/// The query without this key.
std::string query_without(std::string_view query, const std::string& key) {
  std::string rest;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (!pair.starts_with(key + "=")) rest += (rest.empty() ? "?" : "&") + std::string(pair);
  }
  return rest;
}

WebAnswer unknown_viewer(const std::string& why) {
  WebAnswer answer = refusal(401, why);
  answer.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tradewind\"");
  return answer;
}

}  // namespace

WebGuard::WebGuard(Rules rules)
    : rules_(std::move(rules)), cookie_(fmt::format("tw_viewer_{}", rules_.address.port)) {
  std::ranges::transform(rules_.names, rules_.names.begin(), lower);
}

std::optional<WebAnswer> WebGuard::stop(const WebRequest& request, std::int64_t now_unix_s) const {
  if (request.method != "GET" && request.method != "HEAD") {
    WebAnswer answer = refusal(405, "only GET and HEAD: what is seen here cannot be changed from here");
    answer.headers.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  if (!knows_host(request.host)) {
    return refusal(403,
                   "this server does not go by the name of the Host header; use the address that tw printed");
  }
  if (!is_plain(request.path))
    return refusal(400, "no such path: expected letters, digits, _ and single dots");
  return stop_stranger(request, now_unix_s);
}

/// A foreign page whose name resolves to this machine (DNS rebinding) sends that name; it cannot send a
/// number.
bool WebGuard::knows_host(const std::string& text) const {
  const std::string host = lower(without_port(text));
  const std::string& own = rules_.address.host;
  if (std::ranges::find(rules_.names, host) != rules_.names.end() || host == own) return true;
  const bool everywhere = own == "0.0.0.0" || own == "::";
  if (everywhere && is_number(host)) return true;
  return (everywhere || is_this_machine(own)) && is_this_machine(host);
}

std::optional<WebAnswer> WebGuard::stop_stranger(const WebRequest& request, std::int64_t now_unix_s) const {
  if (!rules_.viewers) return std::nullopt;
  if (lower(request.authorization.substr(0, kBearer.size())) == kBearer) {
    const auto until = rules_.viewers->judge(request.authorization.substr(kBearer.size()), now_unix_s);
    if (!until) return unknown_viewer(until.error().message);
    return std::nullopt;
  }
  if (const std::string token = value_in(request.query, "token"); !token.empty()) {
    const auto until = rules_.viewers->judge(token, now_unix_s);
    if (!until) return unknown_viewer(until.error().message);
    WebAnswer answer{.status = 303};
    answer.headers.emplace_back("Location", request.path + query_without(request.query, "token"));
    answer.headers.emplace_back(
        "Set-Cookie", fmt::format("{}={}; Path=/; Max-Age={}; Secure; HttpOnly; SameSite=Lax", cookie_,
                                  rules_.viewers->pass_until(until.value()), until.value() - now_unix_s));
    return answer;
  }
  if (rules_.viewers->knows(cookie_in(request.cookie, cookie_), now_unix_s)) return std::nullopt;
  return unknown_viewer(
      "this run is shown to holders of its tokens: add ?token=TOKEN to the address once, or send it as "
      "Authorization: Bearer TOKEN (`tw token FOLDER --role observer` makes one that lets see, not join)");
}

}  // namespace tw::host
