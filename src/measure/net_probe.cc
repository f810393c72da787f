// SPDX-License-Identifier: Apache-2.0
#include "measure/net_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/result.h"
#include "base/text/number.h"
#include "host/system/calendar.h"

namespace tw::measure {
namespace {

using namespace std::chrono_literals;

constexpr const char* kHello = "tw-net-probe-1";
constexpr std::size_t kProbePiece = 256 << 10;
constexpr std::size_t kLongestWords = 1024;
constexpr Duration kDialTime = 25s;
constexpr Duration kAnswerTime = 10s;
constexpr int kPings = 5;

Frame frame_of(const std::string& words, std::size_t payload = 0) {
  const auto bytes = std::as_bytes(std::span(words));
  return {Blob(std::vector<std::byte>(bytes.begin(), bytes.end())), Blob(std::vector<std::byte>(payload))};
}

std::string words_of(const Frame& frame) {
  const auto bytes = frame.head.bytes().first(std::min(frame.head.size(), kLongestWords));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The first word, and the rest.
std::pair<std::string, std::string> split(const std::string& words) {
  const auto space = words.find(' ');
  return {words.substr(0, space), space == std::string::npos ? "" : words.substr(space + 1)};
}

std::vector<double> numbers_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<double> numbers;
  for (std::string word; stream >> word;) {
    const auto number = parse_number<double>(word);
    if (number && *number >= 0 && *number < 1e15) numbers.push_back(*number);
  }
  return numbers;
}

/// A window is what one stream has under way; with several streams each carried its part of the path.
market::PathRate rate_of(double rtt_s, double bytes_per_s, int streams) {
  constexpr double kWindowBytes = host::StreamCount::kWindowBytes;
  const double stream = std::max(bytes_per_s / streams, kWindowBytes / std::max(rtt_s, 1e-6));
  return {.rtt_s = rtt_s,
          .stream_bytes_per_s = std::min(bytes_per_s, stream),
          .path_bytes_per_s = bytes_per_s,
          .source = fmt::format("tw net probe, {} streams", streams),
          .as_of_unix_s = host::now_unix_s()};
}

}  // namespace

Probe::Probe(ProbeOptions options)
    : options_(std::move(options)),
      self_{random_.next()},
      piece_(frame_of("x", kProbePiece)),
      network_(loop_, self_, random_, [](event::Cause, const std::string&) {}, {.tls = options_.tls.get()}) {
  network_.greet_with(frame_of(fmt::format("{} {} {}", kHello, self_.value, to_string(options_.site))));
}

Result<std::string> Probe::open() {
  loop_.on_signal([this](int) {
    stopped_ = true;
    loop_.stop();
  });
  return network_.open(options_.listen, *this);
}

void Probe::serve() {
  while (!stopped_) {
    loop_.run_until([this] { return stopped_ || !asked_.empty(); }, 1h);
    if (asked_.empty()) continue;
    const auto [who, address] = asked_.front();
    asked_.pop_front();
    answer(who, address);
  }
}

void Probe::answer(PeerId from, const std::string& address) {
  auto peer = dial(address);
  // The address of the one that asks, and the link to it is this one: it can be dialed.
  const bool is_linked =
      !peer && refused_.contains(address) && refused_[address].kind == world::DialFailure::Kind::linked;
  if (is_linked) return say(from, "reached");
  auto measured = peer ? measure(peer.value()) : Result<Measured>(peer.error());
  if (!measured) return say(from, "failed " + measured.error().message);
  const Measured& m = measured.value();
  say(from, fmt::format("measured {} {} {} {}", m.rtt_s, m.out_bytes_per_s, m.in_bytes_per_s, m.streams));
}

Result<market::NetworkProfile> Probe::measure_all(const std::vector<std::string>& addresses) {
  std::vector<Host> hosts = {{self_, options_.site, ""}};
  for (const std::string& address : addresses) {
    TW_TRY(const auto peer, dial(address));
    hosts.push_back({peer, others_[peer].site, address});
  }
  std::map<market::Site, std::vector<Host>> sites;
  for (const Host& host : hosts) sites[host.site].push_back(host);
  market::NetworkProfile profile;
  for (auto a = sites.begin(); a != sites.end(); ++a) {
    for (auto b = a; b != sites.end(); ++b) {
      const bool lan = a == b;
      if (lan && a->second.size() < 2) continue;
      const Host& second = lan ? b->second[1] : b->second[0];
      TW_TRY(const auto measured, measure_between(a->second[0], second));
      const Measured& m = measured;
      profile.set(a->first, b->first, rate_of(m.rtt_s, m.out_bytes_per_s, m.streams));
      if (!lan) profile.set(b->first, a->first, rate_of(m.rtt_s, m.in_bytes_per_s, m.streams));
    }
  }
  return profile;
}

Result<Probe::Measured> Probe::measure_between(const Host& a, const Host& b) {
  if (a.peer == self_) return measure(b.peer);
  if (b.peer == self_) {
    auto turned = measure(a.peer);
    if (turned) std::swap(turned.value().out_bytes_per_s, turned.value().in_bytes_per_s);
    return turned;
  }
  others_[a.peer].told.reset();
  say(a.peer, "measure " + b.address);
  TW_TRY(const auto told, told_by(a.peer, kDialTime + kAnswerTime + options_.time));
  const auto [word, rest] = split(told);
  const std::vector<double> numbers = numbers_in(rest);
  if (word != "measured" || numbers.size() != 4 || numbers[3] < 1)
    return Error{fmt::format("{} could not measure to {}: {}", a.address, b.address, rest)};
  return Measured{numbers[0], numbers[1], numbers[2], static_cast<int>(numbers[3])};
}

Result<PeerId> Probe::dial(const std::string& address) {
  for (const auto& [peer, other] : others_)
    if (other.address == address) return peer;
  opened_.reset();
  refused_.erase(address);
  network_.connect(address);
  loop_.run_until([&] { return stopped_ || opened_ || refused_.contains(address); }, kDialTime);
  if (refused_.contains(address)) return Error{fmt::format("{}: {}", address, refused_[address].why)};
  if (!opened_) return Error{fmt::format("{}: no answer; is tw net probe --listen running there?", address)};
  others_[*opened_].address = address;
  return *opened_;
}

Result<double> Probe::round_trip_s(PeerId peer) {
  double best = 1e9;
  for (int i = 0; i < kPings; ++i) {
    others_[peer].pong_s.reset();
    const Instant sent = loop_.now();
    say(peer, fmt::format("ping {}", sent.time_since_epoch().count()));
    const bool came =
        loop_.run_until([&] { return others_.contains(peer) && others_[peer].pong_s; }, kAnswerTime);
    if (!came) return Error{fmt::format("{}: no answer to a ping", others_[peer].address)};
    best = std::min(best, *others_[peer].pong_s);
  }
  return best;
}

Result<Probe::Measured> Probe::measure(PeerId peer) {
  TW_TRY(const auto rtt_s, round_trip_s(peer));
  others_[peer].told.reset();
  say(peer, fmt::format("stream {}", to_seconds(options_.time)));
  begin_stream(peer, false);
  loop_.run_until([this] { return stopped_; }, options_.time);
  const Other& other = others_[peer];
  const double in = (other.received_bytes - other.half_bytes) / (to_seconds(options_.time) / 2);
  const auto streams = static_cast<int>(std::max<std::size_t>(1, network_.data_streams(peer)));
  TW_TRY(const auto told, told_by(peer, kAnswerTime));
  const std::vector<double> numbers = numbers_in(split(told).second);
  if (numbers.size() != 1) return Error{fmt::format("{}: an answer that is none", other.address)};
  return Measured{rtt_s, numbers[0], in, streams};
}

void Probe::begin_stream(PeerId peer, bool report) {
  Other& other = others_[peer];
  other.sends = true;
  other.received_bytes = other.half_bytes = 0;
  const Instant begin = loop_.now();
  loop_.at(begin + options_.time / 2, [this, peer] {
    if (others_.contains(peer)) others_[peer].half_bytes = others_[peer].received_bytes;
  });
  loop_.at(begin + options_.time, [this, peer, report] {
    if (!others_.contains(peer)) return;
    Other& now = others_[peer];
    now.sends = false;
    const double bytes = now.received_bytes - now.half_bytes;
    if (report) say(peer, fmt::format("received {}", bytes / (to_seconds(options_.time) / 2)));
  });
  network_.pull(peer);
}

Result<std::string> Probe::told_by(PeerId peer, Duration limit) {
  loop_.run_until([&] { return stopped_ || !others_.contains(peer) || others_[peer].told; }, limit);
  const auto other = others_.find(peer);
  if (other == others_.end()) return Error{"the link was lost in the middle of a measurement"};
  if (!other->second.told)
    return Error{fmt::format("{}: no answer after a measurement", other->second.address)};
  return *other->second.told;
}

void Probe::say(PeerId to, const std::string& words) { network_.send(to, frame_of(words)); }

world::Admission Probe::admit(const Frame& hello) {
  const auto [name, rest] = split(words_of(hello));
  const auto [id, site] = split(rest);
  const auto number = parse_number<std::uint64_t>(id);
  if (name != kHello || !number || !market::parse_site(site))
    return world::Refusal{"this is tw net probe; whoever dials must be one too"};
  return PeerId{*number};
}

void Probe::on_open(PeerId peer, const Frame& hello) {
  Other& other = others_[peer];
  other.site = market::parse_site(split(split(words_of(hello)).second).second).value();
  opened_ = peer;
}

void Probe::on_message(PeerId from, Frame frame) {
  Other& other = others_[from];
  if (!frame.payload.empty()) {
    other.received_bytes += static_cast<double>(frame.size());
    return;
  }
  const std::string words = words_of(frame);
  const auto [word, rest] = split(words);
  if (word == "ping") return say(from, "pong " + rest);
  if (word == "pong") {
    const auto sent = parse_number<std::int64_t>(rest);
    if (sent) other.pong_s = to_seconds(loop_.now() - Instant(Duration(*sent)));
  } else if (word == "stream") {
    const std::vector<double> seconds = numbers_in(rest);
    if (seconds.size() != 1 || seconds[0] > 60 || other.sends) return;
    options_.time = from_seconds(seconds[0]);
    begin_stream(from, true);
  } else if (word == "time") {
    say(from, fmt::format("clock {}", loop_.unix_nanos()));
  } else if (word == "measure") {
    asked_.emplace_back(from, rest);
  } else {
    other.told = words;
  }
}

void Probe::on_close(PeerId peer, const std::string&) { others_.erase(peer); }

void Probe::on_refused(const std::string& address, const world::DialFailure& failure) {
  refused_[address] = {.why = failure.why.words,
                       .kind = failure.kind,
                       .is_stranger = failure.why.code == world::Refusal::Code::credential};
}

std::optional<Frame> Probe::next_bulk(PeerId to) {
  const auto other = others_.find(to);
  if (other == others_.end() || !other->second.sends) return std::nullopt;
  return piece_;
}

}  // namespace tw::measure
