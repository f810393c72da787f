// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "host/loop.h"
#include "host/system/random_os.h"
#include "host/tcp/network_tcp.h"

// For tests: peers in one process on one loop, each with a record of its events.

namespace tw::host {

inline Blob text_blob(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

inline std::string text_of(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.bytes().data()), blob.size()};
}

inline Frame text_frame(const std::string& head) { return {text_blob(head), {}}; }

struct Party : world::NetworkEvents {
  Party(Loop& loop, std::uint64_t id, TcpOptions options = {})
      : self{id},
        network(
            loop, self, random,
            [this](event::Cause cause, const std::string& what) {
              causes.push_back(cause);
              garbage.push_back(what);
            },
            options) {
    network.greet_with(text_frame(std::to_string(id)));
    address = network.open("127.0.0.1:0", *this).value();
  }

  world::Admission admit(const Frame& hello) override {
    if (!refusal.empty()) return world::Refusal{refusal};
    return PeerId{std::stoull(text_of(hello.head))};
  }

  void on_open(PeerId peer, const Frame& hello) override {
    EXPECT_EQ(text_of(hello.head), std::to_string(peer.value));
    story.push_back("open " + to_string(peer));
    if (opened) opened(peer);
  }

  void on_message(PeerId from, Frame frame) override {
    if (frame.payload.empty()) {
      heard[from].push_back(text_of(frame.head));
    } else {
      bulk_bytes += frame.payload.size();
      bulk[from].push_back(std::move(frame));
    }
    if (received) received(from);
  }

  void on_close(PeerId peer, const std::string& why) override {
    story.push_back("close " + to_string(peer) + ": " + why);
  }

  void on_refused(const std::string& dialed, const world::DialFailure& failure) override {
    const bool stranger = failure.why.code == world::Refusal::Code::credential;
    story.push_back("refused " + dialed + ": " + (stranger ? "(credential) " : "") + failure.why.words);
  }

  std::optional<Frame> next_bulk(PeerId to) override {
    ++asked[to];
    return make_bulk ? make_bulk(to) : std::nullopt;
  }

  long count(const std::string& begin) const {
    return std::count_if(story.begin(), story.end(),
                         [&](const auto& line) { return line.starts_with(begin); });
  }

  bool linked(std::uint64_t peer) const {
    const auto id = std::to_string(peer);
    return count("open " + id) == count("close " + id) + 1;
  }

  PeerId self;
  std::string address;
  std::string refusal;  ///< not empty: admit says this
  std::vector<std::string> story;
  std::vector<std::string> garbage;
  std::vector<event::Cause> causes;                  ///< of the garbage
  std::map<PeerId, std::vector<std::string>> heard;  ///< heads of the messages without a payload
  std::map<PeerId, std::vector<Frame>> bulk;         ///< messages with a payload
  std::size_t bulk_bytes = 0;
  std::map<PeerId, int> asked;
  std::function<std::optional<Frame>(PeerId)> make_bulk;
  std::function<void(PeerId)> opened;
  std::function<void(PeerId)> received;
  OsRandom random;
  TcpNetwork network;
};

/// Runs the loop until it holds; a test that waits this long has failed.
inline bool soon(Loop& loop, const std::function<bool()>& holds) {
  return loop.run_until(holds, std::chrono::seconds(20));
}

/// Runs what is ready and what follows from it within a short time: to check what must not happen.
inline void settle(Loop& loop) {
  loop.run_until([] { return false; }, std::chrono::milliseconds(50));
}

inline bool link_up(Loop& loop, Party& a, Party& b) {
  a.network.connect(b.address);
  return soon(loop, [&] { return a.linked(b.self.value) && b.linked(a.self.value); });
}

}  // namespace tw::host
