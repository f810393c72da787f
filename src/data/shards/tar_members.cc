// SPDX-License-Identifier: Apache-2.0
#include "data/shards/tar_members.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>

namespace tw::data {
namespace {

constexpr std::size_t kMostMemberName = 4096;

/// Position of libarchive in the tar.
struct Reading {
  const std::string& tar;
  std::uint64_t bytes;
  const TarBytes& read;
  std::uint64_t at = 0;
  std::string failed{};  ///< why bytes could not be read

  static la_ssize_t next(archive* archive, void* self, const void** out) {
    Reading& reading = *static_cast<Reading*>(self);
    if (reading.at >= reading.bytes) return 0;
    const auto got = reading.read(reading.at);
    if (!got) reading.failed = got.error().message;
    if (!got) archive_set_error(archive, EIO, "no bytes");
    if (!got) return ARCHIVE_FATAL;
    reading.at += got.value().size();
    *out = got.value().data();
    return static_cast<la_ssize_t>(got.value().size());
  }

  static la_int64_t skip(archive* /*archive*/, void* self, la_int64_t count) {
    Reading& reading = *static_cast<Reading*>(self);
    const std::uint64_t step = std::min(static_cast<std::uint64_t>(count), reading.bytes - reading.at);
    reading.at += step;
    return static_cast<la_int64_t>(step);
  }
};

Error wrong(const Reading& reading, archive* archive) {
  if (!reading.failed.empty()) return Error{reading.failed};
  const char* why = archive_error_string(archive);
  return Error{fmt::format("{}: expected a tar file that is not compressed: {}", reading.tar,
                           why != nullptr ? why : "it cannot be read")};
}

/// The member at this position; an error for one that cannot be a sample.
Result<TarMember> member_of(const Reading& reading, archive* archive, archive_entry* entry) {
  const char* name = archive_entry_pathname_utf8(entry);
  if (name == nullptr) name = archive_entry_pathname(entry);
  if (name == nullptr) return Error{fmt::format("{}: a member without a name that can be read", reading.tar)};
  const std::string text = std::string(name).substr(0, kMostMemberName);
  if (archive_entry_sparse_count(entry) > 0 || archive_entry_hardlink(entry) != nullptr)
    return Error{
        fmt::format("{}: {} is a link or has holes; expected plain files with contents", reading.tar, text)};
  const auto offset = static_cast<std::uint64_t>(archive_filter_bytes(archive, 0));
  const auto length = static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(entry), 0));
  if (offset > reading.bytes || length > reading.bytes - offset)
    return Error{fmt::format("{}: {} ends at byte {}, the file has {} (cut off?)", reading.tar, text,
                             offset + length, reading.bytes)};
  return TarMember{text, offset, length};
}

}  // namespace

Result<std::vector<TarMember>> tar_members(const std::string& tar, std::uint64_t bytes,
                                           const TarBytes& read) {
  const std::unique_ptr<archive, int (*)(archive*)> archive(archive_read_new(), archive_read_free);
  Reading reading{tar, bytes, read};
  archive_read_support_format_tar(archive.get());
  archive_read_set_callback_data(archive.get(), &reading);
  archive_read_set_read_callback(archive.get(), Reading::next);
  archive_read_set_skip_callback(archive.get(), Reading::skip);
  if (archive_read_open1(archive.get()) != ARCHIVE_OK) return wrong(reading, archive.get());
  std::vector<TarMember> members;
  while (true) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(archive.get(), &entry);
    if (code == ARCHIVE_EOF) return members;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return wrong(reading, archive.get());
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    auto member = member_of(reading, archive.get(), entry);
    if (!member) return member.error();
    members.push_back(std::move(member).value());
  }
}

MemberName split_member(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', begin);
  if (dot == std::string_view::npos || dot == begin) return {};
  std::string field(name.substr(dot + 1));
  std::ranges::transform(field, field.begin(), [](unsigned char c) { return std::tolower(c); });
  return {name.substr(0, dot), field};
}

}  // namespace tw::data
