// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "host/store/files_s3.h"
#include "host/store/s3_answer.h"

namespace tw::host {

/// A store in memory, as far as S3Files asks for it; and a list of what was asked.
class Bucket {
 public:
  std::map<std::string, std::string> objects;  ///< by path
  std::map<std::string, std::map<int, std::string>> uploads;
  std::vector<std::string> asked;
  std::vector<Duration> pauses;
  std::vector<int> refusals;  ///< statuses of the next answers; 0: the connection fails
  std::string refusal = "SlowDown";
  std::function<void()> before = [] {};
  std::size_t shift = 0;  ///< of the bytes that it sends
  std::function<void()> after = [] {};
  bool lists_for_ever = false;
  bool encodes_names = true;    ///< in lists, as it is asked to
  bool continues_lists = true;  ///< with tokens for the next page
  bool is_over = false;
  std::string page;                 ///< that answers instead; empty: none
  std::string page_at;              ///< in what is asked, where the page answers; empty: everywhere
  std::uint64_t told_size = 0;      ///< of any object, in answers to ranges; 0: its own
  std::vector<Duration> silences;   ///< that requests allow
  std::vector<Duration> patiences;  ///< that requests have

  S3Files files(const S3Files::Effort& effort = {}) {
    return files(
        {.scheme = "http", .host = "store", .path_style = true, .credentials = S3Credentials{"me", "x", ""}},
        effort);
  }

  /// As at another place with the host "store".
  S3Files files(const S3Place& place, const S3Files::Effort& effort = {}) {
    return S3Files(place,
                   {.exchange =
                        [this](const world::HttpRequest& request) {
                          auto given = answer(request);
                          after();
                          return given;
                        },
                    .unix_s = [] { return std::int64_t{1'700'000'000}; },
                    .pause = [this](Duration time) { pauses.push_back(time); },
                    .is_over = [this] { return is_over; }},
                   effort);
  }

 private:
  static std::string header(const world::HttpRequest& request, const std::string& name) {
    for (const auto& [key, value] : request.headers)
      if (key == name) return value;
    return {};
  }

  static std::string etag(const std::string& content) {
    return "\"" + std::to_string(std::hash<std::string>{}(content)) + "\"";
  }

  Result<world::HttpAnswer> answer(const world::HttpRequest& request) {
    const std::string url = request.url.substr(std::string("http://store").size());
    const std::size_t mark = url.find('?');
    const std::string path = percent_decoded(url.substr(0, mark)),
                      query = mark == std::string::npos ? "" : url.substr(mark + 1);
    asked.push_back(request.method + " " + url);
    before();
    if (!refusals.empty()) {
      const int status = refusals.front();
      refusals.erase(refusals.begin());
      if (status == 0) return Error{"connection refused"};
      return world::HttpAnswer{.status = status,
                               .body = fmt::format("<Error><Code>{}</Code></Error>", refusal)};
    }
    silences.push_back(request.silence);
    patiences.push_back(request.patience);
    if (!page.empty() && asked.back().find(page_at) != std::string::npos)
      return world::HttpAnswer{.status = 200, .body = page, .headers = {{"Content-Type", "text/html"}}};
    if (request.method == "GET" && query.empty()) return get(request, path);
    if (request.method == "GET") return listing(query);
    if (request.method == "DELETE" && !query.empty())
      return uploads.erase(path), world::HttpAnswer{.status = 204};
    if (request.method == "DELETE") return objects.erase(path), world::HttpAnswer{.status = 204};
    if (request.method == "POST" && query == "uploads=") {
      uploads[path];
      return world::HttpAnswer{.status = 200, .body = "<UploadId>u&amp;1</UploadId>"};
    }
    if (request.method == "POST") {
      for (const auto& [number, part] : uploads[path]) objects[path] += part;
      return uploads.erase(path), world::HttpAnswer{.status = 200, .body = made(objects[path])};
    }
    const std::string source = header(request, "x-amz-copy-source");
    if (query.starts_with("partNumber=") && !source.empty())
      return world::HttpAnswer{.status = 200, .body = made(source)};
    if (query.starts_with("partNumber=")) {
      uploads[path][std::stoi(query.substr(11))] = request.body;
      return world::HttpAnswer{.status = 200, .headers = {{"ETag", etag(request.body)}}};
    }
    objects[path] = source.empty() ? request.body : objects.at(percent_decoded(source));
    if (!source.empty()) return world::HttpAnswer{.status = 200, .body = made(objects[path])};
    return world::HttpAnswer{.status = 200, .headers = {{"ETag", etag(request.body)}}};
  }

  /// A copy, or an upload in parts.
  static std::string made(const std::string& content) {
    return fmt::format("<Result><ETag>{}</ETag></Result>", etag(content));
  }

  Result<world::HttpAnswer> get(const world::HttpRequest& request, const std::string& path) {
    const auto found = objects.find(path);
    if (found == objects.end())
      return world::HttpAnswer{.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"};
    const std::string& content = found->second;
    const std::string same = header(request, "If-Match");
    if (!same.empty() && same != etag(content))
      return world::HttpAnswer{.status = 412, .body = "<Error><Code>PreconditionFailed</Code></Error>"};
    std::size_t first = 0, last = 0;
    EXPECT_EQ(2, std::sscanf(header(request, "Range").c_str(), "bytes=%zu-%zu", &first, &last));
    if (first >= content.size()) return world::HttpAnswer{.status = 416};
    last = std::min(last, content.size() - 1);
    first += shift;
    const std::uint64_t size = told_size > 0 ? told_size : content.size();
    return world::HttpAnswer{.status = 206,
                             .body = content.substr(first, last + 1 - first),
                             .headers = {{"Content-Range", fmt::format("bytes {}-{}/{}", first, last, size)},
                                         {"ETag", etag(content)}}};
  }

  /// Two keys a page.
  Result<world::HttpAnswer> listing(const std::string& query) {
    if (lists_for_ever)
      return world::HttpAnswer{
          .status = 200,
          .body = "<ListBucketResult><NextContinuationToken>x</NextContinuationToken></ListBucketResult>"};
    const std::string prefix = "/data/" + percent_decoded(query.substr(query.find("prefix=") + 7));
    const std::size_t token = query.find("continuation-token=");
    const std::string last =
        token == std::string::npos
            ? ""
            : percent_decoded(query.substr(token + 19, query.find('&', token) - token - 19));
    const auto shown = [&](const std::string& path) {
      return encodes_names ? percent_encoded(path.substr(6), true) : path.substr(6);
    };
    std::string body = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    if (encodes_names) body += "<EncodingType>url</EncodingType>";
    body += fmt::format("<Prefix>{}</Prefix>", shown(prefix));
    std::set<std::string> folders;
    int count = 0;
    for (const auto& [path, content] : objects) {
      if (!path.starts_with(prefix) || path <= last) continue;
      if (const std::size_t slash = path.find('/', prefix.size()); slash != std::string::npos) {
        folders.insert(path.substr(0, slash + 1));
        continue;
      }
      if (++count > 2) {
        body += "<IsTruncated>true</IsTruncated>";
        break;
      }
      body += fmt::format("<Key>{}</Key>", shown(path));
      if (count == 2 && continues_lists)
        body += fmt::format("<NextContinuationToken>{}</NextContinuationToken>", path);
    }
    for (const std::string& folder : folders)
      body += fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", shown(folder));
    return world::HttpAnswer{.status = 200, .body = body + "</ListBucketResult>"};
  }
};

inline std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline std::string text_of(const Result<std::vector<std::byte>>& bytes) {
  if (!bytes) return bytes.error().message;
  return {reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()};
}

inline Status write(S3Files& files, const std::string& path, const std::string& text) {
  const std::vector<std::byte> bytes = bytes_of(text);
  const std::vector<std::span<const std::byte>> parts{std::span(bytes).first(bytes.size() / 2),
                                                      std::span(bytes).subspan(bytes.size() / 2)};
  return files.write(path, parts);
}

}  // namespace tw::host
