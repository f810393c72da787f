// SPDX-License-Identifier: Apache-2.0
#include "host/store/http_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/prng.h"
#include "base/text/number.h"
#include "host/store/s3_answer.h"

namespace tw::host {
namespace {

constexpr Duration kFirstRetryPause = std::chrono::milliseconds(200);
constexpr Duration kLongestRetryPause = std::chrono::seconds(10);
constexpr Duration kRangePatience = std::chrono::minutes(2);
constexpr Duration kSilentPatience = std::chrono::seconds(10);
constexpr std::size_t kErrorRoom = std::size_t{64} << 10;
constexpr int kFullStatus = 200, kRangeStatus = 206, kRefusedStatus = 400, kNoKeyStatus = 401,
              kForbiddenStatus = 403, kLacksStatus = 404, kGoneStatus = 410, kChangedStatus = 412,
              kOutsideStatus = 416;

/// An ETag that may stand in If-Match: a weak one matches nothing there.
bool is_strong(const std::string& version) { return version.starts_with('"'); }

std::string version_in(const world::HttpAnswer& answer) {
  if (const auto etag = answer.header("etag")) return *etag;
  return answer.header("last-modified").value_or("");
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_plain_url(const std::string& object) {
  return object.starts_with("http://") || object.starts_with("https://");
}

/// The URL as HTTP is asked for it: its path has no segments . and .. any more. They are a part of the name
/// of an object in a bucket.
std::string without_dot_segments(const std::string& url) {
  const std::size_t end = std::min(url.find('?'), url.size());
  const std::size_t root = std::min(url.find('/', url.find("://") + 3), end);
  std::string path;
  for (std::size_t at = root; at < end;) {
    const std::size_t next = std::min(url.find('/', at + 1), end);
    const std::string segment = url.substr(at, next - at);
    const bool is_dots = segment == "/." || segment == "/..";
    if (segment == "/..") path.erase(std::min(path.rfind('/'), path.size()));
    if (!is_dots) path += segment;
    if (is_dots && next == end) path += '/';
    at = next;
  }
  return url.substr(0, root) + path + url.substr(end);
}

/// Where a Location leads from `url`; empty: to nothing that is asked over HTTP.
std::string redirected(const std::string& url, std::string location) {
  location.erase(std::min(location.find('#'), location.size()));  // no server is told of what follows it
  if (is_plain_url(location)) return location;
  const std::size_t host = url.find("://") + 3;
  if (location.starts_with("//")) return url.substr(0, host - 2) + location;
  const std::string path = url.substr(0, url.find_first_of("?#", host));
  const std::size_t root = std::min(path.find('/', host), path.size());
  if (location.starts_with('/')) return path.substr(0, root) + location;
  if (location.empty() || location.find(':') < location.find('/')) return {};
  const std::size_t folder = path.rfind('/');
  return (folder < root ? path + "/" : path.substr(0, folder + 1)) + location;
}

/// Why no try will help; empty: one may. It names the host, which may be that of an endpoint in the
/// environment.
std::string fault_in_url(const std::string& url) {
  if (std::ranges::any_of(url, [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
    return "a URL with a space, expected one without (%20 stands for a space)";
  if (url.find('#') != std::string::npos)
    return "a URL with #, of which no server is told what follows it; expected one without (%23 stands for "
           "#)";
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  std::string host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  host.erase(0, host.rfind('@') + 1);
  const std::size_t colon = host.find(':', host.rfind(']') + 1);  // those before it are of an IPv6 address
  if (host.empty() || colon == 0) return "a URL without a host";
  const std::string port = colon == std::string::npos ? "" : host.substr(colon + 1);
  if (port.empty() || parse_number<std::uint16_t>(port)) return {};
  return fmt::format("{} has the port {}, expected at most 65535", host.substr(0, colon), port);
}

}  // namespace

struct HttpStore::Job {
  world::Extent extent;
  ObjectPlace place;
  std::function<void(Result<world::HttpAnswer>)> done;  ///< with the whole body
  std::string url{};                                    ///< of the request under way
  std::string came{};                                   ///< of the body, so far
  int attempt = 1;
  int redirects = 0;
  bool has_new_keys = false;

  std::uint64_t next() const { return extent.offset + came.size(); }

  /// The answer is of the bytes that were asked for, as far as it goes, and of the version.
  bool fits(const world::HttpAnswer& part) const {
    const auto range = range_in(part.header("content-range").value_or(""));
    const std::uint64_t end = extent.offset + extent.length;
    return range && range->first == next() && range->last < end && part.body.size() <= range->count() &&
           range->total.value_or(end) >= end &&
           (extent.version.empty() || version_in(part) == extent.version);
  }
};

/// What may pass by itself.
struct HttpStore::Trouble {
  enum class Kind {
    silent,  ///< no answer came
    busy,    ///< the answer is that it cannot now
    torn,    ///< a part of the body came
  };

  Kind kind{};
  std::string what{};        ///< in words
  world::HttpAnswer part{};  ///< what came of the body
  Error last{};              ///< as reported after the last attempt
};

HttpStore::HttpStore(Doors doors) : doors_(std::move(doors)) {}

void HttpStore::ask(const SharedJob& job, Duration later) {
  const world::Extent& extent = job->extent;
  world::HttpHeaders headers{
      {"Range", fmt::format("bytes={}-{}", job->next(), extent.offset + extent.length - 1)}};
  if (is_strong(extent.version)) headers.emplace_back("If-Match", extent.version);
  world::HttpRequest request = request_for(job->place, std::move(headers), doors_.unix_s());
  if (is_plain_url(extent.object)) request.url = without_dot_segments(request.url);
  job->url = request.url;
  if (const std::string fault = fault_in_url(request.url); !fault.empty())
    return job->done(Error{fmt::format("{}: {}", world::shown_object(extent.object), fault)});
  request.patience = kRangePatience;
  request.silence = kSilentPatience;
  request.most_bytes = extent.length - job->came.size() + kErrorRoom;
  count(*job, 1, 0);
  doors_.exchange(
      std::move(request),
      [this, job](Result<world::HttpAnswer> answer, const world::HttpAnswer& partial) {
        take(job, std::move(answer), partial);
      },
      later);
}

void HttpStore::count(const Job& job, std::uint64_t requests, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  world::StoreUse& use = uses_[job.place.store];
  use.reads += requests;
  use.bytes += bytes;
}

world::StoreUses HttpStore::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

void HttpStore::take(const SharedJob& job, Result<world::HttpAnswer> answer,
                     const world::HttpAnswer& partial) {
  count(*job, 0, answer ? answer.value().body.size() : partial.body.size());
  const auto unanswered = [&](const std::string& what) {
    return Error{fmt::format("{} (asked {} times): {}", world::text_of(job->extent), kAttempts, what)};
  };
  if (!answer) {
    const std::string& what = answer.error().message;
    if (answer.error().lasting)
      return job->done(Error{fmt::format("{}: {}", world::text_of(job->extent), what)});
    const auto kind = partial.status == 0 ? Trouble::Kind::silent : Trouble::Kind::torn;
    return try_again(job, {kind, what, partial, unanswered(what)});
  }
  const int status = answer.value().status;
  if (is_temporary(answer.value()))
    return try_again(
        job,
        {Trouble::Kind::busy, fmt::format("answered with {}", status), {}, refused(*job, answer.value())});
  const std::size_t missing = job->extent.length - job->came.size();
  if (status == kRangeStatus && answer.value().body.size() < missing && job->fits(answer.value())) {
    const std::string what = fmt::format("{} of {} bytes came", answer.value().body.size(), missing);
    return try_again(job, {Trouble::Kind::torn, what, std::move(answer).value(), unanswered(what)});
  }
  judge(job, std::move(answer).value());
}

void HttpStore::try_again(const SharedJob& job, const Trouble& trouble) {
  // Without If-Match nobody knows of which version the next answer will be.
  if (is_strong(job->extent.version) && job->fits(trouble.part) &&
      job->came.size() + trouble.part.body.size() < job->extent.length)
    job->came += trouble.part.body;
  if (job->attempt == kAttempts) return job->done(trouble.last);
  const double jitter = 0.5 + Prng(mix(doors_.seed, ++asked_)).uniform();
  const Duration pause = std::min(kLongestRetryPause, kFirstRetryPause * (1 << job->attempt));
  ++job->attempt;
  tell_trouble(*job, trouble);
  ask(job, std::chrono::duration_cast<Duration>(pause * jitter));
}

// A server that is busy once or twice is no news.
void HttpStore::tell_trouble(const Job& job, const Trouble& trouble) const {
  const bool is_answer = trouble.kind != Trouble::Kind::silent;
  if (!doors_.troubled || (is_answer && job.attempt < kAttempts / 2)) return;
  doors_.troubled(fmt::format("{}: {}; asked again ({} of {})", world::text_of(job.extent), trouble.what,
                              job.attempt, kAttempts));
}

Error HttpStore::refused(const Job& job, const world::HttpAnswer& answer) const {
  const int status = answer.status;
  std::string more = job.place.region.empty() ? "" : store_advice(answer, job.place.region);
  if (more.empty() && is_redirect(status)) {
    const std::string to = redirected(job.url, answer.header("location").value_or(""));
    more =
        fmt::format(": this redirect{} is not followed{}",
                    job.redirects > kMostRedirects ? fmt::format(", after {} others,", kMostRedirects) : "",
                    to.empty() ? ": it has no Location over HTTP" : " (to " + world::shown_object(to) + ")");
  }
  return Error{fmt::format("{}: answered with {} {}(as {}){}", world::text_of(job.extent), status,
                           error_of(answer.body), job.place.who, more),
               status == kLacksStatus || status == kGoneStatus || status == kOutsideStatus};
}

/// Another address, or other keys, may have what was refused.
bool HttpStore::asks_elsewhere(const SharedJob& job, const world::HttpAnswer& answer) {
  if (is_redirect(answer.status) && is_plain_url(job->extent.object)) {
    const std::string to = redirected(job->url, answer.header("location").value_or(""));
    const bool is_open_now = job->url.starts_with("https://") && !to.starts_with("https://");
    if (to.empty() || is_open_now || ++job->redirects > kMostRedirects) return false;
    job->place.url = to;
    ask(job, {});
    return true;
  }
  const bool keys_refused =
      answer.status == kRefusedStatus || answer.status == kNoKeyStatus || answer.status == kForbiddenStatus;
  if (!keys_refused || !is_s3(job->extent.object) || !doors_.keys_refused || job->has_new_keys) return false;
  job->has_new_keys = true;
  doors_.keys_refused();
  auto place = object_place(job->extent.object, doors_.environment, doors_.aws_files());
  if (!place || place.value().credentials == job->place.credentials) return false;
  job->place = std::move(place).value();
  ask(job, {});
  return true;
}

void HttpStore::judge(const SharedJob& job, world::HttpAnswer answer) {
  const world::Extent& extent = job->extent;
  if (answer.status == kChangedStatus) return name_both_versions(job);
  if (answer.status == kFullStatus)
    return job->done(Error{fmt::format("{}: the server serves no ranges (it answered with 200, expected 206)",
                                       world::text_of(extent))});
  if (answer.status != kRangeStatus) {
    if (!asks_elsewhere(job, answer)) job->done(refused(*job, answer));
    return;
  }
  if (!extent.version.empty() && version_in(answer) != extent.version) return name_both_versions(job);
  if (!job->fits(answer))
    return job->done(Error{fmt::format("{}: the server sent {} bytes as \"{}\", expected bytes {}-{}",
                                       world::text_of(extent), answer.body.size(),
                                       answer.header("content-range").value_or(""), job->next(),
                                       extent.offset + extent.length - 1)});
  job->came += answer.body;
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
  auto place = object_place(extent.object, doors_.environment, doors_.aws_files());
  if (!place) return done(place.error());
  const auto tell = [done = std::move(done)](Result<world::HttpAnswer> answer) {
    if (!answer) return done(answer.error());
    done(std::move(answer.value().body));
  };
  ask(std::make_shared<Job>(Job{extent, std::move(place).value(), tell}), {});  // owners: SharedJob
}

void HttpStore::look(const std::string& object, Looked done) {
  auto place = object_place(object, doors_.environment, doors_.aws_files());
  if (!place) return done(place.error());
  const auto tell = [object, done = std::move(done)](const Result<world::HttpAnswer>& answer) {
    if (!answer) return done(answer.error());
    const auto total = total_in(answer.value().header("content-range").value_or(""));
    if (!total)
      return done(Error{fmt::format("{}: an answer without its size", world::shown_object(object))});
    std::string version = version_in(answer.value());
    if (version.empty())
      return done(
          Error{fmt::format("{}: the server sends neither ETag nor Last-Modified, expected one: without "
                            "them, a read may mix two versions of the object",
                            world::shown_object(object))});
    done(world::ObjectFacts{*total, std::move(version)});
  };
  // Not HEAD: a URL that is signed for GET serves nothing else.
  ask(std::make_shared<Job>(Job{{object, 0, 1}, std::move(place).value(), tell}), {});  // owners: SharedJob
}

}  // namespace tw::host
