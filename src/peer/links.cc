// SPDX-License-Identifier: Apache-2.0
#include "peer/links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/option.h"
#include "base/text/text.h"
#include "host/address.h"
#include "host/disk/absolute_path.h"
#include "host/identity/authority.h"
#include "host/store/store_files.h"
#include "host/system/calendar.h"
#include "host/system/random_os.h"
#include "monitor/logs/past_run.h"
#include "peer/other_run.h"
#include "peer/search/meeting_place.h"
#include "peer/values.h"
#include "train/run/run_facts.h"
#include "train/run/run_fields.h"

namespace tw::peer {
namespace {

/// Whole numbers beyond it are rounded by most readers of JSON, and ids stand in the event log.
constexpr std::uint64_t kMaxId = (1ULL << 53) - 1;
constexpr std::uint64_t kMostToWaitFor = 10'000;
constexpr std::int64_t kAlone_s = 3650LL * 86400;

bool is_loopback(const std::string& address) {
  const auto parsed = host::parse_address(address);
  return parsed && host::is_this_machine(parsed.value().host);
}

/// The default address to listen at: one that the peers to join can reach.
std::string default_listen(const std::vector<std::string>& join) {
  return std::all_of(join.begin(), join.end(), is_loopback) ? "127.0.0.1:0" : "0.0.0.0:0";
}

std::string meeting_folder(const train::RunOptions& run) {
  if (run.checkpoint.rendezvous == train::CheckpointOptions::kNone) return "";
  if (!run.checkpoint.rendezvous.empty()) return run.checkpoint.rendezvous;
  return run.checkpoint.to.empty() ? "" : run.checkpoint.to + "/peers";
}

void join_the_living(Options& options, std::uint64_t parameters) {
  constexpr std::int64_t kLongest_s = 15;  // then no more requests, which last 5 s at most
  train::SessionOptions& session = options.session;
  const std::int64_t end = host::now_unix_s() + kLongest_s;
  host::StoreFiles files(MeetingPlace::kEffort, [end] { return host::now_unix_s() >= end; });
  MeetingPlace place(files, session.meeting.place,
                     {*options.token, *options.tls, train::run_digest(session.run, parameters), session.self},
                     host::now_unix_s);
  const auto found = place.look(host::OsRandom().next());
  if (!found) {
    session.meeting.unasked = found.error().message;
    return options.warnings.push_back("cannot look for peers before it begins the run: " +
                                      session.meeting.unasked);
  }
  for (const wire::Member& peer : found.value().peers) session.found.push_back(peer.address);
  if (!session.found.empty())
    options.warnings.push_back(fmt::format("before it begins the run, it asks peers that {} shows alive: {}",
                                           session.meeting.place, fmt::join(session.found, ", ")));
}

/// Nothing says that others have the run, or that it is to begin anew.
bool begins_unless_found(const train::SessionOptions& session) {
  return session.founds() && session.found.empty() && session.past != train::Past::begun && !session.anew;
}

/// Makes it if it is not there.
bool is_writable(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

struct ProgramCount {
  std::string_view key;
  std::uint64_t ProgramSettings::*place;
  Bounds bounds;
};

struct ProgramText {
  std::string_view key;
  std::string ProgramSettings::*place;
};

constexpr ProgramCount kProgramCounts[] = {{"grain", &ProgramSettings::grain, {.least = 0}},
                                           {"threads", &ProgramSettings::threads, {1, kMostThreads}},
                                           {"begun", &ProgramSettings::begun, {.least = 1}}};
constexpr ProgramText kProgramTexts[] = {{"run_file", &ProgramSettings::run_file},
                                         {"gpu", &ProgramSettings::gpu},
                                         {"gpu_uuid", &ProgramSettings::gpu_uuid}};

/// Reads the texts of one user, in the user's spelling.
class LinkReader {
 public:
  LinkReader(const LinkOptions& given, Spelling spelling, const CatalogPrice& catalog_price)
      : given_(given), spelling_(spelling), catalog_price_(catalog_price) {}

  Result<Options> read();
  Status check();  ///< no file is read, no catalog asked

 private:
  OptionName option(std::string_view name) const { return spelled(spelling_, name); }

  std::string flag(std::string_view name) const { return spelled_flag(spelling_, name); }

  Status read_self();  ///< first: others look at wait_for
  Status read_log();
  Status read_machine();
  Result<std::optional<wire::Token>> token();  ///< nothing with insecure
  std::string admission() const;
  Status read_addresses();
  Status use_token(const wire::Token& token);
  Status check_together() const;
  Status check_role() const;
  void read_role(const std::optional<wire::Token>& token);
  Status check_price();
  Status read_price();
  Status read_progress();
  Status read_listen();
  void read_past();
  void read_watch(const std::optional<wire::Token>& token);
  void warn_of_insecurity();

  const LinkOptions& given_;
  Spelling spelling_;
  const CatalogPrice& catalog_price_;
  Options options_;
};

Status LinkReader::check() {
  TW_TRY(read_self());
  TW_TRY(read_log());
  TW_TRY(read_machine());
  TW_TRY(read_addresses());
  TW_TRY(check_together());
  TW_TRY(check_role());
  TW_TRY(check_price());
  return read_progress();
}

Result<Options> LinkReader::read() {
  TW_TRY(check());
  const auto token = this->token();
  if (!token) return token.error();
  options_.admission = admission();
  read_past();
  if (token.value()) TW_TRY(use_token(*token.value()));
  if (!options_.admission.empty()) options_.token = token.value();
  read_role(token.value());
  TW_TRY(read_price());
  TW_TRY(read_listen());
  read_watch(token.value());
  warn_of_insecurity();
  return std::move(options_);
}

Status LinkReader::read_self() {
  train::SessionOptions& session = options_.session;
  session.self = PeerId{std::max<std::uint64_t>(1, host::OsRandom().next() & kMaxId)};
  if (!given_.id.empty()) {
    TW_TRY(const auto id, parse_count(option("id"), given_.id, {.least = 1, .most = kMaxId}));
    session.self = PeerId{id};
  }
  session.incarnation = host::OsRandom().next();
  TW_TRY(auto site, parse_site_option(option("site"), given_.site));
  session.site = std::move(site);
  TW_TRY(const auto wait_for,
         parse_count(option("wait_for"), given_.wait_for, {.least = 1, .most = kMostToWaitFor}));
  session.wait_for = static_cast<std::uint32_t>(wait_for);
  return Unit{};
}

/// Options that exclude each other, whatever else is given.
Status LinkReader::check_together() const {
  const auto both = [](const std::string& one, const std::string& other, std::string_view why) {
    return Error{fmt::format("{} and {}: {}; give one of the two", one, other, why)};
  };
  const bool has_token = !given_.token.empty() || !given_.run_folder.empty();
  if (!given_.token.empty() && !given_.run_folder.empty())
    return both(option("token").name, option("run").with(given_.run_folder), "a peer has one token");
  if (has_token && given_.insecure)
    return both(flag("insecure"), "a token", "TLS is either off or on, for all peers of a run");
  if (given_.rejoin && given_.no_rejoin)
    return both(flag("rejoin"), flag("no_rejoin"), "the peers of a run may be alive or not");
  if (given_.rejoin && given_.anew)
    return both(flag("rejoin"), flag("anew"), "the run goes on or begins anew");
  return Unit{};
}

Status LinkReader::check_role() const {
  const std::string& role = given_.role;
  if (role.empty() || role == name_of(wire::Role::anchor) || role == name_of(wire::Role::peer)) return Unit{};
  return Error{fmt::format("{}: expected peer or anchor", option("role").with(role))};
}

void LinkReader::read_role(const std::optional<wire::Token>& token) {
  const std::string role =
      !given_.role.empty() ? given_.role : name_of(token ? token->role : wire::Role::peer);
  options_.session.anchor = role == name_of(wire::Role::anchor);
}

Status LinkReader::read_log() {
  TW_TRY(const auto limits, parse_log_limit(option("log_limit"), given_.log_limit));
  options_.log_limits = limits;
  for (const auto& [key, folder] : {std::pair("out", given_.out), std::pair("run", given_.run_folder)})
    if (const std::string_view fault = home_fault(folder); !fault.empty())
      return Error{fmt::format("{}: {}", option(key).with(folder), fault)};
  options_.out = host::absolute_path(given_.out);
  options_.run_folder = host::absolute_path(given_.run_folder);
  return Unit{};
}

Status LinkReader::read_machine() {
  TW_TRY(auto notices, parse_notices_option(option("notices"), given_.notices));
  TW_TRY(const auto grace, parse_grace_option(option("grace"), given_.grace));
  options_.notices = std::move(notices);
  options_.notices.grace = grace;
  return Unit{};
}

Status LinkReader::check_price() {
  if (!asks_catalog(given_.usd_per_h)) {
    TW_TRY(const auto price, parse_price_option(option("usd_per_h"), given_.usd_per_h));
    options_.usd_per_h = price;
  } else if (!catalog_price_) {
    return Error{
        fmt::format("{}: a program does not ask the catalogs; give USD an hour, or start it with tw "
                    "run --usd-per-h {} --site PROVIDER:REGION -- PROGRAM",
                    option("usd_per_h").with(given_.usd_per_h), given_.usd_per_h)};
  }
  return Unit{};
}

Status LinkReader::read_price() {
  if (!asks_catalog(given_.usd_per_h)) return Unit{};
  options_.pays_spot = !options_.session.anchor;
  TW_TRY(const auto price, catalog_price_(given_.usd_per_h, given_.site, options_.session.anchor));
  options_.usd_per_h = price;
  return Unit{};
}

Status LinkReader::read_progress() {
  constexpr std::array<std::string_view, 3> kModes = {"auto", "line", "off"};
  const auto found = std::ranges::find(kModes, given_.progress);
  if (found == kModes.end())
    return Error{fmt::format("{}: expected auto, line or off", option("progress").with(given_.progress))};
  options_.progress = static_cast<Progress>(found - kModes.begin());
  return Unit{};
}

Result<std::optional<wire::Token>> LinkReader::token() {
  const bool given = !given_.token.empty() || !given_.run_folder.empty();
  if (given_.insecure) return std::optional<wire::Token>();
  const bool names_others = !given_.join.empty() || !given_.listen.empty();
  const bool waits = options_.session.wait_for > 1;
  if (!given && !names_others && !waits) return std::optional(host::token_for_one_run("alone", kAlone_s));
  if (!given)
    return Error{fmt::format(
        "{}peers show each other a token: give {} or @FILE (from whoever began the run), or {} (from `tw "
        "init FOLDER`); in a network that you trust with the model and the data, {} does without",
        names_others ? "" : option("wait_for").with(given_.wait_for) + ": nobody could join this peer; ",
        option("token").with("TOKEN"), option("run").with("FOLDER"), flag("insecure"))};
  const auto warn = [this](const std::string& line) { options_.warnings.push_back(line); };
  TW_TRY(auto token, given_.token.empty() ? read_folder_token(option("run"), given_.run_folder, warn)
                                          : read_token(option("token"), given_.token, warn));
  return std::optional(std::move(token));
}

std::string LinkReader::admission() const {
  if (given_.insecure) return flag("insecure");
  const std::string by_file = option("token").with("@FILE");
  if (!given_.token.empty()) return by_file + ", a file with the same token";
  if (given_.run_folder.empty()) return "";
  return fmt::format("{}; on other machines {}, made by: tw token {} --out FILE",
                     option("run").with(given_.run_folder), by_file, given_.run_folder);
}

/// Whether the run had begun before, as far as the user says or can be known from the options alone.
void LinkReader::read_past() {
  train::SessionOptions& session = options_.session;
  if (given_.rejoin) {
    session.past = train::Past::begun;
    session.past_found = flag("rejoin");
  }
  // With a token of its own run no other peer can exist.
  const bool alone = options_.admission.empty();
  if (given_.no_rejoin || given_.anew || alone) session.past = train::Past::over;
  session.anew = given_.anew;
}

Status LinkReader::read_addresses() {
  for (const std::string& text : given_.join) {
    TW_TRY(auto address, parse_address_option(option("join"), text));
    options_.session.join.push_back(std::move(address));
  }
  if (!given_.listen.empty() && given_.listen != "none")
    TW_TRY(parse_address_option(option("listen"), given_.listen));
  if (!given_.watch.empty()) TW_TRY(parse_address_option(option("watch"), given_.watch));
  return Unit{};
}

Status LinkReader::use_token(const wire::Token& token) {
  for (const std::string& address : token.addresses)
    if (address != given_.listen) options_.session.join.push_back(address);
  options_.session.asks_first =
      given_.join.empty() && !token.addresses.empty() && token.addresses.front() == given_.listen;
  auto tls = host::Tls::open(token, host::now_unix_s());
  if (!tls)
    return Error{
        fmt::format("{}: {}", option(given_.token.empty() ? "run" : "token").name, tls.error().message)};
  options_.tls = std::move(tls).value();
  options_.run_key = token.run_key;
  return Unit{};
}

Status LinkReader::read_listen() {
  train::SessionOptions& session = options_.session;
  session.listen.clear();
  options_.listens_as_usual = given_.listen.empty();
  if (given_.listen == "none" && session.join.empty())
    return Error{fmt::format("{}: nobody could join a peer that only dials; give it {} of another",
                             option("listen").with("none"), option("join").with("HOST:PORT"))};
  if (given_.listen != "none")
    session.listen = given_.listen.empty() ? default_listen(session.join) : given_.listen;
  return Unit{};
}

/// The own token of a peer that trains alone admits no viewer.
void LinkReader::read_watch(const std::optional<wire::Token>& token) {
  if (given_.watch.empty()) return;
  options_.watch.emplace(host::WebOptions{.address = given_.watch});
  if (!options_.admission.empty()) options_.watch->token = token;
}

/// A command line says it of its own accord; this machine alone is no network.
void LinkReader::warn_of_insecurity() {
  const train::SessionOptions& session = options_.session;
  const bool stays_here = std::ranges::all_of(session.join, is_loopback) &&
                          (session.listen.empty() || is_loopback(session.listen));
  if (!given_.insecure || stays_here || spelling_ == Spelling::command_line) return;
  options_.warnings.push_back(
      fmt::format("without TLS ({}): anybody on the network can read and change this run", flag("insecure")));
}

LinkOptions with_defaults(LinkOptions given) {
  LinkOptions usual;
  for (const LinkField& field : link_fields()) {
    const LinkField::Place place = field.place(given);
    if (auto* const* text = std::get_if<std::string*>(&place); text != nullptr && (*text)->empty())
      **text = value_of(field, usual);
  }
  return given;
}

}  // namespace

Result<bool> ProgramSettings::take(std::string_view key, const std::string& value) {
  const OptionName option = spelled(Spelling::python, key);
  if (key == "run_file" && value.empty())
    return Error{found_nothing(option, "the run file; leave it out for none")};
  if (const auto* count = std::ranges::find(kProgramCounts, key, &ProgramCount::key);
      count != std::end(kProgramCounts)) {
    TW_TRY(const auto number, parse_count(option, value, count->bounds));
    this->*count->place = number;
    return true;
  }
  const auto* text = std::ranges::find(kProgramTexts, key, &ProgramText::key);
  if (text == std::end(kProgramTexts)) return false;
  this->*text->place = value;
  return true;
}

Error unknown_setting(const std::string& name) {
  std::vector<std::string> known;
  for (const FieldRow& row : train::run_rows({})) {
    known.push_back(row.key.substr(row.key.find('.') + 1));
    known.push_back(row.key);
  }
  for (const LinkField& field : link_fields()) known.emplace_back(field.name);
  for (const ProgramCount& count : kProgramCounts) known.emplace_back(count.key);
  for (const ProgramText& text : kProgramTexts) known.emplace_back(text.key);
  std::string meant = did_you_mean(name, known);
  if (meant.empty()) meant = did_you_mean(name.substr(name.find('.') + 1), known);
  return Error{
      fmt::format("there is no setting {}{}", name,
                  meant.empty() ? "; docs/run_file.md and docs/python.md list all settings" : meant)};
}

Status check_links(const LinkOptions& given, Spelling spelling, const CatalogPrice& catalog_price) {
  const LinkOptions whole = with_defaults(given);
  return LinkReader(whole, spelling, catalog_price).check();
}

Result<Options> read_links(const LinkOptions& given, Spelling spelling, const CatalogPrice& catalog_price) {
  return LinkReader(given, spelling, catalog_price).read();
}

void look_at_past(Options& options, std::uint64_t parameters) {
  train::SessionOptions& session = options.session;
  if (session.anew || options.out.empty()) return;
  const auto past = monitor::unfinished_run(options.out, to_string(run_digest(session.run, parameters)));
  if (!past) return;
  session.past_rounds = past->rounds;
  session.past_found = "its event log is " + past->log;
  if (session.past == train::Past::unknown) session.past = train::Past::begun;
}

void look_for_peers(Options& options, std::uint64_t parameters) {
  train::SessionOptions& session = options.session;
  const std::string& given = session.run.checkpoint.rendezvous;
  const bool is_named = !given.empty() && given != train::CheckpointOptions::kNone;
  if (is_named && !options.token)
    options.warnings.push_back(fmt::format(
        "rendezvous {} has no effect: its notices are signed, and this peer has no token", given));
  session.meeting.place = options.token ? meeting_folder(session.run) : "";
  if (session.meeting.place.empty()) return;
  if (session.founds() && session.past != train::Past::over) join_the_living(options, parameters);
  if (!options.listens_as_usual) return;
  std::vector<std::string> others = session.join;
  others.insert(others.end(), session.found.begin(), session.found.end());
  session.listen = is_named && others.empty() ? "0.0.0.0:0" : default_listen(others);
}

void place_checkpoints(Options& options, std::uint64_t parameters) {
  constexpr std::size_t kDigits = 8;
  train::RunOptions& run = options.session.run;
  train::CheckpointOptions& checkpoint = run.checkpoint;
  if (checkpoint.folder == train::CheckpointOptions::kNone) return checkpoint.folder.clear();
  if (checkpoint.every == 0) checkpoint.interval = train::CheckpointOptions::kUsualInterval;
  if (!checkpoint.folder.empty()) return;
  const std::string parent = !options.out.empty()          ? options.out + "/checkpoints"
                             : !options.run_folder.empty() ? options.run_folder + "/checkpoints"
                                                           : host::absolute_path("tradewind-checkpoints");
  const train::RunFacts facts(run, parameters);
  const std::string folder = parent + "/" + to_string(facts.digest()).substr(0, kDigits);
  if (!is_writable(folder)) {
    options.warnings.push_back(fmt::format(
        "no checkpoints: {} cannot be written; give checkpoint.folder another folder, or none", folder));
    return;
  }
  checkpoint.folder = folder;
  checkpoint.is_usual = checkpoint.to.empty();
  if (!begins_unless_found(options.session)) return;
  std::string other = other_run_in(parent, options, facts);
  if (!other.empty()) options.warnings.push_back(std::move(other));
}

std::string checkpoint_words(const train::CheckpointOptions& checkpoint) {
  if (checkpoint.folder.empty()) return "no checkpoints";
  const std::string when = checkpoint.every == 0
                               ? fmt::format("every {} min", checkpoint.interval / std::chrono::minutes(1))
                               : fmt::format("every {} rounds", checkpoint.every);
  return fmt::format("checkpoints in {}, {}", checkpoint.folder, when);
}

}  // namespace tw::peer
