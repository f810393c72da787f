// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/text/number.h"
#include "wan/box.h"
#include "wan/control.h"
#include "wan/status_json.h"
#include "wan/testbed.h"
#include "wan/topology_yaml.h"

namespace tw::wan {
namespace {

constexpr int kFailed = 1, kUsage = 2;

struct Arguments {
  std::string topology;
  bool foreground = false;
  bool json = false;
  bool one_way = false;
  std::string place;
  std::string pair, key, value;
};

int complain(const std::string& what, int code = kFailed) {
  fmt::print(stderr, "tw-wan: {}\n", what);
  return code;
}

Error not_up(const Topology& topology) {
  return Error{fmt::format("{0} is not up; next: tw-wan {0} up", topology.name)};
}

Result<std::string> ask_box(const Topology& topology, const std::string& request) {
  const TestbedPlace place{topology.name};
  if (access(place.socket().c_str(), F_OK) != 0) return not_up(topology);
  auto answer = ask(place.socket(), request);
  if (!answer && answer.error().message.starts_with(place.socket())) return not_up(topology);
  return answer;
}

std::string ready_line(const Topology& topology) {
  std::string text =
      fmt::format("{} is up: {} hosts, {}", topology.name, topology.hosts().size(), topology.about);
  if (topology.scale != 1) {
    text += fmt::format(" (rates divided by {:g}{})", topology.scale,
                        topology.scaled_buffers ? ", TCP buffers too" : "");
  }
  return text;
}

/// The box itself: builds the testbed, says so through `ready`, carries, and clears up.
int carry(const Topology& topology, const Fd& lock, const std::function<void(const std::string&)>& ready) {
  const TestbedPlace place{topology.name};
  TW_CHECK(lock.valid());
  const auto serve = [&]() -> Status {
    auto testbed = build_testbed(topology, place);
    if (!testbed) return testbed.error();
    auto listener = listen_at(place.socket());
    if (!listener) return listener.error();
    Box box(topology, std::move(testbed).value(), std::move(listener).value());
    ready(ready_line(topology));
    return box.run();
  };
  const Status served = serve();
  const Status removed = remove_testbed(place);
  if (!served) return complain(served.error().message);
  return removed ? 0 : complain(removed.error().message);
}

/// A process of its own, which says through a pipe that the testbed is up; what it complains of goes to
/// stderr until then, to the log after.
int carry_in_background(const Topology& topology, const Fd& lock) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return complain(os_error("pipe").message);
  Fd reading(ends[0]), writing(ends[1]);
  const pid_t child = fork();
  if (child < 0) return complain(os_error("fork").message);
  if (child == 0) {
    reading = Fd();
    setsid();
    return carry(topology, lock, [&](const std::string& line) {
      const std::string log = TestbedPlace{topology.name}.log();
      const Fd file(open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
      dup2(nothing.get(), STDIN_FILENO);
      dup2(file.get(), STDOUT_FILENO);
      dup2(file.get(), STDERR_FILENO);
      [[maybe_unused]] const ssize_t sent = write(writing.get(), line.data(), line.size());
      writing = Fd();
    });
  }
  writing = Fd();
  std::string line(4096, '\0');
  const ssize_t size = read(reading.get(), line.data(), line.size());
  if (size <= 0) return kFailed;  // the child has said why
  line.resize(static_cast<std::size_t>(size));
  fmt::print("{}\n", line);
  return 0;
}

int up(const Topology& topology, const Arguments& arguments) {
  const auto removed = remove_dead_testbeds();
  if (!removed) return complain(removed.error().message);
  if (!removed.value().empty())
    fmt::print(stderr, "tw-wan: removed what was left of {}\n", fmt::join(removed.value(), ", "));
  const auto lock = lock_testbed(TestbedPlace{topology.name});
  if (!lock) return complain(lock.error().message);
  if (!lock.value())
    return complain(fmt::format("{} is up already; next: tw-wan {} down", topology.name, arguments.topology));
  if (!arguments.foreground) return carry_in_background(topology, *lock.value());
  return carry(topology, *lock.value(), [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  });
}

/// Asks the box to end, and waits until the testbed is gone. Without a box, removes what it left.
int down(const Topology& topology) {
  const TestbedPlace place{topology.name};
  const bool there = access(place.folder().c_str(), F_OK) == 0 || !netns_names(place.netns_prefix()).empty();
  if (!there) return 0;
  (void)ask_box(topology, "down");
  constexpr int kTurns = 1000;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto lock = lock_testbed(place);
    if (!lock) return complain(lock.error().message);
    if (lock.value()) {
      const auto removed = remove_testbed(place);
      return removed ? 0 : complain(removed.error().message);
    }
    usleep(10'000);
  }
  return complain(fmt::format("{}: its box does not end; see {}", topology.name, place.log()));
}

/// "SITE", "SITE/NUMBER" or the host's name.
std::optional<Host> find_host(const Topology& topology, const std::string& place) {
  for (const Host& host : topology.hosts()) {
    const std::string& site = topology.sites[host.site].name;
    if (place == host.name || place == fmt::format("{}/{}", site, host.number) ||
        (place == site && host.number == 1)) {
      return host;
    }
  }
  return std::nullopt;
}

/// The hosts of the testbed by name, for this process and its children.
Status see_hosts(const TestbedPlace& place) {
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) != 0)
    return os_error("mount namespace");
  if (mount(place.hosts_file().c_str(), "/etc/hosts", "none", MS_BIND, nullptr) != 0)
    return os_error("/etc/hosts");
  return tw::Unit{};
}

int exec(const Topology& topology, const std::string& where, std::vector<std::string> command) {
  const TestbedPlace place{topology.name};
  const auto host = find_host(topology, where);
  if (!host) {
    std::vector<std::string> names;
    for (const Host& known : topology.hosts()) names.push_back(known.name);
    return complain(fmt::format("{}: no such host; {} has {}", where, topology.name, fmt::join(names, ", ")),
                    kUsage);
  }
  if (command.empty()) return complain("exec: expected a command after the host", kUsage);
  if (auto there = ask_box(topology, "hello"); !there) return complain(there.error().message);
  const auto netns = open_netns(place.netns(*host));
  if (!netns) return complain(netns.error().message);
  if (auto entered = enter_netns(netns.value()); !entered) return complain(entered.error().message);
  if (auto seen = see_hosts(place); !seen) return complain(seen.error().message);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  return complain(os_error(command[0]).message, 127);
}

int status(const Topology& topology, bool json) {
  const auto answer = ask_box(topology, "status");
  if (!answer) return complain(answer.error().message);
  fmt::print("{}\n", json ? answer.value() : status_text(answer.value()));
  return 0;
}

/// "FROM:TO"; `all` stands for all other sites.
std::vector<std::pair<std::string, std::string>> pairs_of(const Topology& topology,
                                                          const Arguments& arguments) {
  const std::size_t colon = arguments.pair.find(':');
  if (colon == std::string::npos) return {};
  const std::string from = arguments.pair.substr(0, colon), to = arguments.pair.substr(colon + 1);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Site& one : topology.sites) {
    for (const Site& other : topology.sites) {
      const bool lan = one.name == other.name;
      const auto matches = [&](const std::string& name, const Site& site) {
        return name == site.name || (name == "all" && !lan);
      };
      const bool back = !arguments.one_way && matches(from, other) && matches(to, one);
      if ((matches(from, one) && matches(to, other)) || back) pairs.emplace_back(one.name, other.name);
    }
  }
  return pairs;
}

int set(const Topology& topology, const Arguments& arguments) {
  const auto pairs = pairs_of(topology, arguments);
  if (pairs.empty()) {
    return complain(fmt::format("{}: expected two sites of {}, such as {}:{}, or all", arguments.pair,
                                topology.name, topology.sites.front().name, topology.sites.back().name),
                    kUsage);
  }
  for (const auto& [from, to] : pairs) {
    const auto answer =
        ask_box(topology, fmt::format("set {} {} {} {}", from, to, arguments.key, arguments.value));
    if (!answer) return complain(answer.error().message);
  }
  return 0;
}

void describe(CLI::App& app, Arguments& arguments) {
  app.name("tw-wan");
  app.require_subcommand(1);
  app.add_option("TOPOLOGY", arguments.topology, "a file, or the name of one that ships")->required();
  app.footer(
      fmt::format("Topologies that ship: {}\nExample:\n"
                  "  tw-wan hetero4 up\n"
                  "  tw-wan hetero4 exec a iperf3 -s -D\n"
                  "  tw-wan hetero4 exec c iperf3 -c a\n"
                  "  tw-wan hetero4 set a:c bandwidth 20mbit\n"
                  "  tw-wan hetero4 status\n"
                  "  tw-wan hetero4 down",
                  fmt::join(shipped_names(TW_WAN_TOPOLOGIES), ", ")));
  auto* up = app.add_subcommand("up", "build the testbed and carry its packets, in the background");
  up->add_flag("--foreground", arguments.foreground, "stay, until Ctrl-C or `down`");
  auto* exec = app.add_subcommand("exec", "run a command on a host: SITE, SITE/NUMBER or its name");
  exec->add_option("HOST", arguments.place)->required();
  exec->prefix_command();
  app.add_subcommand("status", "what the box carries, and whether it keeps up")
      ->add_flag("--json", arguments.json, "for programs");
  auto* set = app.add_subcommand("set", "change a link while the testbed is up");
  set->add_option("PAIR", arguments.pair, "FROM:TO, two sites; `all`: all other sites")->required();
  set->add_option("KEY", arguments.key, "bandwidth, delay, rtt, jitter, loss or outage")->required();
  set->add_option("VALUE", arguments.value, "as in a topology file; rates are not divided by scale")
      ->required();
  set->add_flag("--one-way", arguments.one_way, "from FROM to TO alone");
  app.add_subcommand("show", "the topology as JSON: hosts, addresses, rates (needs no root)");
  app.add_subcommand("down", "end the box and all commands on its hosts, and leave nothing");
}

int run(int count, char** words) {
  Arguments arguments;
  CLI::App app("Network namespaces joined by links with delay, rate and loss, for benches and tests.");
  describe(app, arguments);
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "tw-wan: {}\nsee: tw-wan --help\n", error.what());
    return kUsage;
  }
  const auto topology = read_topology(arguments.topology, TW_WAN_TOPOLOGIES);
  if (!topology) return complain(topology.error().message, kUsage);
  if (app.got_subcommand("show")) {
    fmt::print("{}\n", topology_json(topology.value()));
    return 0;
  }
  if (geteuid() != 0) return complain("network namespaces need root; next: sudo tw-wan ...");
  if (app.got_subcommand("up")) return up(topology.value(), arguments);
  if (app.got_subcommand("exec"))
    return exec(topology.value(), arguments.place, app.get_subcommand("exec")->remaining());
  if (app.got_subcommand("set")) return set(topology.value(), arguments);
  if (app.got_subcommand("status")) return status(topology.value(), arguments.json);
  return down(topology.value());
}

}  // namespace
}  // namespace tw::wan

int main(int count, char** words) { return tw::wan::run(count, words); }
