// SPDX-License-Identifier: Apache-2.0
#include "data/megatron.h"

#include <array>
#include <span>
#include <vector>

#include "base/check.h"
#include "fuzz/target.h"

namespace tw::fuzz {
namespace {

/// A word of so many bytes.
void put(std::vector<std::byte>& file, std::uint64_t word, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(word >> (8 * i)));
}

/// A header like that of a sound file, now and then with any number, and what may follow it.
std::vector<std::byte> any_index(Input& input) {
  std::vector<std::byte> file;
  for (const char c : std::array{'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'})
    file.push_back(static_cast<std::byte>(c));
  put(file, input.one_in(16) ? input.number() : 1, 8);
  const std::uint64_t type = input.one_in(8) ? input.byte() : 8;
  put(file, type, 1);
  const std::uint64_t sequences = input.below(6), documents = input.below(4);
  put(file, input.one_in(16) ? input.number() : sequences, 8);
  put(file, input.one_in(16) ? input.number() : documents, 8);
  std::vector<std::uint64_t> places;
  std::uint64_t place = 0;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const std::uint64_t length = input.one_in(16) ? input.number() : input.below(100);
    put(file, length, 4);
    places.push_back(input.one_in(32) ? input.number() : place);
    place += 2 * length;
  }
  for (const std::uint64_t first : places) put(file, first, 8);
  for (std::uint64_t i = 0; i < documents; ++i) put(file, i, 8);
  if (input.one_in(8)) put(file, 0, input.below(9));
  return file;
}

void check_index(std::span<const std::byte> file) {
  const auto index = data::read_megatron_index(file);
  if (!index) return;
  const data::MegatronIndex& found = index.value();
  TW_CHECK(34 + 12 * found.sequences + 8 * found.documents <= file.size());
  TW_CHECK(found.tokens <= found.sequences * INT32_MAX);
  // One byte less holds less than it says.
  TW_CHECK(!data::read_megatron_index(file.first(file.size() - 1)) || found.sequences == 1);
}

}  // namespace

void megatron(Input& input) {
  if (input.one_in(4)) return check_index(std::as_bytes(std::span(input.rest())));
  check_index(any_index(input));
}

}  // namespace tw::fuzz
