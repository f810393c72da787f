// SPDX-License-Identifier: Apache-2.0
#include "wan/control.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace tw::wan {
namespace {

constexpr std::size_t kLongestRequest = 1024;
/// Room for a whole answer, so that a client that does not read cannot hold up the box.
constexpr int kAnswerRoom = 4 << 20;

sockaddr_un place_of(const std::string& path) {
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  std::strncpy(place.sun_path, path.c_str(), sizeof place.sun_path - 1);
  return place;
}

}  // namespace

Result<Fd> listen_at(const std::string& path) {
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_un place = place_of(path);
  unlink(path.c_str());
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      listen(listener.get(), 16) != 0) {
    return os_error(path);
  }
  return listener;
}

Result<std::string> ask(const std::string& path, const std::string& request) {
  const Fd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un place = place_of(path);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0)
    return os_error(path);
  const std::string line = request + "\n";
  if (send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return os_error(path);
  std::string answer;
  std::array<char, 65536> part{};
  ssize_t size = 0;
  while ((size = recv(connection.get(), part.data(), part.size(), 0)) > 0)
    answer.append(part.data(), static_cast<std::size_t>(size));
  const std::size_t head = answer.find('\n');
  if (head == std::string::npos) return Error{path + ": no answer"};
  if (answer.starts_with("ok")) return answer.substr(head + 1);
  return Error{answer.substr(head + 1)};
}

Client::Client(const Fd& listener)
    : connection_(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) {
  if (!valid()) return;
  setsockopt(connection_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kAnswerRoom, sizeof kAnswerRoom);
}

bool Client::read(const std::function<Result<std::string>(const std::string& request)>& answer) {
  std::array<char, kLongestRequest> part{};
  const ssize_t size = recv(connection_.get(), part.data(), part.size(), 0);
  if (size < 0 && errno == EAGAIN) return true;
  if (size <= 0) return false;
  request_.append(part.data(), static_cast<std::size_t>(size));
  const std::size_t end = request_.find('\n');
  if (end == std::string::npos) return request_.size() < kLongestRequest;
  send(answer(request_.substr(0, end)));
  return false;
}

void Client::send(const Result<std::string>& answer) const {
  const std::string text = answer ? "ok\n" + answer.value() : "error\n" + answer.error().message;
  // A client that went away before the answer does not want it.
  [[maybe_unused]] const ssize_t sent =
      ::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace tw::wan
