// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The few things that stand in answers of S3, which are small XML documents without attributes. Pure;
/// whatever a server sends.
namespace tw::host {

/// The texts between each <tag> and </tag>, in order; entities of XML are resolved.
std::vector<std::string> texts_of(std::string_view xml, std::string_view tag);

/// "AccessDenied " with a space at its end; empty where the document is no <Error>.
std::string error_of(std::string_view xml);

/// The size of the object in "bytes 0-99/1234".
std::optional<std::uint64_t> total_in(std::string_view content_range);

/// The inverse of percent_encoded; malformed parts are kept unchanged.
std::string percent_decoded(std::string_view text);

/// The document that makes one object of these parts.
std::string parts_list(const std::vector<std::string>& etags);

}  // namespace tw::host
