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
    {"listen", "HOST:PORT for other peers, port 0: any free one; none: this peer only dials",
     [](LinkOptions& o) -> Place { return &o.listen; }},
    {"out", "folder for the event log and, by default, checkpoints",
     [](LinkOptions& o) -> Place { return &o.out; }},
    {"log_limit", "size of the event log at most; its middle is dropped, never its beginning",
     [](LinkOptions& o) -> Place { return &o.log_limit; }},
    {"id", "number of this peer, unused in the run before; default: random",
     [](LinkOptions& o) -> Place { return &o.id; }},
    {"wait_for", "number of peers at which the first one begins",
     [](LinkOptions& o) -> Place { return &o.wait_for; }},
    {"site", "PROVIDER:REGION:ZONE of this peer; peers of one site share a LAN",
     [](LinkOptions& o) -> Place { return &o.site; }},
    {"role", "peer, or anchor: a machine that stays; default: that of the token",
     [](LinkOptions& o) -> Place { return &o.role; }},
    {"token", "TOKEN or @FILE, from tw token: admits this peer and names peers to join",
     [](LinkOptions& o) -> Place { return &o.token; }},
    {"run", "folder of tw init, for its token", [](LinkOptions& o) -> Place { return &o.run_folder; }},
    {"rejoin", "the run has begun before: wait for its peers before going on alone",
     [](LinkOptions& o) -> Place { return &o.rejoin; }},
    {"no_rejoin", "no peer of the run is alive: resume or begin at once",
     [](LinkOptions& o) -> Place { return &o.no_rejoin; }},
    {"anew", "begin from round 1 and set old checkpoints aside; not for restarts",
     [](LinkOptions& o) -> Place { return &o.anew; }},
    {"notices", "source of preemption notices: auto, aws, gcp, azure, file:PATH, signal, none",
     [](LinkOptions& o) -> Place { return &o.notices; }},
    {"grace", "how long a notice without a deadline lasts: from the signal to the kill",
     [](LinkOptions& o) -> Place { return &o.grace; }},
    {"watch", "HOST:PORT where browsers and Prometheus see the run, such as 127.0.0.1:8080",
     [](LinkOptions& o) -> Place { return &o.watch; }},
    {"usd_per_h", "price of this machine, USD an hour; tw run also takes catalog[:TYPE]",
     [](LinkOptions& o) -> Place { return &o.usd_per_h; }},
    {"progress", "progress lines on stderr: auto (on a terminal), line, off",
     [](LinkOptions& o) -> Place { return &o.progress; }},
    {"insecure", "no TLS and no token, on all peers: anybody can read and change the run",
     [](LinkOptions& o) -> Place { return &o.insecure; }},
};

/// The name that may have been meant, as it is written; else all of them.
Error unknown_option(std::string_view name, Spelling spelling) {
  std::vector<std::string> known;
  for (const LinkField& field : kLinkFields) known.push_back(spelled(spelling, field.name).name);
  const std::string given = spelled(spelling, name).name;
  if (const auto instead = replacement_of(name); !instead.empty())
    return Error{fmt::format("{} {}", given, instead)};
  const std::string meant = did_you_mean(given, known);
  return Error{
      fmt::format("{}: unknown option{}", given,
                  meant.empty() ? fmt::format("; expected one of {}", fmt::join(known, ", ")) : meant)};
}

}  // namespace

std::string_view replacement_of(std::string_view name) {
  if (name != "bootstrap") return "";
  return "is no more: give join the address of any living peer (HOST:PORT), or the run file a rendezvous "
         "(docs/launch.md), where peers find each other";
}

std::span<const LinkField> link_fields() { return kLinkFields; }

const LinkField* find_link_field(std::string_view name) {
  const auto found = std::ranges::find(kLinkFields, name, &LinkField::name);
  return found == std::end(kLinkFields) ? nullptr : &*found;
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
  if (value.empty()) return Error{found_nothing(spelled(spelling, name), field->meaning)};
  const Place place = field->place(options);
  if (auto* const* text = std::get_if<std::string*>(&place)) **text = value;
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&place)) (*list)->push_back(value);
  if (auto* const* truth = std::get_if<bool*>(&place)) {
    const auto given = truth_in(value);
    if (!given)
      return Error{fmt::format("{}: expected true or false{}", spelled(spelling, name).with(value),
                               meant_truth(value))};
    **truth = *given;
  }
  return Unit{};
}

}  // namespace tw::peer
