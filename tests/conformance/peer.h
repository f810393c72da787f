// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conformance/network_world.h"

namespace tw::conformance {

inline Blob blob_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

inline std::string text_of(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.bytes().data()), blob.size()};
}

inline Frame frame_of(const std::string& head, const std::string& payload = "") {
  return {blob_of(head), payload.empty() ? Blob() : blob_of(payload)};
}

/// A process with a Network door. It writes down what it is told, and fails the test when it is told
/// something from inside one of its own calls. The hello is its number, then a space and any words.
class Peer final : public world::NetworkEvents {
 public:
  Peer(NetworkWorld& world, std::uint64_t number) : self{number}, process_(world.start(self)) {
    greet_with(std::to_string(number));
    const auto opened_at = process_.network->open(process_.listen_address, *this);
    EXPECT_TRUE(opened_at) << opened_at.error().message;
    if (opened_at) address = opened_at.value();
  }

  world::Admission admit(const Frame& hello) override {
    EXPECT_FALSE(calling_);
    const PeerId peer{std::stoull(text_of(hello.head))};
    if (on_admit) on_admit(peer);
    if (!refusal.empty()) return world::Refusal{refusal, world::Refusal::Code::taken, peer, 3};
    ++admitted[peer];
    return peer;
  }

  void on_open(PeerId peer, const Frame& hello) override {
    EXPECT_GT(admitted[peer], 0) << "opened without a question";
    EXPECT_FALSE(linked(peer)) << "a second link";
    hellos.push_back(text_of(hello.head));
    tell("open " + to_string(peer));
    if (opened) opened(peer);
  }

  void on_message(PeerId from, Frame frame) override {
    EXPECT_FALSE(calling_);
    EXPECT_TRUE(linked(from)) << "a message without a link";
    heard[from].push_back({text_of(frame.head), text_of(frame.payload)});
    if (received) received(from);
  }

  void on_close(PeerId peer, const std::string& why) override {
    EXPECT_TRUE(linked(peer)) << "closed without a link";
    EXPECT_NE(why, "");
    tell("close " + to_string(peer));
  }

  void on_refused(const std::string& dialed, const world::DialFailure& failure) override {
    EXPECT_NE(dialed, "");
    EXPECT_NE(failure.why.words, "");
    failures.push_back(failure.kind);
    if (failure.kind == world::DialFailure::Kind::turned_away) turned_away.push_back(failure.why);
    tell("refused " + dialed + ": " + failure.why.words);
  }

  std::optional<Frame> next_bulk(PeerId to) override {
    EXPECT_FALSE(calling_);
    EXPECT_TRUE(linked(to)) << "asked for bulk without a link";
    ++asked;
    return make_bulk ? make_bulk(to) : std::nullopt;
  }

  void greet_with(const std::string& hello) {
    call([&](world::Network& network) { network.greet_with(frame_of(hello)); });
  }

  void connect(const std::string& to) {
    call([&](world::Network& network) { network.connect(to); });
  }

  void connect(const Peer& to) { connect(to.address); }

  void send(const Peer& to, const std::string& head, const std::string& payload = "") {
    call([&](world::Network& network) { network.send(to.self, frame_of(head, payload)); });
  }

  void pull(const Peer& to) {
    call([&](world::Network& network) { network.pull(to.self); });
  }

  /// Afterwards the link counts as closed, though nobody says so.
  void close(PeerId to) {
    call([&](world::Network& network) { network.close(to); });
    if (linked(to)) story.push_back("closed " + to_string(to));
  }

  void close(const Peer& to) { close(to.self); }

  /// The process ends; nothing may be asked of this peer any more.
  void end() {
    calling_ = true;  // and nothing told to it
    process_.end();
  }

  long count(const std::string& begin) const {
    return std::ranges::count_if(story, [&](const std::string& line) { return line.starts_with(begin); });
  }

  bool linked(PeerId peer) const {
    const std::string id = to_string(peer);
    return count("open " + id) == count("close " + id) + count("closed " + id) + 1;
  }

  bool linked(const Peer& peer) const { return linked(peer.self); }

  struct Heard {
    std::string head, payload;
    bool operator==(const Heard&) const = default;
  };

  std::vector<std::string> heads_from(const Peer& peer) {
    std::vector<std::string> heads;
    for (const Heard& message : heard[peer.self]) heads.push_back(message.head);
    return heads;
  }

  const PeerId self;
  std::string address;
  std::string refusal;  ///< not empty: admit says this

  std::vector<std::string> story;
  std::vector<world::DialFailure::Kind> failures;  ///< of dials, in order
  std::vector<world::Refusal> turned_away;         ///< why, of those that were
  std::vector<std::string> hellos;                 ///< of the links that opened
  std::map<PeerId, int> admitted;
  std::map<PeerId, std::vector<Heard>> heard;
  int asked = 0;  ///< calls of next_bulk

  std::function<void(PeerId)> on_admit;
  std::function<void(PeerId)> opened;
  std::function<void(PeerId)> received;
  std::function<std::optional<Frame>(PeerId)> make_bulk;

 private:
  void tell(const std::string& line) {
    EXPECT_FALSE(calling_) << line;
    story.push_back(line);
  }

  void call(const std::function<void(world::Network&)>& what) {
    const bool outer = std::exchange(calling_, true);
    what(*process_.network);
    calling_ = outer;
  }

  NetworkWorld::Process process_;
  bool calling_ = false;
};

}  // namespace tw::conformance
