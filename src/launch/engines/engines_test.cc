// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/engines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/text/text_file.h"
#include "host/system/temporary_folder.h"
#include "launch/command_run.h"
#include "launch/engines/host_script.h"
#include "launch/engines/slurm_engine.h"
#include "launch/run_store.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<PeerJob> only(const Deployment& deployment, std::uint32_t number) {
  return {*find_peer(deployment, number)};
}

Output printed(std::string text, std::uint32_t peer = 0, int exit_code = 0) {
  return {.command = {.peer = peer}, .exit_code = exit_code, .text = std::move(text)};
}

// ---- ssh

TEST(SshEngine, leaves_out_the_users_settings_and_asks_nothing) {
  const Deployment deployment = three_peers();
  const auto commands = ssh_engine()->commands(Action::start, deployment, only(deployment, 1));
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_THAT(commands[0].words,
              ElementsAre("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o",
                          "ServerAliveInterval=5", "--", "ada@gpu1", "sh -s"));
}

TEST(SshEngine, one_connection_serves_a_host_and_settings_are_the_users_on_demand) {
  Deployment deployment = three_peers();
  deployment.on = {{"control", "/tmp/c"}, {"ssh-config", "/home/ada/.ssh/config"}};
  const auto commands = ssh_engine()->commands(Action::stop, deployment, only(deployment, 2));
  EXPECT_THAT(shell_line(commands[0].words),
              HasSubstr("ssh -F /home/ada/.ssh/config -o BatchMode=yes -o ConnectTimeout=5 -o "
                        "ServerAliveInterval=5 -o ControlMaster=auto -o ControlPath=/tmp/c/%C -o "
                        "ControlPersist=60 -- gpu2 'sh -s'"));
  for (const Action action : {Action::prepare, Action::start, Action::status, Action::collect, Action::logs})
    for (const Command& command : ssh_engine()->commands(action, deployment, deployment.peers))
      EXPECT_EQ(command.own_folder, "/tmp/c");
}

TEST(SshEngine, the_program_goes_once_to_each_host_and_the_token_to_each_peer) {
  const Deployment deployment = three_peers();
  int programs = 0, tokens = 0;
  for (const Command& command : ssh_engine()->commands(Action::prepare, deployment, deployment.peers)) {
    programs += command.input_file == deployment.archive ? 1 : 0;
    if (command.input_is_secret) {
      EXPECT_THAT(command.words.back(), AllOf(HasSubstr("umask 077"), HasSubstr("chmod 600")));
    }
    if (command.input_is_secret && command.words.back().find("/token") != std::string::npos) {
      EXPECT_EQ(command.input, std::string(command.peer == 1 ? kTestAnchorToken : kTestToken) + "\n");
      ++tokens;
    }
  }
  EXPECT_EQ(programs, 2);
  EXPECT_EQ(tokens, 3);
}

TEST(SshEngine, a_host_that_cannot_be_reached_stops_no_other_one) {
  const Deployment deployment = with_program(three_peers());
  for (const Action action : {Action::prepare, Action::check})
    for (const Command& command : ssh_engine()->commands(action, deployment, deployment.peers))
      EXPECT_NE(command.peer, 0U) << shell_line(command.words);
  for (const Command& command : ssh_engine()->commands(Action::collect, deployment, deployment.peers))
    EXPECT_TRUE(command.others_go_on && command.fine == std::vector({0, 255}));
}

TEST(SshEngine, a_check_leaves_no_variables_on_the_host) {
  const Deployment deployment = with_program(three_peers());
  const auto forgets = [&](Action action) {
    bool found = false;
    for (const Command& command : ssh_engine()->commands(action, deployment, only(deployment, 1)))
      found = found || command.input.find(
                           "forget() { rm -f \"$HOME\"/.tradewind/runs/words/p1/env; }\n"
                           "trap forget EXIT\n") == 0;
    return found;
  };
  EXPECT_TRUE(forgets(Action::check));
  EXPECT_FALSE(forgets(Action::prepare)) << "its peer reads them";
}

TEST(SshEngine, hosts_with_a_common_home_do_not_write_into_each_others_run_file) {
  const Deployment deployment = three_peers();
  std::set<std::string> beside;
  for (const Command& command : ssh_engine()->commands(Action::prepare, deployment, deployment.peers)) {
    const std::size_t at = command.words.back().find("/run.yaml.p");
    if (at == std::string::npos) continue;
    EXPECT_EQ(command.input, deployment.run_file);
    beside.insert(command.words.back().substr(at, 12));
  }
  EXPECT_THAT(beside, ElementsAre("/run.yaml.p1", "/run.yaml.p2"));
}

TEST(SshEngine, peers_start_apart_from_the_connection_and_leave_a_pid) {
  const Deployment deployment = three_peers();
  const std::string script =
      ssh_engine()->commands(Action::start, deployment, only(deployment, 3)).front().input;
  EXPECT_THAT(script, HasSubstr("setsid -f sh run.sh \"$id\" </dev/null >>log 2>&1"));
  EXPECT_THAT(script, HasSubstr("cd '/data/tw home'/runs/words/p3\n"));
  EXPECT_THAT(script, HasSubstr("id=$((3000 + starts))"));
  EXPECT_THAT(script, HasSubstr("threads=$(($(nproc) / 2))")) << "two peers of three are on this host";
  EXPECT_THAT(
      script,
      HasSubstr(
          "'/data/tw home'/bin/tw-0123abcd/tw run \"$run\"/run.yaml --token @\"$run\"/p3/token --out "
          "'/data/tw home'/runs/words/out --listen 10.0.0.2:7001 --join 10.0.0.1:7000 "
          "--join 10.0.0.2:7000 --site gcp:us-west1 --usd-per-h 0.1 --grace 25s --set "
          "training.rounds=20 --set "
          "'checkpoint.folder=/data/it'\\''s' --threads \"$threads\" --id \"$id\" -- python3 train.py) &\n"));
}

TEST(SshEngine, a_host_that_does_not_answer_may_still_run_its_peer) {
  const Deployment deployment = three_peers();
  Output gone = printed("", 2, 255);
  gone.errors =
      "Welcome to the cluster\r\n\r\nssh: connect to host gpu2 port 22: Connection timed out\r\n\r\n";
  const auto reports = ssh_engine()->states(
      deployment, {printed(R"({"peer":1,"alive":true,"pid":7,"exit":null,"starts":3,"host":"g1"})", 1), gone,
                   printed(R"({"peer":3,"alive":false,"pid":7,"exit":75,"starts":1,"host":"g2"})", 3)});
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  EXPECT_EQ(reports.value()[0],
            (PeerReport{
                .number = 1, .state = PeerState::running, .where = "g1", .restarts = 2, .detail = "pid 7"}));
  EXPECT_EQ(reports.value()[1].state, PeerState::unknown);
  EXPECT_EQ(reports.value()[1].detail, "ssh: connect to host gpu2 port 22: Connection timed out");
  EXPECT_EQ(reports.value()[2].state, PeerState::left);
  gone.errors = "\n";
  EXPECT_EQ(ssh_engine()->states(deployment, {gone}).value()[0].detail, "ssh gpu2: exit code 255");
}

/// The host of p1, with a home of its own, behind a program that stands for ssh.
class FakeHost {
 public:
  FakeHost() {
    deployment_.folder = folder_.path() + "/state";
    deployment_.archive = folder_.path() + "/tw.tar";
    deployment_.user.command = {"true"};
    write(deployment_.archive, "not all of it\n");
    write(folder_.path() + "/bin/ssh",
          fmt::format("#!/bin/sh\nfor script; do :; done\nHOME={0} PATH={1}:$PATH exec sh -c \"$script\"\n",
                      shell_word(home()), shell_word(folder_.path() + "/there")));
  }

  std::string home() const { return folder_.path() + "/home"; }

  /// A program of the host.
  void program(const std::string& name, const std::string& script) const {
    write(folder_.path() + "/there/" + name, "#!/bin/sh\n" + script + "\n");
  }

  void has(const std::string& file, const std::string& text) const {
    write(home() + "/.tradewind/runs/words/" + file, text);
  }

  /// A file of the state folder.
  void gives(const std::string& file, const std::string& text) const {
    write(deployment_.folder + "/" + file, text);
  }

  std::string collected(const std::string& file) const {
    const auto text = read_text_file(deployment_.folder + "/logs/" + file);
    return text ? text.value() : "none";
  }

  /// What fails; empty: nothing.
  std::string perform(Action action) const {
    std::vector<Command> commands = ssh_engine()->commands(action, deployment_, only(deployment_, 1));
    for (Command& command : commands) {
      const std::string path = "PATH=" + folder_.path() + "/bin:" + getenv("PATH");
      command.words.insert(command.words.begin(), {"env", path});
    }
    const Batch batch = run_all(commands);
    return batch.failures.empty() ? "" : batch.failures.front().message;
  }

 private:
  static void write(const std::string& path, const std::string& text) {
    EXPECT_TRUE(write_with_folder(path, text, 0755).ok()) << path;
  }

  host::TemporaryFolder folder_;
  Deployment deployment_ = three_peers();
};

TEST(SshEngine, collects_what_is_new_and_keeps_what_a_host_has_lost) {
  const FakeHost host;
  const std::string rounds(10'000, '.');
  const auto collect = [&](const std::string& output) {
    host.has("p1/log", output);
    EXPECT_EQ(host.perform(Action::collect), "");
    EXPECT_EQ(host.collected("p1.log"), output);
  };
  host.has("out/events-1000.jsonl", "{}\n");
  for (const std::string& output : {std::string("one\n"), "one\n" + rounds, "one\n" + rounds + "two\n"})
    collect(output);
  EXPECT_EQ(host.collected("events-1000.jsonl"), "{}\n");
  EXPECT_EQ(host.collected("p1.log.gone"), "none");
  collect("another\n" + rounds + rounds);
  EXPECT_EQ(host.collected("p1.log.gone"), "one\n" + rounds + "two\n");
  collect("a third one\n");
  EXPECT_EQ(host.collected("p1.log.gone"), "one\n" + rounds + "two\nanother\n" + rounds + rounds);
}

TEST(SshEngine, a_copy_that_does_not_arrive_names_folder_size_and_reason) {
  const FakeHost host;
  const std::string program = "p1: ssh ada@gpu1: exit code 1: " + host.home() +
                              "/.tradewind/bin: the program (77 bytes, twice while it is unpacked) did not "
                              "arrive whole; is the disk full?";
  EXPECT_EQ(host.perform(Action::prepare), program);
  host.program("cat", "echo 'cat: write error: No space left on device' >&2; exit 1");
  EXPECT_EQ(host.perform(Action::prepare), program + " (cat: write error: No space left on device)");
}

TEST(SshEngine, files_that_do_not_arrive_name_host_and_reason) {
  const FakeHost host;
  host.has("../../bin/tw-0123abcd/tw", "#!/bin/sh\n");
  host.gives("program.list", "train.py\n");
  host.gives("program/train.py", "pass\n");
  EXPECT_EQ(host.perform(Action::prepare), "");
  host.gives("program/train.py", "print()\n");
  host.program("tar",
               "echo 'tar: train.py: Wrote only 512 of 10240 bytes' >&2\n"
               "echo 'tar: Exiting with failure status due to previous errors' >&2\nexit 2");
  EXPECT_EQ(host.perform(Action::prepare),
            "ada@gpu1: the files of the program did not arrive whole; is the disk full? (tar: train.py: "
            "Wrote only 512 of 10240 bytes)");
}

TEST(SshEngine, a_host_that_is_late_may_still_run_its_peer_and_messages_name_it) {
  const Deployment deployment = three_peers();
  for (const Action action : {Action::prepare, Action::start, Action::stop, Action::status, Action::collect})
    for (const Command& command : ssh_engine()->commands(action, deployment, deployment.peers))
      EXPECT_THAT(command.client, testing::StartsWith("ssh ")) << shell_line(command.words);
  const Command status = ssh_engine()->commands(Action::status, deployment, deployment.peers).front();
  EXPECT_EQ(status.limit, std::chrono::seconds(30));
  const auto reports = ssh_engine()->states(
      deployment,
      {{.command = status, .errors = "ssh ada@gpu1 did not answer within 30 s", .is_late = true}});
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  EXPECT_EQ(reports.value()[0].state, PeerState::unknown);
  EXPECT_EQ(reports.value()[0].detail, "ssh ada@gpu1 did not answer within 30 s");
}

TEST(SshEngine, setup_lines_take_as_long_as_they_take) {
  for (const Command& command :
       ssh_engine()->commands(Action::prepare, with_program(three_peers()), three_peers().peers))
    EXPECT_EQ(command.limit, Duration{});
}

TEST(SshEngine, a_peer_needs_a_host) {
  Deployment deployment = three_peers();
  deployment.peers[1].host.clear();
  const Status checked = ssh_engine()->check(deployment);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().message, "peer 2: no host; give --hosts FILE with a line for each machine");
}

TEST(HostState, tells_how_a_process_ended) {
  const auto state = [](const char* text) { return state_in(text).value().state; };
  EXPECT_EQ(state(R"({"peer":1})"), PeerState::absent);
  EXPECT_EQ(state(R"({"peer":1,"alive":false,"pid":7,"exit":0,"starts":1,"host":"a"})"), PeerState::done);
  EXPECT_EQ(state(R"({"peer":1,"alive":false,"pid":7,"exit":137,"starts":1,"host":"a"})"), PeerState::failed);
  EXPECT_EQ(state(R"({"peer":1,"alive":false,"pid":7,"exit":null,"starts":1,"host":"a"})"),
            PeerState::failed);
  for (const char* bad : {"", "Last login: yesterday", R"({"peer":1,"starts":1})", R"({"peer":-1})"})
    EXPECT_FALSE(state_in(bad).ok()) << bad;
}

// ---- Slurm

std::string text_of(const std::vector<File>& files, const std::string& path) {
  for (const File& file : files)
    if (file.path == path) return file.text;
  return "no such file";
}

TEST(SlurmEngine, a_node_is_set_up_before_it_may_begin_the_run) {
  const std::string script = text_of(slurm_engine()->files(with_program(three_peers())), "peer.sh");
  const std::size_t set_up = script.find("if ! ready; then"), claims = script.find("mkdir ../begun");
  ASSERT_NE(claims, std::string::npos);
  EXPECT_LT(set_up, script.find("../p$n/address.new"));
  EXPECT_LT(set_up, claims);
  EXPECT_THAT(script, HasSubstr("8>\"../setup-$(uname -n).lock\""))
      << "no node waits for the setup of another";
}

TEST(SlurmEngine, submits_an_array_for_each_kind_of_machine) {
  Deployment deployment = three_peers();
  deployment.on = {{"account", "lab"}, {"spot.partition", "preemptible"}, {"owned.partition", "main"}};
  const auto commands = slurm_engine()->commands(Action::start, deployment, deployment.peers);
  ASSERT_EQ(commands.size(), 1U);
  const std::string& script = commands[0].input;
  EXPECT_THAT(script,
              HasSubstr("sbatch --parsable --requeue --open-mode=append --job-name=tw-words --array=1 "
                        "--chdir=/state/words --output=/state/words/p%a/log --account=lab "
                        "--partition=main peer.sh"));
  EXPECT_THAT(script,
              HasSubstr("--array=2,3 --chdir=/state/words --output=/state/words/p%a/log --account=lab "
                        "--partition=preemptible peer.sh"));
}

TEST(SlurmEngine, a_peer_hears_of_preemption_at_once_and_comes_back) {
  const std::string script = text_of(slurm_engine()->files(three_peers()), "peer.sh");
  EXPECT_THAT(script,
              HasSubstr("\nsrun --ntasks=1 --cpus-per-task=\"$cpus\" /opt/tw run /state/words/run.yaml "));
  EXPECT_THAT(script, Not(HasSubstr("--signal")));
  EXPECT_THAT(script, HasSubstr("if [ $code = 75 ] && [ ! -e stop ]; then scontrol requeue"));
  EXPECT_THAT(script, HasSubstr("set -- \"$@\" --rejoin"));
  EXPECT_THAT(script, HasSubstr(" ${price:+--usd-per-h \"$price\"} --id "));
  EXPECT_THAT(script, HasSubstr("  1) site=onprem:eu price=0.1 ;;\n"));
  EXPECT_THAT(script, HasSubstr("  2 | 3) site=gcp:us-west1 price=0.1 ;;\n"));
}

TEST(SlurmEngine, a_users_program_runs_in_the_shared_folder_on_a_node_that_is_ready) {
  Deployment deployment = three_peers();
  deployment.user = {.command = {"python3", "train.py", "$x"}, .setup = {"make"}, .setup_key = "k"};
  const std::string script = text_of(slurm_engine()->files(deployment), "peer.sh");
  EXPECT_THAT(script, HasSubstr("\ncd ../program || exit 1\n. \"../p$n/env\"\n"));
  EXPECT_THAT(script, HasSubstr("\"$(uname -n)\"': line 1 of program.setup (make)'"));
  EXPECT_THAT(script, HasSubstr("/opt/tw run /state/words/run.yaml --token @/state/words/p$n/token --out "
                                "/state/words/logs --listen \"$here\" "));
  EXPECT_THAT(script, HasSubstr(" \"$@\" -- python3 train.py '$x'\ncode=$?\ncd /state/words/p$n\n"));
}

TEST(SlurmEngine, a_peer_that_retires_is_told_nothing_and_does_not_come_back) {
  const Deployment deployment = three_peers();
  const auto commands = slurm_engine()->commands(Action::retire, deployment, only(deployment, 1));
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_THAT(commands[0].input,
              testing::StartsWith("cd /state/words/p1 2>/dev/null || exit 0\ntouch stop\n"));
  EXPECT_THAT(ssh_engine()->commands(Action::retire, deployment, only(deployment, 1)), IsEmpty());
}

/// A folder with the state of a run, and programs that stand for those of Slurm.
class FakeSlurm {
 public:
  FakeSlurm() {
    deployment_.folder = folder_.path() + "/words";
    deployment_.grace = std::chrono::seconds(-1);  // its script waits a second longer
    std::filesystem::create_directories(deployment_.folder);
    for (const char* name : {"sbatch", "scancel", "squeue"}) program(name, "exit 0");
  }

  void program(const std::string& name, const std::string& script) const {
    EXPECT_TRUE(write_with_folder(folder_.path() + "/bin/" + name, "#!/bin/sh\n" + script + "\n", 0755).ok());
  }

  void job(const std::string& id) const {
    EXPECT_TRUE(write_with_folder(deployment_.folder + "/p1/job", id + "\n", 0644).ok());
  }

  /// A program whose calls are in this file, a line each.
  std::string recorder(const std::string& name) const {
    program(name, "echo \"$*\" >>" + shell_word(folder_.path() + "/calls") + "; exit 0");
    return folder_.path() + "/calls";
  }

  const std::string& folder() const { return deployment_.folder; }

  void begin_anew() { deployment_.anew = true; }

  std::string job() const {
    const auto text = read_text_file(deployment_.folder + "/p1/job");
    return text ? text.value() : "";
  }

  /// The words that `tw` gets in this task, which ends with the exit code.
  std::string task(int number, int exit_code) const {
    Deployment deployment = deployment_;
    deployment.user = {.command = {"true"}};
    deployment.on = {{"address", "node"}};
    for (const File& file : slurm_engine()->files(deployment))
      EXPECT_TRUE(write_with_folder(folder() + "/" + file.path, file.text, file.mode).ok());
    std::filesystem::create_directories(folder() + "/program");
    program("srun", fmt::format("echo \"$*\"; exit {}", exit_code));
    program("scontrol", "exit 0");
    const auto ran = run_command(
        {.words = {"env", fmt::format("SLURM_ARRAY_TASK_ID={}", number), "SLURM_JOB_ID=7", "sh", "-c",
                   fmt::format("PATH={}/bin:$PATH; . {}/peer.sh", shell_word(folder_.path()),
                               shell_word(folder()))}});
    EXPECT_TRUE(ran.ok() && ran.value().exit_code == exit_code) << (ran ? ran.value().errors : "");
    return ran ? ran.value().text : "";
  }

  /// With these programs in front of all others.
  std::vector<Command> commands(Action action) const {
    std::vector<Command> commands = slurm_engine()->commands(action, deployment_, only(deployment_, 1));
    for (Command& command : commands)
      command.input = "PATH=" + shell_word(folder_.path() + "/bin") + ":$PATH\n" + command.input;
    return commands;
  }

  /// What fails; empty: nothing.
  std::string perform(Action action) const {
    const Batch batch = run_all(commands(action));
    return batch.failures.empty() ? "" : batch.failures.front().message;
  }

 private:
  host::TemporaryFolder folder_;
  Deployment deployment_ = three_peers();
};

TEST(SlurmEngine, the_output_of_a_peer_stays_when_the_plan_has_it_no_more) {
  const FakeSlurm slurm;
  EXPECT_EQ(slurm.perform(Action::collect), "") << "it printed nothing yet";
  ASSERT_TRUE(write_with_folder(slurm.folder() + "/p1/log", "said\n", 0644).ok());
  EXPECT_EQ(slurm.perform(Action::collect), "");
  EXPECT_EQ(read_text_file(slurm.folder() + "/logs/p1.log").value(), "said\n");
}

TEST(SlurmEngine, the_task_that_began_the_run_joins_nobody_and_the_others_join_it) {
  const FakeSlurm slurm;
  const std::string began = slurm.task(2, kGoesOn), joined = slurm.task(1, kGoesOn);
  EXPECT_THAT(began, AllOf(HasSubstr("--no-rejoin"), Not(HasSubstr("--join"))));
  EXPECT_THAT(joined, AllOf(HasSubstr("--join node:7002"), Not(HasSubstr("rejoin"))));
  EXPECT_THAT(slurm.task(2, kNeedsPerson), AllOf(HasSubstr(" --rejoin"), Not(HasSubstr("--join"))))
      << "the others dial it";
  EXPECT_THAT(slurm.task(1, kGoesOn), AllOf(HasSubstr(" --rejoin"), Not(HasSubstr("--join"))))
      << "the founder does not come back by itself: this one takes its part";
  EXPECT_THAT(slurm.task(2, kGoesOn), HasSubstr("--join node:7001"));
}

TEST(SlurmEngine, a_run_begins_anew_once_however_often_its_jobs_come_back) {
  FakeSlurm slurm;
  slurm.begin_anew();
  EXPECT_THAT(slurm.task(2, kGoesOn), HasSubstr("--no-rejoin --anew"));
  for (const int number : {1, 2}) EXPECT_THAT(slurm.task(number, kGoesOn), Not(HasSubstr("--anew")));
}

TEST(SlurmEngine, a_founder_that_was_stopped_gives_its_part_to_one_that_comes_back) {
  for (const Action action : {Action::stop, Action::retire}) {
    const FakeSlurm slurm;
    EXPECT_THAT(slurm.task(1, kGoesOn), HasSubstr("--no-rejoin"));
    EXPECT_THAT(slurm.task(2, kGoesOn), HasSubstr("--join node:7001"));
    slurm.job("7_1");
    EXPECT_EQ(slurm.perform(action), "");
    EXPECT_THAT(slurm.task(2, kGoesOn), AllOf(HasSubstr(" --rejoin"), Not(HasSubstr("--join"))));
    EXPECT_EQ(slurm.perform(action), "") << "it is another one's now";
    EXPECT_THAT(slurm.task(2, kGoesOn), Not(HasSubstr("--join")));
  }
}

TEST(SlurmEngine, a_job_that_cannot_be_cancelled_is_an_error_unless_it_is_gone) {
  const FakeSlurm slurm;
  EXPECT_EQ(slurm.perform(Action::stop), "") << "never started";
  slurm.job("77_1");
  slurm.program("scancel", "echo 'scancel: error: Kill job error' >&2; exit 1");
  EXPECT_EQ(slurm.perform(Action::stop), "") << "it is gone";
  slurm.program("squeue", "echo 77_1");
  EXPECT_EQ(slurm.perform(Action::stop),
            "p1: scancel: exit code 1: job 77_1 lives: scancel: error: Kill job error");
  slurm.program("scancel", "exit 0");
  EXPECT_EQ(slurm.perform(Action::stop), "") << "Slurm ends it";
  slurm.program("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1");
  EXPECT_EQ(slurm.perform(Action::stop),
            "p1: scancel: exit code 1: job 77_1 may live, squeue failed: slurm_load_jobs error: Unable to "
            "contact slurm controller");
}

TEST(SlurmEngine, a_job_whose_id_nobody_wrote_down_is_cancelled_by_the_name_of_its_run) {
  const FakeSlurm slurm;
  const std::string calls = slurm.recorder("scancel");
  slurm.job("70_1");  // an earlier start
  slurm.program("squeue", "echo 78_1 tw-words " + slurm.folder() + "; echo 78_2 tw-words " + slurm.folder() +
                              "; echo 79_11 tw-words " + slurm.folder() +
                              "; echo 80_1 tw-words /home/bob/words; echo 81_1 tw-other " + slurm.folder());
  EXPECT_EQ(slurm.perform(Action::stop), "");
  EXPECT_EQ(read_text_file(calls).value(),
            "--quiet --state=PENDING 78_1\n--quiet --signal=TERM 78_1\n--quiet 78_1\n");
  slurm.program("scancel", "echo no >&2; exit 1");
  EXPECT_EQ(slurm.perform(Action::stop), "p1: scancel: exit code 1: job 78_1 lives: no");
  EXPECT_TRUE(std::filesystem::remove(slurm.folder() + "/p1/job"));
  slurm.program("squeue", "echo down >&2; exit 1");
  EXPECT_EQ(slurm.perform(Action::stop), "p1: scancel: exit code 1: its job may live, squeue failed: down");
}

TEST(SlurmEngine, a_stop_bears_a_squeue_that_fails_until_it_looks_for_the_last_time) {
  const FakeSlurm slurm;
  slurm.job("77_1");
  const std::string asked = shell_word(slurm.folder() + "/asked");
  slurm.program("squeue", "if mkdir " + asked + " 2>/dev/null; then exit 1; fi");
  EXPECT_EQ(slurm.perform(Action::stop), "");
}

TEST(SlurmEngine, the_id_of_a_job_is_the_last_line_of_sbatch_that_is_one) {
  const FakeSlurm slurm;
  slurm.program("sbatch", "echo 'sbatch: your project has 12 h left'; echo '77;north'");
  EXPECT_EQ(slurm.perform(Action::start), "");
  EXPECT_EQ(slurm.job(), "77_1\n");
  slurm.program("sbatch", "echo 'Submitted batch job 78'; echo 'see you'");
  EXPECT_EQ(
      slurm.perform(Action::start),
      "sbatch: exit code 1: expected the id of a job, as --parsable prints it, found \"Submitted batch job "
      "78 see you\"");
  EXPECT_EQ(slurm.job(), "") << "no job of an earlier start";
  slurm.program("sbatch", "echo 79; echo 'see you'");
  EXPECT_EQ(slurm.perform(Action::start), "");
  EXPECT_EQ(slurm.job(), "79_1\n");
  slurm.program("sbatch", "echo 'sbatch: error: Batch job submission failed' >&2; exit 1");
  EXPECT_EQ(slurm.perform(Action::start), "sbatch: exit code 1: sbatch: error: Batch job submission failed");
}

TEST(SlurmEngine, says_when_nothing_was_submitted_for_certain) {
  const FakeSlurm slurm;
  const auto in_vain = slurm.commands(Action::start).front().in_vain;
  ASSERT_TRUE(in_vain);
  slurm.program("sbatch", "echo 'sbatch: fatal: Could not establish a configuration source' >&2; exit 1");
  EXPECT_EQ(slurm.perform(Action::start), fmt::format("sbatch: exit code {}: sbatch: fatal: Could not "
                                                      "establish a configuration source",
                                                      *in_vain));
  slurm.program("sbatch", "echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1");
  EXPECT_EQ(slurm.perform(Action::start),
            "sbatch: exit code 1: sbatch: error: Socket timed out on send/recv operation")
      << "the controller may have the job";
}

TEST(SlurmEngine, leaves_the_options_alone_that_its_scripts_rely_on) {
  Deployment deployment = three_peers();
  deployment.on = {{"signal", "USR1@25"}};
  EXPECT_EQ(slurm_engine()->check(deployment).error().message,
            "--with signal=USR1@25: tw up sets --signal of sbatch itself");
  deployment.on = {{"cheap.partition", "a"}};
  EXPECT_FALSE(slurm_engine()->check(deployment).ok());
  deployment.on = {{"spot.partition", "a"}, {"gres", "gpu:1"}, {"address", "10.0.0.1"}};
  EXPECT_TRUE(slurm_engine()->check(deployment).ok());
}

constexpr const char* kSqueue = R"({"jobs": [
  {"job_id": 12, "array_job_id": 11, "array_task_id": 1, "array_task_string": "", "name": "tw-words",
   "current_working_directory": "/state/words", "job_state": "RUNNING", "state_reason": "None",
   "nodes": "n1", "restart_cnt": 2, "preempt_time": 0},
  {"job_id": 11, "array_job_id": 11, "array_task_string": "2-3", "name": "tw-words",
   "current_working_directory": "/state/words", "job_state": "PENDING", "state_reason": "Resources",
   "nodes": "", "restart_cnt": 0},
  {"job_id": 4, "array_job_id": 4, "array_task_id": 1, "array_task_string": "", "name": "tw-words",
   "current_working_directory": "/state/words", "job_state": "FAILED", "nodes": "n1", "restart_cnt": 0},
  {"job_id": 99, "array_job_id": 99, "array_task_id": 2, "array_task_string": "", "name": "tw-words",
   "current_working_directory": "/home/bob/words", "job_state": "RUNNING", "nodes": "n4"}]})";

TEST(SlurmStates, the_newest_array_counts_and_other_peoples_runs_do_not) {
  const auto reports = slurm_states(three_peers(), kSqueue, "");
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  EXPECT_EQ(
      reports.value()[0],
      (PeerReport{
          .number = 1, .state = PeerState::running, .where = "n1", .restarts = 2, .detail = "RUNNING"}));
  EXPECT_EQ(reports.value()[1].state, PeerState::waiting);
  EXPECT_EQ(reports.value()[2].detail, "PENDING (Resources)");
}

TEST(SlurmStates, a_controller_that_does_not_answer_may_have_all_jobs) {
  const auto reports = slurm_states(three_peers(), R"({"errors": [
    {"description": "Failed while looking for jobs", "source": "slurm_load_jobs"}], "jobs": []})",
                                    "{\"peer\":1,\"exit\":0,\"starts\":2}\n");
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  ASSERT_EQ(reports.value().size(), 3U);
  for (const PeerReport& report : reports.value()) {
    EXPECT_EQ(report.state, PeerState::unknown);
    EXPECT_EQ(report.detail, "squeue: slurm_load_jobs: Failed while looking for jobs");
  }
  EXPECT_EQ(slurm_states(three_peers(), R"({"errors": [], "jobs": []})", "").value()[0].state,
            PeerState::absent);
}

TEST(SlurmStates, a_job_that_lives_hides_behind_no_newer_one) {
  const auto job = [](int array, const char* state) {
    return fmt::format(R"({{"array_job_id": {}, "array_task_id": 1, "name": "tw-words", "job_state": "{}",
                         "current_working_directory": "/state/words", "nodes": "n{}"}})",
                       array, state, array);
  };
  const auto first = [&](const std::string& older, const std::string& newer) {
    return slurm_states(three_peers(), R"({"jobs": [)" + older + ", " + newer + "]}",
                        "{\"peer\":1,\"exit\":1,\"starts\":2}\n")
        .value()[0];
  };
  const PeerReport one = first(job(6, "RUNNING"), job(9, "FAILED"));
  EXPECT_EQ(one.state, PeerState::running);
  EXPECT_EQ(one.where, "n6");
  EXPECT_EQ(one.detail, "RUNNING");
  const PeerReport two = first(job(6, "RUNNING"), job(9, "PENDING"));
  EXPECT_EQ(two.state, PeerState::waiting);
  EXPECT_EQ(two.detail, "PENDING; 2 jobs live: 9_1, 6_1");
}

TEST(SlurmStates, what_slurm_has_forgotten_the_files_of_the_peer_know) {
  const auto reports =
      slurm_states(three_peers(), R"({"jobs": []})",
                   "{\"peer\":1,\"exit\":0,\"starts\":2}\n{\"peer\":2,\"exit\":1,\"starts\":1}\n");
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  EXPECT_EQ(reports.value()[0].state, PeerState::done);
  EXPECT_EQ(reports.value()[0].restarts, 1U);
  EXPECT_EQ(reports.value()[1].state, PeerState::failed);
  EXPECT_EQ(reports.value()[2].state, PeerState::absent);
}

TEST(SlurmStates, a_preempted_peer_is_leaving_and_newer_versions_write_numbers_as_objects) {
  const auto reports = slurm_states(three_peers(), R"({"jobs": [
    {"array_job_id": {"set": true, "number": 5}, "array_task_id": {"set": true, "number": 1},
     "array_task_string": "", "name": "tw-words", "current_working_directory": "/state/words",
     "job_state": ["RUNNING"], "nodes": "n1", "restart_cnt": 0,
     "preempt_time": {"set": true, "number": 1700000000}}]})",
                                    "");
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  EXPECT_EQ(reports.value()[0].state, PeerState::leaving);
}

TEST(SlurmStates, a_word_of_a_later_version_is_shown_and_is_no_failure) {
  const auto reports = slurm_states(three_peers(), R"({"jobs": [
    {"array_job_id": 5, "array_task_id": 1, "array_task_string": "", "name": "tw-words",
     "current_working_directory": "/state/words", "job_state": "HIBERNATING", "nodes": "n1"}]})",
                                    "");
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  EXPECT_EQ(reports.value()[0].state, PeerState::unknown);
  EXPECT_EQ(reports.value()[0].detail, "HIBERNATING");
}

TEST(SlurmStates, an_answer_of_another_kind_is_one_error) {
  for (const char* bad : {"", "squeue: error", "[]", R"({"nodes": []})"})
    EXPECT_FALSE(slurm_states(three_peers(), bad, "").ok()) << bad;
}

}  // namespace
}  // namespace tw::launch
