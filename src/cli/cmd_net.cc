// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "base/text/date.h"
#include "base/text/option.h"
#include "base/text/write_file.h"
#include "cli/commands.h"
#include "cli/plan/price_sources.h"
#include "cli/terminal/terminal.h"
#include "host/system/calendar.h"
#include "measure/net_probe.h"
#include "peer/token_file.h"
#include "peer/values.h"

namespace tw::cli {
namespace {

constexpr double kBytesPerMbit = 1e6 / 8;

Result<std::vector<market::Site>> sites_of(const std::vector<std::string>& texts) {
  std::vector<market::Site> sites;
  for (const std::string& text : texts) {
    TW_TRY(const auto site, market::parse_site(text));
    sites.push_back(site);
  }
  return sites;
}

void print_path(const market::NetworkProfile& network, const market::Site& from, const market::Site& to,
                int streams) {
  const market::PathRate rate = network.path(from, to);
  print_out("{:<32} {:<32} {:>8.1f} {:>9.0f} {:>9.0f}  {}{}\n", to_string(from), to_string(to),
            rate.rtt_s * 1e3, network.bytes_per_s(from, to, 1) / kBytesPerMbit,
            network.bytes_per_s(from, to, streams) / kBytesPerMbit, rate.source,
            rate.measured && rate.as_of_unix_s > 0 ? ", " + date_text(rate.as_of_unix_s) : "");
}

int show(const NetArguments& arguments) {
  const auto streams = parse_count("--streams", arguments.streams, {.least = 1, .most = 1024});
  if (!streams) return complain(streams.error().message, kUsage);
  const auto network = network_at_hand(arguments.profile);
  if (!network) return complain(network.error().message, kUsage);
  const auto sites = sites_of(arguments.words);
  if (!sites) return complain(sites.error().message, kUsage);
  print_out("{:<32} {:<32} {:>8} {:>9} {:>9}  {}\n", "from", "to", "RTT ms", "1 stream",
            fmt::format("{}", streams.value()), "Mbit/s, from one host to one other; source");
  const auto count = static_cast<int>(streams.value());
  if (sites.value().empty())
    for (const auto& [pair, rate] : network.value().paths())
      print_path(network.value(), pair.first, pair.second, count);
  for (const market::Site& from : sites.value())
    for (const market::Site& to : sites.value()) print_path(network.value(), from, to, count);
  return kDone;
}

Result<std::unique_ptr<host::Tls>> tls_of(const NetArguments& arguments) {
  const int given =
      (arguments.token.empty() ? 0 : 1) + (arguments.run.empty() ? 0 : 1) + (arguments.insecure ? 1 : 0);
  if (given != 1)
    return Error{
        "probes show each other a token, as peers do: give one of --token @FILE, --run FOLDER, or, in a "
        "network that you trust, --insecure"};
  if (arguments.insecure) return std::unique_ptr<host::Tls>();
  TW_TRY(const auto token, arguments.token.empty() ? peer::read_folder_token("--run", arguments.run, warn)
                                                   : peer::read_token("--token", arguments.token, warn));
  return host::Tls::open(token, host::now_unix_s());
}

Status write_profile(const market::NetworkProfile& profile, const std::string& file) {
  const Status written = write_file(file, write_network(profile));
  return written ? written : Error{"--out " + written.error().message};
}

int measure_lines(measure::Probe& probe, const NetArguments& arguments) {
  const auto profile = probe.measure_all(arguments.words);
  if (!profile) return complain(profile.error().message, kFailed);
  if (arguments.out.empty()) {
    print_out("{}", write_network(profile.value()));
    return kDone;
  }
  if (const Status written = write_profile(profile.value(), arguments.out); !written)
    return complain(written.error().message, kFailed);
  print_out("{}: {} pairs; tw net show --profile {}\n", arguments.out, profile.value().paths().size(),
            arguments.out);
  return kDone;
}

int probe(const NetArguments& arguments) {
  const auto site = market::parse_site(arguments.site);
  if (!site) return complain("--site " + site.error().message, kUsage);
  const auto ms = parse_count("--ms", arguments.ms, {.least = 100, .most = 60'000});
  if (!ms) return complain(ms.error().message, kUsage);
  if (arguments.words.empty() == arguments.listen.empty())
    return complain(
        "net probe: give --listen HOST:PORT (answers), or HOST:PORT of those that listen (measures)", kUsage);
  std::vector<std::string> addresses = arguments.words;
  if (!arguments.listen.empty()) addresses.push_back(arguments.listen);
  for (const std::string& address : addresses)
    if (const auto parsed = peer::parse_address_option("net probe", address); !parsed)
      return complain(parsed.error().message, kUsage);
  auto tls = tls_of(arguments);
  if (!tls) return complain(tls.error().message, kUsage);
  measure::Probe end({.site = site.value(),
                      .listen = arguments.listen,
                      .tls = std::move(tls).value(),
                      .time = std::chrono::milliseconds(ms.value())});
  const auto address = end.open();
  if (!address) return complain(address.error().message, kFailed);
  if (!arguments.words.empty()) return measure_lines(end, arguments);
  show_news(fmt::format("{} answers on {}; ends with Ctrl-C", to_string(site.value()), address.value()));
  end.serve();
  return kDone;
}

}  // namespace

void describe_net(CLI::App& app, NetArguments& arguments) {
  CLI::App* command = app.add_subcommand("net", "Show or measure bandwidth between sites");
  command->require_subcommand(1);
  command->footer("docs/planner.md says how a plan uses them.");
  CLI::App* show =
      command->add_subcommand("show", "Show round trips and bandwidths between sites, with their sources");
  show->add_option("SITE", arguments.words, "PROVIDER:REGION[:ZONE]; none: all measured pairs");
  show->add_option("--streams", arguments.streams, "TCP streams of a link")->capture_default_str();
  show->add_option("--profile", arguments.profile,
                   "FILE.csv of tw net probe; overrides the built-in network");
  show->footer("\nExamples:\n  tw net show\n  tw net show gcp:us-west1 aws:us-west-2 onprem:eu --streams 8");
  CLI::App* probe = command->add_subcommand("probe", "Measure bandwidth between hosts");
  probe->add_option("HOST:PORT", arguments.words, "hosts that listen: one or two of each site");
  probe->add_option("--site", arguments.site, "PROVIDER:REGION[:ZONE] of this host")->required();
  probe->add_option("--listen", arguments.listen, "HOST:PORT: answer other hosts, and measure for them");
  probe->add_option("--ms", arguments.ms, "time for each pair of sites, both directions at once")
      ->capture_default_str();
  probe->add_option("--out", arguments.out, "FILE.csv for the profile; default: stdout");
  probe->add_option("--token", arguments.token, "TOKEN or @FILE of the run");
  probe->add_option("--run", arguments.run, "run folder, as for tw run");
  probe->add_flag("--insecure", arguments.insecure, "no TLS and no token, on all hosts");
  probe->footer(
      "First start it with --listen on the hosts, then measure from any host. It uses the transport of a\n"
      "run, beside the run.\n"
      "\nExamples:\n"
      "  tw net probe --site gcp:us-west1 --listen 10.0.0.5:7100 --token @token\n"
      "  tw net probe --site onprem:eu 10.0.0.5:7100 10.1.0.5:7100 --token @token --out network.csv");
}

int run_net(const NetArguments& arguments, const std::string& command) {
  return command == "probe" ? probe(arguments) : show(arguments);
}

}  // namespace tw::cli
