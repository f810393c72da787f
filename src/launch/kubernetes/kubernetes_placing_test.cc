// SPDX-License-Identifier: Apache-2.0
#include "launch/kubernetes/kubernetes_placing.h"

#include <gtest/gtest.h>

#include "launch/engines/test_clouds.h"

namespace tw::launch {
namespace {

TEST(NodeLabels, of_gke_name_spot_place_type_and_gpu) {
  EXPECT_EQ(requirements_of(gcp_t4()),
            (std::vector<Requirement>{{"cloud.google.com/gke-spot", "true"},
                                      {"topology.kubernetes.io/region", "us-central1"},
                                      {"topology.kubernetes.io/zone", "us-central1-a"},
                                      {"node.kubernetes.io/instance-type", "n1-standard-8"},
                                      {"cloud.google.com/gke-accelerator", "nvidia-tesla-t4"}}));
}

TEST(NodeLabels, of_eks_name_zones_by_id_where_the_plan_does) {
  Machine machine = aws_t4();
  machine.site.zone = "use1-az2";
  EXPECT_EQ(requirements_of(machine),
            (std::vector<Requirement>{{"eks.amazonaws.com/capacityType", "SPOT"},
                                      {"topology.kubernetes.io/region", "us-east-1"},
                                      {"topology.k8s.aws/zone-id", "use1-az2"},
                                      {"node.kubernetes.io/instance-type", "g4dn.xlarge"}}));
}

TEST(NodeLabels, of_aks_number_the_zones_of_a_region) {
  Machine machine = azure_t4();
  machine.site.zone = "2";
  const std::vector<Requirement> all = requirements_of(machine);
  EXPECT_EQ(all[0], (Requirement{"kubernetes.azure.com/scalesetpriority", "spot"}));
  EXPECT_EQ(all[2], (Requirement{"topology.kubernetes.io/zone", "eastus-2"}));
}

TEST(NodeLabels, an_on_demand_peer_shuns_spot_nodes_whether_they_are_tainted_or_not) {
  EXPECT_EQ(requirements_of(on_demand(aws_t4())).front(),
            (Requirement{"eks.amazonaws.com/capacityType", "SPOT", false}));
}

TEST(NodeLabels, of_a_publications_area_or_machine_are_left_out) {
  Machine machine = gcp_t4();
  machine.site = market::site_at("gcp", "us-west");
  machine.vm_type = "n1 with 1 T4";
  EXPECT_EQ(requirements_of(machine),
            (std::vector<Requirement>{{"cloud.google.com/gke-spot", "true"},
                                      {"cloud.google.com/gke-accelerator", "nvidia-tesla-t4"}}));
}

TEST(NodeLabels, of_own_machines_are_not_known) {
  Machine machine{.site = market::site_at("onprem", "eu"), .gpu = "T4", .purchase = market::Purchase::owned};
  EXPECT_TRUE(requirements_of(machine).empty());
}

TEST(Tolerations, are_those_of_all_the_machines_that_may_hold_the_peer_each_once) {
  PeerJob peer = peer_on(1, on_demand(gcp_t4()));
  peer.alternatives = {gcp_t4(), gcp_t4(), azure_t4()};
  EXPECT_EQ(tolerations_of(peer),
            (std::vector<Toleration>{{"nvidia.com/gpu", ""}, {"cloud.google.com/gke-spot", "true"}}))
      << "a cluster has machines of its own provider";
}

}  // namespace
}  // namespace tw::launch
