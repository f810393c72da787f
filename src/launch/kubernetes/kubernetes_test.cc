// SPDX-License-Identifier: Apache-2.0
#include "launch/kubernetes/kubernetes.h"

#include <gtest/gtest.h>

#include "launch/engines/engines.h"
#include "launch/engines/test_clouds.h"

namespace tw::launch {
namespace {

using namespace std::chrono_literals;

PodSettings settings_for(const Deployment& deployment) {
  auto settings = pod_settings(deployment);
  EXPECT_TRUE(settings.ok()) << settings.error().message;
  return settings.value();
}

std::string job_of(const Deployment& deployment, std::uint32_t number) {
  return job_manifest(deployment, *find_peer(deployment, number), settings_for(deployment));
}

std::string trouble_of(const Deployment& deployment) {
  const Status status = kubernetes_engine()->check(deployment);
  return status ? "" : status.error().message;
}

std::vector<Command> commands_of(Action action, const Deployment& deployment) {
  return kubernetes_engine()->commands(action, deployment, deployment.peers);
}

TEST(Kubernetes, gives_each_peer_a_job_of_its_own_so_that_only_the_lost_one_comes_back) {
  Deployment deployment = two_peers(gcp_t4());
  deployment.peers[1].restart = 2;
  std::vector<std::string> paths;
  for (const File& file : kubernetes_engine()->files(deployment)) paths.push_back(file.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"k8s/run.json", "k8s/mnist-p1.json", "k8s/mnist-p2-r2.json"}));
  EXPECT_NE(job_of(deployment, 2).find(R"("completions": 1,)"), std::string::npos);
}

TEST(Kubernetes, keeps_the_token_out_of_files_and_command_lines) {
  const Deployment deployment = two_peers(aws_t4());
  for (const File& file : kubernetes_engine()->files(deployment))
    EXPECT_EQ(file.text.find(deployment.token), std::string::npos) << file.path;
  int secrets = 0;
  for (const Command& command : commands_of(Action::prepare, deployment)) {
    for (const std::string& word : command.words) EXPECT_EQ(word.find(deployment.token), std::string::npos);
    if (command.input.find(deployment.token) == std::string::npos) continue;
    EXPECT_TRUE(command.input_is_secret);
    ++secrets;
  }
  EXPECT_EQ(secrets, 1);
}

TEST(Kubernetes, the_first_peer_waits_for_the_others_and_never_says_that_nobody_is_alive) {
  const std::string first = job_of(two_peers(aws_t4()), 1);
  EXPECT_NE(first.find("--wait-for"), std::string::npos);
  EXPECT_EQ(first.find("--no-rejoin"), std::string::npos) << "its next pod has the same command line";
  EXPECT_EQ(first.find("--join"), std::string::npos);
  EXPECT_NE(job_of(two_peers(aws_t4()), 2).find("p1.mnist:7000"), std::string::npos);
}

TEST(Kubernetes, all_peers_of_a_run_that_has_begun_rejoin_it) {
  Deployment deployment = two_peers(aws_t4());
  deployment.begun = true;
  EXPECT_NE(job_of(deployment, 1).find("--rejoin"), std::string::npos);
  EXPECT_NE(job_of(deployment, 1).find("p2.mnist:7000"), std::string::npos);
}

TEST(Kubernetes, the_peer_that_began_the_run_has_the_same_words_in_its_next_job) {
  Deployment deployment = two_peers(aws_t4());
  const std::string first = job_of(deployment, 1);
  deployment.begun = true;
  deployment.founder = 1;
  EXPECT_EQ(job_of(deployment, 1), first) << "all others dial it";
  EXPECT_NE(job_of(deployment, 2).find("p1.mnist:7000"), std::string::npos);
}

TEST(Kubernetes, leaves_gke_spot_peers_the_15_s_that_their_nodes_have) {
  const Deployment deployment = two_peers(gcp_t4());
  EXPECT_EQ(pod_grace(deployment, deployment.peers[0]), 25s);
  EXPECT_EQ(pod_grace(deployment, deployment.peers[1]), 15s);
  const std::string job = job_of(deployment, 2);
  EXPECT_NE(job.find(R"("terminationGracePeriodSeconds": 15)"), std::string::npos);
  EXPECT_NE(job.find(R"("14s")"), std::string::npos) << "--grace leaves the kubelet a second";
}

TEST(Kubernetes, a_newer_cluster_tells_a_wrong_option_from_a_notice) {
  Deployment deployment = two_peers(aws_t4());
  EXPECT_EQ(job_of(deployment, 1).find("podFailurePolicy"), std::string::npos);
  deployment.on["k8s-version"] = "1.31";
  EXPECT_NE(job_of(deployment, 1).find("podFailurePolicy"), std::string::npos);
}

TEST(Kubernetes, writes_no_variable_of_the_users_that_kubernetes_would_expand) {
  Deployment deployment = two_peers(aws_t4());
  deployment.settings = {"model=$(HOME)/m.pt"};
  EXPECT_NE(job_of(deployment, 2).find("model=$$(HOME)/m.pt"), std::string::npos);
  EXPECT_NE(job_of(deployment, 2).find("\"$(POD_IP):7000\""), std::string::npos);
}

TEST(Kubernetes, says_what_is_wrong_with_a_deployment) {
  Deployment deployment = two_peers(aws_t4());
  EXPECT_EQ(trouble_of(deployment), "");
  deployment.peers[0].machine = on_demand(gcp_t4());
  EXPECT_NE(trouble_of(deployment).find("machines of aws and gcp"), std::string::npos);
  deployment = two_peers(aws_t4());
  deployment.peers[1].alternatives = {gcp_t4()};
  EXPECT_EQ(trouble_of(deployment), "") << "a cluster has those of its own provider";
  EXPECT_EQ(job_of(deployment, 2).find("n1-standard"), std::string::npos);
  deployment = two_peers(aws_t4());
  deployment.image = "";
  EXPECT_NE(trouble_of(deployment).find("--image NAME"), std::string::npos);
  deployment = two_peers(aws_t4());
  deployment.anew = true;
  EXPECT_NE(trouble_of(deployment).find("k8s: --anew: a Job would start its next pod with it"),
            std::string::npos);
  deployment.elsewhere = {{.number = 9, .anchor = true, .address = "10.0.0.9", .port = 7000}};
  EXPECT_EQ(trouble_of(deployment), "") << "another engine starts the peer that begins the run";
  deployment = two_peers(aws_t4());
  deployment.grace = 4s;
  EXPECT_NE(trouble_of(deployment).find("a grace of 4 s; expected 5 s or more"), std::string::npos);
  deployment = two_peers(aws_t4());
  deployment.run_file = std::string((1 << 20) + 1, 'x');
  EXPECT_NE(trouble_of(deployment).find("1048577 bytes"), std::string::npos);
}

TEST(Kubernetes, names_the_setting_that_is_wrong) {
  const auto trouble = [](const std::string& key, const std::string& value) {
    Deployment deployment = two_peers(aws_t4());
    deployment.on[key] = value;
    return trouble_of(deployment);
  };
  EXPECT_EQ(trouble("namespce", "a"),
            "k8s: namespce=a: unknown setting; expected one of context, namespace, k8s-version, cpu, memory, "
            "pull-secret, pull, mount, logs");
  EXPECT_EQ(trouble("k8s-version", "1.19"), "k8s: k8s-version=1.19: expected 1.20 or newer, such as 1.31");
  EXPECT_EQ(trouble("pull", "never"), "k8s: pull=never: expected Always, IfNotPresent or Never");
  EXPECT_EQ(trouble("mount", "data:/data"),
            "k8s: mount=data:/data: expected claim:NAME:/PATH or host:/FOLDER:/PATH");
  EXPECT_EQ(trouble("mount", "host:/srv:/data,claim:models:/models"), "");
  EXPECT_EQ(trouble("logs", "/srv"), "k8s: logs=/srv: expected claim:NAME or host:/FOLDER");
}

TEST(Kubernetes, asks_the_cluster_and_namespace_that_it_is_told) {
  Deployment deployment = two_peers(aws_t4());
  deployment.on = {{"context", "lab"}, {"namespace", "ml"}};
  EXPECT_EQ(shell_line(commands_of(Action::status, deployment).front().words),
            "kubectl --context lab --namespace ml get jobs,pods --request-timeout=25s --selector "
            "app.kubernetes.io/instance=mnist -o json");
  EXPECT_NE(commands_of(Action::stop, deployment).front().input.find("kubectl --context lab --namespace ml"),
            std::string::npos);
}

TEST(Kubernetes, a_cluster_that_does_not_answer_keeps_nobody_waiting_and_its_peers_may_live) {
  const Deployment deployment = two_peers(aws_t4());
  const Command status = commands_of(Action::status, deployment).front();
  EXPECT_EQ(status.limit, std::chrono::seconds(30));
  for (const Action action : {Action::prepare, Action::start, Action::stop, Action::remove, Action::logs})
    for (const Command& command : commands_of(action, deployment)) EXPECT_GT(command.limit, status.limit);
  const Output late{.command = status, .errors = "kubectl did not answer within 30 s", .is_late = true};
  const auto reports = kubernetes_engine()->states(deployment, {late});
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  ASSERT_EQ(reports.value().size(), 2U);
  EXPECT_EQ(
      reports.value()[1],
      (PeerReport{.number = 2, .state = PeerState::unknown, .detail = "kubectl did not answer within 30 s"}));
}

TEST(Kubernetes, scripts_are_called_by_the_name_of_their_client) {
  const Deployment deployment = two_peers(aws_t4());
  for (const Command& command : commands_of(Action::stop, deployment)) EXPECT_EQ(command.client, "kubectl");
}

TEST(Kubernetes, the_secret_stays_as_long_as_a_peer_needs_it) {
  const Deployment deployment = two_peers(aws_t4());
  EXPECT_TRUE(kubernetes_engine()->commands(Action::remove, deployment, {peer_on(3, aws_t4())}).empty());
  EXPECT_TRUE(kubernetes_engine()->commands(Action::remove, deployment, {deployment.peers[0]}).empty());
  EXPECT_EQ(commands_of(Action::remove, deployment).size(), 1U);
}

TEST(Kubernetes, a_pod_asks_for_one_number_of_gpus_whatever_its_node) {
  PeerJob peer = peer_on(1, gcp_t4());
  Machine larger = gcp_t4();
  larger.gpu = "4xT4";
  peer.alternatives = {larger, gcp_t4()};
  EXPECT_EQ(pod_choices(peer), (std::vector<Machine>{gcp_t4(), gcp_t4()}));
}

TEST(Kubernetes, an_answer_that_is_no_list_is_an_error) {
  Output output{.exit_code = 0, .text = "The connection was refused"};
  EXPECT_FALSE(kubernetes_engine()->states(two_peers(aws_t4()), {output}).ok());
  output = {.exit_code = 1, .text = "", .errors = "forbidden"};
  const auto failed = kubernetes_engine()->states(two_peers(aws_t4()), {output});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("forbidden"), std::string::npos);
}

}  // namespace
}  // namespace tw::launch
