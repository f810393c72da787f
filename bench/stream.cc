// SPDX-License-Identifier: Apache-2.0
//
// What a byte costs on its way: two processes over loopback, plain and with TLS, one and several streams.
//   bench_stream [--gb 4] [--streams 1 8] [--payload 262144] [--runs 3] [--second-thread]
// Runs take turns; the medians of CPU seconds are of both processes together.

#include "host/tcp/stream.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/median.h"
#include "crew.h"
#include "host/identity/authority.h"
#include "host/identity/tls.h"
#include "host/loop.h"
#include "host/tcp/admission/dial.h"
#include "host/tcp/admission/doorway.h"
#include "measure.h"

namespace {

using namespace tw;

constexpr std::size_t kQueueBytes = 1 << 20;
constexpr unsigned kLimitSeconds = 300;

struct Settings {
  double gb = 4;
  std::vector<int> streams{1, 8};
  std::size_t payload = 256 << 10;
  int runs = 3;
  bool second_thread = false;
};

struct Shared {
  bench::Barrier ready, begin;
  char address[64] = "";
  double cpu_s[2] = {0, 0};
  double seconds = 0;
};

/// Takes in everything, or keeps the queue of its stream full until its bytes are sent.
struct End : host::StreamUser {
  void on_frame(host::Stream&, Frame frame) override { bytes += frame.payload.size(); }

  void on_room(host::Stream& stream) override {
    while (left > 0 && stream.queued_bytes() < kQueueBytes) {
      stream.send({{}, payload});
      left -= std::min<std::uint64_t>(left, payload.size());
    }
  }

  void on_end(host::Stream&, const std::string& why) override { fmt::print(stderr, "ended: {}\n", why); }

  std::uint64_t bytes = 0;  // received
  std::uint64_t left = 0;   // to be sent
  Blob payload;
};

struct Job {
  Shared& shared;
  const wire::Token* token;  // nothing: plain
  host::CipherThread::Use cipher_thread;
  int streams;
  std::uint64_t bytes;  // of each stream
  std::size_t payload;
};

/// One for each loop: it ends before its loop does.
std::unique_ptr<host::Tls> tls_of(const Job& job) {
  if (job.token == nullptr) return nullptr;
  return std::move(host::Tls::open(*job.token, 1, {.cipher_thread = job.cipher_thread}).value());
}

bool receive(const Job& job) {
  host::Loop loop;
  const auto tls = tls_of(job);
  std::vector<std::shared_ptr<host::Stream>> taken;  // owners: this and the operations under way
  std::vector<std::unique_ptr<End>> ends;
  std::unique_ptr<host::Doorway> door;
  const auto take = [&](host::Doorway::Visitor visitor, asio::ip::tcp::socket socket) {
    // owners: see stream.h
    auto stream = std::make_shared<host::Stream>(
        loop, host::channel_over(std::move(socket), loop, tls.get(), host::Side::takes));
    stream->set_limits({});
    ends.push_back(std::make_unique<End>());
    stream->attach(ends.back().get());
    taken.push_back(std::move(stream));
    door->leave(visitor);
  };
  door = host::Doorway::open(loop, "127.0.0.1:0", std::chrono::seconds(10),
                             {.enter = take, .dismiss = [](auto, auto) {}, .gone = [](const auto&, auto) {}})
             .value();
  door->address().copy(job.shared.address, sizeof job.shared.address - 1);
  job.shared.ready.wait();
  const auto total = [&] {
    std::uint64_t sum = 0;
    for (const auto& end : ends) sum += end->bytes;
    return sum;
  };
  const double cpu = host::cpu_seconds();
  const double begin = bench::wall_seconds();
  const bool done =
      loop.run_until([&] { return total() >= job.bytes * static_cast<std::uint64_t>(job.streams); },
                     std::chrono::seconds(kLimitSeconds));
  job.shared.seconds = bench::wall_seconds() - begin;
  job.shared.cpu_s[0] = host::cpu_seconds() - cpu;
  job.shared.begin.wait();
  for (const auto& stream : taken) stream->close();
  return done;
}

bool send(const Job& job) {
  job.shared.ready.wait();
  host::Loop loop;
  const auto tls = tls_of(job);
  std::vector<std::shared_ptr<host::Stream>> streams;  // owners: this and the operations under way
  std::vector<std::unique_ptr<End>> ends;
  const Blob payload(std::vector<std::byte>(job.payload, std::byte{1}));
  const double cpu = host::cpu_seconds();
  for (int i = 0; i < job.streams; ++i) {
    // owners: see stream.h
    dial(loop, tls.get(), job.shared.address, [&](Result<std::shared_ptr<host::Stream>> dialed) {
      streams.push_back(std::move(dialed).value());
      ends.push_back(std::make_unique<End>());
      ends.back()->left = job.bytes;
      ends.back()->payload = payload;
      streams.back()->attach(ends.back().get());
      ends.back()->on_room(*streams.back());
    });
  }
  const auto empty = [&] {
    return ends.size() == static_cast<std::size_t>(job.streams) &&
           std::all_of(ends.begin(), ends.end(), [](const auto& end) { return end->left == 0; }) &&
           std::all_of(streams.begin(), streams.end(), [](const auto& s) { return s->queued_bytes() == 0; });
  };
  const bool done = loop.run_until(empty, std::chrono::seconds(kLimitSeconds));
  job.shared.cpu_s[1] = host::cpu_seconds() - cpu;
  job.shared.begin.wait();
  for (const auto& stream : streams) stream->close();
  return done;
}

struct Measured {
  std::vector<double> gb_per_s, cpu_s_per_gb, sender, receiver;
};

bool measure(const Settings& settings, const wire::Token* token, int streams, Measured& measured) {
  auto& shared = bench::shared_with_forks<Shared>();
  shared.ready.set(2);
  shared.begin.set(2);
  const auto bytes = static_cast<std::uint64_t>(settings.gb * 1e9) / static_cast<std::uint64_t>(streams);
  const auto use =
      settings.second_thread ? host::CipherThread::Use::always : host::CipherThread::Use::when_fast;
  const Job job{shared, token, use, streams, bytes, settings.payload};
  const bool well =
      bench::in_processes(2, kLimitSeconds, [&](int rank) { return rank == 0 ? receive(job) : send(job); });
  const double gb = static_cast<double>(bytes) * streams / 1e9;
  measured.gb_per_s.push_back(gb / shared.seconds);
  measured.receiver.push_back(shared.cpu_s[0] / gb);
  measured.sender.push_back(shared.cpu_s[1] / gb);
  measured.cpu_s_per_gb.push_back((shared.cpu_s[0] + shared.cpu_s[1]) / gb);
  return well;
}

int run(const Settings& settings) {
  const host::Authority authority = host::Authority::create("bench");
  const wire::Token token = authority.issue({.from_unix_s = 0, .expires_unix_s = 4'000'000'000});
  std::map<std::pair<int, bool>, Measured> all;
  bool well = true;
  for (int i = 0; i < settings.runs; ++i)
    for (const int streams : settings.streams)
      for (const bool with_tls : {false, true})
        well &= measure(settings, with_tls ? &token : nullptr, streams, all[{streams, with_tls}]);
  for (const auto& [what, m] : all) {
    fmt::print("{:2} streams {:5}  {:5.2f} GB/s  {:5.3f} CPU-s per GB (sender {:5.3f}, receiver {:5.3f})\n",
               what.first, what.second ? "TLS" : "plain", median(m.gb_per_s), median(m.cpu_s_per_gb),
               median(m.sender), median(m.receiver));
  }
  return well ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("CPU and goodput of streams over loopback");
  Settings settings;
  app.add_option("--gb", settings.gb, "to move in each run")->capture_default_str();
  app.add_option("--streams", settings.streams, "numbers of streams to try")->capture_default_str();
  app.add_option("--payload", settings.payload, "bytes of a frame")->capture_default_str();
  app.add_option("--runs", settings.runs, "of each kind")->capture_default_str();
  app.add_flag("--second-thread", settings.second_thread, "encrypt there on any machine, at any rate");
  CLI11_PARSE(app, argc, argv);
  return run(settings);
}
