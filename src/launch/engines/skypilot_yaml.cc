// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "launch/engines/cloud_names.h"
#include "launch/engines/program_script.h"
#include "launch/engines/skypilot.h"

namespace tw::launch {
namespace {

constexpr std::uint16_t kSkyPort = 7000;

/// "aws/us-east-1/us-east-1a", as far as the plan names it.
std::string infra_of(const Machine& machine) {
  std::string infra = machine.site.provider;
  const std::string region = launch::region_of(machine);
  if (!region.empty()) infra += "/" + region;
  if (const std::string zone = zone_of(machine); !zone.empty() && !region.empty()) infra += "/" + zone;
  return infra;
}

/// GPUs are attached to a VM type of GCP's; elsewhere the type implies them.
void write_machine(YAML::Emitter& out, const Machine& machine) {
  const Gpus gpus = gpus_of(machine);
  const std::string type = type_of(machine);
  out << YAML::Key << "infra" << YAML::Value << infra_of(machine);
  if (!type.empty()) out << YAML::Key << "instance_type" << YAML::Value << type;
  if (gpus.count > 0 && (type.empty() || machine.site.provider == "gcp"))
    out << YAML::Key << "accelerators" << YAML::Value << fmt::format("{}:{}", gpus.name, gpus.count);
  out << YAML::Key << "use_spot" << YAML::Value << is_spot(machine);
}

void write_recovery(YAML::Emitter& out) {
  out << YAML::Key << "job_recovery" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "recover_on_exit_codes" << YAML::Value << YAML::Flow << std::vector<int>{kGoesOn};
  out << YAML::EndMap;
}

void write_resources(YAML::Emitter& out, const Deployment& deployment, const PeerJob& peer,
                     const SkySettings& settings) {
  out << YAML::Key << "resources" << YAML::Value << YAML::BeginMap;
  write_recovery(out);
  if (!deployment.image.empty())
    out << YAML::Key << "image_id" << YAML::Value << "docker:" + deployment.image;
  out << YAML::Key << "ports" << YAML::Value << YAML::Flow << std::vector<int>{kSkyPort};
  if (settings.disk_gb) out << YAML::Key << "disk_size" << YAML::Value << *settings.disk_gb;
  if (settings.most_usd_per_h)
    out << YAML::Key << "max_hourly_cost" << YAML::Value << *settings.most_usd_per_h;
  out << YAML::Key << "labels" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "tradewind-run" << YAML::Value << deployment.run;
  out << YAML::Key << "tradewind-peer" << YAML::Value << short_name(peer) << YAML::EndMap;
  if (peer.alternatives.empty()) {
    write_machine(out, peer.machine);
  } else {
    out << YAML::Key << "ordered" << YAML::Value << YAML::BeginSeq;
    for (const Machine& machine : choices_of(peer)) {
      out << YAML::BeginMap;
      write_machine(out, machine);
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  out << YAML::EndMap;
}

}  // namespace

std::vector<std::string> sky_meeting_places(const Deployment& deployment, const SkySettings& settings) {
  std::vector<std::string> places = settings.join;
  for (const std::string& address : bootstrap_of(deployment)) places.push_back(address);
  return places;
}

std::string sky_script(const Deployment& deployment, const PeerJob& peer, const SkySettings& settings) {
  // Every start joins: the peers at the meeting places begin the run.
  const Start start = deployment.begun ? Start::again : Start::join;
  const PeerPaths paths{.run_file = "run.yaml",
                        .token_file = "token",
                        .out = "out",
                        .listen = fmt::format("0.0.0.0:{}", kSkyPort),
                        .join = sky_meeting_places(deployment, settings)};
  const std::string mark = heredoc_end("END_OF_RUN_FILE", deployment.run_file);
  std::string text = deployment.run_file;
  if (!text.ends_with('\n')) text += '\n';
  std::string script =
      fmt::format("set -eu\numask 077\nmkdir -p ~/tradewind/{0}/out\ncd ~/tradewind/{0}\n", deployment.run);
  script += "printf '%s\\n' \"$TW_TOKEN\" >token\nunset TW_TOKEN\n";
  script += fmt::format("cat >run.yaml <<'{0}'\n{1}{0}\n", mark, text);
  // In SkyPilot's copy of `workdir`; $run is expanded there.
  script += "run=$PWD\ncd ~/sky_workdir\nexec tw";
  for (const std::string& word : peer_words(deployment, with_common_site(peer), start, paths)) {
    if (word == paths.run_file || word == paths.out)
      script += " \"$run/" + word + "\"";
    else
      script +=
          " " + (word == "@" + paths.token_file ? "@\"$run/" + paths.token_file + "\"" : shell_word(word));
  }
  return script + command_line(deployment) + "\n";
}

namespace {

/// Lines before the peer starts; the files are there.
std::string sky_setup(const Deployment& deployment) {
  const std::string here = "\"$(uname -n)\"";
  return "unset TW_TOKEN\nmkdir -p ~/sky_workdir\ncd ~/sky_workdir\nexec 3>&2\n" +
         setup_lines(deployment.user, here) + probe_lines(deployment.user, here, "\"$(command -v tw)\"");
}

}  // namespace

std::string sky_task(const Deployment& deployment, const PeerJob& peer, const SkySettings& settings) {
  YAML::Emitter out;
  out.SetIndent(2);
  out << YAML::Comment(fmt::format("Peer {} of run {}, a managed job of SkyPilot. Written by `tw up`.",
                                   peer.number, deployment.run));
  out << YAML::BeginMap;
  out << YAML::Key << "name" << YAML::Value << job_name(deployment, peer);
  out << YAML::Key << "num_nodes" << YAML::Value << 1;
  write_resources(out, deployment, peer, settings);
  if (!deployment.user.files.empty())
    out << YAML::Key << "workdir" << YAML::Value << deployment.folder + "/program";
  if (!settings.mounts.empty()) {
    out << YAML::Key << "file_mounts" << YAML::Value << YAML::BeginMap;
    for (const auto& [path, source] : settings.mounts) out << YAML::Key << path << YAML::Value << source;
    out << YAML::EndMap;
  }
  out << YAML::Key << "secrets" << YAML::Value << YAML::BeginMap << YAML::Key << "TW_TOKEN" << YAML::Value
      << YAML::Null;
  for (const auto& [name, value] : deployment.user.env) out << YAML::Key << name << YAML::Value << YAML::Null;
  out << YAML::EndMap;
  out << YAML::Key << "setup" << YAML::Value << YAML::Literal << sky_setup(deployment);
  out << YAML::Key << "run" << YAML::Value << YAML::Literal << sky_script(deployment, peer, settings);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace tw::launch
