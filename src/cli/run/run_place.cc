// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_place.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/result.h"
#include "host/identity/authority.h"
#include "host/system/calendar.h"
#include "launch/fleet.h"

namespace tw::cli {
namespace {

constexpr std::int64_t kLaunchTokenLasts_s = 30LL * 86400;

std::string folder_in_environment(const char* name, const char* below) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? "" : std::string(value) + below;
}

std::string text_of_role(const host::Authority& authority, wire::Role role) {
  const std::int64_t now = host::now_unix_s();
  return to_text(
      authority.issue({.role = role, .from_unix_s = now, .expires_unix_s = now + kLaunchTokenLasts_s}));
}

}  // namespace

Result<std::string> runs_folder(const std::string& given) {
  std::string folder = given;
  if (folder.empty()) folder = folder_in_environment("XDG_STATE_HOME", "/tradewind");
  if (folder.empty()) folder = folder_in_environment("HOME", "/.local/state/tradewind");
  if (folder.empty())
    return Error{"HOME is not set, which has the folder of run states; set it, or give --state FOLDER"};
  return std::filesystem::absolute(folder).lexically_normal().string();
}

std::string command_for(std::string_view command, const std::string& run, const std::string& state) {
  return fmt::format("tw {} {}{}", command, run,
                     state.empty() ? "" : " --state " + launch::shell_word(state));
}

Result<RunTokens> make_tokens(const std::string& key_folder, const std::string& run, NewKey new_key,
                              const std::string& down) {
  const std::string key = key_folder + "/ca.key", certificate = key_folder + "/ca.crt";
  std::error_code error;
  const bool is_half = std::filesystem::exists(key, error) && !std::filesystem::exists(certificate, error);
  if (is_half && new_key == NewKey::if_none)
    return Error{
        fmt::format("{} is missing, and peers of run {} have tokens of {}; put it back, or end the run "
                    "({}) and remove this key",
                    certificate, run, key, down)};
  if (is_half && new_key == NewKey::if_none_whole) std::filesystem::remove(key, error);
  if (new_key != NewKey::never && !std::filesystem::exists(key, error)) {
    const host::Authority authority = host::Authority::create(run);
    TW_TRY(authority.save(key_folder));
  }
  TW_TRY(const auto authority, host::Authority::open(key_folder));
  return RunTokens{text_of_role(authority, wire::Role::peer), text_of_role(authority, wire::Role::anchor)};
}

std::string state_text(const launch::PeerReport& report) {
  std::string text(launch::to_string(report.state));
  if (report.exit_code) text += fmt::format(" (exit {})", *report.exit_code);
  return text;
}

std::string need_of(const launch::RunState& state, const std::vector<launch::PeerReport>& reports,
                    const std::string& given) {
  std::string names;
  for (const launch::PeerJob& peer : state.deployment.peers)
    if (needs_person(launch::report_of(reports, peer.number))) names += " " + launch::short_name(peer);
  return fmt::format("run {} has ended; exit code {} of{}: {} shows why", state.deployment.run,
                     launch::kNeedsPerson, names, command_for("logs", state.deployment.run, given));
}

std::string table_of(const launch::RunState& state, const std::vector<launch::PeerReport>& reports) {
  std::string text = fmt::format("{:<6} {:<18} {:<24} {:<22} {:>8} {:>8}  {}\n", "peer", "state", "machine",
                                 "where", "restarts", "$/h", "");
  for (const launch::PeerJob& peer : state.deployment.peers) {
    const launch::PeerReport report = launch::report_of(reports, peer.number);
    const std::string machine =
        fmt::format("{}@{} {}", peer.machine.gpu, market::to_string(peer.machine.site),
                    peer.anchor ? "anchor" : std::string(market::to_string(peer.machine.purchase)));
    text += fmt::format("{:<6} {:<18} {:<24} {:<22} {:>8} {:>8.4g}  {}\n", launch::short_name(peer),
                        state_text(report), machine, report.where, report.restarts, peer.machine.usd_per_h,
                        report.detail);
  }
  return text;
}

}  // namespace tw::cli
