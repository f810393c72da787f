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
/// What was sent last may still lie in buffers of this machine and of its router. The line is the slowest
/// that Effort::patience is for (0.5 Mbit/s).
constexpr std::size_t kMostBuffered = std::size_t{4} << 20;
constexpr double kLineBytesPerS = 62.5e3;
/// A disk of a store copies at least so fast.
constexpr double kCopiedBytesPerS = 50e6;
/// A peer that leaves has two seconds in hand.
constexpr Duration kLastPatience = std::chrono::seconds(1);
constexpr std::size_t kMostShown = 100;
constexpr int kOk = 200, kNoContent = 204, kPartial = 206, kNotThere = 404, kOutOfRange = 416;

bool may_pass(const Result<world::HttpAnswer>& answer) {
  return answer ? is_temporary(answer.value()) : !answer.error().lasting;
}

/// AWS's name of the right without which the store denies such a request.
std::string_view right_for(std::string_view method, const S3Name& name) {
  if (method == "DELETE") return "s3:DeleteObject";
  if (method != "GET") return "s3:PutObject";
  return name.key.empty() ? "s3:ListBucket" : "s3:GetObject";
}

/// A 200 that pages of proxies say, too.
bool is_of_store(const world::HttpAnswer& answer) {
  return answer.header("etag") || answer.header("x-amz-request-id");
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

bool S3Files::is_over() const { return doors_.is_over && doors_.is_over(); }

world::HttpRequest S3Files::request_for(const Ask& ask) const {
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
                             .silence = silence_of(ask),
                             .most_bytes = kPartBytes + kAnswerRoom,
                             .authorities = place_.authorities};
  const S3Scope scope{place_.region, doors_.unix_s()};
  return place_.credentials ? sign(request, target, scope, *place_.credentials) : request;
}

Result<world::HttpAnswer> S3Files::send(const Ask& ask) {
  for (int attempt = 1;; ++attempt) {
    if (is_over()) return Error{fmt::format("{}: {} did not answer in time", shown(ask), place_.host)};
    auto answer = doors_.exchange(request_for(ask));
    count(ask, answer);
    const bool is_last = !may_pass(answer) || attempt == effort_.attempts;
    if (!answer && is_last)
      return Error{fmt::format("{} (asked {} at {}): {}", shown(ask), counted(attempt, "time"), place_.host,
                               answer.error().message)};
    if (is_last) return answer;
    const auto jitter = 0.5 + Prng(mix(doors_.seed, ++attempts_)).uniform();
    doors_.pause(std::chrono::duration_cast<Duration>(kFirstPause * (1 << attempt) * jitter));
  }
}

std::string S3Files::shown(const S3Name& name) const {
  return fmt::format("{}{}/{}", place_.root, name.bucket, name.key);
}

std::string S3Files::shown(const Ask& ask) const {
  S3Name name = ask.name;
  for (const auto& [word, value] : ask.query)
    if (word == "prefix") name.key = value;
  return shown(name);
}

Duration S3Files::silence_of(const Ask& ask) const {
  if (effort_.silence == Duration{}) return {};
  const auto buffered = static_cast<double>(std::min(ask.body.size(), kMostBuffered));
  return effort_.silence +
         from_seconds(buffered / kLineBytesPerS + static_cast<double>(ask.copied_bytes) / kCopiedBytesPerS);
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
  const std::string error = error_of(answer.body);
  std::string more;
  if (is_temporary(answer)) more = fmt::format("; asked {}", counted(effort_.attempts, "time"));
  if (error == "AccessDenied " && place_.root == "s3://")
    more = fmt::format("; needs {}", right_for(ask.method, ask.name));
  return Error{fmt::format("{}: {} was answered with {} {}(as {}{}){}", shown(ask), ask.method, answer.status,
                           error, who_asks(place_), more, store_advice(answer, place_.region))};
}

Error S3Files::no_store(const Ask& ask, const world::HttpAnswer& answer, std::string_view expected) const {
  return Error{
      fmt::format("{}: {} answered {} with {} and '{}', expected {} of S3: is this the endpoint of the "
                  "store, or the page of a proxy?",
                  shown(ask), place_.host, ask.method, answer.status,
                  answer.header("content-type").value_or("no content-type").substr(0, kMostShown), expected)};
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
    if (part.status == kOk && !is_of_store(part)) return no_store(range, part, "an ETag");
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
  const Ask put{.method = "PUT", .name = name, .body = Bodies(parts).next()};
  TW_TRY(const auto stored, ask(put, kOk));
  if (!stored.header("etag")) return no_store(put, stored, "an ETag");
  return Unit{};
}

Status S3Files::judge_late(const Ask& ask, const world::HttpAnswer& answer) const {
  if (!error_of(answer.body).empty()) return refused(ask, answer);
  if (first_text(answer.body, "ETag").empty()) return no_store(ask, answer, "an ETag");
  return Unit{};
}

Result<std::string> S3Files::begin_upload(const S3Name& name) {
  const Ask begin{.method = "POST", .name = name, .query = {{"uploads", ""}}};
  TW_TRY(const auto begun, ask(begin, kOk));
  std::string id = first_text(begun.body, "UploadId");
  if (id.empty()) return no_store(begin, begun, "an UploadId");
  return id;
}

Status S3Files::finish_upload(const S3Name& name, const std::string& upload,
                              const std::vector<std::string>& etags, std::uint64_t bytes) {
  const Ask finish{.method = "POST",
                   .name = name,
                   .query = {{"uploadId", upload}},
                   .body = parts_list(etags),
                   .copied_bytes = bytes};
  TW_TRY(const auto finished, ask(finish, kOk));
  return judge_late(finish, finished);
}

Status S3Files::write_in_parts(const S3Name& name, std::span<const std::span<const std::byte>> parts) {
  TW_TRY(const auto upload, begin_upload(name));
  Bodies bodies(parts);
  std::vector<std::string> etags;
  Status done = Unit{};
  for (std::string body = bodies.next(); done && !body.empty(); body = bodies.next()) {
    const Ask put{.method = "PUT",
                  .name = name,
                  .query = {{"partNumber", std::to_string(etags.size() + 1)}, {"uploadId", upload}},
                  .body = std::move(body)};
    const auto stored = ask(put, kOk);
    const auto etag = stored ? stored.value().header("etag") : std::nullopt;
    if (etag) etags.push_back(*etag);
    if (!etag) done = stored ? no_store(put, stored.value(), "an ETag") : stored.error();
  }
  if (done) done = finish_upload(name, upload, etags, total_of(parts));
  if (!done) drop_upload(name, upload);
  return done;
}

// Unfinished parts are billed. That they cannot be removed says nothing new about the failure.
void S3Files::drop_upload(const S3Name& name, const std::string& upload) {
  const Ask removal{.method = "DELETE", .name = name, .query = {{"uploadId", upload}}};
  if (send(removal) || !is_over()) return;
  world::HttpRequest last = request_for(removal);
  last.patience = kLastPatience;
  count(removal, doors_.last_exchange ? doors_.last_exchange(last) : doors_.exchange(last));
}

Result<std::uint64_t> S3Files::size_of(const S3Name& name) {
  const Ask first{.name = name, .headers = {{"Range", "bytes=0-0"}}};
  TW_TRY(const auto answer, send(first));
  if (answer.status == kOutOfRange) return std::uint64_t{0};
  const auto total = total_in(answer.header("content-range").value_or(""));
  if (answer.status == kOk || (answer.status == kPartial && !total))
    return no_store(first, answer, "a range of an object");
  if (answer.status != kPartial) return refused(first, answer);
  return *total;
}

Status S3Files::copy_in_parts(const S3Name& from, const S3Name& to, std::uint64_t size) {
  TW_TRY(const auto upload, begin_upload(to));
  std::vector<std::string> etags;
  Status done = Unit{};
  for (std::uint64_t at = 0; done && at < size; at += kCopyPart) {
    const std::uint64_t last = std::min(at + kCopyPart, size) - 1;
    const Ask copy{.method = "PUT",
                   .name = to,
                   .query = {{"partNumber", std::to_string(etags.size() + 1)}, {"uploadId", upload}},
                   .headers = {{"x-amz-copy-source", source_of(from)},
                               {"x-amz-copy-source-range", fmt::format("bytes={}-{}", at, last)}},
                   .copied_bytes = last + 1 - at};
    const auto copied = ask(copy, kOk);
    if (!copied) done = copied.error();
    if (copied) done = judge_late(copy, copied.value());
    if (done) etags.push_back(first_text(copied.value().body, "ETag"));
  }
  if (done) done = finish_upload(to, upload, etags, size);
  if (!done) drop_upload(to, upload);
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
                   .headers = {{"x-amz-copy-source", source_of(source.value())}},
                   .copied_bytes = size};
    TW_TRY(const auto copied, ask(copy, kOk));
    if (const Status whole = judge_late(copy, copied); !whole) return whole;
  }
  return remove_object(source.value());
}

Status S3Files::remove_object(const S3Name& name) {
  const Ask removal{.method = "DELETE", .name = name};
  TW_TRY(const auto answer, send(removal));
  const int status = answer.status;
  if (status == kOk && !is_of_store(answer)) return no_store(removal, answer, "204");
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
    if (answer.body.find("<ListBucketResult") == std::string::npos) return no_store(page, answer, "a list");
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
  return {.exchange = [](const world::HttpRequest& request) { return http_exchange(request); },
          .unix_s = now_unix_s,
          .pause = [](Duration time) { std::this_thread::sleep_for(time); },
          .seed = static_cast<std::uint64_t>(now)};
}

}  // namespace tw::host
