// SPDX-License-Identifier: Apache-2.0
#include "data/shards/tar_members.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "base/result.h"
#include "base/text/printable.h"

namespace tw::data {
namespace {

constexpr std::size_t kMostMemberName = 4096, kShownName = 40;
constexpr std::uint64_t kBlock = 512;

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

/// The kind of a file that is no tar, by its first bytes; empty: unknown.
std::string_view compression_of(std::string_view bytes) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"\x1f\x8b", "gzip"}, {"BZh", "bzip2"}, {"\xfd\x37zXZ", "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}};
  for (const auto& [begin, kind] : kKinds)
    if (bytes.starts_with(begin)) return kind;
  return {};
}

/// Why the header at byte `end` cannot be read.
Error wrong(const Reading& reading, archive* archive, std::uint64_t end) {
  if (!reading.failed.empty()) return Error{reading.failed};
  const char* why = archive_error_string(archive);
  if (end > 0)
    return Error{fmt::format("{}: the tar is cut off or damaged near byte {}: {}", reading.tar,
                             std::min(end, reading.bytes), why != nullptr ? why : "it cannot be read")};
  const auto begin = reading.bytes > 0 ? reading.read(0) : std::string_view();
  const std::string_view kind = begin ? compression_of(begin.value()) : "";
  if (!kind.empty())
    return Error{fmt::format("{}: expected a tar file that is not compressed, found {}", reading.tar, kind)};
  return Error{
      fmt::format("{}: expected a tar file (ustar, GNU or pax); this is none, or its first header is "
                  "damaged",
                  reading.tar)};
}

bool is_plain_file(archive_entry* entry) {
  return archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr &&
         archive_entry_sparse_count(entry) == 0;
}

/// The member at this position; none if it is a folder, or a link of no sample. An error for what cannot be
/// read as a part of its sample.
Result<std::optional<TarMember>> member_of(const Reading& reading, archive* archive, archive_entry* entry) {
  if (archive_entry_filetype(entry) == AE_IFDIR) return std::optional<TarMember>();
  const char* name = archive_entry_pathname_utf8(entry);
  if (name == nullptr) name = archive_entry_pathname(entry);
  if (name == nullptr) return Error{fmt::format("{}: a member without a name that can be read", reading.tar)};
  const std::string text = name;
  if (text.size() > kMostMemberName)
    return Error{fmt::format("{}: a member whose name has {} bytes, expected at most {}: {}...", reading.tar,
                             text.size(), kMostMemberName, printable_line(text.substr(0, kShownName)))};
  if (!is_plain_file(entry)) {
    if (split_member(text).key.empty()) return std::optional<TarMember>();
    return Error{fmt::format(
        "{}: {} is a link or has holes; expected plain files with contents (of GNU tar: --dereference "
        "--hard-dereference, no --sparse)",
        reading.tar, text)};
  }
  const auto offset = static_cast<std::uint64_t>(archive_filter_bytes(archive, 0));
  const auto length = static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(entry), 0));
  if (offset > reading.bytes || length > reading.bytes - offset)
    return Error{fmt::format("{}: {} ends at byte {}, the file has {} (cut off?)", reading.tar, text,
                             offset + length, reading.bytes)};
  return std::optional(TarMember{text, offset, length});
}

/// Behind the content of this entry, which was just found.
std::uint64_t end_of(archive* archive, archive_entry* entry) {
  const auto begin = static_cast<std::uint64_t>(archive_filter_bytes(archive, 0));
  if (!is_plain_file(entry)) return begin;
  return begin + (static_cast<std::uint64_t>(archive_entry_size(entry)) + kBlock - 1) / kBlock * kBlock;
}

/// TarContents::doubt of a tar whose last member ends here.
Result<std::string> doubt_behind(const Reading& reading, std::uint64_t end) {
  if (end >= reading.bytes)
    return std::string("it has no end-of-archive block: was it cut off between two members?");
  while (end < reading.bytes) {
    TW_TRY(const auto got, reading.read(end));
    const std::size_t more = got.find_first_not_of('\0');
    if (more != std::string_view::npos)
      return fmt::format(
          "its end-of-archive block is followed by data at byte {}, which is not read (of two tars that cat "
          "joined, the second; tar -A joins them)",
          end + more);
    end += got.size();
  }
  return std::string();
}

/// __index__ and the like, WebDataset's own.
bool is_meta(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

}  // namespace

Result<TarContents> tar_members(const std::string& tar, std::uint64_t bytes, const TarBytes& read) {
  const std::unique_ptr<archive, int (*)(archive*)> archive(archive_read_new(), archive_read_free);
  Reading reading{tar, bytes, read};
  archive_read_support_format_tar(archive.get());
  archive_read_set_callback_data(archive.get(), &reading);
  archive_read_set_read_callback(archive.get(), Reading::next);
  archive_read_set_skip_callback(archive.get(), Reading::skip);
  if (archive_read_open1(archive.get()) != ARCHIVE_OK) return wrong(reading, archive.get(), 0);
  TarContents contents;
  std::uint64_t end = 0;
  while (true) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(archive.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return wrong(reading, archive.get(), end);
    end = end_of(archive.get(), entry);
    TW_TRY(auto member, member_of(reading, archive.get(), entry));
    if (member) contents.members.push_back(*std::move(member));
  }
  TW_TRY(auto doubt, doubt_behind(reading, end));
  contents.doubt = std::move(doubt);
  return contents;
}

MemberName split_member(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', begin);
  if (dot == std::string_view::npos || dot == begin || dot + 1 == name.size() || is_meta(name)) return {};
  std::string field(name.substr(dot + 1));
  std::ranges::transform(field, field.begin(), [](unsigned char c) { return std::tolower(c); });
  return {name.substr(0, dot), field};
}

}  // namespace tw::data
