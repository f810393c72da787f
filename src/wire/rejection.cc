// SPDX-License-Identifier: Apache-2.0
#include "wire/rejection.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/text/number.h"

namespace tw::wire {
namespace {

using Code = Rejection::Code;

constexpr std::array<std::pair<Code, std::string_view>, 6> kCodeNames = {{{Code::version, "version"},
                                                                          {Code::parameters, "parameters"},
                                                                          {Code::run, "run"},
                                                                          {Code::taken, "taken"},
                                                                          {Code::self, "self"},
                                                                          {Code::credential, "credential"}}};

}  // namespace

std::string to_string(const Rejection& rejection) {
  const std::string name(kCodeNames.at(static_cast<std::size_t>(rejection.code)).second);
  const std::string place = rejection.place == 0 ? "" : " " + std::to_string(rejection.place);
  return "[" + name + " " + to_string(rejection.peer) + place + "] " + rejection.words;
}

std::optional<Rejection> rejection_in(const std::string& why) {
  const std::size_t space = why.find(' ');
  const std::size_t end = why.find("] ");
  if (!why.starts_with("[") || end == std::string::npos || space >= end) return std::nullopt;
  Rejection rejection{{}, {}, why.substr(end + 2)};
  const std::string_view numbers = std::string_view(why).substr(space + 1, end - space - 1);
  const std::size_t second = numbers.find(' ');
  const auto peer = parse_number<std::uint64_t>(numbers.substr(0, second));
  if (!peer) return std::nullopt;
  rejection.peer.value = *peer;
  if (second != std::string_view::npos) {
    const auto place = parse_number<std::uint32_t>(numbers.substr(second + 1));
    if (!place) return std::nullopt;
    rejection.place = *place;
  }
  for (const auto& [code, name] : kCodeNames) {
    rejection.code = code;
    if (std::string_view(why).substr(1, space - 1) == name) return rejection;
  }
  return std::nullopt;
}

}  // namespace tw::wire
