// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/host_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/peer_name.h"
#include "launch/engines/program_script.h"

namespace tw::launch {
namespace {

/// A process is known by its id and its start time (field 22 of stat): ids come again, after a reboot above
/// all. The name in stat may hold blanks, so the fields are counted from behind it.
constexpr const char* kAlive =
    "born() { sed 's/^.*) //' \"/proc/$1/stat\" 2>/dev/null | cut -d' ' -f20; }\n"
    "alive() { [ -s pid ] && read -r pid start <pid && [ -n \"$start\" ] && [ \"$(born \"$pid\")\" = "
    "\"$start\" ]; }\n";

/// Cores for each peer of its host.
std::string threads_line(const Deployment& deployment, const PeerJob& peer) {
  const auto here = std::ranges::count(deployment.peers, peer.host, &PeerJob::host);
  return fmt::format("threads=$(($(nproc) / {}))\nif [ $threads = 0 ]; then threads=1; fi\n", here);
}

/// Enters the peer's folder; a machine that has none of it knows no such peer.
std::string enter(const PeerJob& peer, const HostPlaces& places, const char* otherwise) {
  return fmt::format("cd {}/{} 2>/dev/null || {}\n", places.folder, short_name(peer), otherwise);
}

/// `tw` and its words, in sh; $threads, $id and $run stay variables.
std::string peer_line(const Deployment& deployment, const PeerJob& peer, const HostPlaces& places) {
  const PeerPaths paths{.run_file = "RUN/run.yaml",
                        .token_file = fmt::format("RUN/{}/token", short_name(peer)),
                        .out = "OUT",
                        .listen = fmt::format("{}:{}", peer.address, peer.port),
                        .join = bootstrap_of(deployment)};
  std::string line = places.program;
  for (const std::string& word : peer_words(deployment, peer, start_of(deployment, peer), paths)) {
    if (word == "OUT")
      line += " " + places.out;
    else if (word == paths.run_file)
      line += " \"$run\"/run.yaml";
    else if (word == "@" + paths.token_file)
      line += fmt::format(" @\"$run\"/{}/token", short_name(peer));
    else
      line += " " + shell_word(word);
  }
  return line + " --threads \"$threads\" --id \"$id\"" + command_line(deployment);
}

/// Into the folder of the user's program, with its variables; a subshell, which becomes `tw`.
std::string in_program_folder(const PeerJob& peer, const std::string& line) {
  return fmt::format("(cd \"$run\"/program && . ../{}/env && exec {})", short_name(peer), line);
}

}  // namespace

std::string start_script(const Deployment& deployment, const PeerJob& peer, const HostPlaces& places) {
  std::string script = "set -eu\numask 077\n";
  script += kAlive;
  script += fmt::format("mkdir -p {}/{} {}\ncd {}/{}\n", places.folder, short_name(peer), places.out,
                        places.folder, short_name(peer));
  script += "if alive; then exit 0; fi\n";
  script += "starts=$(cat starts 2>/dev/null || echo 0)\n";
  // A machine that lost its disk counts from 0, and its peer would come back under the id of the lost one.
  script += fmt::format("if [ \"$starts\" -lt {0} ]; then starts={0}; fi\n", peer.starts);
  script += fmt::format("id=$(({} + starts))\n", peer.number * kIdsOfMachine);
  script += "echo $((starts + 1)) >starts\nrm -f pid exit\n";
  // The shell around it stays to write down how it ended.
  std::string around = "id=$1\n" + threads_line(deployment, peer);
  around += "run=$(cd .. && pwd)\n";
  around += in_program_folder(peer, peer_line(deployment, peer, places)) + " &\npid=$!\n";
  around += "echo $pid $(sed 's/^.*) //' /proc/$pid/stat | cut -d' ' -f20) >pid.new\nmv pid.new pid\n";
  around += "wait $pid\necho $? >exit.new\nmv exit.new exit\n";
  script += fmt::format("cat >run.sh <<'{0}'\n{1}{0}\n", heredoc_end("END", around), around);
  script += "setsid -f sh run.sh \"$id\" </dev/null >>log 2>&1\n";
  script += "n=0\nwhile [ ! -s pid ] && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done\n[ -s pid ]\n";
  return script;
}

std::string state_script(const PeerJob& peer, const HostPlaces& places) {
  const std::string nothing = fmt::format("{{ echo '{{\"peer\":{}}}'; exit 0; }}", peer.number);
  std::string script = kAlive + enter(peer, places, nothing.c_str());
  script += "[ -s starts ] || " + nothing + "\n";
  script += "pid=0\nif alive; then alive=true; else alive=false; fi\n";
  // Its own event log shows whether it got a notice.
  script += fmt::format("log={}/events-$(({} + $(cat starts))).jsonl\nleaving=false\n", places.out,
                        peer.number * kIdsOfMachine - 1);
  script +=
      "if grep -Eqs '\"phase\":\"notice\".*\"cause\":\"(preempt|maintenance)\"' \"$log\"; then leaving=true; "
      "fi\n";
  script += fmt::format(
      "printf "
      "'{{\"peer\":{},\"leaving\":%s,\"alive\":%s,\"pid\":%s,\"exit\":%s,\"starts\":%s,\"host\":\"%s\"}}\\n' "
      "$leaving $alive \"$pid\" \"$(cat exit 2>/dev/null || echo null)\" \"$(cat starts)\" \"$(uname -n)\"\n",
      peer.number);
  return script;
}

std::string stop_script(const PeerJob& peer, const HostPlaces& places, Duration grace) {
  constexpr int kLooksPerSecond = 5;
  const auto looks =
      kLooksPerSecond * std::chrono::duration_cast<std::chrono::seconds>(grace).count() + kLooksPerSecond;
  std::string script = kAlive + enter(peer, places, "exit 0");
  script += "alive || exit 0\nkill -TERM \"$pid\"\nn=0\n";
  script += fmt::format("while alive && [ $n -lt {} ]; do sleep 0.2; n=$((n + 1)); done\n", looks);
  script += "if alive; then kill -KILL \"$pid\"; fi\n";
  script += "n=0\nwhile [ ! -s exit ] && [ $n -lt 20 ]; do sleep 0.05; n=$((n + 1)); done\n";
  return script;
}

std::string keep_output(const PeerJob& peer, const HostPlaces& places) {
  const std::string log = fmt::format("{}/{}/log", places.folder, short_name(peer));
  return fmt::format("if test -f {0}; then mkdir -p {1} && cp {0} {1}/{2}.log; fi\n", log, places.out,
                     short_name(peer));
}

std::vector<File> shared_files(const Deployment& deployment) {
  std::vector<File> files = {{"run.yaml", deployment.run_file, 0644}};
  for (const PeerJob& peer : deployment.peers) {
    files.push_back({short_name(peer) + "/token", token_of(deployment, peer) + "\n", 0600});
    files.push_back({short_name(peer) + "/env", variables_file(deployment.user), 0600});
  }
  return files;
}

std::string ready_script(const Deployment& deployment, const PeerJob& peer, const HostPlaces& places,
                         const std::string& where) {
  std::string script = fmt::format("set -u\nmkdir -p {0}/program {0}/{1}\ncd {0}/program || exit 1\n",
                                   places.folder, short_name(peer));
  script += fmt::format("exec 3>&2 >>../{0}/log 2>&1\n. ../{0}/env\n", short_name(peer));
  return script + setup_lines(deployment.user, shell_word(where)) +
         probe_lines(deployment.user, shell_word(where), places.program);
}

}  // namespace tw::launch
