// SPDX-License-Identifier: Apache-2.0
#include "peer/link_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/fields.h"

namespace tw::peer {
namespace {

using Place = LinkField::Place;

constexpr LinkField kLinkFields[] = {
    {"join", "HOST:PORT of any peer of the run; several are tried; none: start the run",
     [](LinkOptions& o) -> Place { return &o.join; }},
    {"listen",
     "HOST:PORT where others reach this peer, port 0: any free one; none: it only dials (behind NAT); "
     "default: "
     "a free port, on this machine alone when those it joins are here too",
     [](LinkOptions& o) -> Place { return &o.listen; }},
    {"out",
     "folder for the event log and, by default, checkpoints; none: terminal only, and tradewind-checkpoints",
     [](LinkOptions& o) -> Place { return &o.out; }},
    {"log_limit",
     "the most that the event log takes of the disk; beyond it the middle of the log goes, never its "
     "beginning",
     [](LinkOptions& o) -> Place { return &o.log_limit; }},
    {"id", "number of this peer, never used before in the run; default: by chance",
     [](LinkOptions& o) -> Place { return &o.id; }},
    {"wait_for", "the first peer begins when so many peers are there",
     [](LinkOptions& o) -> Place { return &o.wait_for; }},
    {"site",
     "PROVIDER:REGION:ZONE where this peer is; peers with the same one are averaged first where that pays "
     "(training.sites); none: a site of its own",
     [](LinkOptions& o) -> Place { return &o.site; }},
    {"role",
     "peer, or anchor: a machine that stays; anchors lead first, are asked for the state first, and copy "
     "checkpoints away (checkpoint.to); default: that of the token",
     [](LinkOptions& o) -> Place { return &o.role; }},
    {"token", "TOKEN or @FILE, from `tw token`: lets this peer in, and names peers to join",
     [](LinkOptions& o) -> Place { return &o.token; }},
    {"bootstrap", "HOST[:PORT] of any peer, as it prints it: finds the peers of the run through it (UDP)",
     [](LinkOptions& o) -> Place { return &o.bootstrap; }},
    {"run", "folder of `tw init`, for its token", [](LinkOptions& o) -> Place { return &o.run_folder; }},
    {"rejoin",
     "the run has begun before: wait for its peers, up to training.patience, before it goes on alone; as it "
     "is when {out} or the checkpoint folder holds a log or checkpoint of the run",
     [](LinkOptions& o) -> Place { return &o.rejoin; }},
    {"no_rejoin", "no peer of the run is alive: resume or begin at once",
     [](LinkOptions& o) -> Place { return &o.no_rejoin; }},
    {"anew",
     "begin the run from round 1, whatever the folders hold: its checkpoints get names that end with .old; "
     "for "
     "one start of each peer, not for a command that is started again",
     [](LinkOptions& o) -> Place { return &o.anew; }},
    {"notices",
     "who says that this machine goes: auto (the cloud that its firmware names), aws, gcp, azure, file:PATH, "
     "signal (SIGTERM, SIGUSR1 and SIGUSR2 alone, which are notices with all of these), none",
     [](LinkOptions& o) -> Place { return &o.notices; }},
    {"grace", "how long a notice without a deadline of its own lasts: from the signal to the kill",
     [](LinkOptions& o) -> Place { return &o.grace; }},
    {"watch",
     "HOST:PORT where browsers and Prometheus see the run, such as 127.0.0.1:8080, port 0: any free one; "
     "beyond this machine over TLS, to holders of a token",
     [](LinkOptions& o) -> Place { return &o.watch; }},
    {"usd_per_h",
     "price of this machine, USD an hour, for the cost of the run; or catalog[:TYPE]: that of its type at "
     "{site} "
     "by the catalogs (tw run); `tw up` gives that of its plan",
     [](LinkOptions& o) -> Place { return &o.usd_per_h; }},
    {"progress", "lines on stderr about rounds and peers: auto (on a terminal), line, off",
     [](LinkOptions& o) -> Place { return &o.progress; }},
    {"insecure", "no TLS and no token, on all peers: anybody on the network can read and change the run",
     [](LinkOptions& o) -> Place { return &o.insecure; }},
};

/// The name that may have been meant, as it is written; else all of them.
Error unknown_option(std::string_view name, Spelling spelling) {
  std::vector<std::string> known;
  for (const LinkField& field : kLinkFields) known.push_back(spelled(spelling, field.name).name);
  const std::string given = spelled(spelling, name).name, meant = did_you_mean(given, known);
  return Error{
      fmt::format("{}: unknown option{}", given,
                  meant.empty() ? fmt::format("; expected one of {}", fmt::join(known, ", ")) : meant)};
}

}  // namespace

std::span<const LinkField> link_fields() { return kLinkFields; }

const LinkField* find_link_field(std::string_view name) {
  const auto found = std::ranges::find(kLinkFields, name, &LinkField::name);
  return found == std::end(kLinkFields) ? nullptr : &*found;
}

std::string meaning_of(const LinkField& field, Spelling spelling) {
  std::string text(field.meaning);
  for (const LinkField& other : kLinkFields) {
    const std::string mark = fmt::format("{{{}}}", other.name);
    if (const std::size_t at = text.find(mark); at != std::string::npos)
      text.replace(at, mark.size(), spelled(spelling, other.name).name);
  }
  return text;
}

std::string value_of(const LinkField& field, LinkOptions options) {
  const Place place = field.place(options);
  if (auto* const* on = std::get_if<bool*>(&place)) return **on ? "1" : "";
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&place))
    return fmt::format("{}", fmt::join(**list, ","));
  return **std::get_if<std::string*>(&place);
}

bool takes_several(const LinkField& field) {
  LinkOptions scratch;
  return std::holds_alternative<std::vector<std::string>*>(field.place(scratch));
}

bool is_flag(const LinkField& field) {
  LinkOptions scratch;
  return std::holds_alternative<bool*>(field.place(scratch));
}

Status assign(LinkOptions& options, std::string_view name, const std::string& value, Spelling spelling) {
  const LinkField* field = find_link_field(name);
  if (field == nullptr) return unknown_option(name, spelling);
  const Place place = field->place(options);
  if (auto* const* text = std::get_if<std::string*>(&place)) **text = value;
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&place)) (*list)->push_back(value);
  if (auto* const* truth = std::get_if<bool*>(&place)) {
    const auto given = truth_in(value);
    if (!given) return Error{fmt::format("{}: expected true or false", spelled(spelling, name).with(value))};
    **truth = *given;
  }
  return Unit{};
}

}  // namespace tw::peer
