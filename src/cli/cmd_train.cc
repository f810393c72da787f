// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/credentials.h"
#include "cli/peer_process.h"
#include "host/address.h"
#include "host/calendar.h"
#include "host/identity/authority.h"
#include "host/random_os.h"
#include "monitor/past_run.h"
#include "train/run_file_yaml.h"
#include "train/torch_trainer.h"

namespace tw {

namespace {

/// Whole numbers beyond it are rounded by most readers of JSON, and ids stand in the event log.
constexpr std::uint64_t kMaxId = (1ULL << 53) - 1;
constexpr std::uint64_t kMaxThreads = 1024;

struct TrainPlan {
  PeerOptions peer;
  int threads = 1;
};

Result<PeerId> chosen_id(const std::string& text) {
  if (!text.empty()) {
    const auto id = parse_count("--id", text, {.least = 1, .most = kMaxId});
    if (!id) return id.error();
    return PeerId{id.value()};
  }
  return PeerId{std::max<std::uint64_t>(1, OsRandom().next() & kMaxId)};
}

Result<std::vector<std::pair<std::string, std::string>>> settings(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    auto setting = parse_setting(text);
    if (!setting) return setting.error();
    pairs.push_back(std::move(setting).value());
  }
  return pairs;
}

constexpr std::int64_t kAlone_s = 3650LL * 86400;

/// The token to take part with; nothing with --insecure.
Result<std::optional<Token>> token_of(const TrainArguments& arguments) {
  const bool given = !arguments.token.empty() || !arguments.run_folder.empty();
  if (!arguments.token.empty() && !arguments.run_folder.empty())
    return Error{
        fmt::format("--token and --run {}: a peer has one token; give one of the two", arguments.run_folder)};
  if (given && arguments.insecure)
    return Error{
        "--insecure and a token: TLS is either off or on, for all peers of a run; give one of the two"};
  if (arguments.insecure) return std::optional<Token>();
  const bool alone = arguments.join.empty() && arguments.listen.empty() && arguments.bootstrap.empty();
  if (!given && alone) return std::optional(token_for_one_run("alone", kAlone_s));
  if (!given)
    return Error{
        "peers show each other a token: give --token TOKEN or @FILE (from whoever began the run), or --run "
        "FOLDER "
        "(from `tw init FOLDER`); in a network that you trust with the model and the data, --insecure does "
        "without"};
  auto token = arguments.token.empty() ? read_token("--run", "@" + token_file(arguments.run_folder))
                                       : read_token("--token", arguments.token);
  if (!token) return token.error();
  return std::optional(std::move(token).value());
}

bool is_loopback(const std::string& address) {
  const auto parsed = parse_address(address);
  const std::string host = parsed ? parsed.value().host : "";
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// Where to listen, when the user says nothing: where those whom it joins can reach it.
std::string default_listen(const std::vector<std::string>& join) {
  return std::all_of(join.begin(), join.end(), is_loopback) ? "127.0.0.1:0" : "0.0.0.0:0";
}

/// The end of a line that tells the user how others join.
std::string admission_of(const TrainArguments& arguments) {
  if (arguments.insecure) return "--insecure";
  if (!arguments.token.empty()) return "--token @FILE, a file with the same token";
  if (arguments.run_folder.empty()) return "";
  return fmt::format("--run {0}; on other machines --token @FILE, made by: tw token {0} --out FILE",
                     arguments.run_folder);
}

constexpr std::uint16_t kUsualPort = 7000;
constexpr Duration kFindPeers = std::chrono::seconds(20);

/// Opens the directory where it is of use, and adds those whom it knows to the addresses to join.
Status find_peers(const TrainArguments& arguments, const Token& token, PeerOptions& peer) {
  const bool open_to_others =
      !arguments.listen.empty() && arguments.listen != "none" && !is_loopback(arguments.listen);
  if (arguments.bootstrap.empty() && !open_to_others) return Unit{};
  const auto listen = parse_address(arguments.listen);
  auto directory = DhtDirectory::open({token, *peer.tls}, listen ? listen.value().port : std::uint16_t{0});
  if (!directory) return directory.error();
  peer.directory = std::move(directory).value();
  if (arguments.bootstrap.empty()) return Unit{};
  auto bootstrap = parse_address(arguments.bootstrap);
  if (!bootstrap) bootstrap = parse_address(fmt::format("{}:{}", arguments.bootstrap, kUsualPort));
  if (!bootstrap)
    return Error{fmt::format("--bootstrap {}: expected HOST or HOST:PORT, such as {}:{}", arguments.bootstrap,
                             "10.0.0.5", kUsualPort)};
  const auto found = peer.directory->find(bootstrap.value(), kFindPeers);
  if (!found)
    return Error{fmt::format("--bootstrap {}: {}", to_string(bootstrap.value()), found.error().message)};
  peer.session.join.insert(peer.session.join.end(), found.value().begin(), found.value().end());
  return Unit{};
}

Status plan_links(const TrainArguments& arguments, PeerOptions& peer) {
  std::vector<std::string>& join = peer.session.join;
  const auto token = token_of(arguments);
  if (!token) return token.error();
  for (const std::string& text : arguments.join) {
    auto address = parse_address_option("--join", text);
    if (!address) return address.error();
    join.push_back(std::move(address).value());
  }
  if (token.value()) {
    for (const std::string& address : token.value()->addresses)
      if (address != arguments.listen) join.push_back(address);
    auto tls = Tls::open(*token.value(), now_unix_s());
    if (!tls) return Error{(arguments.token.empty() ? "--run: " : "--token: ") + tls.error().message};
    peer.tls = std::move(tls).value();
    if (const Status found = find_peers(arguments, *token.value(), peer); !found) return found;
  } else if (!arguments.bootstrap.empty()) {
    return Error{
        "--bootstrap: peers that find each other this way need a token (--token or --run); give --join"};
  }
  peer.admission = admission_of(arguments);
  peer.session.listen.clear();
  if (arguments.listen == "none" && join.empty())
    return Error{
        "--listen none: nobody could join a peer that only dials; give it --join HOST:PORT of another"};
  if (arguments.listen == "none") return Unit{};
  auto listen =
      parse_address_option("--listen", arguments.listen.empty() ? default_listen(join) : arguments.listen);
  if (!listen) return listen.error();
  peer.session.listen = std::move(listen).value();
  return Unit{};
}

/// Whether the run had begun before, as far as the user says or can be known from the options alone.
Status plan_past(const TrainArguments& arguments, PeerOptions& peer) {
  if (arguments.rejoin && arguments.no_rejoin)
    return Error{"--rejoin and --no-rejoin: the peers of a run may be alive or not; give one of the two"};
  if (arguments.rejoin) {
    peer.session.past = Past::begun;
    peer.session.past_found = "--rejoin";
  }
  // With a token that nobody else has, nobody else can be there.
  const bool alone = peer.admission.empty();
  if (arguments.no_rejoin || alone) peer.session.past = Past::over;
  return Unit{};
}

/// What the folder of event logs says of it.
void look_at_past(const PeerOptions& peer, std::uint64_t parameters, SessionOptions& session) {
  if (session.past != Past::unknown || peer.out.empty()) return;
  const auto log = log_of_unfinished_run(peer.out, to_string(run_digest(session.run, parameters)));
  if (!log) return;
  session.past = Past::begun;
  session.past_found = "its event log is " + *log;
}

Result<TrainPlan> plan_of(const TrainArguments& arguments) {
  TrainPlan plan;
  SessionOptions& session = plan.peer.session;
  const auto id = chosen_id(arguments.id);
  if (!id) return id.error();
  session.self = id.value();
  session.incarnation = OsRandom().next();
  if (const Status links = plan_links(arguments, plan.peer); !links) return links.error();
  if (const Status past = plan_past(arguments, plan.peer); !past) return past.error();
  auto site = parse_site_option(arguments.site);
  if (!site) return site.error();
  session.site = std::move(site).value();
  const auto wait_for = parse_count("--wait-for", arguments.wait_for, {.least = 1, .most = 10'000});
  if (!wait_for) return wait_for.error();
  session.wait_for = static_cast<std::uint32_t>(wait_for.value());

  plan.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (!arguments.threads.empty()) {
    const auto threads = parse_count("--threads", arguments.threads, {.least = 1, .most = kMaxThreads});
    if (!threads) return threads.error();
    plan.threads = static_cast<int>(threads.value());
  }
  const auto overrides = settings(arguments.set);
  if (!overrides) return overrides.error();
  auto run = read_run_file(arguments.run_file, overrides.value());
  if (!run) return run.error();
  session.run = std::move(run).value();
  const auto log_limits = parse_log_limit(arguments.log_limit);
  if (!log_limits) return log_limits.error();
  plan.peer.log_limits = log_limits.value();
  plan.peer.run_file = arguments.run_file;
  plan.peer.out = arguments.out;
  plan.peer.quiet = arguments.quiet;
  return plan;
}

}  // namespace

void describe_train(CLI::App& app, TrainArguments& arguments) {
  CLI::App* command = app.add_subcommand("train", "Take part in a run as one peer; the first one starts it");
  command->add_option("RUN.yaml", arguments.run_file, "what is trained; the same on every peer")->required();
  command
      ->add_option("--join", arguments.join,
                   "HOST:PORT of any peer of the run; several are tried; none: start the run")
      ->allow_extra_args(false);
  command->add_option(
      "--listen", arguments.listen,
      "HOST:PORT where others reach this peer, port 0: any free one; none: it only dials (behind "
      "NAT); default: a free port, on this machine alone when those it joins are here too");
  command->add_option("--out", arguments.out, "folder for the event log; none: terminal only");
  command
      ->add_option(
          "--log-limit", arguments.log_limit,
          "the most that the event log takes of the disk; beyond it the middle of the log goes, never "
          "its beginning")
      ->capture_default_str();
  command->add_option("--id", arguments.id,
                      "number of this peer, never used before in the run; default: by chance");
  command->add_option("--wait-for", arguments.wait_for, "the first peer begins when so many peers are there")
      ->capture_default_str();
  command->add_option(
      "--site", arguments.site,
      "PROVIDER:REGION:ZONE where this peer is; peers with the same one are averaged first where "
      "that pays (training.sites); none: a site of its own");
  command->add_option("--threads", arguments.threads,
                      "threads of calculation; default: the cores of this machine");
  command->add_option("--set", arguments.set, "KEY=VALUE, wins over the run file")->allow_extra_args(false);
  command->add_option("--token", arguments.token,
                      "TOKEN or @FILE, from `tw token`: lets this peer in, and names peers to join");
  command->add_option(
      "--bootstrap", arguments.bootstrap,
      "HOST[:PORT] of any peer, as it prints it: finds the peers of the run through it (UDP)");
  command->add_option("--run", arguments.run_folder, "folder of `tw init`, for its token");
  command->add_flag(
      "--rejoin", arguments.rejoin,
      "the run has begun before: wait for its peers, up to training.patience, before it goes on "
      "alone; as it is when --out or the checkpoint folder holds a log or checkpoint of the run");
  command->add_flag("--no-rejoin", arguments.no_rejoin,
                    "no peer of the run is alive: resume or begin at once, whatever the folders hold");
  command->add_flag("--insecure", arguments.insecure,
                    "no TLS and no token, on all peers: anybody on the network can read and change the run");
  command->add_flag("--quiet", arguments.quiet, "print nothing but errors");
  command->footer(
      "SIGINT (Ctrl-C) or SIGTERM: hand in what is done and leave after the round; twice: leave at once.\n"
      "Started again with the same options, a peer joins the run that goes on. With nobody to join it waits "
      "for\n"
      "the others first, then goes on alone from its newest usable checkpoint.\n"
      "\nExamples:\n"
      "  tw train examples/mnist.yaml\n"
      "  tw train examples/mnist.yaml --run myrun --listen 10.0.0.5:7000 --wait-for 4 --out logs\n"
      "  tw train examples/mnist.yaml --token @token --listen 10.0.0.6:7000\n"
      "  tw train examples/mnist.yaml --token @token --bootstrap 10.0.0.5:7000\n"
      "  tw train examples/mnist.yaml --token @token --join 10.0.0.5:7000 --listen none\n"
      "  tw train examples/mnist.yaml --token @token --listen 10.0.0.7:7000 --site aws:us-east-1:a\n"
      "  tw train examples/mnist.yaml --set training.rounds=20 --set evaluation.every=5");
}

int train(const TrainArguments& arguments) {
  auto plan = plan_of(arguments);
  if (!plan) return complain(plan.error().message, kUsage);
  auto trainer = make_torch_trainer(plan.value().peer.session.run, plan.value().threads);
  if (!trainer) return complain(trainer.error().message, kFailed);
  PeerOptions& peer = plan.value().peer;
  look_at_past(peer, trainer.value()->parameter_count(), peer.session);
  return PeerProcess(std::move(peer), std::move(trainer).value()).run();
}

}  // namespace tw
