// SPDX-License-Identifier: Apache-2.0
#include "base/text/field_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace tw {

std::string GivenValue::text() const {
  const std::string all = fmt::format("{}", fmt::join(words, ", "));
  return is_list ? fmt::format("[{}]", all) : all;
}

GivenValue given_word(std::string word, std::filesystem::path folder) {
  return {.words = {std::move(word)}, .folder = std::move(folder)};
}

std::string Complaints::place(const Tree& value, const std::string& key) const {
  return fmt::format("{}:{}{}{}", file_, value.line, key.empty() ? "" : ": ", key);
}

void Complaints::add(std::string complaint) {
  constexpr std::size_t kEnough = 50;
  if (complaints_.size() < kEnough) complaints_.push_back(std::move(complaint));
}

void Complaints::add(const std::string& where, const std::string& what) {
  add(fmt::format("{}: {}", where, what));
}

Error Complaints::error() const { return Error{fmt::format("{}", fmt::join(complaints_, "\n"))}; }

std::optional<GivenValue> Complaints::given(const Tree& value, const std::string& where,
                                            const std::string& expected) {
  GivenValue given{.words = {}, .is_list = value.is_list()};
  bool plain = !value.is_map();
  if (!given.is_list) given.words = {value.word};
  for (const Tree& item : value.items) {
    plain = plain && item.items.empty();
    given.words.push_back(item.word);
  }
  if (plain) return given;
  const std::string_view found = given.is_list ? "a list of lists or maps" : "a map";
  add(where, fmt::format("expected {}, found {}", expected, found));
  return std::nullopt;
}

}  // namespace tw
