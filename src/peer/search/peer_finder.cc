// SPDX-License-Identifier: Apache-2.0
#include "peer/search/peer_finder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text/write_file.h"
#include "host/system/calendar.h"
#include "host/system/random_os.h"
#include "host/task_failure.h"

namespace tw::peer {
namespace {

constexpr Duration kGoodbye = std::chrono::seconds(3);
constexpr std::size_t kMostTold = 256;
constexpr std::size_t kMostShown = 3;

std::string listed(const std::vector<std::string>& all) {
  const std::size_t shown = std::min(kMostShown, all.size());
  const std::string first = fmt::format("{}", fmt::join(all.begin(), all.begin() + shown, ", "));
  return shown == all.size() ? first : fmt::format("{} and {} more", first, all.size() - shown);
}

/// Each once: several starts of a peer were at one address.
std::string addresses_of(const std::vector<wire::Member>& members) {
  std::vector<std::string> addresses;
  for (const wire::Member& member : members)
    if (std::ranges::find(addresses, member.address) == addresses.end()) addresses.push_back(member.address);
  return listed(addresses);
}

}  // namespace

PeerFinder::PeerFinder(host::Loop& loop, const Options& options, const std::string& address,
                       const Digest& training, Calls calls)
    : loop_(loop),
      address_(address),
      searches_(!options.session.founds() || options.session.past == train::Past::begun),
      calls_(std::move(calls)),
      files_(MeetingPlace::kEffort, [this] { return hurry_.load(); }),
      known_(options.out.empty() ? options.run_folder : options.out, options.session.self, training),
      rendezvous_({.has_folder = !options.session.meeting.place.empty(),
                   .announces = !address.empty(),
                   .seed = host::OsRandom().next()}),
      thread_(loop, [this](const std::string& what) { calls_.say("the search for peers failed: " + what); }) {
  if (!options.session.meeting.place.empty())
    place_.emplace(files_, options.session.meeting.place,
                   MeetingPlace::Self{*options.token, *options.tls, training, options.session.self, address_},
                   host::now_unix_s);
}

void PeerFinder::look(train::Session& session) {
  if (known_.see(session.members())) write_down();
  const train::Linking& linking = session.linking();
  linked_ = linking.linked();
  const swarm::Rendezvous::Standing standing{.has_run = linking.has_run(), .alone = linking.is_alone()};
  if (!standing.alone) told_.clear();
  const auto errand = rendezvous_.next(loop_.now(), standing);
  if (!errand) return;
  switch (*errand) {
    case Errand::recall:
      return recall();
    case Errand::look:
      return look_around();
    case Errand::renew:
      return renew();
  }
}

std::vector<wire::Member> PeerFinder::unlinked(std::vector<wire::Member> peers) const {
  std::erase_if(peers, [this](const wire::Member& one) {
    return one.address == address_ || std::ranges::binary_search(linked_, one.peer);
  });
  return peers;
}

void PeerFinder::recall() {
  const std::vector<wire::Member> known = unlinked(known_.all());
  if (known.empty()) return;
  const std::string& file = known_.path();
  calls_.say(fmt::format("nobody of the run answers: dials peers that this peer knew before{}: {}",
                         file.empty() ? "" : " (" + file + ")", addresses_of(known)));
  calls_.dial(known);
}

void PeerFinder::look_around() {
  // owners: both halves of the job
  const auto result = std::make_shared<Result<MeetingPlace::Found>>(MeetingPlace::Found{});
  const std::uint64_t seed = host::OsRandom().next();
  thread_.submit({[this, result, seed] {
                    *result =
                        host::result_of<MeetingPlace::Found>([this, seed] { return place_->look(seed); });
                  },
                  [this, result](Duration) {
                    over(Errand::look, *result ? Status(Unit{}) : Status(result->error()));
                    if (*result) found(result->value());
                  }});
  thread_.submit({[this] { place_->tidy(); }, {}});
}

void PeerFinder::renew() {
  const auto result = std::make_shared<Status>(Unit{});  // owners: both halves of the job
  thread_.submit(
      {[this, result] { *result = host::result_of<Unit>([this] { return place_->renew(address_); }); },
       [this, result](Duration) { over(Errand::renew, *result); }});
}

void PeerFinder::found(const MeetingPlace::Found& found) {
  say_ignored(found.ignored);
  std::string line;
  if (const auto others = unlinked(found.peers); !others.empty()) {
    line = fmt::format("nobody of the run answers: dials peers that {} shows alive: {}", place_->folder(),
                       addresses_of(others));
    calls_.dial(others);
  } else {
    calls_.looked();
    if (searches_ && found.peers.empty())
      line = fmt::format("nobody of the run answers, and {} shows nobody alive ({} notices have expired)",
                         place_->folder(), found.expired);
  }
  if (!line.empty() && line != told_) calls_.say(line);
  told_ = line;
}

void PeerFinder::over(Errand errand, const Status& status) {
  const bool is_news = rendezvous_.done(loop_.now(), errand, !status);
  if (is_news)
    calls_.say(fmt::format(
        "{}{}: {}", errand == Errand::look ? "cannot look for peers" : "others cannot find this peer",
        status.error().lasting ? "" : " (tried again, less and less often)", status.error().message));
}

void PeerFinder::say_ignored(const std::vector<std::string>& ignored) {
  std::vector<std::string> news;
  for (const std::string& what : ignored)
    if (is_news(what)) news.push_back(what);
  if (!news.empty())
    calls_.say(
        fmt::format("ignores {} of the notices in {}: {}", news.size(), place_->folder(), listed(news)));
}

bool PeerFinder::is_news(const std::string& what) {
  return told_of_.size() < kMostTold && told_of_.insert(what).second;
}

void PeerFinder::write_down() {
  if (known_.path().empty()) return;
  const auto result = std::make_shared<Status>(Unit{});  // owners: both halves of the job
  thread_.submit({[result, path = known_.path(), text = known_.text()] { *result = write_file(path, text); },
                  [this, result](Duration) {
                    if (!*result && is_news(result->error().message)) calls_.say(result->error().message);
                  }});
}

void PeerFinder::leave(const std::function<bool()>& cut_short) {
  if (!place_) return;
  hurry_ = true;                                         // the errand under way
  const auto result = std::make_shared<Status>(Unit{});  // owners: both halves of the job
  thread_.submit({[this, result] {
                    hurry_ = false;
                    *result = host::result_of<Unit>([this] { return place_->leave(); });
                  },
                  [this, result](Duration) {
                    left_ = true;
                    if (!*result)
                      calls_.say(fmt::format("the notice of this peer stays in {} until it expires: {}",
                                             place_->folder(), result->error().message));
                  }});
  loop_.run_until([&] { return left_ || cut_short(); }, kGoodbye);
  hurry_ = true;
}

}  // namespace tw::peer
