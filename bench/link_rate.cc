// SPDX-License-Identifier: Apache-2.0
//
// What one link carries, step by step, from the moment when it is asked for; the link stands and has been
// idle for three seconds by then, as between two rounds.
//   bench_link_rate --listen ADDRESS                  sends to whoever asks, until that peer is gone
//   bench_link_rate --dial ADDRESS [--seconds N]      asks, receives for so long, and prints

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "host/loop.h"
#include "host/system/random_os.h"
#include "host/tcp/network_tcp.h"
#include "measure.h"

namespace tw::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSegment = 256 << 10;
constexpr Duration kStep = 500ms;
constexpr Duration kIdle = 3s;

Frame frame_of(std::size_t payload) {
  return {Blob(std::vector<std::byte>(8)), Blob(std::vector<std::byte>(payload))};
}

class End final : public world::NetworkEvents {
 public:
  explicit End(std::uint64_t id)
      : self_{id}, network_(loop_, self_, random_, [](event::Cause, const std::string&) {}, {}) {
    network_.greet_with(frame_of(id));
  }

  Result<std::string> open(const std::string& address) { return network_.open(address, *this); }

  void send_until_the_other_is_gone() { loop_.run(); }

  int receive(const std::string& from, Duration time) {
    network_.connect(from);
    if (!loop_.run_until([this] { return there_; }, 20s)) return 1;
    loop_.run_until([] { return false; }, kIdle);
    network_.send(PeerId{1}, frame_of(0));
    std::uint64_t before = 0;
    const double cpu = host::cpu_seconds();
    for (Duration passed{}; passed < time; passed += kStep) {
      if (loop_.run_until([this] { return !there_; }, kStep) || !there_) return 1;
      fmt::print(R"({{"until_s": {:.1f}, "mbit_per_s": {:.0f}, "streams": {}}})"
                 "\n",
                 to_seconds(passed + kStep),
                 8e-6 * static_cast<double>(received_ - before) / to_seconds(kStep),
                 network_.data_streams(PeerId{1}));
      before = received_;
    }
    fmt::print(R"({{"received_gb": {:.3f}, "receiver_cpu_s": {:.2f}}})"
               "\n",
               1e-9 * static_cast<double>(received_), host::cpu_seconds() - cpu);
    return 0;
  }

  world::Admission admit(const Frame& hello) override { return PeerId{hello.payload.size()}; }

  void on_open(PeerId, const Frame&) override { there_ = true; }

  void on_message(PeerId from, Frame frame) override {
    received_ += frame.size();
    if (frame.payload.size() == kSegment || sends_) return;
    sends_ = true;
    network_.pull(from);
  }

  void on_close(PeerId, const std::string& why) override {
    there_ = false;
    fmt::print(stderr, "the link is gone: {}\n", why);
    loop_.stop();
  }

  void on_refused(const std::string&, const world::DialFailure& failure) override {
    fmt::print(stderr, "{}\n", failure.why.words);
    loop_.stop();
  }

  std::optional<Frame> next_bulk(PeerId) override { return sends_ ? std::optional(segment_) : std::nullopt; }

 private:
  PeerId self_;
  host::Loop loop_;
  host::OsRandom random_;
  Frame segment_ = frame_of(kSegment);
  bool sends_ = false;
  bool there_ = false;
  std::uint64_t received_ = 0;
  host::TcpNetwork network_;
};

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  CLI::App app("What one link carries");
  std::string listen = "0.0.0.0:0";
  std::string dial;
  int seconds = 5;
  app.add_option("--listen", listen)->capture_default_str();
  app.add_option("--dial", dial);
  app.add_option("--seconds", seconds)->check(CLI::Range(1, 3600))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  tw::bench::End end(dial.empty() ? 1 : 2);
  const auto address = end.open(listen);
  if (!address) {
    fmt::print(stderr, "{}\n", address.error().message);
    return 1;
  }
  if (!dial.empty()) return end.receive(dial, std::chrono::seconds(seconds));
  fmt::print(stderr, "{}\n", address.value());
  end.send_until_the_other_is_gone();
  return 0;
}
