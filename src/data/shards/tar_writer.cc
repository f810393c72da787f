// SPDX-License-Identifier: Apache-2.0
#include "data/shards/tar_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include "base/check.h"

namespace tw::data {

struct TarWriter::State {
  std::unique_ptr<archive, int (*)(archive*)> out{archive_write_new(), archive_write_free};
  std::string tar;

  static la_ssize_t take(archive* /*archive*/, void* self, const void* bytes, std::size_t count) {
    static_cast<State*>(self)->tar.append(static_cast<const char*>(bytes), count);
    return static_cast<la_ssize_t>(count);
  }

  std::string why() const {
    const char* text = archive_error_string(out.get());
    return text != nullptr ? text : "it cannot be written";
  }
};

TarWriter::TarWriter() : state_(std::make_unique<State>()) {
  archive* const out = state_->out.get();
  TW_CHECK(out != nullptr);
  archive_write_set_format_gnutar(out);  // names are bytes in any locale
  archive_write_set_bytes_in_last_block(out, 1);
  archive_write_set_bytes_per_block(out, 0);  // output is passed on at once
  TW_CHECK(archive_write_open(out, state_.get(), nullptr, State::take, nullptr) == ARCHIVE_OK);
}

TarWriter::~TarWriter() = default;

Status TarWriter::add(const std::string& name, std::string_view content) {
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                       archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), 0, 0);
  archive* const out = state_->out.get();
  const bool written =
      archive_write_header(out, entry.get()) == ARCHIVE_OK &&
      archive_write_data(out, content.data(), content.size()) == static_cast<la_ssize_t>(content.size()) &&
      archive_write_finish_entry(out) == ARCHIVE_OK;
  if (!written) return Error{fmt::format("{}: {}", name, state_->why())};
  return Unit{};
}

std::size_t TarWriter::bytes() const { return state_->tar.size(); }

Result<std::string> TarWriter::finish() {
  if (archive_write_close(state_->out.get()) != ARCHIVE_OK) return Error{state_->why()};
  return std::move(state_->tar);
}

}  // namespace tw::data
