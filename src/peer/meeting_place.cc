// SPDX-License-Identifier: Apache-2.0
#include "peer/meeting_place.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "host/identity/announcement.h"

namespace tw::peer {

MeetingPlace::MeetingPlace(world::Files& files, std::string folder, const Self& self,
                           std::function<std::int64_t()> unix_s)
    : files_(files), folder_(std::move(folder)), self_(self), unix_s_(std::move(unix_s)) {
  // Another token of the run makes the same digits, a token of another run makes other ones.
  const Digest run{digest_of(self.token.run_key).high, self.training.low};
  own_ = {.run = to_string(digest_of(to_string(run))).substr(0, swarm::NoticeName::kRunDigits),
          .peer = self.peer};
}

Result<MeetingPlace::Found> MeetingPlace::look(std::uint64_t seed) {
  const auto names = files_.list(folder_);
  if (!names && names.error().lasting) return Found{};  // nobody has been there
  if (!names) return names.error();
  const std::int64_t now = unix_s_();
  const swarm::NoticeChoice choice = swarm::choose_notices(names.value(), own_, now, seed);
  Found found{.expired = choice.expired};
  for (const std::string& name : choice.ahead)
    found.ignored.push_back(name + " is dated ahead of this machine's clock");
  for (const std::string& name : choice.read) {
    const auto bytes = files_.read(path_of(name));
    if (!bytes) {  // removed since, or too large
      found.ignored.push_back(bytes.error().message);
      continue;
    }
    const auto said = host::read_announcement(bytes.value(), self_.tls, now);
    if (!said) {
      found.ignored.push_back(name + " " + said.error().message);
    } else if (said.value().training != self_.training || said.value().peer == self_.peer) {
      found.ignored.push_back(name + " is of another run");
    } else {
      found.peers.push_back({said.value().peer, said.value().address});
    }
  }
  // Another peer may remove the same ones.
  for (const std::string& name : choice.over) (void)files_.remove(path_of(name));
  return found;
}

Status MeetingPlace::renew(const std::string& address) {
  const std::int64_t until = unix_s_() + wire::kAnnouncementLasts_s;
  own_.until_unix_s = until;
  const std::string name = to_string(own_);
  const auto bytes = host::sign_announcement(
      self_.token,
      {.training = self_.training, .peer = self_.peer, .address = address, .until_unix_s = until});
  const std::array<std::span<const std::byte>, 1> parts{bytes};
  TW_TRY(files_.make_folder(folder_));
  // A file is seen while it is written, an object of a store is not.
  const bool is_file = folder_.find("://") == std::string::npos;
  const std::string written = path_of(is_file ? name + ".part" : name);
  TW_TRY(files_.write(written, parts));
  if (is_file) TW_TRY(files_.rename(written, path_of(name)));
  const std::string before = std::exchange(notice_, name);
  if (!before.empty() && before != name) (void)files_.remove(path_of(before));  // it expires
  return Unit{};
}

Status MeetingPlace::leave() {
  if (notice_.empty()) return Unit{};
  return files_.remove(path_of(std::exchange(notice_, {})));
}

}  // namespace tw::peer
