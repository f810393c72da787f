// SPDX-License-Identifier: Apache-2.0
#include "launch/kubernetes/kubernetes_script.h"

#include <fmt/format.h>

namespace tw::launch {
namespace {

/// A pod may be gone later than its grace says: its node tells the cluster every few seconds.
constexpr Duration kPodRemoval = std::chrono::seconds(30);

/// k: kubectl. pods ARGUMENTS: the pods of the peer. live: those that run. follow POD FILE: appends what is
/// new of an event log. Names come from the pod, so only names that `tw` writes are taken.
std::string preamble(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings) {
  return fmt::format("set -eu\nk() {{ {} \"$@\" </dev/null; }}\nlogs={}\npeer={}\nselector={}\nfolder={}\n",
                     shell_line(kubectl_words(settings, {})), shell_word(deployment.folder + "/logs"),
                     short_name(peer), shell_word(peer_selector(deployment, peer)), kPodLogs) +
         "mkdir -p \"$logs/pods\"\n" +
         fmt::format("pods() {{ k get pods {} --selector \"$selector\" \"$@\"; }}\n", kRequestTimeout) +
         "live() { pods --field-selector status.phase=Running -o name; }\n"
         "event_logs() {\n"
         "  k exec \"$1\" -- sh -c \"cd $folder && ls\" 2>/dev/null | while read -r file; do\n"
         "    case $file in *[!a-z0-9.-]*) ;; events-*.jsonl) echo \"$file\" ;; esac\n"
         "  done\n"
         "}\n"
         "follow() {\n"
         "  have=$(stat -c %s \"$logs/$2\" 2>/dev/null || echo 0)\n"
         "  k exec \"$1\" -- tail $3 -c \"+$((have + 1))\" \"$folder/$2\" >>\"$logs/$2\" 2>/dev/null || :\n"
         "}\n";
}

}  // namespace

std::vector<std::string> kubectl_words(const PodSettings& settings, const std::vector<std::string>& words) {
  std::vector<std::string> all = {"kubectl"};
  if (!settings.context.empty()) all.insert(all.end(), {"--context", settings.context});
  if (!settings.name_space.empty()) all.insert(all.end(), {"--namespace", settings.name_space});
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string peer_selector(const Deployment& deployment, const PeerJob& peer) {
  return fmt::format("{},{}={}", run_selector(deployment), kPeerLabel, peer.number);
}

std::string collect_pods_script(const Deployment& deployment, const PeerJob& peer,
                                const PodSettings& settings) {
  return preamble(deployment, peer, settings) +
         "for pod in $(live); do\n"
         "  for file in $(event_logs \"$pod\"); do follow \"$pod\" \"$file\" ''; done\n"
         "done\n"
         "for pod in $(pods --sort-by .metadata.creationTimestamp -o name); do\n"
         "  mine=$logs/pods/$peer-${pod##*-}.log\n"
         "  if k logs \"$pod\" >\"$mine.new\" 2>/dev/null; then mv \"$mine.new\" \"$mine\"; fi\n"
         "done\n"
         "rm -f \"$logs/pods/$peer\"-*.new\n"
         "files=$(ls -tr \"$logs/pods/$peer\"-*.log 2>/dev/null || :)\n"
         "for file in $files; do cat \"$file\"; done >\"$logs/$peer.log.new\"\n"
         "mv \"$logs/$peer.log.new\" \"$logs/$peer.log\"\n";
}

std::string stop_pods_script(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings) {
  const auto seconds = (pod_grace(deployment, peer) + kPodRemoval) / std::chrono::seconds(1);
  return preamble(deployment, peer, settings) +
         "for pod in $(live); do\n"
         "  for file in $(event_logs \"$pod\"); do follow \"$pod\" \"$file\" -f & done\n"
         "done\n" +
         fmt::format("k delete jobs {} --selector \"$selector\" --ignore-not-found --wait=false >/dev/null\n",
                     kRequestTimeout) +
         "left() { pods -o name; }\n" +
         fmt::format(
             "if [ -n \"$(left)\" ]; then k wait --for=delete pods --selector \"$selector\" --timeout={}s "
             ">/dev/null 2>&1 || :; fi\nrest=$(left)\n",
             seconds) +
         fmt::format(
             "if [ -n \"$rest\" ]; then echo \"$rest: still there after {} s\" >&2; exit 1; fi\nwait\n",
             seconds);
}

}  // namespace tw::launch
