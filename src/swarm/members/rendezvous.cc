// SPDX-License-Identifier: Apache-2.0
#include "swarm/members/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "wire/token.h"

namespace tw::swarm {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPrefix = "peer-";
constexpr Duration kFirstSilence = 2s;
constexpr Duration kFirstRetry = 5s;

/// A whole number up to `end`, which it takes away, too.
template <class Number>
std::optional<Number> take_number(std::string_view& text, char end) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto taken = static_cast<std::size_t>(stop - text.data());
  const bool ends = end == '\0' ? taken == text.size() : taken < text.size() && text[taken] == end;
  if (error != std::errc() || !ends) return std::nullopt;
  text.remove_prefix(std::min(taken + 1, text.size()));
  return number;
}

}  // namespace

std::string to_string(const NoticeName& name) {
  return fmt::format("{}{}-{}-{}", kPrefix, name.run, name.until_unix_s, name.peer.value);
}

std::optional<NoticeName> notice_name_in(const std::string& text) {
  std::string_view rest = text;
  if (!rest.starts_with(kPrefix) || rest.size() <= kPrefix.size() + NoticeName::kRunDigits)
    return std::nullopt;
  rest.remove_prefix(kPrefix.size());
  NoticeName name{.run = std::string(rest.substr(0, NoticeName::kRunDigits))};
  rest.remove_prefix(NoticeName::kRunDigits);
  if (!rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  const auto until = take_number<std::int64_t>(rest, '-');
  const auto peer = until ? take_number<std::uint64_t>(rest, '\0') : std::nullopt;
  if (!peer) return std::nullopt;
  name.until_unix_s = *until;
  name.peer = PeerId{*peer};
  if (*until <= 0 || to_string(name) != text) return std::nullopt;  // 007
  return name;
}

NoticeChoice choose_notices(const std::vector<std::string>& names, const NoticeName& own,
                            std::int64_t now_unix_s, std::uint64_t seed) {
  NoticeChoice choice;
  std::map<PeerId, NoticeName> fresh;  // a peer that was killed while it renewed has two
  for (const std::string& text : names) {
    const auto name = notice_name_in(text);
    if (!name || name->run != own.run || name->peer == own.peer) continue;
    if (name->until_unix_s > now_unix_s + wire::kAnnouncementLasts_s + wire::kClocksDiffer_s) {
      choice.ahead.push_back(text);
    } else if (name->until_unix_s > now_unix_s) {
      NoticeName& newest = fresh.try_emplace(name->peer, *name).first->second;
      newest.until_unix_s = std::max(newest.until_unix_s, name->until_unix_s);
    } else {
      ++choice.expired;
      const bool goes = now_unix_s - name->until_unix_s >= NoticeChoice::kKept_s;
      if (goes && choice.over.size() < NoticeChoice::kMostRemoved) choice.over.push_back(text);
    }
  }
  choice.fresh = fresh.size();
  std::vector<NoticeName> left;
  for (const auto& [peer, name] : fresh) left.push_back(name);
  Prng random(seed);
  while (!left.empty() && choice.read.size() < NoticeChoice::kMostRead) {
    std::swap(left[random.below(left.size())], left.back());
    choice.read.push_back(to_string(left.back()));
    left.pop_back();
  }
  return choice;
}

/// Peers that begin together drift apart.
Duration Rendezvous::about(Duration time) {
  return std::chrono::duration_cast<Duration>(time * (0.8 + 0.4 * random_.uniform()));
}

std::optional<Rendezvous::Errand> Rendezvous::next(Instant now, Standing standing) {
  if (!standing.alone) {
    alone_since_ = kNever;
    recalled_ = false;
    silence_ = kFirstSilence;
    if (look_.retry == Duration{}) look_.next = now;
  } else {
    alone_since_ = std::min(alone_since_, now);
  }
  const bool searches = standing.alone && now - alone_since_ >= kBeforeSearch;
  if (searches && !std::exchange(recalled_, true)) return Errand::recall;
  if (busy_ || !options_.has_folder) return std::nullopt;
  const bool looks = searches && now >= look_.next;
  const bool renews = options_.announces && standing.has_run && now >= renewal_.next;
  if (!looks && !renews) return std::nullopt;
  busy_ = true;
  return looks ? Errand::look : Errand::renew;
}

bool Rendezvous::done(Instant now, Errand errand, bool failed) {
  TW_CHECK(busy_ && errand != Errand::recall);
  busy_ = false;
  Turn& turn = errand == Errand::look ? look_ : renewal_;
  if (failed) {
    const bool is_news = turn.retry == Duration{};
    turn.retry = std::clamp<Duration>(2 * turn.retry, kFirstRetry, kLongestRetry);
    turn.next = now + about(turn.retry);
    return is_news;
  }
  turn.retry = {};
  if (errand == Errand::look) silence_ = std::clamp<Duration>(2 * silence_, kFirstSilence, kLongestSilence);
  turn.next = now + about(errand == Errand::look ? silence_ : kRenewEvery);
  return false;
}

}  // namespace tw::swarm
