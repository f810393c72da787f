// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/engine.h"
#include "launch/run_store.h"
#include "plan/advise/replan.h"

/// What `tw up`, `tw down`, `tw status` and `tw logs` share.
namespace tw::cli {

/// Folder of the states of all runs: the given one, else $XDG_STATE_HOME/tradewind or
/// ~/.local/state/tradewind. Absolute. An error where neither variable is set.
Result<std::string> runs_folder(const std::string& given);

/// "tw status NAME", with --state where it was given. command: "status".
std::string command_for(std::string_view command, const std::string& run, const std::string& state);

/// Tokens of a launched run. They are made by the run's own key, in the folder of its state or in that of
/// `tw init`.
struct RunTokens {
  std::string peer, anchor;
};

/// When make_tokens makes the run's key.
enum class NewKey {
  never,
  if_none,        ///< there is no ca.key
  if_none_whole,  ///< nor one without a ca.crt, whose writer was killed: no peer has a token of it
};

/// key_folder: of ca.key.
/// down: the command that ends the run, for messages.
Result<RunTokens> make_tokens(const std::string& key_folder, const std::string& run, NewKey new_key,
                              const std::string& down);

/// "failed (exit 2)".
std::string state_text(const launch::PeerReport& report);

/// What a person has to look at after launch::RunEnd::needs_person. given: --state.
std::string need_of(const launch::RunState& state, const std::vector<launch::PeerReport>& reports,
                    const std::string& given);

/// The table that `tw up` and `tw status` show.
std::string table_of(const launch::RunState& state, const std::vector<launch::PeerReport>& reports);

/// {"runs": [their names]}
std::string json_of_runs(const std::vector<std::string>& runs);

/// One object with the same.
std::string json_of(const launch::RunState& state, const std::vector<launch::PeerReport>& reports,
                    const plan::RunProgress& progress);

}  // namespace tw::cli
