// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "launch/engines/skypilot.h"
#include "launch/engines/test_clouds.h"
#include "launch/kubernetes/kubernetes.h"
#include "launch/test_deployment.h"

namespace tw::launch {
namespace {

/// What a cluster and SkyPilot are given, as files in tests/golden/launch: tests/launch validates them by the
/// schemas of both, and a reader sees what is written.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TW_SOURCE_DIR) + "/tests/golden/launch/" + name;
  std::ifstream file(path);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  if (golden == text) return;
  const std::string found = ::testing::TempDir() + "golden/launch/" + name;
  std::filesystem::create_directories(std::filesystem::path(found).parent_path());
  std::ofstream(found) << text;
  ADD_FAILURE() << "not what " << path << " holds; if the change is wanted: cp " << found << " " << path;
}

std::string job_file(Deployment deployment, std::uint32_t number) {
  auto settings = pod_settings(deployment);
  EXPECT_TRUE(settings.ok());
  return job_manifest(deployment, *find_peer(deployment, number), settings.value());
}

TEST(Golden, kubernetes_on_gke_eks_and_aks) {
  for (const Machine& machine : {gcp_t4(), aws_t4(), azure_t4()}) {
    const Deployment deployment = two_peers(machine);
    expect_golden(fmt::format("k8s/{}-anchor.json", machine.site.provider), job_file(deployment, 1));
    expect_golden(fmt::format("k8s/{}-spot.json", machine.site.provider), job_file(deployment, 2));
  }
}

TEST(Golden, kubernetes_of_a_run) {
  const Deployment deployment = two_peers(gcp_t4());
  expect_golden("k8s/run.json", run_manifest(deployment));
  expect_golden("k8s/secret.json", secret_manifest(deployment));
}

TEST(Golden, kubernetes_with_alternatives_volumes_and_sizes) {
  Deployment deployment = two_peers(gcp_t4());
  Machine other = gcp_t4();
  other.site.zone = "us-central1-b";
  other.gpu = "V100";
  deployment.peers[1].alternatives = {other};
  deployment.on = {{"cpu", "7"},
                   {"memory", "24Gi"},
                   {"pull", "IfNotPresent"},
                   {"pull-secret", "registry"},
                   {"logs", "claim:logs"},
                   {"mount", "claim:mnist:/data,host:/srv/models:/models"}};
  expect_golden("k8s/choices.json", job_file(deployment, 2));
  deployment.on["k8s-version"] = "1.31";
  expect_golden("k8s-1.31/choices.json", job_file(deployment, 2));
}

TEST(Golden, kubernetes_with_a_users_program) {
  const Deployment deployment = with_program(two_peers(gcp_t4()));
  expect_golden("k8s/program.json", job_file(deployment, 2));
  expect_golden("k8s/program-secret.json", secret_manifest(deployment));
}

TEST(Golden, kubernetes_on_nodes_of_ones_own) {
  Deployment deployment = two_peers({market::site_at("onprem", "eu"), "", "", market::Purchase::owned});
  deployment.peers[1].machine.purchase = market::Purchase::owned;
  expect_golden("k8s/own.json", job_file(deployment, 2));
}

TEST(Golden, skypilot) {
  Deployment deployment = three_clouds();
  deployment.on["max-hourly-cost"] = "0.75";
  auto settings = sky_settings(deployment);
  ASSERT_TRUE(settings.ok());
  expect_golden("skypilot/anchor.txt", sky_task(deployment, deployment.peers[0], settings.value()));
  expect_golden("skypilot/choices.txt", sky_task(deployment, deployment.peers[1], settings.value()));
  expect_golden("skypilot/program.txt",
                sky_task(with_program(deployment), deployment.peers[1], settings.value()));
  Deployment plain = two_peers({market::site_at("lambda", "us-west-1"), "gpu_1x_a10", "A10"});
  plain.on["join"] = "203.0.113.5:7000";
  plain.begun = true;
  expect_golden("skypilot/lambda.txt", sky_task(plain, plain.peers[1], sky_settings(plain).value()));
}

}  // namespace
}  // namespace tw::launch
