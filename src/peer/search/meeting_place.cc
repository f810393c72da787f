// SPDX-License-Identifier: Apache-2.0
#include "peer/search/meeting_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "host/address.h"

namespace tw::peer {

MeetingPlace::MeetingPlace(world::Files& files, std::string folder, const Self& self,
                           std::function<std::int64_t()> unix_s)
    : files_(files),
      folder_(std::move(folder)),
      is_file_(!world::appears_whole(folder_)),
      self_(self),
      unix_s_(std::move(unix_s)) {
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
  swarm::NoticeChoice choice = swarm::choose_notices(names.value(), own_, now, seed);
  old_ = std::move(choice.over);
  Found found{.expired = choice.expired};
  for (const std::string& name : choice.ahead)
    found.ignored.push_back(name + " is dated ahead of this machine's clock");
  for (const std::string& name : choice.read) {
    const auto bytes = files_.read(path_of(name));
    if (!bytes && !bytes.error().lasting) {  // the next one would take as long
      if (found.peers.empty()) return bytes.error();
      return found;
    }
    if (!bytes) {  // removed since, or too large
      found.ignored.push_back(bytes.error().message);
      continue;
    }
    const auto said = host::read_announcement(bytes.value(), self_.tls, now);
    const auto objection = said ? objection_to(said.value()) : said.error().message;
    if (objection) {
      found.ignored.push_back(name + " " + *objection);
    } else if (said.value().address != self_.address) {  // else of a former process that listened here
      found.peers.push_back({said.value().peer, said.value().address});
    }
  }
  return found;
}

std::optional<std::string> MeetingPlace::objection_to(const host::Announcement& said) const {
  if (said.training != self_.training || said.peer == self_.peer) return "is of another run";
  if (!leads_elsewhere(said.address)) return "names " + said.address + ", an address of its machine alone";
  return std::nullopt;
}

bool MeetingPlace::leads_elsewhere(const std::string& address) const {
  const auto parsed = host::parse_address(address);
  return is_file_ || !parsed || !host::is_this_machine(parsed.value().host);
}

void MeetingPlace::tidy() {
  // Another peer may remove the same ones. The next look finds what is left.
  for (const std::string& name : std::exchange(old_, {}))
    if (!files_.remove(path_of(name))) return;
}

Status MeetingPlace::renew(const std::string& address) {
  if (!leads_elsewhere(address))
    return Error{fmt::format("{} is an address of this machine alone, and peers on others read {}; give "
                             "listen HOST:PORT, such as 0.0.0.0:0",
                             address, folder_),
                 true};
  const std::int64_t until = unix_s_() + wire::kAnnouncementLasts_s;
  own_.until_unix_s = until;
  const std::string name = to_string(own_);
  TW_TRY(const auto bytes,
         host::sign_announcement(
             self_.token,
             {.training = self_.training, .peer = self_.peer, .address = address, .until_unix_s = until}));
  TW_TRY(files_.make_folder(folder_));
  // It may be there although the store says that it has failed.
  const std::string before = std::exchange(notice_, name);
  TW_TRY(write(name, bytes));
  if (!before.empty() && before != name) (void)files_.remove(path_of(before));  // it expires
  return Unit{};
}

Status MeetingPlace::write(const std::string& name, std::span<const std::byte> bytes) {
  const std::array<std::span<const std::byte>, 1> parts{bytes};
  if (!is_file_) return files_.write(path_of(name), parts);
  // One name for all: nobody removes what a killed process leaves.
  const std::string unfinished = path_of(fmt::format("peer-{}-{}.part", own_.run, self_.peer.value));
  TW_TRY(files_.write(unfinished, parts));
  return files_.rename(unfinished, path_of(name));
}

Status MeetingPlace::leave() {
  if (notice_.empty()) return Unit{};
  const std::string name = std::exchange(notice_, {});
  Status removed = files_.remove(path_of(name));
  if (removed) return removed;
  // It may never have been there.
  const auto names = files_.list(folder_);
  const bool stays = names && std::ranges::find(names.value(), name) != names.value().end();
  return stays ? removed : Status(Unit{});
}

}  // namespace tw::peer
