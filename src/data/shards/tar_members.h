// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tw::data {

/// A file in a tar, and the place of its content.
struct TarMember {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const TarMember&) const = default;
};

/// The bytes of the tar from `offset` on, at least one and as many as are at hand; they stay valid until the
/// next call.
using TarBytes = std::function<Result<std::string_view>(std::uint64_t offset)>;

struct TarContents {
  std::vector<TarMember> members;  ///< plain files, in order
  std::string doubt{};             ///< why there may be more than was found; empty: the tar ends as it should
};

/// What a tar of this size holds: ustar, GNU and pax. Contents are not read, except what lies beside headers.
/// Errors name `tar` and what is wrong; members of samples that are links, devices or have holes are wrong.
Result<TarContents> tar_members(const std::string& tar, std::uint64_t bytes, const TarBytes& read);

/// The parts of a member's name by the rule of WebDataset, ^((?:.*/|)[^.]+)[.]([^/]*)$. Up to the first dot
/// after the last slash it is the key of the sample, the rest, in lower case, the field. The key is empty if
/// the member belongs to no sample: also for __meta__ files, for a field without a name, and for hidden
/// files, which the rule would make samples of their folder.
struct MemberName {
  std::string_view key;
  std::string field;

  bool operator==(const MemberName&) const = default;
};

MemberName split_member(std::string_view name);

}  // namespace tw::data
