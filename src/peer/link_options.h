// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "peer/spelling.h"

namespace tw::peer {

/// A user's options of one peer, as texts: links.h checks them. An empty text was not given.
struct LinkOptions {
  std::vector<std::string> join;
  std::string listen;
  std::string out;
  std::string log_limit = "256MiB";
  std::string id;
  std::string wait_for = "1";
  std::string site;
  std::string role;
  std::string token;
  std::string run_folder;
  std::string notices = "auto";
  std::string grace = "25s";
  std::string watch;
  std::string usd_per_h;
  std::string progress = "auto";
  bool rejoin = false;
  bool no_rejoin = false;
  bool anew = false;
  bool insecure = false;
};

/// One option. Command line, library and reference use one table of them.
struct LinkField {
  using Place = std::variant<std::string*, std::vector<std::string>*, bool*>;

  std::string_view name;  ///< "wait_for"
  std::string_view meaning;
  Place (*place)(LinkOptions&);
};

/// In the order of the documentation.
std::span<const LinkField> link_fields();

/// What replaced an option that earlier versions had; empty: there was none of this name.
std::string_view replacement_of(std::string_view name);

/// nullptr: no such option.
const LinkField* find_link_field(std::string_view name);

/// The value as the option's variable has it: a list with commas, a flag as 1; empty: none, nor a default.
std::string value_of(const LinkField& field, LinkOptions options);

/// Whether it may be given several times.
bool takes_several(const LinkField& field);
bool is_flag(const LinkField& field);

/// Stores a value: lists append it, others are replaced; flags take true or false. Errors: an unknown name,
/// with the nearest one; an empty value; neither true nor false.
Status assign(LinkOptions& options, std::string_view name, const std::string& value, Spelling spelling);

}  // namespace tw::peer
