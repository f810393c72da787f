// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "launch/engines/cloud_names.h"
#include "launch/engines/program_script.h"
#include "launch/kubernetes/kubernetes.h"
#include "launch/kubernetes/kubernetes_placing.h"

namespace tw::launch {
namespace {

using Ordered = nlohmann::ordered_json;

/// Server-side apply of 1.20 wants the protocol beside each port, though it has a default.
constexpr int kPodPort = 7000;
/// Where the container has what `tw run` reads and writes.
constexpr const char* kRunFolder = "/etc/tradewind/run";
constexpr const char* kTokenFolder = "/etc/tradewind/token";
constexpr const char* kProgramFolder = "/etc/tradewind/program";
constexpr const char* kWorkFolder = "/var/lib/tradewind";
/// Each eviction counts as a failure of the Job in Kubernetes 1.20 (seen; kubeflow/trainer#3316).
constexpr int kFailures = 1000;
/// podFailurePolicy is on since 1.26 (kubernetes.io/docs/concepts/workloads/controllers/job).
constexpr int kFailurePolicySince = 26;
/// What the kubelet's own steps may take of the grace.
constexpr Duration kKept = std::chrono::seconds(1);
constexpr int kOwnerOnly = 0600;

Ordered labels_of(const Deployment& deployment) {
  return {{"app.kubernetes.io/name", "tradewind"}, {std::string(kInstanceLabel), deployment.run}};
}

Ordered labels_of(const Deployment& deployment, const PeerJob& peer) {
  Ordered labels = labels_of(deployment);
  labels[std::string(kPeerLabel)] = std::to_string(peer.number);
  return labels;
}

std::string secret_name(const Deployment& deployment) { return deployment.run + "-token"; }

/// The pods of all Jobs of a peer have this name, by the headless Service.
std::string host_name(const Deployment& deployment, const PeerJob& peer) {
  return fmt::format("{}.{}", short_name(peer), deployment.run);
}

/// Where a new peer finds the others: those of other engines, the anchors, and the first peers by number.
std::vector<std::string> pod_meeting_places(const Deployment& deployment, const PeerJob& self) {
  constexpr std::size_t kEnough = 3;
  std::vector<std::string> places;
  const auto add = [&](const PeerJob& peer) {
    const std::string place = fmt::format("{}:{}", host_name(deployment, peer), kPodPort);
    if (peer.number != self.number && std::ranges::find(places, place) == places.end())
      places.push_back(place);
  };
  Deployment others = deployment;
  others.peers.clear();
  places = bootstrap_of(others);
  for (const PeerJob& peer : deployment.peers)
    if (peer.anchor) add(peer);
  for (const PeerJob& peer : deployment.peers)
    if (places.size() < kEnough) add(peer);
  return places;
}

/// Kubernetes puts the values of variables for $(NAME), and $ for $$.
std::string without_variables(const std::string& word) {
  std::string plain;
  for (const char c : word) plain += c == '$' ? std::string("$$") : std::string(1, c);
  return plain;
}

/// The first peer begins without --no-rejoin: its Job starts it again with the same words, and then it has to
/// wait for the others, who dial its name. With --wait-for it cannot begin a second run alone. So another Job
/// of it has these words, too.
Ordered arguments_of(const Deployment& deployment, const PeerJob& peer) {
  const std::string listen = fmt::format("$(POD_IP):{}", kPodPort);
  const Start start = may_resume(deployment, peer) ? Start::begin : start_of(deployment, peer);
  PeerPaths paths{.run_file = fmt::format("{}/run.yaml", kRunFolder),
                  .token_file = fmt::format("{}/token", kTokenFolder),
                  .out = std::string(kPodLogs),
                  .listen = listen};
  if (start != Start::begin) paths.join = pod_meeting_places(deployment, peer);
  Deployment with_less_grace = deployment;
  with_less_grace.grace = pod_grace(deployment, peer) - kKept;
  std::vector<std::string> words = peer_words(with_less_grace, with_common_site(peer), start, paths);
  std::erase(words, "--no-rejoin");
  const std::vector<std::string> command = command_words(deployment);
  words.insert(words.end(), command.begin(), command.end());
  for (std::string& word : words)
    if (word != listen) word = without_variables(word);
  return words;
}

Ordered expression(const Requirement& requirement) {
  return {{"key", requirement.label},
          {"operator", requirement.is ? "In" : "NotIn"},
          {"values", Ordered::array({requirement.value})}};
}

Ordered term_of(const Machine& machine) {
  Ordered term = {{"matchExpressions", Ordered::array()}};
  for (const Requirement& requirement : requirements_of(machine))
    term["matchExpressions"].push_back(expression(requirement));
  return term;
}

/// The planner's order, as weights.
Ordered preferences_of(const std::vector<Machine>& machines) {
  constexpr int kMost = 100, kStep = 10;
  Ordered all = Ordered::array();
  int weight = kMost;
  for (const Machine& machine : machines) {
    all.push_back({{"weight", weight}, {"preference", term_of(machine)}});
    weight = std::max(1, weight - kStep);
  }
  return all;
}

/// One machine: labels in nodeSelector. Several: one of them, the planner's first where it is to be had.
void place(Ordered& spec, const PeerJob& peer) {
  const std::vector<Machine> machines = pod_choices(peer);
  const bool anywhere =
      std::ranges::any_of(machines, [](const Machine& machine) { return requirements_of(machine).empty(); });
  if (anywhere) return;
  Ordered terms = Ordered::array();
  if (machines.size() == 1) {
    Ordered term = {{"matchExpressions", Ordered::array()}};
    for (const Requirement& requirement : requirements_of(peer.machine)) {
      if (requirement.is)
        spec["nodeSelector"][requirement.label] = requirement.value;
      else
        term["matchExpressions"].push_back(expression(requirement));
    }
    if (!term["matchExpressions"].empty()) terms.push_back(term);
  } else {
    for (const Machine& machine : machines) terms.push_back(term_of(machine));
    spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
        preferences_of(machines);
  }
  if (!terms.empty())
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        terms;
}

Ordered toleration(const Toleration& toleration) {
  Ordered json = {{"key", toleration.key}, {"operator", toleration.value.empty() ? "Exists" : "Equal"}};
  if (!toleration.value.empty()) json["value"] = toleration.value;
  json["effect"] = "NoSchedule";
  return json;
}

Ordered resources_of(const PeerJob& peer, const PodSettings& settings) {
  Ordered resources = Ordered::object();
  if (!settings.cpu.empty()) resources["requests"]["cpu"] = settings.cpu;
  if (!settings.memory.empty()) resources["requests"]["memory"] = settings.memory;
  if (const int gpus = gpus_of(peer.machine).count; gpus > 0)
    resources["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
  return resources;
}

std::string volume_name(std::size_t mount) { return fmt::format("data-{}", mount + 1); }

Ordered pod_mounts(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings) {
  Ordered mounts = {{{"name", "run"}, {"mountPath", kRunFolder}, {"readOnly", true}},
                    {{"name", "token"}, {"mountPath", kTokenFolder}, {"readOnly", true}},
                    {{"name", "work"}, {"mountPath", kWorkFolder}}};
  // A folder for each Job: its next pod finds the log of the one before and knows that the run has begun.
  mounts.push_back({{"name", "logs"}, {"mountPath", kPodLogs}});
  if (settings.logs)
    mounts.back()["subPathExpr"] = fmt::format("{}/{}/$(JOB)", deployment.run, short_name(peer));
  if (!deployment.user.files.empty())
    mounts.push_back({{"name", "program"}, {"mountPath", kProgramFolder}, {"readOnly", true}});
  for (std::size_t i = 0; i < settings.mounts.size(); ++i)
    mounts.push_back({{"name", volume_name(i)}, {"mountPath", settings.mounts[i].path}});
  return mounts;
}

Ordered volume_of(const std::string& name, const PodMount& mount) {
  Ordered volume = {{"name", name}};
  if (mount.kind == PodMount::Kind::claim)
    volume["persistentVolumeClaim"]["claimName"] = mount.source;
  else
    volume["hostPath"]["path"] = mount.source;
  return volume;
}

/// Files of the user's program, by the keys that a ConfigMap may have.
Ordered program_volume(const Deployment& deployment) {
  constexpr int kAllMayRun = 0755;
  Ordered items = Ordered::array();
  for (std::size_t i = 0; i < deployment.user.files.size(); ++i)
    items.push_back({{"key", fmt::format("f{}", i)}, {"path", deployment.user.files[i]}});
  return {
      {"name", "program"},
      {"configMap", {{"name", program_map_name(deployment)}, {"items", items}, {"defaultMode", kAllMayRun}}}};
}

Ordered volumes_of(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings) {
  const Ordered items = Ordered::array(
      {{{"key", peer.anchor ? "anchor" : "peer"}, {"path", "token"}}, {{"key", "env"}, {"path", "env"}}});
  const Ordered token = {
      {"secretName", secret_name(deployment)}, {"items", items}, {"defaultMode", kOwnerOnly}};
  Ordered volumes = {{{"name", "run"}, {"configMap", {{"name", deployment.run}}}},
                     {{"name", "token"}, {"secret", token}},
                     {{"name", "work"}, {"emptyDir", Ordered::object()}}};
  const Ordered no_logs = {{"name", "logs"}, {"emptyDir", Ordered::object()}};
  volumes.push_back(settings.logs ? volume_of("logs", *settings.logs) : no_logs);
  if (!deployment.user.files.empty()) volumes.push_back(program_volume(deployment));
  for (std::size_t i = 0; i < settings.mounts.size(); ++i)
    volumes.push_back(volume_of(volume_name(i), settings.mounts[i]));
  return volumes;
}

/// Makes a folder for the program, in which it may write, and becomes `tw`.
std::string program_script(const Deployment& deployment) {
  const std::string here = "\"$(uname -n)\"";
  std::string script = "trap 'exit 75' TERM\nmkdir -p program && cd program || exit 1\n";
  if (!deployment.user.files.empty()) script += fmt::format("cp -RL {}/. .\n", kProgramFolder);
  script += fmt::format(". {}/env\nexec 3>&2\n", kTokenFolder);
  script += setup_lines(deployment.user, here) + probe_lines(deployment.user, here, "\"$(command -v tw)\"");
  return script + "exec tw \"$@\"\n";
}

Ordered variable(const char* name, const char* field) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}};
}

Ordered container_of(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings) {
  Ordered container = {{"name", "tw"}, {"image", deployment.image}};
  if (!settings.pull_policy.empty()) container["imagePullPolicy"] = settings.pull_policy;
  container["command"] = Ordered::array({"sh", "-c", without_variables(program_script(deployment)), "tw"});
  container["args"] = arguments_of(deployment, peer);
  container["env"] = Ordered::array({variable("POD_IP", "status.podIP")});
  if (settings.logs) container["env"].push_back(variable("JOB", "metadata.labels['controller-uid']"));
  container["workingDir"] = kWorkFolder;
  container["ports"] =
      Ordered::array({{{"name", "peers"}, {"containerPort", kPodPort}, {"protocol", "TCP"}}});
  container["resources"] = resources_of(peer, settings);
  container["volumeMounts"] = pod_mounts(deployment, peer, settings);
  return container;
}

Ordered pod_of(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings) {
  Ordered spec = {{"restartPolicy", "Never"},
                  {"hostname", short_name(peer)},
                  {"subdomain", deployment.run},
                  {"terminationGracePeriodSeconds", pod_grace(deployment, peer) / std::chrono::seconds(1)},
                  {"automountServiceAccountToken", false},
                  {"enableServiceLinks", false}};
  if (!settings.pull_secret.empty())
    spec["imagePullSecrets"] = Ordered::array({{{"name", settings.pull_secret}}});
  place(spec, peer);
  for (const Toleration& each : tolerations_of(peer)) spec["tolerations"].push_back(toleration(each));
  spec["containers"] = Ordered::array({container_of(deployment, peer, settings)});
  spec["volumes"] = volumes_of(deployment, peer, settings);
  return spec;
}

/// A wrong option ends the Job at once; leaving on a notice and the end of a node are no failures.
Ordered failure_policy() {
  const auto on_exit = [](const char* action, int code) {
    return Ordered{
        {"action", action},
        {"onExitCodes", {{"containerName", "tw"}, {"operator", "In"}, {"values", Ordered::array({code})}}}};
  };
  const Ordered disruption = {
      {"action", "Ignore"},
      {"onPodConditions", Ordered::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}};
  return {
      {"rules", Ordered::array({on_exit("FailJob", kNeedsPerson), on_exit("Ignore", kGoesOn), disruption})}};
}

std::string json_text(const Ordered& json) { return json.dump(2) + "\n"; }

}  // namespace

std::string run_manifest(const Deployment& deployment) {
  const Ordered metadata = {{"name", deployment.run}, {"labels", labels_of(deployment)}};
  const Ordered config = {{"apiVersion", "v1"},
                          {"kind", "ConfigMap"},
                          {"metadata", metadata},
                          {"data", {{"run.yaml", deployment.run_file}}}};
  const Ordered service = {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", metadata},
      {"spec",
       {{"clusterIP", "None"},
        {"publishNotReadyAddresses", true},
        {"selector", {{std::string(kInstanceLabel), deployment.run}}},
        {"ports", Ordered::array({{{"name", "peers"}, {"port", kPodPort}, {"protocol", "TCP"}}})}}}};
  return json_text({{"apiVersion", "v1"}, {"kind", "List"}, {"items", Ordered::array({config, service})}});
}

std::string secret_manifest(const Deployment& deployment) {
  const std::string& anchor = deployment.anchor_token.empty() ? deployment.token : deployment.anchor_token;
  const Ordered data = {
      {"peer", deployment.token}, {"anchor", anchor}, {"env", variables_file(deployment.user)}};
  return json_text({{"apiVersion", "v1"},
                    {"kind", "Secret"},
                    {"metadata", {{"name", secret_name(deployment)}, {"labels", labels_of(deployment)}}},
                    {"type", "Opaque"},
                    {"stringData", data}});
}

std::string job_manifest(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings) {
  const Ordered labels = labels_of(deployment, peer);
  Ordered spec = {{"parallelism", 1}, {"completions", 1}, {"backoffLimit", kFailures}};
  if (settings.minor >= kFailurePolicySince) spec["podFailurePolicy"] = failure_policy();
  spec["template"] = {{"metadata", {{"labels", labels}}}, {"spec", pod_of(deployment, peer, settings)}};
  return json_text({{"apiVersion", "batch/v1"},
                    {"kind", "Job"},
                    {"metadata", {{"name", job_name(deployment, peer)}, {"labels", labels}}},
                    {"spec", std::move(spec)}});
}

}  // namespace tw::launch
