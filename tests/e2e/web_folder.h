// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace tw {

/// Documents on a web server of this machine, from its making to its end. A path it does not have is answered
/// with 404.
class WebFolder {
 public:
  explicit WebFolder(std::map<std::string, std::string> documents)
      : documents_(std::move(documents)), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, generic, size) != 0 || listen(socket_, 8) != 0) return;
    getsockname(socket_, generic, &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }

  WebFolder(const WebFolder&) = delete;
  WebFolder& operator=(const WebFolder&) = delete;

  ~WebFolder() {
    shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(socket_);
  }

  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }

  void put(const std::string& path, const std::string& text) {
    const std::lock_guard lock(mutex_);
    documents_[path] = text;
  }

 private:
  void serve() {
    for (int client = 0; (client = accept(socket_, nullptr, nullptr)) >= 0; close(client)) {
      std::string request;
      char part[4096];
      ssize_t count = 1;
      while (request.find("\r\n\r\n") == std::string::npos && count > 0) {
        count = read(client, part, sizeof(part));
        request.append(part, count > 0 ? static_cast<std::size_t>(count) : 0);
      }
      const auto begin = request.find(' ') + 1;
      answer(client, request.substr(begin, request.find(' ', begin) - begin));
    }
  }

  void answer(int client, const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto document = documents_.find(path);
    const bool found = document != documents_.end();
    const std::string text = found ? document->second : "";
    const std::string head = std::string("HTTP/1.1 ") + (found ? "200 OK" : "404 Not Found") +
                             "\r\nConnection: close\r\nContent-Length: " + std::to_string(text.size()) +
                             "\r\n\r\n";
    const std::string all = head + text;
    for (std::size_t sent = 0; sent < all.size();) {
      const ssize_t count = send(client, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  }

  std::map<std::string, std::string> documents_;
  std::mutex mutex_;
  int socket_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tw
