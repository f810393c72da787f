// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <random>
#include <sstream>

#include "e2e/soak/troubles.h"
#include "e2e/soak/usage_judge.h"

namespace tw::soak {
namespace {

constexpr std::size_t kHosts = 5;
/// Never killed; their memory and descriptors are watched.
constexpr std::uint64_t kLongLived[] = {2, 3};
/// Rounds after which, with nothing wrong any more, everybody must be there again.
constexpr Round kRoundsOfCalm = 3;
constexpr std::chrono::seconds kLongestReturn{120};
/// A line may be said as often, and as often as something was done to the peers.
constexpr std::size_t kMostRepeated = 100;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::set<std::string> names_from_environment(const char* name) {
  const char* text = std::getenv(name);
  std::istringstream list(text == nullptr ? "" : text);
  std::set<std::string> names;
  for (std::string one; std::getline(list, one, ',');) names.insert(one);
  return names;
}

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

class Soak : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    keep_quiet();
    seconds_ = number_from_environment("TW_SOAK_SECONDS", 60);
    seed_ = number_from_environment("TW_SOAK_SEED", std::random_device()());
    begin_ = std::chrono::steady_clock::now();
    testbed_.emplace(path(fmt::format("soak-{}.yaml", getpid())), kHosts);
    disks_.emplace(path("disks"), kHosts);
    peers_.emplace(
        Peers::Options{.folder = path(""), .token = first_line_of(path("run/token")), .members = kHosts},
        *testbed_, *disks_);
    troubles_.emplace(Troubles::Options{.seed = seed_,
                                        .without = names_from_environment("TW_SOAK_WITHOUT"),
                                        .long_lived = {std::begin(kLongLived), std::end(kLongLived)},
                                        .long_ones = seconds_ >= 600,
                                        .say = [this](const std::string& what) { say(what); }},
                      *peers_, *testbed_, *disks_);
  }

  void TearDown() override {
    if (HasFailure()) keep();
    troubles_.reset();
    peers_.reset();
    disks_.reset();
    testbed_.reset();  // its file is in the folder
    ProgramTest::TearDown();
  }

  double now_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  void say(const std::string& what) const { std::cerr << fmt::format("soak {:6.1f} s  {}\n", now_s(), what); }

  /// Logs and outputs, beyond the end of this program.
  void keep() const {
    const std::string folder = fmt::format("{}tw-soak-{}", testing::TempDir(), getpid());
    std::filesystem::create_directories(folder);
    disks_->keep(folder);
    for (const auto& file : std::filesystem::directory_iterator(path("")))
      if (file.path().extension() == ".txt") std::filesystem::copy(file.path(), folder);
    say("logs of the peers are kept in " + folder);
  }

  void tell_progress() {
    if (now_s() < told_s_ + 10) return;
    told_s_ = now_s();
    std::string usage;
    for (const std::uint64_t id : kLongLived) {
      if (const auto held = peers_->runs(id) ? usage_of(peers_->process_of(id), now_s()) : std::nullopt)
        usage += fmt::format("  peer {}: {:.1f} MiB, {} descriptors", id,
                             static_cast<double>(held->own_bytes) / (1 << 20), held->descriptors);
    }
    say(fmt::format("-- round {}, {} processes, {} disturbances, now: {}{}", peers_->newest_round(),
                    peers_->ids().size(), troubles_->made(), troubles_->now(), usage));
  }

  /// Looks at the peers until it holds; false when it does not in time or something is wrong.
  bool look_until(const std::function<bool()>& holds, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      peers_->look();
      tell_progress();
      if (!peers_->faults().empty()) return false;
      if (holds()) return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }

  bool all_are_there(Round from) const {
    const auto ids = peers_->ids();
    return peers_->members() == ids.size() && std::all_of(ids.begin(), ids.end(), [&](std::uint64_t id) {
             return peers_->is_settled(id) && peers_->last_round(id) >= from;
           });
  }

  /// The peers that are not, for a message.
  std::string standing() const {
    std::string text = fmt::format("newest round {}, {} members;", peers_->newest_round(), peers_->members());
    for (const std::uint64_t id : peers_->ids())
      text += fmt::format(" peer {} has round {};", id, peers_->last_round(id));
    text += " not mended: " + troubles_->now();
    for (const std::string& fault : peers_->faults()) text += "\n" + fault;
    return text;
  }

  /// Everything is mended, everybody comes back, and what the long-lived ones hold is measured.
  bool calm_down() {
    const double begun_s = now_s();
    const bool mended = look_until(
        [&] {
          troubles_->mend_all();
          return !troubles_->any() && !peers_->anybody_is_leaving();
        },
        kLongestReturn);
    const Round reached = peers_->newest_round();
    const bool returned =
        mended && look_until([&] { return all_are_there(reached + kRoundsOfCalm); }, kLongestReturn);
    if (!returned) {
      ADD_FAILURE() << "not all peers came back: " << standing();
      return false;
    }
    returns_s_.push_back(now_s() - begun_s);
    const auto findings = peers_->history().judge();
    for (const std::string& fault : findings.faults) ADD_FAILURE() << fault;
    say(fmt::format("calm: all {} peers are there after {:.1f} s", peers_->ids().size(), returns_s_.back()));
    for (const std::uint64_t id : kLongLived) {
      if (const auto usage = usage_of(peers_->process_of(id), now_s()))
        usage_.see(fmt::format("peer {}", id), *usage);
    }
    return findings.faults.empty();
  }

  /// One siege of each peer that is watched.
  std::vector<std::unique_ptr<Attackers>> besiege_long_lived() const {
    std::vector<std::unique_ptr<Attackers>> sieges;
    for (const std::uint64_t id : kLongLived) {
      const std::size_t host = peers_->host_of(id);
      sieges.push_back(
          std::make_unique<Attackers>(Attackers::Options{.target = testbed_->listen_address(host, 0),
                                                         .netns = testbed_->netns((host + 2) % kHosts),
                                                         .seed = mix(seed_, id)}));
    }
    return sieges;
  }

  /// Each link has had all the streams that a long round trip asks for, and each watched peer a siege
  /// meanwhile: buffers are as large as they get.
  void stretch_lines() {
    if (!testbed_->is_up() || seconds_ < 600) return;
    say("links of all hosts: rtt 400ms, and attackers besiege the watched peers, for a while");
    const auto set_all = [&](const std::string& words) {
      for (std::size_t host = 0; host < kHosts; ++host)
        EXPECT_TRUE(testbed_->tell(fmt::format("set {}:all {}", Testbed::site(host), words)));
    };
    set_all("rtt 400ms");
    {
      const auto sieges = besiege_long_lived();
      look_until([] { return false; }, 40s);
    }
    set_all("rtt 20ms");
  }

  void disturb_until(double end_s, double calm_every_s) {
    Prng pause(mix(seed_, 0));
    double next_calm_s = now_s() + calm_every_s;
    while (now_s() < end_s) {
      const auto wait = std::chrono::milliseconds(300 + pause.below(1700));
      look_until([] { return false; }, wait);
      if (!peers_->faults().empty()) return;
      troubles_->mend();
      if (now_s() > next_calm_s) {
        if (!calm_down()) return;
        next_calm_s = now_s() + calm_every_s;
      }
      troubles_->disturb();
    }
    calm_down();
  }

  void judge() {
    const std::size_t most = std::max(kMostRepeated, troubles_->made());
    for (const std::string& fault : peers_->faults()) ADD_FAILURE() << fault;
    for (const std::string& fault : peers_->history().judge().faults) ADD_FAILURE() << fault;
    for (const std::string& line : peers_->lines().repeated(most)) ADD_FAILURE() << line;
    for (const std::string& fault : usage_.faults(now_s())) ADD_FAILURE() << fault;
  }

  void tell_end() const {
    say("what was done to the peers:");
    for (std::size_t kind = 0; kind < kKindNames.size(); ++kind)
      say(fmt::format("  {:10} {:5}", kKindNames[kind], troubles_->made(static_cast<Kind>(kind))));
    say(fmt::format("  connections of attackers: {}", troubles_->attackers()));
    const auto history = peers_->history().judge();
    say(fmt::format(
        "{} rounds, {} samples; {} rounds were decided without a majority and stand, {} records "
        "were given up, {} rounds are in no log because disks were full",
        history.rounds, history.samples, history.without_majority, history.given_up, history.unlogged));
    for (const double s : returns_s_) say(fmt::format("all there again after {:.1f} s", s));
    for (const std::string& row : usage_.table()) say(row);
    say("said most often:");
    for (const std::string& line : peers_->lines().repeated(kMostRepeated / 2)) say("  " + line);
    say(HasFailure() ? "FAILED" : "all is well");
  }

  std::uint64_t seconds_ = 0, seed_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::optional<Testbed> testbed_;
  std::optional<Disks> disks_;
  std::optional<Peers> peers_;
  std::optional<Troubles> troubles_;
  UsageJudge usage_;
  std::vector<double> returns_s_;
  double told_s_ = 0;
};

TEST_F(Soak, rounds_go_on_and_are_the_same_everywhere_whatever_is_done_to_the_peers) {
  say(fmt::format("seed {} (again: TW_SOAK_SEED={}), {} s on {}{}", seed_, seed_, seconds_,
                  testbed_->is_up() ? "network namespaces" : "the loopback, where lines stay as they are",
                  disks_->can_fill() ? "" : ", disks cannot be filled (no root)"));
  peers_->launch(1, {0, 0});
  ASSERT_TRUE(look_until([&] { return std::filesystem::exists(disks_->folder(0) + "/out/events-1.jsonl"); },
                         kPatience))
      << standing();
  for (std::size_t host = 1; host < kHosts; ++host) peers_->launch(host + 1, {host, 0});
  ASSERT_TRUE(look_until([&] { return all_are_there(kRoundsOfCalm); }, kPatience)) << standing();

  stretch_lines();
  const double calm_every_s = std::clamp(static_cast<double>(seconds_) / 10, 20.0, 90.0);
  disturb_until(now_s() + static_cast<double>(seconds_), calm_every_s);
  if (!HasFailure() && peers_->faults().empty()) peers_->end();
  judge();
  EXPECT_GT(troubles_->made(), 0U);
  tell_end();
}

}  // namespace
}  // namespace tw::soak
