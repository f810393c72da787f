// SPDX-License-Identifier: Apache-2.0
#include "spot/notice.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::spot {

std::optional<NoticeKind> notice_kind_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNoticeKinds, name);
  if (found == kNoticeKinds.end()) return std::nullopt;
  return static_cast<NoticeKind>(found - kNoticeKinds.begin());
}

std::string text_of(const Notice& notice, Instant now) {
  std::string text = fmt::format("{}: {}", name_of(notice.source), name_of(notice.kind));
  if (notice.deadline != kNever)
    text += fmt::format(" in {:.0f} s", std::max(0.0, to_seconds(notice.deadline - now)));
  return notice.text.empty() ? text : fmt::format("{} ({})", text, notice.text);
}

}  // namespace tw::spot
