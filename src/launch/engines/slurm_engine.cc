// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/slurm_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/peer_name.h"
#include "launch/engines/engines.h"
#include "launch/engines/host_script.h"
#include "launch/engines/program_script.h"

namespace tw::launch {
namespace {

/// Settings of ours, and options of sbatch that the scripts rely on.
constexpr const char* kAddressSetting = "address";
constexpr const char* kTaken[] = {"array",      "job-name", "output",   "error", "open-mode", "requeue",
                                  "no-requeue", "signal",   "parsable", "wrap",  "chdir",     "exclusive"};

/// The option of sbatch in "partition" or "spot.partition", if it is about these machines.
std::string option_in(const std::string& key, const Machine& machine) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return key;
  return key.substr(0, dot) == market::to_string(machine.purchase) ? key.substr(dot + 1) : "";
}

std::vector<std::string> sbatch_options(const Deployment& deployment, const Machine& machine) {
  std::vector<std::string> options;
  for (const auto& [key, value] : deployment.on) {
    const std::string option = option_in(key, machine);
    if (!option.empty() && option != kAddressSetting)
      options.push_back(value.empty() ? "--" + option : fmt::format("--{}={}", option, value));
  }
  return options;
}

/// `tw` and its words for task $n; what differs between peers and starts are variables of the shell.
std::string peer_line(const Deployment& deployment, const PeerJob& like) {
  const PeerPaths paths{
      .run_file = "RUN/run.yaml", .token_file = "RUN/token", .out = "RUN/logs", .listen = "LISTEN"};
  const std::string run = shell_word(deployment.folder);
  std::string line = shell_word(deployment.program);
  for (const std::string& word : peer_words(deployment, like, Start::join, paths)) {
    if (word == paths.listen)
      line += " \"$here\"";
    else if (word == "@" + paths.token_file)
      line += fmt::format(" @{}/p$n/token", run);
    else if (word == paths.run_file || word == paths.out)
      line += fmt::format(" {}{}", run, word.substr(word.find('/')));
    else
      line += " " + shell_word(word);
  }
  return line;
}

/// Into the folder of the user's program, on a machine that is ready for it.
std::string program_folder_lines(const Deployment& deployment) {
  const std::string node = "\"$(uname -n)\"";
  return "cd ../program || exit 1\n. \"../p$n/env\"\nexec 3>&2\nready() (\n" +
         setup_lines(deployment.user, node) +
         probe_lines(deployment.user, node, shell_word(deployment.program)) +
         ")\nif ! ready; then echo 1 >\"../p$n/exit\"; exit 1; fi\n";
}

/// Words of a case: sites and prices of peers, which differ between the groups.
std::string site_cases(const Deployment& deployment) {
  std::map<std::string, std::vector<std::string>> tasks;
  for (const PeerJob& peer : deployment.peers) {
    const std::optional<double> price = price_of(peer);
    const std::string words = fmt::format("site={}{}", shell_word(market::to_string(peer.machine.site)),
                                          price ? fmt::format(" price={}", *price) : "");
    tasks[words].push_back(std::to_string(peer.number));
  }
  std::string text = "price=\ncase $n in\n";
  for (const auto& [words, numbers] : tasks)
    text += fmt::format("  {}) {} ;;\n", fmt::join(numbers, " | "), words);
  return text + "esac\n";
}

/// Up to the branch of a peer that joins. Where a peer of another engine begins the run, all join. begun/peer
/// has the number of the founder (Deployment::founder), which only the nodes know here. A peer begins the run
/// once in each `tw up`: no requeued job has --anew.
std::string begin_lines(const Deployment& deployment) {
  if (find_peer(deployment, first_of(deployment).number) != nullptr)
    return fmt::format(
               "if mkdir ../begun 2>/dev/null; then\n  echo $n >../begun/peer\n  set -- --no-rejoin{}\n",
               deployment.anew ? " --anew" : "") +
           "else\n"
           "  if [ \"$starts\" -gt 0 ] && mv ../begun/free ../begun/peer 2>/dev/null; then\n"
           "    echo $n >../begun/peer\n  fi\n";
  std::string line = "if true; then\n  set --";
  for (const std::string& address : bootstrap_of(deployment)) line += " --join " + shell_word(address);
  return line + "\n";
}

/// The batch script of every peer. Always srun: its step gets SIGTERM when preemption is decided, a script
/// without it hears nothing for the whole grace time.
std::string batch_script(const Deployment& deployment) {
  const auto found = deployment.on.find(kAddressSetting);
  const std::string host = found == deployment.on.end() ? "$(hostname -f)" : shell_word(found->second);
  PeerJob like{};
  std::string script = "#!/bin/sh\n# One peer of a run of tradewind, by tw up.\nn=$SLURM_ARRAY_TASK_ID\n";
  script += fmt::format("cd {}/p$n || exit 1\n", shell_word(deployment.folder));
  script += "if [ -e stop ]; then exit 0; fi\numask 077\n";
  script += fmt::format("here={}:$((7000 + n % 1000))\n", host);
  script += "starts=$(cat starts 2>/dev/null || echo 0)\necho $((starts + 1)) >starts\nrm -f exit\n";
  script += site_cases(deployment);
  script += program_folder_lines(deployment);
  script +=
      "# Only a node that is ready may begin the run. Each says where it is before anybody looks who "
      "begins:\n"
      "# then whoever does not begin finds somebody.\n"
      "echo \"$here\" >\"../p$n/address.new\" && mv \"../p$n/address.new\" \"../p$n/address\"\n"
      "set --\n" +
      begin_lines(deployment) +
      "  if [ \"$starts\" -gt 0 ] || [ -e ../lived ]; then set -- \"$@\" --rejoin; fi\n"
      "  # The founder joins nobody, and resumes the run where no peer has the state any more.\n"
      "  if [ \"$(cat ../begun/peer 2>/dev/null)\" != $n ]; then\n"
      "    for other in ../p*/address; do\n"
      "      if [ \"$other\" != \"../p$n/address\" ]; then set -- \"$@\" --join \"$(cat \"$other\")\"; fi\n"
      "    done\n"
      "  fi\n"
      "fi\n";
  script += fmt::format(
      "cpus=${{SLURM_CPUS_PER_TASK:-1}}\nsrun --ntasks=1 --cpus-per-task=\"$cpus\" {} --threads \"$cpus\" "
      "--site \"$site\" ${{price:+--usd-per-h \"$price\"}} --id $(({} * n + starts)) \"$@\"{}\n",
      peer_line(deployment, like), kIdsOfMachine, command_line(deployment));
  script += fmt::format(
      "code=$?\ncd {1}/p$n\necho $code >exit.new && mv exit.new exit\n"
      "# It does not come back by itself: another one is the founder.\n"
      "if [ $code = {2} ] && [ \"$(cat ../begun/peer 2>/dev/null)\" = $n ]; then\n"
      "  mv ../begun/peer ../begun/free\nfi\n"
      "# It left on a notice, and Slurm would take it for done (aws-parallelcluster#3809).\n"
      "if [ $code = {0} ] && [ ! -e stop ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\nexit $code\n",
      kGoesOn, shell_word(deployment.folder), kNeedsPerson);
  return script;
}

/// job: the id in $said of `sbatch --parsable`, ID or ID;CLUSTER. Lines of the site may stand around it.
constexpr const char* kReadJob =
    "job=$(printf '%s\\n' \"$said\" | sed -n 's/^\\([0-9][0-9]*\\)\\(;.*\\)\\{0,1\\}$/\\1/p' | tail -n 1)\n"
    "if [ -z \"$job\" ]; then\n"
    "  printf 'expected the id of a job, as --parsable prints it, found \"%s\"\\n' "
    "\"$(printf '%s' \"$said\" | tr '\\n' ' ')\" >&2\n"
    "  exit 1\nfi\n";

/// submit COMMAND: $said is what sbatch printed. Without a configuration or a client nothing was submitted:
/// the script ends with kNothingSubmitted unless an array before has been. Any other failure may come after
/// the job, as a controller that answers too late.
constexpr int kNothingSubmitted = 69;
constexpr const char* kSubmit =
    "submitted=\n"
    "submit() {\n"
    "  code=0\n"
    "  said=$(\"$@\" 2>sbatch.err) || code=$?\n"
    "  why=$(cat sbatch.err)\n"
    "  rm -f sbatch.err\n"
    "  if [ -n \"$why\" ]; then printf '%s\\n' \"$why\" >&2; fi\n"
    "  case $submitted$code:$why in\n"
    "    0:*) submitted=yes ;;\n"
    "    yes0:*) ;;\n"
    "    127:* | [1-9]*:*'fatal: '*) exit $nothing_submitted ;;\n"
    "    *) exit $code ;;\n"
    "  esac\n"
    "}\n";

/// A job array for each kind of machine.
std::string submit_script(const Deployment& deployment, const std::vector<PeerJob>& peers) {
  std::map<std::vector<std::string>, std::vector<std::uint32_t>> arrays;
  for (const PeerJob& peer : peers) arrays[sbatch_options(deployment, peer.machine)].push_back(peer.number);
  std::string script = fmt::format("set -eu\ncd {}\nmkdir -p logs\n", shell_word(deployment.folder));
  // With no peer alive the first one begins, or goes on from its checkpoint, at once.
  script += deployment.begun ? "touch lived\n" : "rm -rf begun lived p*/address\n";
  script += fmt::format("nothing_submitted={}\n", kNothingSubmitted) + kSubmit;
  for (const auto& [options, numbers] : arrays) {
    std::vector<std::string> words = {"sbatch", "--parsable", "--requeue", "--open-mode=append"};
    words.push_back("--job-name=" + slurm_job_name(deployment));
    words.push_back(fmt::format("--array={}", fmt::join(numbers, ",")));
    words.push_back("--chdir=" + deployment.folder);
    words.push_back("--output=" + deployment.folder + "/p%a/log");
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("peer.sh");
    script += fmt::format("for n in {}; do mkdir -p p$n; rm -f p$n/stop p$n/exit p$n/job; done\n",
                          fmt::join(numbers, " "));
    script += "submit " + shell_line(words) + "\n" + kReadJob;
    script += fmt::format("for n in {}; do echo \"${{job}}_$n\" >p$n/job; done\n", fmt::join(numbers, " "));
  }
  return script;
}

std::string peer_folder(const Deployment& deployment, const PeerJob& peer) {
  return shell_word(deployment.folder + "/" + short_name(peer));
}

/// look: jobs is then what Slurm has of the peer: tasks of this number in arrays of the run, as
/// slurm_states() finds them, since sbatch may have ended before it said the id; and that of its file. When
/// Slurm cannot be asked it fails, and $why says so. cancel ARGUMENTS: what scancel says when it fails goes
/// to $trouble.
std::string jobs_of_peer(const Deployment& deployment, const PeerJob& peer) {
  return fmt::format("cd {} 2>/dev/null || exit 0\nnumber={} run={}\n", peer_folder(deployment, peer),
                     peer.number, shell_word(slurm_job_name(deployment) + " " + deployment.folder)) +
         "hint=$(tail -n 1 job 2>/dev/null)\njobs=\ntrouble=\n"
         "look() {\n"
         "  said=$(squeue --me --noheader --array '--format=%i %j %Z' 2>&1) || {\n"
         "    why=\"${hint:+job }${hint:-its job} may live, squeue failed: "
         "$(printf '%s' \"$said\" | tail -n 1)\"\n"
         "    return 1; }\n"
         "  jobs=\n"
         "  while read -r id name; do\n"
         "    case $id in\n"
         "      *_\"$number\") if [ \"$name\" = \"$run\" ] || [ \"$id\" = \"$hint\" ]; then "
         "jobs=\"$jobs${jobs:+ }$id\"; fi ;;\n"
         "    esac\n"
         "  done <<END_OF_JOBS\n$said\nEND_OF_JOBS\n"
         "}\n"
         "cancel() {\n"
         "  said=$(scancel --quiet \"$@\" $jobs 2>&1) || trouble=\"${said:-no reason was given}\"\n"
         "}\n";
}

/// The script of the job looks for `stop` before it asks for its own return, and when Slurm brings it back.
/// The peer does not come back, so it is no founder any more.
std::string stop_lines(const PeerJob& peer) {
  return fmt::format(
      "touch stop\nif [ \"$(cat ../begun/peer 2>/dev/null)\" = {} ]; then\n"
      "  mv ../begun/peer ../begun/free 2>/dev/null || true\nfi\n",
      peer.number);
}

/// A job that waits goes at once; one that runs gets SIGTERM in its step, once, and the grace to leave in.
/// Until that is over a failure of squeue is no answer. scancel also fails for a job that has just ended.
std::string cancel_script(const Deployment& deployment, const PeerJob& peer) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(deployment.grace).count() + 1;
  return jobs_of_peer(deployment, peer) + stop_lines(peer) +
         fmt::format("end=$(($(date +%s) + {}))\n", seconds) +
         "told=\n"
         "while true; do\n"
         "  if look; then\n"
         "    if [ -z \"$jobs\" ]; then break; fi\n"
         "    if [ -z \"$told\" ]; then cancel --state=PENDING; cancel --signal=TERM; told=yes; fi\n"
         "  fi\n"
         "  if [ \"$(date +%s)\" -ge \"$end\" ]; then break; fi\n"
         "  sleep 0.5\n"
         "done\n"
         "look || { echo \"$why\" >&2; exit 1; }\n"
         "if [ -n \"$jobs\" ]; then\n"
         "  trouble=\n  cancel\n"
         "  if [ -n \"$trouble\" ]; then\n"
         "    look || { echo \"$why\" >&2; exit 1; }\n"
         "    if [ -n \"$jobs\" ]; then echo \"job $jobs lives: $trouble\" >&2; exit 1; fi\n"
         "  fi\n"
         "fi\n"
         "rm -f address\n";
}

/// A requeued job waits two minutes (BeginTime) unless it is told otherwise. On the node that it left a
/// second ago it would fail: "Job credential revoked".
std::string hurry_script(const Deployment& deployment, const PeerJob& peer) {
  return jobs_of_peer(deployment, peer) +
         "look || { echo \"$why\" >&2; exit 1; }\n"
         "for job in $jobs; do scontrol update jobid=\"$job\" StartTime=now+3 || exit 1; done\n";
}

std::string files_line(const Deployment& deployment, const PeerJob& peer) {
  return fmt::format(
      "if cd {} 2>/dev/null; then "
      "echo \"{{\\\"peer\\\":{},\\\"exit\\\":$(cat exit 2>/dev/null || echo null),"
      "\\\"starts\\\":$(cat starts 2>/dev/null || echo 0)}}\"; fi\n",
      peer_folder(deployment, peer), peer.number);
}

/// Peers as tasks of job arrays. The state folder of the run lies on a file system that all nodes share.
class SlurmEngine final : public Engine {
 public:
  bool restarts(const PeerJob& /*peer*/) const override { return true; }

  Status check(const Deployment& deployment) const override { return check_settings(deployment); }

  Status check_settings(const Deployment& deployment) const override {
    for (const auto& [key, value] : deployment.on) {
      const std::size_t dot = key.find('.');
      const std::string option = dot == std::string::npos ? key : key.substr(dot + 1);
      const bool of_purchase = dot == std::string::npos || market::parse_purchase(key.substr(0, dot));
      if (std::ranges::find(kTaken, option) != std::end(kTaken))
        return Error{fmt::format("--with {}={}: tw up sets --{} of sbatch itself", key, value, option)};
      const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
      if (option.empty() || option.front() == '-' || !std::ranges::all_of(option, fits) || !of_purchase)
        return Error{
            fmt::format("--with {}={}: expected a long option of sbatch without its dashes, such as "
                        "partition=gpu, for some machines spot.partition=preemptible (spot, "
                        "on-demand or owned), or address=HOST",
                        key, value)};
    }
    return Unit{};
  }

  std::vector<File> files(const Deployment& deployment) const override {
    std::vector<File> files = shared_files(deployment);
    files.push_back({"peer.sh", batch_script(deployment), 0755});
    return files;
  }

  std::vector<Command> commands(Action action, const Deployment& deployment,
                                const std::vector<PeerJob>& peers) const override {
    std::vector<Command> commands;
    if (action == Action::start)
      commands.push_back({.words = {"sh", "-s"},
                          .client = "sbatch",
                          .input = submit_script(deployment, peers),
                          .in_vain = kNothingSubmitted});
    if (action == Action::status) {
      std::string files;
      for (const PeerJob& peer : deployment.peers) files += files_line(deployment, peer);
      commands.push_back({.words = {"squeue", "--me", "--json"}});
      commands.push_back({.words = {"sh", "-s"}, .client = deployment.folder, .input = files});
    }
    for (const PeerJob& peer : peers) add(action, deployment, peer, commands);
    return with_limits(std::move(commands), action, deployment);
  }

  Result<std::vector<PeerReport>> states(const Deployment& deployment,
                                         const std::vector<Output>& outputs) const override {
    for (const Output& output : outputs)
      if (output.is_late) return unknown_for(deployment, output.errors);
    if (outputs.size() != 2) return Error{"squeue did not answer"};
    return slurm_states(deployment, outputs[0].text, outputs[1].text);
  }

 private:
  static void add(Action action, const Deployment& deployment, const PeerJob& peer,
                  std::vector<Command>& commands) {
    const std::string folder = peer_folder(deployment, peer);
    const auto run = [&](std::string script, const std::string& client = "") {
      commands.push_back({.words = {"sh", "-s"},
                          .client = client.empty() ? folder : client,
                          .input = std::move(script),
                          .peer = peer.number});
    };
    if (action == Action::stop) run(cancel_script(deployment, peer), "scancel");
    if (action == Action::retire)
      run(fmt::format("cd {} 2>/dev/null || exit 0\n", folder) + stop_lines(peer));
    const std::string all = shell_word(deployment.folder);
    if (action == Action::collect) run(keep_output(peer, {"tw", all, all + "/logs"}));
    if (action == Action::logs) run(fmt::format("cat {}/log\n", folder));
    if (action == Action::remove) run(fmt::format("rm -f {0}/token {0}/env\n", folder));
    if (action == Action::hurry) run(hurry_script(deployment, peer), "scontrol");
  }
};

}  // namespace

std::string slurm_job_name(const Deployment& deployment) { return "tw-" + deployment.run; }

std::unique_ptr<Engine> slurm_engine() { return std::make_unique<SlurmEngine>(); }

}  // namespace tw::launch
