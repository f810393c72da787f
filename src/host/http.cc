// SPDX-License-Identifier: Apache-2.0
#include "host/http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/cause_text.h"

namespace tw::host {

std::string authority_file(const Environment& environment) {
  std::string named = environment("SSL_CERT_FILE");
  if (!named.empty()) return named;
  // Debian, Ubuntu, Alpine; RHEL, Fedora, Amazon; SUSE; Arch. A system's libcurl knows its own, ours knows
  // none.
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (access(file, R_OK) == 0) return file;
  return "";
}

namespace {

using world::HttpAnswer;
using world::HttpRequest;

constexpr std::string_view kFile = "file://";
constexpr std::size_t kMostHeaders = 100;
constexpr int kWholeStatus = 200, kPartStatus = 206;

/// libcurl has no codes of their own for these. The second text is that of GnuTLS.
bool speaks_no_tls(CURLcode code, std::string_view why) {
  return code == CURLE_SSL_CONNECT_ERROR &&
         (why.find("wrong version number") != why.npos || why.find("unexpected TLS packet") != why.npos);
}

bool is_no_proxy(std::string_view why) { return why.starts_with("Unsupported proxy"); }

/// No further try will help.
bool is_lasting(CURLcode code, std::string_view why) {
  if (speaks_no_tls(code, why) || is_no_proxy(why)) return true;
  return std::ranges::any_of(
      std::array{CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_PEER_FAILED_VERIFICATION,
                 CURLE_SSL_CACERT_BADFILE, CURLE_SSL_PINNEDPUBKEYNOTMATCH},
      [code](CURLcode lasting) { return code == lasting; });
}

/// The variable that names the proxy of this URL, as libcurl chooses it, and its value.
std::pair<std::string, std::string> proxy_for(std::string_view url) {
  const auto names = url.starts_with("https:") ? std::array{"https_proxy", "HTTPS_PROXY"}
                                               : std::array{"http_proxy", "http_proxy"};
  for (const std::string name : {names[0], names[1], "all_proxy", "ALL_PROXY"})
    if (std::string value = environment_value(name); !value.empty()) return {name, std::move(value)};
  return {};
}

/// "proxy.example" in "http://user:word@proxy.example:3128/".
std::string host_of_proxy(std::string_view proxy) {
  if (const std::size_t scheme = proxy.find("://"); scheme != proxy.npos) proxy.remove_prefix(scheme + 3);
  proxy = proxy.substr(0, proxy.find('/'));
  if (const std::size_t user = proxy.rfind('@'); user != proxy.npos) proxy.remove_prefix(user + 1);
  if (proxy.starts_with('[')) return std::string(proxy.substr(1, proxy.find(']') - 1));
  return std::string(proxy.substr(0, proxy.find(':')));
}

/// Where the failure is that of a proxy: which one, and who wants it.
std::string proxy_words(std::string_view url, std::string_view why) {
  const auto [name, value] = proxy_for(url);
  if (name.empty()) return {};
  const std::string host = host_of_proxy(value);
  const bool is_its_address = why.find(fmt::format("connect to {} port", host)) != why.npos ||
                              why.find(fmt::format(" via {} ", host)) != why.npos;
  if (!is_its_address && why.find("proxy") == why.npos) return {};
  return fmt::format("; the proxy is that of {}, and no_proxy names hosts that need none", name);
}

/// authorities: the file of them; empty: that of the system.
std::string remedy_for(CURLcode code, std::string_view why, const std::string& authorities) {
  if (speaks_no_tls(code, why))
    return "; this port does not speak TLS: expected https there, or http in the URL";
  if (code == CURLE_PEER_FAILED_VERIFICATION)
    return fmt::format(
        "; trusted are the authorities in {}: SSL_CERT_FILE, for s3 first AWS_CA_BUNDLE, names another file",
        authorities.empty() ? "the system's file" : authorities);
  if (code == CURLE_SSL_CACERT_BADFILE)
    return "; expected SSL_CERT_FILE (for s3 also AWS_CA_BUNDLE) to name a file of certificates (PEM)";
  return {};
}

/// What no proxy is asked for: this machine, the metadata service, and what the user excepts.
std::string direct_hosts() {
  std::string hosts = environment_value("no_proxy");
  if (hosts.empty()) hosts = environment_value("NO_PROXY");
  if (hosts == "*") return hosts;
  return "localhost,127.0.0.0/8,::1,169.254.169.254,metadata.google.internal," + hosts;
}

/// One exchange with a server. Where it lies in memory, libcurl finds it again: it does not move.
class Exchange {
 public:
  explicit Exchange(HttpRequest request, std::function<bool()> is_over = {})
      : request_(std::move(request)), is_over_(std::move(is_over)) {}

  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// For curl_easy_perform or a multi handle; null: libcurl cannot be started.
  CURL* prepare(bool follows_redirects);

  /// What it came to. Errors do not name the address.
  Result<HttpAnswer> result(CURLcode code) const;

  /// What came of a range that was cut off.
  HttpAnswer partial() const;

 private:
  static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* user);
  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* user);
  static int ask_whether_over(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  void set_message();
  bool asks_for_range() const;
  bool fell_silent(CURLcode code) const;
  int status() const;  ///< 0: no answer yet

  HttpRequest request_;
  std::function<bool()> is_over_;
  std::string authorities_;  ///< the file that libcurl was given
  std::unique_ptr<CURL, void (*)(CURL*)> curl_{nullptr, curl_easy_cleanup};
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers_{nullptr, curl_slist_free_all};
  std::array<char, CURL_ERROR_SIZE> why_{};
  HttpAnswer answer_;
};

CURL* Exchange::prepare(bool follows_redirects) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  curl_.reset(curl_easy_init());
  if (!curl_) return nullptr;
  CURL* const curl = curl_.get();
  const auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(request_.patience).count();
  curl_easy_setopt(curl, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, follows_redirects ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  // Without redirects the path is asked for as it is: in a bucket x/../y is another object than y.
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, follows_redirects ? 0L : 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // a look-up of a name that hangs is left alone
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(patience_ms));
  if (request_.silence > Duration{}) {
    const auto silence_s = std::chrono::ceil<std::chrono::seconds>(request_.silence).count();
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(silence_s));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(silence_s));
  }
  if (is_over_) {
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_whether_over);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  }
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tradewind");
  curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why_.data());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
  // A library of the system knows the system's file, unless the user names another.
  const bool has_its_own = curl_version_info(CURLVERSION_NOW)->cainfo != nullptr;
  const bool is_named = !request_.authorities.empty() || !environment_value("SSL_CERT_FILE").empty();
  if (is_named || !has_its_own)
    authorities_ = request_.authorities.empty() ? authority_file() : request_.authorities;
  if (!authorities_.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, authorities_.c_str());
  if (!request_.pin.empty()) {
    curl_easy_setopt(curl, CURLOPT_PINNEDPUBLICKEY, request_.pin.c_str());
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  curl_easy_setopt(curl, CURLOPT_NOPROXY, direct_hosts().c_str());
  set_message();
  return curl;
}

void Exchange::set_message() {
  CURL* const curl = curl_.get();
  const auto add = [this](const std::string& line) {
    headers_.reset(curl_slist_append(headers_.release(), line.c_str()));
  };
  for (const auto& [name, value] : request_.headers) add(fmt::format("{}: {}", name, value));
  if (request_.method != "GET") {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(request_.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request_.body.c_str());
    const auto is_type = [](const auto& header) { return header.first == "Content-Type"; };
    if (std::ranges::none_of(request_.headers, is_type)) add("Content-Type:");  // curl's own word for a form
    add("Expect:");  // no answer is awaited before a long body
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
}

std::size_t Exchange::take_body(char* data, std::size_t size, std::size_t count, void* user) {
  Exchange& self = *static_cast<Exchange*>(user);
  if (self.answer_.body.size() + size * count > self.request_.most_bytes) return 0;  // ends the transfer
  self.answer_.body.append(data, size * count);
  return size * count;
}

std::size_t Exchange::take_header(char* data, std::size_t size, std::size_t count, void* user) {
  world::HttpHeaders& headers = static_cast<Exchange*>(user)->answer_.headers;
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) headers.clear();  // of the redirecting answer
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || headers.size() >= kMostHeaders) return size * count;
  const std::size_t begin = std::min(line.find_first_not_of(" \t\r\n", colon + 1), line.size());
  const std::size_t end = line.find_last_not_of(" \t\r\n") + 1;
  headers.emplace_back(line.substr(0, colon), line.substr(begin, std::max(begin, end) - begin));
  return size * count;
}

int Exchange::ask_whether_over(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->is_over_() ? 1 : 0;  // ends the transfer
}

Result<HttpAnswer> Exchange::result(CURLcode code) const {
  if (code == CURLE_WRITE_ERROR && asks_for_range() && status() == kWholeStatus)
    return HttpAnswer{.status = kWholeStatus, .headers = answer_.headers};  // the caller judges that
  if (code == CURLE_WRITE_ERROR)
    return Error{fmt::format("more than the {} bytes that are taken", request_.most_bytes)};
  if (code == CURLE_ABORTED_BY_CALLBACK) return Error{"broken off", true};
  if (fell_silent(code)) return Error{fmt::format("no byte came for {:g} s", to_seconds(request_.silence))};
  if (code != CURLE_OK) {
    std::string why = why_[0] != 0 ? why_.data() : curl_easy_strerror(code);
    const bool lasting = is_lasting(code, why);
    if (is_no_proxy(why)) why = "unsupported proxy";  // libcurl tells its password, too
    return Error{why + remedy_for(code, why, authorities_) + proxy_words(request_.url, why), lasting};
  }
  HttpAnswer answer = answer_;
  answer.status = status();
  return answer;
}

/// After the request was on its way, and before the patience for all of it had ended.
bool Exchange::fell_silent(CURLcode code) const {
  if (code != CURLE_OPERATION_TIMEDOUT || request_.silence <= Duration{}) return false;
  curl_off_t asked_us = 0, all_us = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_PRETRANSFER_TIME_T, &asked_us);
  curl_easy_getinfo(curl_.get(), CURLINFO_TOTAL_TIME_T, &all_us);
  return asked_us > 0 && std::chrono::microseconds(all_us) < request_.patience;
}

int Exchange::status() const {
  long status = 0;
  if (curl_) curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

bool Exchange::asks_for_range() const {
  return std::ranges::any_of(request_.headers, [](const auto& header) { return header.first == "Range"; });
}

HttpAnswer Exchange::partial() const {
  if (status() != kPartStatus) return {};
  return {.status = kPartStatus, .body = answer_.body, .headers = answer_.headers};
}

Error cannot_start() { return Error{"libcurl cannot be started"}; }

/// An error names the address, or the path of a file.
Result<HttpAnswer> with_address(const std::string& url, Result<HttpAnswer> answer) {
  if (answer) return answer;
  const std::string address = url.starts_with(kFile) ? url.substr(kFile.size()) : url;
  return Error{fmt::format("{}: {}", address, answer.error().message)};
}

/// Never waits for a writer, as it would at a pipe.
Result<HttpAnswer> read_file(const HttpRequest& request) {
  const std::string path = request.url.substr(kFile.size());
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return HttpAnswer{.status = 404};
  if (file < 0) return Error{cause_text(errno)};

  struct stat facts {};

  std::string text(request.most_bytes + 1, '\0');
  const bool is_file = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  const ssize_t got = is_file ? read(file, text.data(), text.size()) : 0;
  const int cause = errno;
  close(file);
  if (!is_file) return Error{"expected a plain file"};
  if (got < 0) return Error{cause_text(cause)};
  if (static_cast<std::size_t>(got) > request.most_bytes)
    return Error{fmt::format("more than the {} bytes that are taken", request.most_bytes)};
  text.resize(static_cast<std::size_t>(got));
  return HttpAnswer{.status = 200, .body = std::move(text)};
}

}  // namespace

Result<HttpAnswer> http_get(const std::string& url, const HttpLimits& limits) {
  Exchange exchange(
      {.url = url, .patience = limits.patience, .silence = limits.silence, .most_bytes = limits.most_bytes},
      [&limits] {
        if (limits.meanwhile) limits.meanwhile();
        return false;
      });
  CURL* const curl = exchange.prepare(true);
  if (curl == nullptr) return with_address(url, cannot_start());
  return with_address(url, exchange.result(curl_easy_perform(curl)));
}

Result<HttpAnswer> http_exchange(const HttpRequest& request, const std::function<bool()>& is_over) {
  Exchange exchange(request, is_over);
  CURL* const curl = exchange.prepare(false);
  if (curl == nullptr) return cannot_start();
  return exchange.result(curl_easy_perform(curl));
}

/// Its thread. Exchanges come in by add(), and go out by the `tell` that came with them, which is called on
/// the thread.
class HttpPool::Worker {
 public:
  explicit Worker(std::size_t at_once)
      : at_once_(at_once), multi_(curl_multi_init()), thread_([this] { work(); }) {}

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    for (const Pending& pending : under_way_) curl_multi_remove_handle(multi_, pending.curl);
    under_way_.clear();
    curl_multi_cleanup(multi_);
  }

  void add(HttpRequest request, Tell tell, Duration later) {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back({std::move(request), std::move(tell), std::chrono::steady_clock::now() + later});
    }
    curl_multi_wakeup(multi_);
  }

 private:
  struct Asked {
    HttpRequest request;
    Tell tell;
    std::chrono::steady_clock::time_point from;
  };

  struct Pending {
    std::unique_ptr<Exchange> exchange;
    CURL* curl;
    Tell tell;
  };

  void work();
  bool begin_due();
  std::vector<Asked> take_due();
  int until_next_ms();
  void begin(Asked asked);
  void take_finished();

  const std::size_t at_once_;
  CURLM* multi_;
  std::mutex mutex_;
  std::deque<Asked> asked_;  // guarded by mutex_
  bool stops_ = false;       // guarded by mutex_
  std::vector<Pending> under_way_;
  std::thread thread_;
};

void HttpPool::Worker::work() {
  while (begin_due()) {
    int running = 0;
    curl_multi_perform(multi_, &running);
    take_finished();
    curl_multi_poll(multi_, nullptr, 0, until_next_ms(), nullptr);
  }
}

/// False: the end.
bool HttpPool::Worker::begin_due() {
  std::vector<Asked> due = take_due();
  for (Asked& one : due) begin(std::move(one));
  const std::lock_guard lock(mutex_);
  return !stops_;
}

std::vector<HttpPool::Worker::Asked> HttpPool::Worker::take_due() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Asked> due;
  const std::lock_guard lock(mutex_);
  for (auto at = asked_.begin(); at != asked_.end() && under_way_.size() + due.size() < at_once_;) {
    if (at->from > now) {
      ++at;
    } else {
      due.push_back(std::move(*at));
      at = asked_.erase(at);
    }
  }
  return due;
}

int HttpPool::Worker::until_next_ms() {
  constexpr std::chrono::milliseconds kLook =
      std::chrono::minutes(1);  // curl wakes earlier for its own limits
  const std::lock_guard lock(mutex_);
  if (asked_.empty() || under_way_.size() >= at_once_) return static_cast<int>(kLook.count());
  const auto next = std::ranges::min_element(asked_, {}, &Asked::from)->from;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), kLook).count());
}

void HttpPool::Worker::begin(Asked asked) {
  if (asked.request.url.starts_with(kFile)) return asked.tell(read_file(asked.request), {});
  auto exchange = std::make_unique<Exchange>(std::move(asked.request));
  CURL* const curl = exchange->prepare(false);
  if (curl == nullptr || curl_multi_add_handle(multi_, curl) != CURLM_OK)
    return asked.tell(cannot_start(), {});
  under_way_.push_back({std::move(exchange), curl, std::move(asked.tell)});
}

void HttpPool::Worker::take_finished() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    const auto found = std::ranges::find(under_way_, message->easy_handle, &Pending::curl);
    if (found == under_way_.end()) continue;
    const Pending done = std::move(*found);
    under_way_.erase(found);
    curl_multi_remove_handle(multi_, done.curl);
    done.tell(done.exchange->result(code), code == CURLE_OK ? HttpAnswer() : done.exchange->partial());
  }
}

HttpPool::HttpPool(std::size_t at_once) : worker_(std::make_unique<Worker>(at_once)) {}

HttpPool::~HttpPool() = default;

void HttpPool::add(HttpRequest request, Tell tell, Duration later) {
  worker_->add(std::move(request), std::move(tell), later);
}

CurlHttp::CurlHttp(Loop& loop) : loop_(loop) {}

CurlHttp::~CurlHttp() = default;

void CurlHttp::request(HttpRequest request, Done done) {
  if (!pool_) pool_ = std::make_unique<HttpPool>();
  auto tell = [this, url = request.url, on_loop = life_.tie(std::move(done))](Result<HttpAnswer> answer,
                                                                              const HttpAnswer&) {
    loop_.post([on_loop, url, answer = std::move(answer)]() mutable {
      on_loop(with_address(url, std::move(answer)));
    });
  };
  pool_->add(std::move(request), std::move(tell));
}

}  // namespace tw::host
