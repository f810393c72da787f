// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// One page for browsers, with all scripts, styles and the map inside: it loads nothing. Its sources are
/// web/. Thread-safe.
namespace tw::monitor {

/// Shows the boards of `events` beside its own address (an EventSource: `event: board`, `data:` the board as
/// JSON, once a second). The page's query goes along, so a token in it reaches /events too.
std::string_view live_page();

/// What a server sends as Content-Security-Policy with the live page; the page itself says the same. Scripts
/// and styles are allowed by digest: nothing that a run tells can run.
std::string_view page_policy();

/// What a frozen page shows, and the JSON it takes.
enum class PageKind {
  run,      ///< by frozen_json(Board)
  plan,     ///< {made_s, plan}: what `tw plan --json` prints
  predict,  ///< {made_s, model, peers, prediction, inputs}: plan/output/prediction_json.h
  what_if,  ///< {made_s, machines, seed, report}: sim/scenarios/what_if_json.h
};

std::string_view name_of(PageKind kind);

/// The same page with its data in it: a file to mail, for which no server is needed.
std::string frozen_page(PageKind kind, std::string_view title, std::string_view json);

}  // namespace tw::monitor
