// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "world/http.h"

/// The few things that stand in answers of S3, which are small XML documents without attributes. Pure;
/// whatever a server sends.
namespace tw::host {

/// The texts between each <tag> and </tag>, in order; entities of XML are resolved.
std::vector<std::string> texts_of(std::string_view xml, std::string_view tag);

/// "AccessDenied " with a space at its end; empty where the document is no <Error>.
std::string error_of(std::string_view xml);

/// The server is busy, or took the request for too slow: the same one may pass later.
bool is_temporary(const world::HttpAnswer& answer);

/// The size of the object in "bytes 0-99/1234".
std::optional<std::uint64_t> total_in(std::string_view content_range);

/// "bytes 10-99/1234"; the size may be "*".
struct ContentRange {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> total{};

  std::uint64_t count() const { return last - first + 1; }

  bool operator==(const ContentRange&) const = default;
};

/// Nothing: it is none, or of other units, or ends before it begins or beyond its size.
std::optional<ContentRange> range_in(std::string_view content_range);

/// ": the bucket is in eu-west-1, set AWS_REGION" where the answer names another region than `region`; else
/// what is to be done about its error, where that is known.
std::string store_advice(const world::HttpAnswer& answer, const std::string& region);

/// The inverse of percent_encoded; what is not well-formed stays as it is.
std::string percent_decoded(std::string_view text);

/// The document that makes one object of these parts.
std::string parts_list(const std::vector<std::string>& etags);

}  // namespace tw::host
