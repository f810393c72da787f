// SPDX-License-Identifier: Apache-2.0
#include "host/store/files_s3.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/text/text.h"
#include "host/http.h"
#include "host/store/object_place.h"
#include "host/store/s3_answer.h"
#include "host/system/calendar.h"

namespace tw::host {
namespace {

/// The store copies a larger object only in parts.
constexpr std::uint64_t kMostCopiedAtOnce = 5'000'000'000;
constexpr std::uint64_t kCopyPart = 1'000'000'000;
constexpr std::size_t kAnswerRoom = std::size_t{1} << 20;
/// A page of a list has 1,000 names.
constexpr int kMostPages = 1'000;
constexpr Duration kFirstPause = std::chrono::milliseconds(200);
constexpr int kOk = 200, kNoContent = 204, kPartial = 206, kNotThere = 404, kOutOfRange = 416;

bool may_pass(const Result<world::HttpAnswer>& answer) {
  return answer ? is_temporary(answer.value()) : !answer.error().lasting;
}

std::string source_of(const S3Name& name) {
  return "/" + name.bucket + "/" + percent_encoded(name.key, false);
}

std::uint64_t total_of(std::span<const std::span<const std::byte>> parts) {
  std::uint64_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  return bytes;
}

/// Cuts parts of any length into bodies of kPartBytes; the last one may be shorter.
class Bodies {
 public:
  explicit Bodies(std::span<const std::span<const std::byte>> parts) : parts_(parts) {}

  std::string next() {
    std::string body;
    while (body.size() < S3Files::kPartBytes && part_ < parts_.size()) {
      const std::span<const std::byte> rest = parts_[part_].subspan(offset_);
      const std::size_t count = std::min(rest.size(), S3Files::kPartBytes - body.size());
      body.append(reinterpret_cast<const char*>(rest.data()), count);
      offset_ += count;
      if (offset_ == parts_[part_].size()) {
        ++part_;
        offset_ = 0;
      }
    }
    return body;
  }

 private:
  std::span<const std::span<const std::byte>> parts_;
  std::size_t part_ = 0;
  std::size_t offset_ = 0;
};

/// The first text of the tag; empty: there is none.
std::string first_text(const std::string& xml, std::string_view tag) {
  const auto texts = texts_of(xml, tag);
  return texts.empty() ? "" : texts.front();
}

/// The names below the prefix that stand in a list as `tag`. The prefix itself is among its prefixes, too.
void add_names(const std::string& list, std::string_view tag, const std::string& prefix,
               std::vector<std::string>& names) {
  const bool is_encoded = first_text(list, "EncodingType") == "url";
  for (const std::string& text : texts_of(list, tag)) {
    const std::string plain = is_encoded ? percent_decoded(text) : text;
    if (plain.size() > prefix.size() && plain.starts_with(prefix))
      names.push_back(plain.substr(prefix.size()));
  }
}

}  // namespace

S3Files::S3Files(S3Place place, Doors doors, const Effort& effort)
    : place_(std::move(place)), doors_(std::move(doors)), effort_(effort) {}

S3Files::S3Files(S3Place place, Doors doors) : S3Files(std::move(place), std::move(doors), Effort{}) {}

Result<world::HttpAnswer> S3Files::send(const Ask& ask) {
  const S3Target target = [&] {
    S3Target made = target_of(place_, ask.name);
    made.query = ask.query;
    return made;
  }();
  world::HttpRequest request{.method = ask.method,
                             .url = url_of(target),
                             .headers = ask.headers,
                             .body = ask.body,
                             .patience = effort_.patience,
                             .silence = effort_.silence,
                             .most_bytes = kPartBytes + kAnswerRoom,
                             .authorities = place_.authorities};
  for (int attempt = 1;; ++attempt) {
    if (doors_.is_over && doors_.is_over())
      return Error{fmt::format("{}: {} did not answer in time", shown(ask.name), place_.host)};
    const S3Scope scope{place_.region, doors_.unix_s()};
    const world::HttpRequest signed_request =
        place_.credentials ? sign(request, target, scope, *place_.credentials) : request;
    auto answer = doors_.exchange(signed_request);
    count(ask, answer);
    const bool is_last = !may_pass(answer) || attempt == effort_.attempts;
    if (!answer && is_last)
      return Error{fmt::format("{} (asked {} at {}): {}", shown(ask.name), counted(attempt, "time"),
                               place_.host, answer.error().message)};
    if (is_last) return answer;
    const auto jitter = 0.5 + Prng(mix(doors_.seed, ++attempts_)).uniform();
    doors_.pause(std::chrono::duration_cast<Duration>(kFirstPause * (1 << attempt) * jitter));
  }
}

std::string S3Files::shown(const S3Name& name) const {
  return fmt::format("{}{}/{}", place_.root, name.bucket, name.key);
}

Result<S3Name> S3Files::name_in(const std::string& path) const { return parse_s3(path, place_.root); }

/// By the classes of the price lists: lists cost as much as writes, and deletions nothing.
void S3Files::count(const Ask& ask, const Result<world::HttpAnswer>& answer) {
  const std::lock_guard lock(mutex_);
  const bool lists = ask.method == "GET" && ask.name.key.empty();
  if (ask.method == "PUT" || ask.method == "POST" || lists)
    ++use_.writes;
  else if (ask.method != "DELETE")
    ++use_.reads;
  if (!answer) return;
  use_.written_bytes += ask.body.size();
  use_.bytes += answer.value().body.size();
}

Error S3Files::refused(const Ask& ask, const world::HttpAnswer& answer) const {
  return Error{fmt::format("{}: {} was answered with {} {}(as {}){}", shown(ask.name), ask.method,
                           answer.status, error_of(answer.body), who_asks(place_),
                           region_advice(answer, place_.region))};
}

Result<world::HttpAnswer> S3Files::ask(const Ask& asked, int expected) {
  auto answer = send(asked);
  if (!answer) return answer.error();
  if (answer.value().status != expected) return refused(asked, answer.value());
  return answer;
}

// Range by range, all of the same version of the object.
Result<std::vector<std::byte>> S3Files::read(const std::string& path) {
  TW_TRY(const auto name, name_in(path));
  std::vector<std::byte> content;
  world::HttpHeaders same;
  const std::uint64_t step = std::min<std::uint64_t>(kPartBytes, effort_.most_bytes);
  while (true) {
    Ask range{.name = name, .headers = same};
    range.headers.emplace_back("Range",
                               fmt::format("bytes={}-{}", content.size(), content.size() + step - 1));
    auto answer = send(range);
    if (!answer) return answer.error();
    const world::HttpAnswer& part = answer.value();
    if (part.status == kOutOfRange && content.empty()) return content;  // an empty object has no ranges
    if (part.status != kPartial && part.status != kOk)
      return Error{refused(range, part).message, part.status == kNotThere};
    if (part.status == kOk && !content.empty()) return Error{path + ": the store serves no ranges"};
    const auto* const bytes = reinterpret_cast<const std::byte*>(part.body.data());
    content.insert(content.end(), bytes, bytes + part.body.size());
    const auto total = part.status == kOk ? std::optional<std::uint64_t>(part.body.size())
                                          : total_in(part.header("content-range").value_or(""));
    const auto came = range_in(part.header("content-range").value_or(""));
    if (part.status == kPartial && (!came || came->first != content.size() - part.body.size()))
      return Error{fmt::format("{}: the store sent other bytes than it was asked for", path)};
    const auto etag = part.header("etag");
    if (!total || (part.body.empty() && content.size() < *total))
      return Error{fmt::format("{}: an answer without its range of the object", path)};
    if (*total > effort_.most_bytes)
      return Error{fmt::format("{} has {} bytes, at most {} were expected", path, *total, effort_.most_bytes),
                   true};
    if (content.size() >= *total) return content;
    if (etag) same = {{"If-Match", *etag}};
  }
}

Status S3Files::write(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  TW_TRY(const auto name, name_in(path));
  if (total_of(parts) > kPartBytes) return write_in_parts(name, parts);
  const auto put = ask({.method = "PUT", .name = name, .body = Bodies(parts).next()}, kOk);
  return put ? Status(Unit{}) : Status(put.error());
}

Result<std::string> S3Files::begin_upload(const S3Name& name) {
  TW_TRY(const auto begun, ask({.method = "POST", .name = name, .query = {{"uploads", ""}}}, kOk));
  std::string id = first_text(begun.body, "UploadId");
  if (id.empty()) return Error{shown(name) + ": an upload without an id"};
  return id;
}

Status S3Files::finish_upload(const S3Name& name, const std::string& upload,
                              const std::vector<std::string>& etags) {
  const Ask finish{
      .method = "POST", .name = name, .query = {{"uploadId", upload}}, .body = parts_list(etags)};
  TW_TRY(const auto finished, ask(finish, kOk));
  if (!error_of(finished.body).empty()) return refused(finish, finished);  // a late one
  return Unit{};
}

Status S3Files::write_in_parts(const S3Name& name, std::span<const std::span<const std::byte>> parts) {
  TW_TRY(const auto upload, begin_upload(name));
  Bodies bodies(parts);
  std::vector<std::string> etags;
  Status done = Unit{};
  for (std::string body = bodies.next(); done && !body.empty(); body = bodies.next()) {
    const auto put = ask({.method = "PUT",
                          .name = name,
                          .query = {{"partNumber", std::to_string(etags.size() + 1)}, {"uploadId", upload}},
                          .body = std::move(body)},
                         kOk);
    if (put) etags.push_back(put.value().header("etag").value_or(""));
    if (!put) done = put.error();
  }
  if (done) done = finish_upload(name, upload, etags);
  // Unfinished parts are billed. That they cannot be removed says nothing new about the failure.
  if (!done) (void)send({.method = "DELETE", .name = name, .query = {{"uploadId", upload}}});
  return done;
}

Result<std::uint64_t> S3Files::size_of(const S3Name& name) {
  const Ask first{.name = name, .headers = {{"Range", "bytes=0-0"}}};
  TW_TRY(const auto answer, send(first));
  if (answer.status == kOutOfRange) return std::uint64_t{0};
  const auto total = total_in(answer.header("content-range").value_or(""));
  if (answer.status != kPartial || !total) return refused(first, answer);
  return *total;
}

Status S3Files::copy_in_parts(const S3Name& from, const S3Name& to, std::uint64_t size) {
  TW_TRY(const auto upload, begin_upload(to));
  std::vector<std::string> etags;
  Status done = Unit{};
  for (std::uint64_t at = 0; done && at < size; at += kCopyPart) {
    const std::uint64_t last = std::min(at + kCopyPart, size) - 1;
    const auto copied =
        ask({.method = "PUT",
             .name = to,
             .query = {{"partNumber", std::to_string(etags.size() + 1)}, {"uploadId", upload}},
             .headers = {{"x-amz-copy-source", source_of(from)},
                         {"x-amz-copy-source-range", fmt::format("bytes={}-{}", at, last)}}},
            kOk);
    const std::string tag = copied ? first_text(copied.value().body, "ETag") : "";
    if (!tag.empty()) etags.push_back(tag);
    if (tag.empty()) done = copied ? Error{shown(to) + ": a part without an ETag"} : copied.error();
  }
  if (done) done = finish_upload(to, upload, etags);
  if (!done) (void)send({.method = "DELETE", .name = to, .query = {{"uploadId", upload}}});
  return done;
}

Status S3Files::rename(const std::string& from, const std::string& to) {
  const auto source = name_in(from), target = name_in(to);
  if (!source) return source.error();
  if (!target) return target.error();
  TW_TRY(const auto size, size_of(source.value()));
  if (size > kMostCopiedAtOnce) {
    if (const Status copied = copy_in_parts(source.value(), target.value(), size); !copied) return copied;
  } else {
    const Ask copy{.method = "PUT",
                   .name = target.value(),
                   .headers = {{"x-amz-copy-source", source_of(source.value())}}};
    TW_TRY(const auto copied, ask(copy, kOk));
    if (!error_of(copied.body).empty()) return refused(copy, copied);  // a late one
  }
  return remove_object(source.value());
}

Status S3Files::remove_object(const S3Name& name) {
  const Ask removal{.method = "DELETE", .name = name};
  TW_TRY(const auto answer, send(removal));
  const int status = answer.status;
  if (status == kOk || status == kNoContent || status == kNotThere) return Unit{};
  return refused(removal, answer);
}

Status S3Files::remove(const std::string& path) {
  const auto name = name_in(path);
  return name ? remove_object(name.value()) : Status(name.error());
}

Result<std::vector<std::string>> S3Files::list(const std::string& folder) {
  TW_TRY(auto all, content(folder));
  return std::move(all.files);
}

Result<S3Files::Content> S3Files::content(const std::string& folder) {
  TW_TRY(const auto name, name_in(folder));
  const std::string prefix = name.key.empty() || name.key.ends_with('/') ? name.key : name.key + "/";
  Content all;
  std::string token;
  for (int pages = 0; pages < kMostPages; ++pages) {
    Ask page{.name = {name.bucket, ""},
             .query = {{"list-type", "2"}, {"encoding-type", "url"}, {"delimiter", "/"}, {"prefix", prefix}}};
    if (!token.empty()) page.query.emplace_back("continuation-token", token);
    TW_TRY(const auto answer, ask(page, kOk));
    add_names(answer.body, "Key", prefix, all.files);
    add_names(answer.body, "Prefix", prefix, all.folders);
    token = first_text(answer.body, "NextContinuationToken");
    if (!token.empty()) continue;
    if (first_text(answer.body, "IsTruncated") == "true")
      return Error{fmt::format(
          "{}: {} cut its list of names short, expected a NextContinuationToken of lists of version 2",
          folder, place_.host)};
    std::ranges::sort(all.files);
    std::ranges::sort(all.folders);
    return all;
  }
  return Error{fmt::format("{}: more than {} pages of names, expected fewer: name a narrower folder", folder,
                           kMostPages)};
}

Status S3Files::make_folder(const std::string& folder) {
  const auto name = name_in(folder);
  return name ? Status(Unit{}) : Status(name.error());
}

world::StoreUses S3Files::uses() const {
  const std::lock_guard lock(mutex_);
  if (use_ == world::StoreUse{}) return {};
  return {{store_name(place_), use_}};
}

S3Files::Doors s3_doors() {
  const std::int64_t now = now_unix_s();
  return {.exchange = http_exchange,
          .unix_s = now_unix_s,
          .pause = [](Duration time) { std::this_thread::sleep_for(time); },
          .seed = static_cast<std::uint64_t>(now)};
}

}  // namespace tw::host
