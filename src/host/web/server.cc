// SPDX-License-Identifier: Apache-2.0
#include "host/web/server.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <asio/ssl/context.hpp>
#include <map>
#include <restinio/http_server.hpp>
#include <restinio/message_builders.hpp>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "host/address.h"
#include "host/lifeline.h"
#include "host/loop.h"
#include "host/system/calendar.h"
#include "host/tcp/admission/doorway.h"
#include "host/web/certificate.h"
#include "host/web/guard.h"
#include "host/web/line.h"

/// RESTinio's own acceptor goes deaf for good when the process has no descriptor left for a moment, waits for
/// ever for a handshake of TLS, and leaves its counter of connections behind when it ends. So connections
/// come in through our Doorway, and RESTinio speaks HTTP on them.
namespace tw::host {

/// For RESTinio, which finds it by the type of the socket.
template <class Connection, class Begin, class Failed>
void prepare_connection_and_start_read(WebLine& line, Connection& connection, Begin begin, Failed failed) {
  line.shake_hands(connection, begin, failed);
}

inline restinio::impl::tls_socket_t* make_tls_socket_pointer_for_state_listener(WebLine&) { return nullptr; }

namespace {

using namespace std::chrono_literals;

/// A slow reader holds so much of the kernel's memory, and no more.
constexpr int kSendBuffer = 128 << 10;
/// The node.js parser in RESTinio takes so much of request line and headers in all. One of them may be as
/// long: browsers send a page at 127.0.0.1 the cookies of all ports.
constexpr std::size_t kMostHead = 80 << 10;
constexpr std::size_t kMostFields = 500;
constexpr Duration kBeat = 1s;

struct WebTraits : restinio::default_single_thread_traits_t {
  using stream_socket_t = WebLine;
};

using Connections = restinio::impl::connection_factory_t<WebTraits>;
using ConnectionSettings = restinio::impl::connection_settings_t<WebTraits>;
using Chunks = restinio::response_builder_t<restinio::chunked_output_t>;
using Taken = restinio::request_handling_status_t;

const char* phrase_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

restinio::http_status_line_t status_line(int status) {
  return {restinio::http_status_code_t(static_cast<std::uint16_t>(status)), phrase_of(status)};
}

void add_headers(auto& response, const WebAnswer& answer) {
  bool has_policy = false;
  for (const auto& [name, value] : answer.headers) {
    response.append_header(name, value);
    has_policy = has_policy || name == "Content-Security-Policy";
  }
  if (!has_policy) response.append_header("Content-Security-Policy", "default-src 'none'");
  if (!answer.content_type.empty()) response.append_header("Content-Type", answer.content_type);
  response.append_header("X-Content-Type-Options", "nosniff");
  response.append_header("X-Frame-Options", "DENY");
  response.append_header("Cross-Origin-Resource-Policy", "same-origin");
  response.append_header("Referrer-Policy", "no-referrer");
  response.append_header("Cache-Control", "no-store");
}

WebRequest read_request(const restinio::request_t& request) {
  const auto& header = request.header();
  const auto field = [&header](restinio::http_field_t which) { return header.get_field_or(which, ""); };
  WebRequest read;
  read.method = header.method().c_str();
  read.path = std::string(header.path().data(), header.path().size());
  read.query = std::string(header.query().data(), header.query().size());
  read.host = field(restinio::http_field_t::host);
  read.authorization = field(restinio::http_field_t::authorization);
  read.cookie = field(restinio::http_field_t::cookie);
  read.last_event_id = header.get_field_or("Last-Event-ID", "");
  return read;
}

struct Follower {
  Chunks response;
  std::string heard{};  ///< id of the last event that was sent
  Instant wrote{};
  bool busy = false;  ///< something is under way
};

/// Answered with the next event.
struct Waiting {
  restinio::request_handle_t request;
  WebRequest read;
};

}  // namespace

struct WebServer::Kernel : std::enable_shared_from_this<WebServer::Kernel> {
  Kernel(Loop& on, WebOptions given, Answerer answers)
      : loop(on), options(std::move(given)), answerer(std::move(answers)) {}

  Status open();
  void use_tls(const std::string& reached);
  Doorway::Calls calls();
  void enter(Doorway::Visitor visitor, asio::ip::tcp::socket socket);
  void dismiss(Doorway::Visitor visitor);
  void admit(std::uint64_t number);
  void make_room();
  Taken answer(const restinio::request_handle_t& request);
  void send(const restinio::request_handle_t& request, const WebAnswer& answer, bool head);
  void follow(const restinio::request_handle_t& request, const WebAnswer& answer, const std::string& heard);
  void write(std::uint64_t number, std::shared_ptr<const std::string> text);  // owners: kernel, writes
  void wrote(std::uint64_t number, const std::error_code& error);
  void go_on(std::uint64_t number);
  void publish(const std::string& id, std::string text);
  void answer_waiting();
  void beat();

  Loop& loop;
  WebOptions options;
  Answerer answerer;
  std::optional<WebGuard> guard;
  std::unique_ptr<WebCertificate> certificate;
  std::optional<asio::ssl::context> tls;
  // owners: this and its connections
  std::shared_ptr<WebRoom> room = std::make_shared<WebRoom>();
  std::shared_ptr<Connections> connections;  // owner: this alone; RESTinio asks for no pointer
  std::string url;
  std::map<std::uint64_t, Follower> followers;
  std::uint64_t came = 0;  ///< followers so far
  std::vector<Waiting> waiting;
  std::size_t answering = 0;                 ///< answers under way
  std::string newest;                        ///< id of the last event
  std::shared_ptr<const std::string> event;  // owners: this and the writes under way
  Lifeline life;
  std::unique_ptr<Doorway> door;
};

namespace {

Error not_open(const std::string& address) {
  return Error{fmt::format(
      "{}: beyond this machine a run is shown over TLS to holders of its tokens, and there is no token here; "
      "listen on 127.0.0.1 (from elsewhere: ssh -L 8080:127.0.0.1:PORT HOST), or give a token of the run",
      address)};
}

std::string name_of_machine() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// owner: the kernel
std::shared_ptr<Connections> connections_of(const WebLimits& limits, asio::io_context& context,
                                            std::function<Taken(restinio::request_handle_t)> handler) {
  restinio::server_settings_t<WebTraits> settings;
  settings.request_handler(std::move(handler))
      .buffer_size(4096)
      .timer_manager(std::min<Duration>(1s, limits.request / 4))
      .read_next_http_message_timelimit(limits.request)
      .write_http_response_timelimit(limits.write)
      .handle_request_timeout(2 * limits.silence)
      .max_pipelined_requests(1)
      .incoming_http_msg_limits(restinio::incoming_http_msg_limits_t{}
                                    .max_url_size(kMostHead)
                                    .max_field_name_size(kMostHead)
                                    .max_field_value_size(kMostHead)
                                    .max_field_count(kMostFields)
                                    .max_body_size(0));
  // owners: the connections
  auto shared = std::make_shared<ConnectionSettings>(
      std::move(settings), restinio::impl::create_parser_settings<WebTraits::http_methods_mapper_t>(),
      settings.timer_factory()->create(context));
  return std::make_shared<Connections>(std::move(shared), settings.socket_options_setter());
}

}  // namespace

Status WebServer::Kernel::open() {
  TW_TRY(const auto asked, parse_address(options.address));
  TW_TRY(auto opened, Doorway::open(loop, options.address, options.limits.request, calls()));
  door = std::move(opened);
  room->left = [weak = weak_from_this()](const WebConnection& connection) {
    if (const auto self = weak.lock()) self->door->leave(connection.visit.visitor);
  };
  Address reached = parse_address(door->address()).value();
  const std::string& host = asked.host;
  const bool everywhere = host == "0.0.0.0" || host == "::";
  const bool alone = !everywhere && is_this_machine(reached.host);
  if (!alone && !options.token) return not_open(options.address);
  url = fmt::format("{}://{}/", alone ? "http" : "https", to_string(reached));
  options.names.push_back(name_of_machine());
  if (!is_number(host)) options.names.push_back(host);
  WebGuard::Rules rules{.address = {everywhere ? host : reached.host, reached.port}, .names = options.names};
  if (!alone) {
    rules.viewers.emplace(*options.token);
    use_tls(reached.host);
  }
  guard.emplace(std::move(rules));
  connections = connections_of(options.limits, loop.context(),
                               [weak = weak_from_this()](const restinio::request_handle_t& request) {
                                 const auto self = weak.lock();
                                 return self ? self->answer(request) : restinio::request_rejected();
                               });
  loop.at(loop.now() + kBeat, life.tie([this] { beat(); }));
  return Unit{};
}

void WebServer::Kernel::use_tls(const std::string& reached) {
  WebCertificate::Terms terms{
      .hosts = options.names, .from_unix_s = now_unix_s(), .to_unix_s = options.token->expires_unix_s};
  terms.hosts.push_back(reached);
  std::erase(terms.hosts, "");
  certificate = std::make_unique<WebCertificate>(*options.token, terms);
  SSL_CTX_up_ref(certificate->context());
  tls.emplace(certificate->context());
}

/// A connection is a stranger, with the share of its host, until it has asked for something that it may have.
Doorway::Calls WebServer::Kernel::calls() {
  return {
      [this](Doorway::Visitor visitor, asio::ip::tcp::socket socket) { enter(visitor, std::move(socket)); },
      [this](Doorway::Visitor visitor, Doorway::Reason /*reason*/) { dismiss(visitor); },
      [](const std::string& /*remote*/, std::optional<Doorway::Reason> /*reason*/) {}};
}

void WebServer::Kernel::enter(Doorway::Visitor visitor, asio::ip::tcp::socket socket) {
  std::error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return door->leave(visitor);
  socket.set_option(asio::socket_base::send_buffer_size(kSendBuffer), error);
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  const asio::ip::address from = remote.address();
  auto line = std::make_unique<WebConnection>(
      std::move(socket), tls ? &*tls : nullptr,
      WebVisit{visitor, to_string(Address{from.to_string(), remote.port()}), sharing_host(from)}, room);
  WebVisit& visit = line->visit;
  const auto connection = connections->create_new_connection(
      WebLine(std::move(line), options.limits.request), remote,
      restinio::connection_count_limit_types<WebTraits>::lifetime_monitor_t(nullptr));
  visit.number = connection->connection_id();
  connection->init();
}

void WebServer::Kernel::dismiss(Doorway::Visitor visitor) {
  const auto found = std::ranges::find_if(
      room->connections, [&](const WebConnection* one) { return one->visit.visitor == visitor; });
  if (found != room->connections.end()) (*found)->close();
}

void WebServer::Kernel::admit(std::uint64_t number) {
  const auto found = std::ranges::find_if(
      room->connections, [&](const WebConnection* one) { return one->visit.number == number; });
  if (found == room->connections.end() || (*found)->visit.admitted) return;
  WebVisit& visit = (*found)->visit;
  visit.admitted = true;
  door->know(visit.remote);
  door->leave(visit.visitor);
  make_room();
}

/// With too many viewers, closes the oldest of the host that has most.
void WebServer::Kernel::make_room() {
  std::map<std::string, std::vector<WebConnection*>> hosts;
  std::size_t viewers = 0;
  for (WebConnection* one : room->connections)
    if (one->visit.admitted && one->is_open()) {
      hosts[one->visit.host].push_back(one);
      ++viewers;
    }
  if (viewers <= options.limits.most_viewers) return;
  const auto& most =
      std::ranges::max_element(hosts, {}, [](const auto& host) { return host.second.size(); })->second;
  (*std::ranges::min_element(most, {}, [](const WebConnection* one) { return one->visit.visitor; }))->close();
}

Taken WebServer::Kernel::answer(const restinio::request_handle_t& request) {
  // RESTinio watches the time of no connection that asked for an upgrade.
  if (request->header().connection() == restinio::http_connection_header_t::upgrade) {
    send(request, refusal(400, "this server speaks plain HTTP/1.1; send no Upgrade header"), false);
    return restinio::request_accepted();
  }
  const WebRequest read = read_request(*request);
  const auto stopped = guard->stop(read, loop.unix_nanos() / 1'000'000'000);
  if (!stopped) admit(request->connection_id());
  const WebAnswer answer = stopped ? *stopped : answerer(read);
  const bool head = read.method == "HEAD";
  const bool chunks = request->header().http_major() == 1 && request->header().http_minor() >= 1;
  if (answer.waits) {
    waiting.push_back({request, read});
  } else if (answer.follows && !head && chunks) {
    follow(request, answer, read.last_event_id);
  } else {
    send(request, answer, head);
  }
  return restinio::request_accepted();
}

void WebServer::Kernel::send(const restinio::request_handle_t& request, const WebAnswer& answer, bool head) {
  const bool stays = answer.status < 400 && request->header().should_keep_alive();
  const auto finish = [&](auto response) {
    add_headers(response, answer);
    if (stays) {
      response.connection_keep_alive();
    } else {
      response.connection_close();
    }
    return response;
  };
  if (head) {
    auto response =
        finish(request->create_response<restinio::user_controlled_output_t>(status_line(answer.status)));
    response.set_content_length(answer.body.size());
    response.done();
    return;
  }
  auto response = finish(request->create_response(status_line(answer.status)));
  response.set_body(answer.body);
  ++answering;
  response.done([weak = weak_from_this()](const std::error_code& /*error*/) {
    if (const auto self = weak.lock()) --self->answering;
  });
}

void WebServer::Kernel::follow(const restinio::request_handle_t& request, const WebAnswer& answer,
                               const std::string& heard) {
  const std::uint64_t number = ++came;
  Follower& follower = followers
                           .try_emplace(number, Follower{request->create_response<restinio::chunked_output_t>(
                                                             status_line(answer.status)),
                                                         heard})
                           .first->second;
  add_headers(follower.response, answer);
  follower.response.connection_close();
  write(number, std::make_shared<const std::string>("retry: 1000\n\n"));
}

/// One thing at a time, so that a slow reader holds up nothing but itself.
// owners of the text: the kernel and the writes under way
void WebServer::Kernel::write(std::uint64_t number, std::shared_ptr<const std::string> text) {
  Follower& follower = followers.at(number);
  follower.busy = true;
  follower.wrote = loop.now();
  follower.response.append_chunk(std::move(text));
  follower.response.flush([weak = weak_from_this(), number](const std::error_code& error) {
    const auto self = weak.lock();
    if (!self) return;
    self->loop.post([weak, number, error] {
      if (const auto kernel = weak.lock()) kernel->wrote(number, error);
    });
  });
}

void WebServer::Kernel::wrote(std::uint64_t number, const std::error_code& error) {
  const auto follower = followers.find(number);
  if (follower == followers.end()) return;
  if (error) {
    followers.erase(follower);
    return;
  }
  follower->second.busy = false;
  go_on(number);
}

void WebServer::Kernel::go_on(std::uint64_t number) {
  Follower& follower = followers.at(number);
  if (follower.busy || !event || follower.heard == newest) return;
  follower.heard = newest;
  write(number, event);
}

void WebServer::Kernel::publish(const std::string& id, std::string text) {
  newest = id;
  event = text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text));
  for (const auto& [number, follower] : followers) go_on(number);
  answer_waiting();
}

void WebServer::Kernel::answer_waiting() {
  for (Waiting& one : std::exchange(waiting, {})) {
    one.read.waited = true;
    send(one.request, answerer(one.read), one.read.method == "HEAD");
  }
}

/// An empty line to a silent follower shows both sides that the connection is alive. A follower whose write
/// was never answered is gone.
void WebServer::Kernel::beat() {
  static const auto kEmpty = std::make_shared<const std::string>(":\n\n");  // owners: the writes under way
  const Instant now = loop.now();
  std::erase_if(followers, [&](const auto& one) {
    return one.second.busy && now - one.second.wrote >= 2 * options.limits.write;
  });
  for (const auto& [number, follower] : followers)
    if (!follower.busy && now - follower.wrote >= options.limits.silence) write(number, kEmpty);
  loop.at(now + kBeat, life.tie([this] { beat(); }));
}

Result<std::unique_ptr<WebServer>> WebServer::open(Loop& loop, WebOptions options, Answerer answerer) {
  // owner: the server
  auto kernel = std::make_shared<Kernel>(loop, std::move(options), std::move(answerer));
  TW_TRY(kernel->open());
  return std::unique_ptr<WebServer>(new WebServer(std::move(kernel)));
}

// owner: this
WebServer::WebServer(std::shared_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

WebServer::~WebServer() {
  // Closing one may end it, and so take it out of the room.
  const std::set<WebConnection*> open = kernel_->room->connections;
  for (WebConnection* connection : open)
    if (kernel_->room->connections.contains(connection)) connection->close();
}

const std::string& WebServer::url() const { return kernel_->url; }

std::string WebServer::pin() const { return kernel_->certificate ? kernel_->certificate->pin() : ""; }

void WebServer::publish(const std::string& id, std::string event) { kernel_->publish(id, std::move(event)); }

std::size_t WebServer::followers() const { return kernel_->followers.size() + kernel_->waiting.size(); }

bool WebServer::flushed() const {
  const auto has_all = [this](const auto& one) {
    return !one.second.busy && (!kernel_->event || one.second.heard == kernel_->newest);
  };
  return kernel_->answering == 0 && std::ranges::all_of(kernel_->followers, has_all);
}

}  // namespace tw::host
