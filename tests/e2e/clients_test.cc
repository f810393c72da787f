// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "e2e/program.h"

/// `tw up`, `tw status` and `tw down` with programs that stand for sky, kubectl and those of Slurm.
namespace tw {
namespace {

using testing::HasSubstr;
using testing::Not;

/// As SkyPilot's client: `jobs launch --async` returns before its job is in the queue, and `jobs cancel`
/// takes ids. A line of `jobs` is ID NAME STATUS; the first $LATE queries see none. Ctrl-C may kill it at any
/// line: each change of a file is one write or one rename.
constexpr const char* kSky = R"sh(
cd "$SKY" || exit 1
case "$1 $2" in
  'jobs launch')
    echo "$$" >>launching
    if [ -e hold ]; then sleep 600; fi
    (flock 9; n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n >n; echo "$n $4 RUNNING" >>jobs) 9>lock ;;
  'jobs queue')
    (flock 9
     echo x >>queries
     shown=jobs
     if [ "$(wc -l <queries)" -le "${LATE:-0}" ]; then shown=/dev/null; fi
     echo 'Fetching managed job statuses...'
     printf '['
     between=
     while read -r id name status; do
       printf '%s{"job_id": %s, "job_name": "%s", "status": "%s", "submitted_at": %s}' \
         "$between" $id $name $status "$(date +%s)"
       between=', '
     done <$shown
     echo ']') 9>lock ;;
  'jobs cancel')
    shift 3
    (flock 9; for id in "$@"; do sed -i "s/^\($id .*\) RUNNING/\1 CANCELLED/" jobs; done) 9>lock ;;
esac
)sh";

class Clients : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_run({}, "program: {command: [" TW_TOY "], setup: [\"true\"]}\n");
    std::filesystem::create_directories(path("bin"));
    std::filesystem::create_directories(path("sky"));
    std::ofstream(path("sky/jobs")) << "";
    std::ofstream(path("PLAN.yaml")) << "run: run.yaml\npeers:\n"
                                     << "  - {site: \"aws:us-east-1\", gpu: T4, count: 2, purchase: spot, "
                                        "usd_per_h: 0.5}\n";
    client("sky", kSky);
  }

  void client(const std::string& name, const std::string& script) const {
    const std::string file = path("bin/" + name);
    std::ofstream(file + ".new") << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(file + ".new", std::filesystem::perms::owner_all);
    std::filesystem::rename(file + ".new", file);
  }

  /// `tw`, with these clients in front of all others.
  Program with_clients(std::vector<std::string> words, const std::string& name = "clients",
                       const std::string& late = "0") const {
    words.insert(words.end(), {"--state", path("state")});
    return Program(std::move(words),
                   {.output = path(name + ".txt"),
                    .enter = {"/usr/bin/env", "PATH=" + path("bin") + ":" + std::getenv("PATH"),
                              "SKY=" + path("sky"), "LATE=" + late}});
  }

  std::string command(std::vector<std::string> words, int code = 0) const {
    Program program = with_clients(std::move(words));
    EXPECT_EQ(program.wait(2 * kPatience), code) << program.output();
    return program.output();
  }

  std::vector<std::string> up_words(const std::string& engine, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"up", path("PLAN.yaml"), "--on", engine, "--name", "words", "--grace",
                               engine == "k8s" ? "5s" : "1s"});
    if (engine != "slurm") more.insert(more.end(), {"--image", "registry.example/tw:1"});
    if (engine == "skypilot") more.insert(more.end(), {"--with", "join=203.0.113.5:7000"});
    return more;
  }

  /// Lines of this file that end so.
  long lines(const std::string& file, const std::string& end = "") const {
    std::istringstream all(content_of(path(file)));
    long found = 0;
    for (std::string line; std::getline(all, line);) found += line.ends_with(end) ? 1 : 0;
    return found;
  }

  /// Jobs of SkyPilot with this status.
  long jobs(const std::string& status) const { return lines("sky/jobs", status); }

  /// Processes that wrote their number to this file and live.
  long living(const std::string& file) const {
    std::istringstream lines(content_of(path(file)));
    long found = 0;
    for (pid_t pid = 0; lines >> pid;) found += kill(pid, 0) == 0 ? 1 : 0;
    return found;
  }
};

TEST_F(Clients, a_job_that_is_not_in_skypilots_queue_yet_is_not_started_again_and_ends_with_the_run) {
  Program keeper = with_clients(up_words("skypilot", {"--keep", "--every", "1s"}), "keeper", "4");
  ASSERT_TRUE(wait_until([&] { return lines("sky/queries") > 6; })) << keeper.output();
  EXPECT_EQ(jobs("RUNNING"), 2);
  EXPECT_THAT(keeper.output(), Not(HasSubstr("started again")));
  keeper.send(SIGINT);
  EXPECT_EQ(keeper.wait(), 0);
  EXPECT_THAT(command({"status", "words"}), HasSubstr("running"));
  EXPECT_THAT(command({"down", "words"}), HasSubstr("run words is down"));
  EXPECT_EQ(jobs("RUNNING"), 0);
  EXPECT_EQ(jobs("CANCELLED"), 2) << content_of(path("sky/jobs"));
}

TEST_F(Clients, two_commands_that_start_the_same_run_at_once_start_each_machine_once) {
  Program one = with_clients(up_words("skypilot"), "one");
  Program other = with_clients(up_words("skypilot"), "other");
  EXPECT_EQ(one.wait(), 0) << one.output();
  EXPECT_EQ(other.wait(), 0) << other.output();
  EXPECT_EQ(jobs("RUNNING"), 2) << content_of(path("sky/jobs"));
  EXPECT_NE(one.says("started p1 p2"), other.says("started p1 p2")) << one.output() << other.output();
  EXPECT_NE(one.says("nothing to change"), other.says("nothing to change"));
}

TEST_F(Clients, an_interrupted_start_goes_on_behind_nobodys_back_and_all_jobs_of_a_name_are_cancelled) {
  std::ofstream(path("sky/hold")) << "";
  Program first = with_clients(up_words("skypilot"), "first");
  ASSERT_TRUE(wait_until([&] { return living("sky/launching") == 2; })) << first.output();
  first.send(SIGINT);
  EXPECT_EQ(first.wait(), 128 + SIGINT);
  EXPECT_EQ(living("sky/launching"), 0);
  std::filesystem::remove(path("sky/hold"));

  std::ofstream(path("sky/jobs")) << "7 words-p1 RUNNING\n8 words-p1 RUNNING\n"
                                  << "9 words-p2 RUNNING\n10 words-p2-r1 RUNNING\n";
  EXPECT_THAT(command({"status", "words"}), HasSubstr("2 jobs live: 8 (words-p1), 7 (words-p1)"));
  EXPECT_THAT(command({"down", "words"}), HasSubstr("run words is down"));
  EXPECT_EQ(jobs("CANCELLED"), 4) << content_of(path("sky/jobs"));
}

TEST_F(Clients, a_run_is_down_only_once_slurm_has_cancelled_its_jobs) {
  client("sbatch", "echo 'sbatch: your project has 12 h left'; echo 77");
  client("squeue", "echo 77_1; echo 77_2");
  client("scancel", "echo 'scancel: error: Unable to contact slurm controller' >&2; exit 1");
  EXPECT_THAT(command(up_words("slurm")), HasSubstr("started p1 p2"));
  EXPECT_THAT(command({"down", "words"}, 1),
              HasSubstr("p1: scancel: exit code 1: job 77_1 lives: scancel: error: Unable to contact"));
  EXPECT_THAT(command({"status"}), HasSubstr("stopping, peers may live: tw down words"));
  client("scancel", "exit 0");
  EXPECT_THAT(command({"down", "words"}), HasSubstr("run words is down"));
  EXPECT_THAT(command({"status"}), HasSubstr("stopped by tw down"));
}

TEST_F(Clients, a_cluster_that_does_not_answer_is_unknown_and_ctrl_c_ends_its_client) {
  client("kubectl", "cat >/dev/null; exit 0");
  command(up_words("k8s"));
  client("kubectl", "echo $$ >>" + path("hung") + "; sleep 600");
  Program interrupted = with_clients({"status", "words"}, "interrupted");
  ASSERT_TRUE(wait_until([&] { return living("hung") == 1; }));
  interrupted.send(SIGINT);
  EXPECT_EQ(interrupted.wait(), 128 + SIGINT);
  EXPECT_EQ(living("hung"), 0);
  const std::string said = command({"status", "words"});  // half a minute
  EXPECT_THAT(said, HasSubstr("kubectl did not answer within 30 s"));
  EXPECT_THAT(said, HasSubstr("unknown"));
  EXPECT_EQ(living("hung"), 0);
}

}  // namespace
}  // namespace tw
