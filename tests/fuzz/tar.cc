// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/check.h"
#include "data/shards/decode.h"
#include "data/shards/tar_members.h"
#include "fuzz/target.h"

namespace tw::fuzz {
namespace {

/// A block that is a header as far as its sum of all bytes goes.
void seal_header(std::string& tar, std::size_t at) {
  constexpr std::size_t kBlock = 512, kSum = 148;
  if (tar.size() < at + kBlock) return;
  tar.replace(at + kSum, 8, "        ");
  unsigned sum = 0;
  for (std::size_t i = at; i < at + kBlock; ++i) sum += static_cast<unsigned char>(tar[i]);
  std::string octal = "000000";
  for (std::size_t i = 6; i > 0; sum /= 8) octal[--i] = static_cast<char>('0' + sum % 8);
  tar.replace(at + kSum, 8, octal + std::string("\0 ", 2));
}

}  // namespace

void tar(Input& input) {
  const std::uint64_t headers = input.below(8), piece = 1 + input.below(1000);
  const auto rest = input.rest();
  std::string bytes(rest.begin(), rest.end());
  for (const char* field : {"jpg", "png", "npy", "cls", "txt", "json"})
    (void)data::decode_field(field, bytes, {.size = 8});
  bytes.resize((bytes.size() + 511) / 512 * 512);
  for (std::uint64_t i = 0; i < headers; ++i) seal_header(bytes, i * 512);
  const auto members =
      data::tar_members("x", bytes.size(), [&](std::uint64_t at) -> Result<std::string_view> {
        TW_CHECK(at < bytes.size());
        return std::string_view(bytes).substr(at, piece);
      });
  if (!members) return;
  for (const data::TarMember& member : members.value().members)
    TW_CHECK(member.offset <= bytes.size() && member.length <= bytes.size() - member.offset);
}

}  // namespace tw::fuzz
