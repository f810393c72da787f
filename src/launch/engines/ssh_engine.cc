// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/text.h"
#include "launch/engines/engines.h"
#include "launch/engines/host_script.h"
#include "launch/engines/program_script.h"

namespace tw::launch {
namespace {

constexpr int kSshFailed = 255;  // the connection, not the command
constexpr const char* kNoSettings = "none";

std::string setting(const Deployment& deployment, const std::string& key, const std::string& otherwise) {
  const auto found = deployment.on.find(key);
  return found == deployment.on.end() ? otherwise : found->second;
}

/// ssh to the peer's host, then the words for its shell. The user's own settings can change what a command
/// line means (aliases, forwardings, prompts), so they are left out unless a file is named.
std::vector<std::string> ssh_words(const Deployment& deployment, const PeerJob& peer, std::string remote) {
  std::vector<std::string> words = {"ssh", "-F", setting(deployment, "ssh-config", kNoSettings)};
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=5", "ServerAliveInterval=5"})
    words.insert(words.end(), {"-o", option});
  const std::string control = setting(deployment, "control", "");
  if (!control.empty())
    words.insert(words.end(), {"-o", "ControlMaster=auto", "-o", "ControlPath=" + control + "/%C", "-o",
                               "ControlPersist=60"});
  words.insert(words.end(), {"--", peer.host});
  if (!remote.empty()) words.push_back(std::move(remote));
  return words;
}

/// The words are long: messages name the host.
std::string client_for(const PeerJob& peer) { return "ssh " + peer.host; }

std::string home_of(const PeerJob& peer) {
  if (peer.home.empty()) return "\"$HOME\"/.tradewind";
  if (peer.home.starts_with("~/")) return "\"$HOME\"/" + shell_word(peer.home.substr(2));
  return shell_word(peer.home);
}

HostPlaces places_of(const Deployment& deployment, const PeerJob& peer) {
  const std::string folder = home_of(peer) + "/runs/" + deployment.run;
  return {fmt::format("{}/bin/tw-{}/tw", home_of(peer), deployment.archive_digest), folder, folder + "/out"};
}

/// Makes a file of what comes on stdin, whole or not at all. Peers of hosts with a common home write the same
/// file at once, so each has its own file beside it.
std::string receive(const PeerJob& peer, const std::string& path, const char* mode) {
  return fmt::format(
      "umask 077; mkdir -p \"$(dirname {0})\" && cat >{0}.{2} && chmod {1} {0}.{2} && mv {0}.{2} {0}", path,
      mode, short_name(peer));
}

/// $said: what a client printed. The first line says why: tar ends with "Exiting with failure status due to
/// previous errors".
std::string not_whole(const std::string& what) {
  return fmt::format(
      "echo {}\" did not arrive whole; is the disk full?${{said:+ ($(printf '%s\\n' \"$said\" | sed 1q))}}\" "
      ">&2; exit 1",
      what);
}

/// Unpacks the archive with the program from stdin where it is not there yet. Its digest is in the folder's
/// name, which the folder gets only when all bytes are there.
std::string receive_program(const Deployment& deployment, const HostPlaces& places) {
  return fmt::format(
             "umask 022; f={0}; d=\"${{f%/*}}\"; [ -x \"$f\" ] && exit 0; "
             "if said=$( {{ mkdir -p \"$d.$$\" && cat >\"$d.$$/tar\" && "
             "[ \"$(wc -c <\"$d.$$/tar\")\" -eq {1} ] && tar -xf \"$d.$$/tar\" -C \"$d.$$\" && "
             "rm \"$d.$$/tar\" && mv -T \"$d.$$\" \"$d\"; }} 2>&1); then exit 0; fi; "
             "rm -rf \"$d.$$\"; [ -x \"$f\" ] && exit 0; ",
             places.program, deployment.archive_bytes) +
         not_whole(fmt::format("\"${{d%/*}}: the program ({} bytes, twice while it is unpacked)\"",
                               deployment.archive_bytes));
}

/// Brings the files of the user's program to the host; runs here. Only those go whose content differs, each
/// under its name once it is whole, and in the end the contents of all are compared.
std::string give_files_script(const Deployment& deployment, const std::string& ssh, const PeerJob& peer,
                              const HostPlaces& places) {
  const std::string part = fmt::format("{}/program.{}", places.folder, short_name(peer));
  const auto there = [&](const std::string& script) {
    return fmt::format("{} {}", ssh, shell_word("sh -c " + shell_word(script)));
  };
  const std::string folder = places.folder + "/program";
  const std::string files = shell_word(peer.host + ": the files of the program");
  std::string script =
      fmt::format("set -eu\nexport LC_ALL=C\ncd {}/program\n", shell_word(deployment.folder));
  script += "sums=$(tr '\\n' '\\0' <../program.list | xargs -0r sha256sum --)\n";
  script +=
      "differing() { printf '%s\\n' \"$sums\" | " +
      there(fmt::format("umask 077; mkdir -p {0} && cd {0} && sha256sum --check 2>/dev/null || :", folder)) +
      " | sed -n 's/: FAILED.*$//p'; }\n";
  script += "if [ -n \"$sums\" ]; then changed=$(differing); else changed=; fi\n";
  script += "if [ -n \"$changed\" ]; then\n  printf '%s\\n' \"$changed\" | tar -cf - --no-recursion -T - | ";
  script +=
      there(fmt::format("umask 077; rm -rf {0} && mkdir {0} && "
                        "{{ said=$(tar -xf - -C {0} 2>&1) || {{ {1}; }}; }} && cd {0} && "
                        "find . -type f | while read -r f; do mkdir -p \"../program/${{f%/*}}\" && "
                        "mv -f \"$f\" \"../program/$f\" || exit 1; done; cd .. && rm -rf {0}",
                        part, not_whole(files)));
  script += "\nfi\n";
  script += there(fmt::format("cat {0}.list 2>/dev/null || :", folder)) +
            " </dev/null | { grep -vxF -f ../program.list || :; } | " +
            there(fmt::format("umask 077; mkdir -p {0} && cd {0} && while read -r f; do rm -f \"$f\"; done",
                              folder)) +
            "\n";
  script += there(fmt::format("umask 077; cat >{}.list", folder)) + " <../program.list\n";
  script += "if [ -n \"$sums\" ] && [ -n \"$(differing)\" ]; then\n  said=\n  " + not_whole(files) + "\nfi\n";
  return script;
}

/// Appends to the files of `logs` what came since the last time; runs here. The names come from the host, so
/// only names that `tw` writes are taken. On a host that lost its disk, a file of the same name is another
/// one: it is shorter than the copy, or differs where that ends. The copy is then kept beside it, as *.gone.
std::string collect_script(const std::string& ssh, const std::string& logs, const HostPlaces& places) {
  std::string script = fmt::format("set -eu\nlogs={}\nmkdir -p \"$logs\"\nfolder={}\n", shell_word(logs),
                                   shell_word(places.folder));
  // Two that collect at once would append the same. The master of ssh outlives this with its descriptors.
  script += "exec 9>\"$logs/.lock\"\nif command -v flock >/dev/null; then flock 9; fi\n";
  script += fmt::format("there() {{ {} \"$1\" </dev/null 9>&-; }}\n", ssh);
  script +=
      "append() {\n"
      "  dd bs=1 count=\"$both\" of=\"$mine.new\" status=none || return 1\n"
      "  if [ \"$(stat -c %s \"$mine.new\")\" -lt \"$both\" ]; then return 255; fi\n"
      "  if [ \"$both\" -gt 0 ]; then tail -c \"$both\" \"$mine\" | cmp -s - \"$mine.new\" || return 2; fi\n"
      "  cat >>\"$mine\"\n"
      "}\n"
      "replace() {\n"
      "  there \"cat $folder/$file\" >\"$mine.new\"\n"
      "  cat \"$mine\" >>\"$mine.gone\"\n"
      "  mv \"$mine.new\" \"$mine\"\n"
      "}\n";
  script += "sizes=$(there \"cd $folder 2>/dev/null && wc -c out/events-*.jsonl p*/log 2>/dev/null; :\")\n";
  script +=
      "printf '%s\\n' \"$sizes\" | while read -r size file; do\n"
      "  case $file in\n"
      "    *[!a-z0-9./-]* | *..* | '') continue ;;\n"
      "    out/events-*.jsonl) mine=$logs/${file#out/} ;;\n"
      "    p*/log) mine=$logs/${file%/log}.log ;;\n"
      "    *) continue ;;\n"
      "  esac\n"
      "  have=$(stat -c %s \"$mine\" 2>/dev/null || echo 0)\n"
      "  both=$((have < 4096 ? have : 4096))\n"
      "  if [ \"$size\" -eq \"$have\" ]; then continue; fi\n"
      "  code=0\n"
      "  if [ \"$size\" -lt \"$have\" ]; then code=2; else\n"
      "    there \"tail -c +$((have - both + 1)) $folder/$file\" | append || code=$?\n"
      "  fi\n"
      "  case $code in 0) ;; 2) replace ;; *) exit \"$code\" ;; esac\n"
      "  rm -f \"$mine.new\"\n"
      "  if [ \"$(stat -c %s \"$mine\")\" -lt \"$size\" ]; then exit 255; fi\n"
      "done\n";
  return script;
}

/// Peers started on hosts that ssh reaches, apart from the connection.
class SshEngine final : public Engine {
 public:
  bool restarts(const PeerJob& /*peer*/) const override { return false; }

  Status check_settings(const Deployment& deployment) const override {
    static const std::vector<std::string> kKeys = {"ssh-config", "control"};
    for (const auto& [key, value] : deployment.on)
      if (std::ranges::find(kKeys, key) == kKeys.end())
        return Error{
            fmt::format("--with {}={}: unknown setting of ssh{}; expected ssh-config=FILE or control=FOLDER",
                        key, value, did_you_mean(key, kKeys))};
    return Unit{};
  }

  Status check(const Deployment& deployment) const override {
    TW_TRY(check_settings(deployment));
    for (const PeerJob& peer : deployment.peers)
      if (peer.host.empty())
        return Error{
            fmt::format("peer {}: no host; give --hosts FILE with a line for each machine", peer.number)};
    return Unit{};
  }

  std::vector<File> files(const Deployment& deployment) const override {
    return {{"run.yaml", deployment.run_file, 0644}};
  }

  std::vector<Command> commands(Action action, const Deployment& deployment,
                                const std::vector<PeerJob>& peers) const override {
    std::vector<Command> commands;
    if (action == Action::prepare || action == Action::check)
      add_files_of_hosts(action, deployment, peers, commands);
    if (action == Action::collect) add_collections(deployment, peers, commands);
    for (const PeerJob& peer : action == Action::status ? deployment.peers : peers) {
      const std::size_t before = commands.size();
      add(action, deployment, peer, commands);
      for (std::size_t at = before; at < commands.size(); ++at) commands[at].client = client_for(peer);
    }
    // The owner of the folder of the sockets can read what passes through them.
    for (Command& command : commands) command.own_folder = setting(deployment, "control", "");
    return with_limits(std::move(commands), action, deployment);
  }

  Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                         const std::vector<Output>& outputs) const override {
    std::vector<PeerReport> reports;
    for (const Output& output : outputs) {
      const PeerJob* peer = find_peer(deployment, output.command.peer);
      if (peer == nullptr) continue;
      auto report = output.exit_code == kSshFailed || output.is_late ? unreachable(*peer, output)
                                                                     : state_in(output.text);
      if (!report) return Error{fmt::format("{}: {}", peer->host, report.error().message)};
      if (report.value().where.empty()) report.value().where = peer->host;
      reports.push_back(std::move(report).value());
    }
    return reports;
  }

 private:
  static Result<PeerReport> unreachable(const PeerJob& peer, const Output& output) {
    std::string why(last_line(output.errors));
    if (why.empty()) why = fmt::format("{}: exit code {}", client_for(peer), output.exit_code);
    return PeerReport{
        .number = peer.number, .state = PeerState::unknown, .where = peer.host, .detail = std::move(why)};
  }

  /// Files shared by all peers of a host, copied once. A host that cannot be reached keeps none of the others
  /// waiting.
  static void add_files_of_hosts(Action action, const Deployment& deployment,
                                 const std::vector<PeerJob>& peers, std::vector<Command>& commands) {
    std::vector<Command> at_once;
    std::set<std::pair<std::string, std::string>> seen;
    for (const PeerJob& peer : peers) {
      if (!seen.emplace(peer.host, peer.home).second) continue;
      const HostPlaces places = places_of(deployment, peer);
      const auto on_host = [&](const std::string& script) {
        return ssh_words(deployment, peer, "sh -c " + shell_word(script));
      };
      commands.push_back({.words = on_host(receive_program(deployment, places)),
                          .client = client_for(peer),
                          .input_file = deployment.archive,
                          .peer = peer.number});
      at_once.push_back({.words = on_host(receive(peer, places.folder + "/run.yaml", "644")),
                         .client = client_for(peer),
                         .input = deployment.run_file,
                         .peer = peer.number});
      // A library that the host lacks is named now, not in the log of a peer that did not start.
      at_once.push_back(
          {.words = on_host(places.program + " --version"), .client = client_for(peer), .peer = peer.number});
      add_program(action, deployment, peer, places, at_once);
    }
    commands.insert(commands.end(), at_once.begin(), at_once.end());
  }

  /// The user's files, and a host that is ready for them. No variables stay where no peer starts.
  static void add_program(Action action, const Deployment& deployment, const PeerJob& peer,
                          const HostPlaces& places, std::vector<Command>& commands) {
    const std::string ssh = shell_line(ssh_words(deployment, peer, ""));
    commands.push_back({.words = {"sh", "-s"},
                        .client = client_for(peer),
                        .input = give_files_script(deployment, ssh, peer, places),
                        .says_why = true,
                        .peer = peer.number});
    commands.push_back(variables(deployment, peer, places));
    const std::string forget =
        fmt::format("forget() {{ rm -f {}/{}/env; }}\ntrap forget EXIT\n", places.folder, short_name(peer));
    commands.push_back(
        {.words = ssh_words(deployment, peer, "sh -s"),
         .client = client_for(peer),
         .input = (action == Action::check ? forget : "") + ready_script(deployment, peer, places, peer.host),
         .says_why = true,
         .peer = peer.number});
  }

  static Command variables(const Deployment& deployment, const PeerJob& peer, const HostPlaces& places) {
    const std::string file = fmt::format("{}/{}/env", places.folder, short_name(peer));
    return {.words = ssh_words(deployment, peer, "sh -c " + shell_word(receive(peer, file, "600"))),
            .client = client_for(peer),
            .input = variables_file(deployment.user),
            .input_is_secret = true,
            .peer = peer.number};
  }

  /// One host after the other: they may have the same files. One that cannot be reached, or is late, keeps
  /// none of the others waiting.
  static void add_collections(const Deployment& deployment, const std::vector<PeerJob>& peers,
                              std::vector<Command>& commands) {
    std::set<std::pair<std::string, std::string>> seen;
    for (const PeerJob& peer : peers)
      if (seen.emplace(peer.host, peer.home).second)
        commands.push_back({.words = {"sh", "-s"},
                            .client = client_for(peer),
                            .input = collect_script(shell_line(ssh_words(deployment, peer, "")),
                                                    deployment.folder + "/logs", places_of(deployment, peer)),
                            .fine = {0, kSshFailed},
                            .others_go_on = true});
  }

  static void add(Action action, const Deployment& deployment, const PeerJob& peer,
                  std::vector<Command>& commands) {
    const HostPlaces places = places_of(deployment, peer);
    const std::string folder = places.folder + "/" + short_name(peer);
    const auto run = [&](std::string script, std::vector<int> fine = {0}) {
      commands.push_back({.words = ssh_words(deployment, peer, "sh -s"),
                          .input = std::move(script),
                          .fine = std::move(fine),
                          .peer = peer.number});
    };
    switch (action) {
      case Action::prepare:
        commands.push_back(
            {.words =
                 ssh_words(deployment, peer, "sh -c " + shell_word(receive(peer, folder + "/token", "600"))),
             .input = token_of(deployment, peer) + "\n",
             .input_is_secret = true,
             .peer = peer.number});
        commands.push_back(variables(deployment, peer, places));
        break;
      case Action::start:
        run(start_script(deployment, peer, places));
        break;
      case Action::stop:
        run(stop_script(peer, places, deployment.grace));
        break;
      case Action::status:
        run(state_script(peer, places), {0, kSshFailed});
        break;
      case Action::logs:
        run("cat " + folder + "/log\n");
        break;
      case Action::remove:
        run(fmt::format("rm -f {0}/token {0}/env\n", folder));
        break;
      case Action::check:
      case Action::retire:
      case Action::collect:
      case Action::hurry:
        break;
    }
  }
};

}  // namespace

std::unique_ptr<Engine> ssh_engine() { return std::make_unique<SshEngine>(); }

}  // namespace tw::launch
