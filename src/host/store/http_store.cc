// SPDX-License-Identifier: Apache-2.0
#include "host/store/http_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/prng.h"
#include "host/store/s3_answer.h"

namespace tw::host {
namespace {

constexpr Duration kFirstRetryPause = std::chrono::milliseconds(200);
constexpr Duration kLongestRetryPause = std::chrono::seconds(10);
constexpr Duration kRangePatience = std::chrono::minutes(2);
constexpr Duration kSilentPatience = std::chrono::seconds(10);
constexpr std::size_t kErrorRoom = std::size_t{64} << 10;
constexpr int kFullStatus = 200, kRangeStatus = 206, kChangedStatus = 412, kBusyStatus = 429,
              kBrokenStatus = 500;

/// An ETag that may stand in If-Match: a weak one matches nothing there.
bool is_strong(const std::string& version) { return version.starts_with('"'); }

std::string version_in(const world::HttpAnswer& answer) {
  if (const auto etag = answer.header("etag")) return *etag;
  return answer.header("last-modified").value_or("");
}

}  // namespace

struct HttpStore::Job {
  world::Extent extent;
  ObjectPlace place;
  std::function<void(Result<world::HttpAnswer>)> done;  ///< with the whole body
  std::string came{};                                   ///< of the body, so far
  int attempt = 1;
};

HttpStore::HttpStore(Doors doors) : doors_(std::move(doors)) {}

void HttpStore::ask(const SharedJob& job, Duration later) {
  const world::Extent& extent = job->extent;
  world::HttpHeaders headers{{"Range", fmt::format("bytes={}-{}", extent.offset + job->came.size(),
                                                   extent.offset + extent.length - 1)}};
  if (is_strong(extent.version)) headers.emplace_back("If-Match", extent.version);
  world::HttpRequest request = request_for(job->place, std::move(headers), doors_.unix_s());
  request.patience = kRangePatience;
  request.silence = kSilentPatience;
  request.most_bytes = extent.length - job->came.size() + kErrorRoom;
  count(*job, 1, 0);
  doors_.exchange(
      std::move(request),
      [this, job](Result<world::HttpAnswer> answer, const std::string& partial) {
        take(job, std::move(answer), partial);
      },
      later);
}

void HttpStore::count(const Job& job, std::uint64_t requests, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  world::StoreUse& use = uses_[job.place.store];
  use.requests += requests;
  use.bytes += bytes;
}

world::StoreUses HttpStore::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

void HttpStore::take(const SharedJob& job, Result<world::HttpAnswer> answer, const std::string& partial) {
  count(*job, 0, answer ? answer.value().body.size() : partial.size());
  const bool passes =
      !answer || answer.value().status >= kBrokenStatus || answer.value().status == kBusyStatus;
  if (!passes) return judge(job, std::move(answer).value());
  // Without If-Match nobody knows of which version the next answer will be.
  const bool goes_on = is_strong(job->extent.version);
  if (goes_on && job->came.size() + partial.size() < job->extent.length) job->came += partial;
  if (job->attempt == kAttempts) {
    if (answer) return job->done(refused(*job, answer.value()));
    return job->done(Error{fmt::format("{} (asked {} times): {}", world::text_of(job->extent), kAttempts,
                                       answer.error().message)});
  }
  const double jitter = 0.5 + Prng(mix(doors_.seed, ++asked_)).uniform();
  const Duration pause = std::min(kLongestRetryPause, kFirstRetryPause * (1 << job->attempt));
  ++job->attempt;
  tell_trouble(*job, answer);
  ask(job, std::chrono::duration_cast<Duration>(pause * jitter));
}

// A server that is busy once or twice is no news.
void HttpStore::tell_trouble(const Job& job, const Result<world::HttpAnswer>& answer) const {
  if (!doors_.troubled || (answer && job.attempt < kAttempts / 2)) return;
  const std::string what =
      answer ? fmt::format("answered with {}", answer.value().status) : answer.error().message;
  doors_.troubled(fmt::format("{}: {}; asked again ({} of {})", world::text_of(job.extent), what, job.attempt,
                              kAttempts));
}

Error HttpStore::refused(const Job& job, const world::HttpAnswer& answer) const {
  const std::string code = error_of(answer.body);
  return Error{fmt::format("{}: answered with {} {}(as {})", world::text_of(job.extent), answer.status, code,
                           job.place.who)};
}

void HttpStore::judge(const SharedJob& job, world::HttpAnswer answer) {
  const world::Extent& extent = job->extent;
  if (answer.status == kChangedStatus) return name_both_versions(job);
  if (answer.status == kFullStatus)
    return job->done(Error{fmt::format("{}: the server serves no ranges (it answered with 200, expected 206)",
                                       world::text_of(extent))});
  if (answer.status != kRangeStatus) return job->done(refused(*job, answer));
  const std::string version = version_in(answer);
  if (!extent.version.empty() && version != extent.version) return name_both_versions(job);
  job->came += answer.body;
  if (job->came.size() != extent.length)
    return job->done(Error{fmt::format("{}: {} bytes came", world::text_of(extent), job->came.size())});
  answer.body = std::move(job->came);
  job->done(std::move(answer));
}

void HttpStore::name_both_versions(const SharedJob& job) {
  look(job->extent.object, [job](const Result<world::ObjectFacts>& facts) {
    job->done(Error{fmt::format(
        "{}: it changed since its index was made: expected ETag {}, found {}; make the index anew",
        world::text_of(job->extent), job->extent.version,
        facts ? facts.value().version : "nothing (" + facts.error().message + ")")});
  });
}

void HttpStore::read(const world::Extent& extent, Read done) {
  auto place = object_place(extent.object, doors_.environment, doors_.shared_credentials());
  if (!place) return done(place.error());
  const auto tell = [done = std::move(done)](Result<world::HttpAnswer> answer) {
    if (!answer) return done(answer.error());
    done(std::move(answer.value().body));
  };
  ask(std::make_shared<Job>(Job{extent, std::move(place).value(), tell}), {});  // owners: SharedJob
}

void HttpStore::look(const std::string& object, Looked done) {
  auto place = object_place(object, doors_.environment, doors_.shared_credentials());
  if (!place) return done(place.error());
  const auto tell = [object, done = std::move(done)](const Result<world::HttpAnswer>& answer) {
    if (!answer) return done(answer.error());
    const auto total = total_in(answer.value().header("content-range").value_or(""));
    if (!total)
      return done(Error{fmt::format("{}: an answer without its size", world::shown_object(object))});
    done(world::ObjectFacts{*total, version_in(answer.value())});
  };
  // Not HEAD: a URL that is signed for GET serves nothing else.
  ask(std::make_shared<Job>(Job{{object, 0, 1}, std::move(place).value(), tell}), {});  // owners: SharedJob
}

}  // namespace tw::host
