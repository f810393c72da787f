// SPDX-License-Identifier: Apache-2.0
#include "host/store/s3_answer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/text/number.h"

namespace tw::host {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 6> kEntities{
    {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#34;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};

std::string plain_text(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    std::size_t taken = 0;
    for (const auto& [entity, character] : kEntities) {
      if (!text.starts_with(entity)) continue;
      plain += character;
      taken = entity.size();
      break;
    }
    if (taken == 0) plain += text.front();
    text.remove_prefix(std::max<std::size_t>(taken, 1));
  }
  return plain;
}

struct StoreRemedy {
  std::string_view code, remedy;
};

constexpr std::string_view kRightClock =
    ": expected a clock that is right; set that of this machine (timedatectl set-ntp true, or start chronyd)";
constexpr std::string_view kRightKey =
    ": expected the id and the secret of one key of this store; correct the credentials";
constexpr std::string_view kFreshKey = ": expected credentials that have not expired; get new ones";

constexpr std::array<StoreRemedy, 9> kRemedies{
    {{"ExpiredToken", kFreshKey},
     {"TokenRefreshRequired", kFreshKey},
     {"RequestTimeTooSkewed", kRightClock},
     {"RequestExpired", kRightClock},
     {"InvalidAccessKeyId", kRightKey},
     {"SignatureDoesNotMatch", kRightKey},
     {"InvalidToken", kRightKey},
     {"AccessDenied", ": expected a key that may do this there; allow it, or name another place"},
     {"NoSuchBucket", ": expected a bucket that is there; make it, or correct its name"}}};

std::string remedy_of(const world::HttpAnswer& answer) {
  if (is_temporary(answer)) return ": the store is busy or has a fault of its own; try again later";
  const std::string code = error_of(answer.body);
  for (const StoreRemedy& known : kRemedies)
    if (code == std::string(known.code) + " ") return std::string(known.remedy);
  return {};
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') safe += "&amp;";
    if (c == '<') safe += "&lt;";
    if (c != '&' && c != '<') safe += c;
  }
  return safe;
}

}  // namespace

std::vector<std::string> texts_of(std::string_view xml, std::string_view tag) {
  const std::string open = fmt::format("<{}>", tag), close = fmt::format("</{}>", tag);
  std::vector<std::string> texts;
  while (true) {
    const std::size_t begin = xml.find(open);
    if (begin == std::string_view::npos) return texts;
    const std::size_t end = xml.find(close, begin + open.size());
    if (end == std::string_view::npos) return texts;
    texts.push_back(plain_text(xml.substr(begin + open.size(), end - begin - open.size())));
    xml.remove_prefix(end + close.size());
  }
}

std::string error_of(std::string_view xml) {
  if (xml.find("<Error>") == std::string_view::npos) return {};
  const auto codes = texts_of(xml, "Code");
  return codes.empty() ? "Error " : codes.front().substr(0, 100) + " ";
}

bool is_temporary(const world::HttpAnswer& answer) {
  constexpr int kRefused = 400, kTooSlow = 408, kBusy = 429, kBroken = 500;
  return answer.status >= kBroken || answer.status == kBusy || answer.status == kTooSlow ||
         (answer.status == kRefused && error_of(answer.body) == "RequestTimeout ");
}

std::optional<std::uint64_t> total_in(std::string_view content_range) {
  const std::size_t slash = content_range.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return parse_number<std::uint64_t>(content_range.substr(slash + 1));
}

std::optional<ContentRange> range_in(std::string_view content_range) {
  constexpr std::string_view kUnit = "bytes ";
  if (!content_range.starts_with(kUnit)) return std::nullopt;
  const std::size_t dash = content_range.find('-'), slash = content_range.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto first = parse_number<std::uint64_t>(content_range.substr(kUnit.size(), dash - kUnit.size()));
  const auto last = parse_number<std::uint64_t>(content_range.substr(dash + 1, slash - dash - 1));
  const auto total = total_in(content_range);
  if (!first || !last || *last < *first || *last - *first == UINT64_MAX || (total && *last >= *total))
    return std::nullopt;
  return ContentRange{*first, *last, total};
}

std::string store_advice(const world::HttpAnswer& answer, const std::string& region) {
  std::string named = answer.header("x-amz-bucket-region").value_or("");
  if (const auto regions = texts_of(answer.body, "Region"); named.empty() && !regions.empty())
    named = regions.front();
  if (named.empty() || named == region || named.size() > 100) return remedy_of(answer);
  return ": the bucket is in " + named + ", set AWS_REGION";
}

std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(&text[i + 1], &text[i + 1] + 2, value, 16).ptr == &text[i + 1] + 2;
    plain += escaped ? static_cast<char>(value) : text[i] == '+' ? ' ' : text[i];
    if (escaped) i += 2;
  }
  return plain;
}

std::string parts_list(const std::vector<std::string>& etags) {
  std::string xml = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < etags.size(); ++i)
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, escaped(etags[i]));
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace tw::host
