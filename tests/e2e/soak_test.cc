// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "e2e/program.h"

namespace tw {
namespace {

constexpr std::size_t kHosts = 5;
constexpr std::uint64_t kBytes = 4 << 20;
/// `tw bench peer` has four microbatches of one sample for each peer that it waits for.
constexpr std::uint64_t kSamples = 4 * kHosts;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Five hosts: network namespaces where this process may have them, else the loopback.
class Bed {
 public:
  explicit Bed(const std::string& file) : file_(file) {
    std::ofstream(file) << "about: five sites for a soak\n"
                        << "sites:\n  - {name: a, nic: 300mbit}\n  - {name: b, nic: 300mbit}\n"
                        << "  - {name: c, nic: 300mbit}\n  - {name: d, nic: 300mbit}\n"
                        << "  - {name: e, nic: 300mbit}\nlinks:\n  - rtt: 20ms\n";
    is_up_ = tell("up");
  }

  Bed(const Bed&) = delete;
  Bed& operator=(const Bed&) = delete;

  ~Bed() {
    if (is_up_) tell("down");
  }

  bool is_up() const { return is_up_; }

  std::string address(std::size_t host) const {
    return is_up_ ? fmt::format("10.77.{}.1", host + 1) : "127.0.0.1";
  }

  std::vector<std::string> enter(std::size_t host) const {
    return is_up_ ? std::vector<std::string>{kProgram, file_, "exec", site(host)}
                  : std::vector<std::string>{};
  }

  static std::string site(std::size_t host) { return {static_cast<char>('a' + host)}; }

  bool tell(const std::string& words) const {
    return std::system(fmt::format("{} {} {} > {}.txt 2>&1", kProgram, file_, words, file_).c_str()) == 0;
  }

 private:
  inline static const std::string kProgram =
      std::filesystem::path(TW_PROGRAM).parent_path().string() + "/tw-wan";

  std::string file_;
  bool is_up_ = false;
};

/// What is wrong for the time being.
struct Trouble {
  std::chrono::steady_clock::time_point until;
  std::optional<std::uint64_t> stopped;  ///< a peer
  std::vector<std::string> mend{};       ///< words for the bed
};

class Soak : public ProgramTest {
 protected:
  struct Peer {
    std::size_t host = 0;
    std::unique_ptr<Program> program;
  };

  void SetUp() override {
    ProgramTest::SetUp();
    bed_.emplace(path(fmt::format("soak-{}.yaml", getpid())));
  }

  void TearDown() override {
    peers_.clear();
    bed_.reset();  // its file is in the folder
    ProgramTest::TearDown();
  }

  void launch(std::size_t host) {
    const std::uint64_t id = ++last_id_;
    std::vector<std::string> words = {"bench",     "peer",
                                      "--id",      std::to_string(id),
                                      "--peers",   std::to_string(kHosts),
                                      "--bytes",   std::to_string(kBytes),
                                      "--codec",   "fp16",
                                      "--rounds",  "1000000",
                                      "--work-ms", "20",
                                      "--out",     path("out"),
                                      "--listen",  bed_->address(host) + ":0"};
    for (const auto& [other, peer] : peers_) {
      const std::string address = address_of(other);
      if (!address.empty()) words.insert(words.end(), {"--join", address});
    }
    peers_[id] = {host, std::make_unique<Program>(
                            words, Program::Options{.output = path(fmt::format("peer-{}.txt", id)),
                                                    .separate_errors = {},
                                                    .largest_file_bytes = {},
                                                    .enter = bed_->enter(host)})};
    newcomer_ = id;
  }

  std::uint64_t any_peer() {
    auto peer = peers_.begin();
    std::advance(peer, static_cast<std::ptrdiff_t>(prng_->below(peers_.size())));
    return peer->first;
  }

  /// At most one member is out at a time, so that a majority always remains.
  void kill_or_stop() {
    if (stopped() || events_of(newcomer_, Phase::commit).empty()) return;
    const std::uint64_t id = any_peer();
    if (prng_->below(2) == 0) {
      const std::size_t host = peers_.at(id).host;
      say(fmt::format("kill peer {}", id));
      peers_.at(id).program->send(SIGKILL);
      peers_.erase(id);
      ++kills_;
      launch(host);
    } else {
      say(fmt::format("stop peer {}", id));
      peers_.at(id).program->send(SIGSTOP);
      ++stops_;
      troubles_.push_back({after_a_while(), id});
    }
  }

  void change_a_link() {
    const bool changed = std::any_of(troubles_.begin(), troubles_.end(),
                                     [](const Trouble& trouble) { return !trouble.mend.empty(); });
    if (!bed_->is_up() || changed) return;
    const std::string site = Bed::site(prng_->below(kHosts));
    const auto [bad, good] =
        std::vector<std::pair<std::string, std::string>>{{"bandwidth 20mbit", "bandwidth 1gbit"},
                                                         {"rtt 200ms", "rtt 20ms"},
                                                         {"outage on", "outage off"}}[prng_->below(3)];
    say(fmt::format("set {}:all {}", site, bad));
    EXPECT_TRUE(bed_->tell(fmt::format("set {}:all {}", site, bad)));
    troubles_.push_back({after_a_while(), {}, {fmt::format("set {}:all {}", site, good)}});
  }

  void mend(std::chrono::steady_clock::time_point now) {
    std::erase_if(troubles_, [&](const Trouble& trouble) {
      if (trouble.until > now) return false;
      if (trouble.stopped) peers_.at(*trouble.stopped).program->send(SIGCONT);
      for (const std::string& words : trouble.mend) EXPECT_TRUE(bed_->tell(words)) << words;
      return true;
    });
  }

  bool nobody_failed() {
    return std::none_of(peers_.begin(), peers_.end(), [&](auto& peer) {
      if (!peer.second.program->ended()) return false;
      ADD_FAILURE() << "peer " << peer.first << " has ended: " << peer.second.program->output();
      return true;
    });
  }

  bool stopped() const {
    return std::any_of(troubles_.begin(), troubles_.end(),
                       [](const Trouble& trouble) { return trouble.stopped.has_value(); });
  }

  std::chrono::steady_clock::time_point after_a_while() {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(300 + prng_->below(3200));
  }

  void say(const std::string& what) const { std::cerr << "soak: " << what << "\n"; }

  std::optional<Bed> bed_;
  std::optional<Prng> prng_;
  std::map<std::uint64_t, Peer> peers_;
  std::vector<Trouble> troubles_;
  std::uint64_t last_id_ = 0;
  std::uint64_t newcomer_ = 0;
  int kills_ = 0;
  int stops_ = 0;
};

/// Of a run without a majority lost: one history, each round once at each peer, with the samples of a batch,
/// or half of them where somebody was lost.
void check_history(const std::vector<std::vector<LogEntry>>& logs) {
  std::map<Round, std::set<std::string>> records, parameters;
  std::map<Round, double> own_samples;
  std::map<Round, std::set<double>> totals;
  std::map<Round, double> carried;
  for (const auto& log : logs) {
    Round last = 0;
    for (const LogEntry& entry : log) {
      const Event& event = entry.event;
      const bool told = event.phase == Phase::apply || event.phase == Phase::restore;
      if (told && !event.digest.empty()) parameters[event.round].insert(event.digest);
      if (event.phase != Phase::commit) continue;
      EXPECT_GT(event.round, last) << "peer " << entry.writer.value << " commits a round again";
      last = event.round;
      EXPECT_EQ(event.why, "") << "round " << event.round;
      totals[event.round].insert(number_in(event, "samples_total").value_or(0));
      carried[event.round] = number_in(event, "carried").value_or(-1);
      records[event.round].insert(event.digest);
      own_samples[event.round] += number_in(event, "samples").value_or(0);
    }
  }
  for (const auto& [round, digests] : records) EXPECT_EQ(digests.size(), 1U) << "records of round " << round;
  for (const auto& [round, digests] : parameters)
    EXPECT_EQ(digests.size(), 1U) << "parameters after round " << round;
  double before = 0;
  for (const auto& [round, total] : totals) {
    EXPECT_EQ(total.size(), 1U) << "samples until round " << round;
    EXPECT_GE(*total.begin() - before, kSamples / 2) << "samples of round " << round;
    EXPECT_LE(*total.begin() - before, kSamples) << "samples of round " << round;
    if (const auto next = carried.find(round + 1); next != carried.end()) {
      EXPECT_EQ(*total.begin() - before + next->second, static_cast<double>(kSamples)) << "round " << round;
    }
    before = *total.begin();
  }
  for (const auto& [round, samples] : own_samples)
    EXPECT_LE(samples, kSamples) << "samples of round " << round;
}

TEST_F(Soak, rounds_go_on_under_kills_stops_and_bad_links_and_are_the_same_everywhere) {
  const std::uint64_t seed = number_from_environment("TW_SOAK_SEED", std::random_device()());
  const std::uint64_t seconds = number_from_environment("TW_SOAK_SECONDS", 60);
  say(fmt::format("seed {} (again: TW_SOAK_SEED={}), {} s on {}", seed, seed, seconds,
                  bed_->is_up() ? "network namespaces" : "the loopback"));
  prng_.emplace(seed);
  launch(0);
  ASSERT_NE(address_of(1), "");
  for (std::size_t host = 1; host < kHosts; ++host) launch(host);
  ASSERT_TRUE(wait_for_round(1, 3));

  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + prng_->below(1500)));
    ASSERT_TRUE(nobody_failed());
    mend(std::chrono::steady_clock::now());
    prng_->below(3) == 0 ? change_a_link() : kill_or_stop();
  }
  mend(std::chrono::steady_clock::time_point::max());

  Round reached = 0;
  for (const auto& [id, peer] : peers_) reached = std::max(reached, last_round(id));
  for (const auto& [id, peer] : peers_) EXPECT_TRUE(wait_for_round(id, reached + 3)) << "peer " << id;
  for (const auto& [id, peer] : peers_) peer.program->send(SIGINT);
  for (const auto& [id, peer] : peers_) EXPECT_EQ(peer.program->wait(), 0) << peer.program->output();

  const auto logs = read_event_logs(path("out"));
  ASSERT_TRUE(logs) << logs.error().message;
  check_history(logs.value());
  EXPECT_GT(kills_ + stops_, 0);
  say(fmt::format("{} rounds, {} kills, {} stops", reached, kills_, stops_));
}

}  // namespace
}  // namespace tw
