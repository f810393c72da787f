// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "launch/deployment.h"

/// Deployments on clouds, for tests.
namespace tw::launch {

inline Machine spot_machine(const std::string& provider, const std::string& region, const std::string& zone,
                            const std::string& type) {
  return {market::site_at(provider, region, zone), type, "T4", market::Purchase::spot, 0.2};
}

inline Machine on_demand(Machine machine) {
  machine.purchase = market::Purchase::on_demand;
  return machine;
}

inline Machine aws_t4() { return spot_machine("aws", "us-east-1", "us-east-1a", "g4dn.xlarge"); }

inline Machine gcp_t4() { return spot_machine("gcp", "us-central1", "us-central1-a", "n1-standard-8+T4"); }

inline Machine azure_t4() { return spot_machine("azure", "eastus", "", "Standard_NC4as_T4_v3"); }

inline PeerJob peer_on(std::uint32_t number, Machine machine) {
  return {.number = number, .machine = std::move(machine), .port = 7001};
}

/// An anchor on demand and a spot peer, of one provider.
inline Deployment two_peers(const Machine& machine) {
  Deployment deployment{
      .run = "mnist", .folder = "/home/ann/tradewind/mnist", .run_file = "training: {seed: 7}\n"};
  deployment.user.command = {"python3", "train.py"};
  deployment.peers = {peer_on(1, on_demand(machine)), peer_on(2, machine)};
  deployment.peers[0].anchor = true;
  deployment.token = "tw1-secret";
  deployment.image = "registry.example/tradewind:1";
  return deployment;
}

/// On SkyPilot: peer 2 with alternatives in other clouds.
inline Deployment three_clouds() {
  Deployment deployment = two_peers(aws_t4());
  deployment.peers[1].alternatives = {gcp_t4(), azure_t4()};
  deployment.on = {{"join", "203.0.113.5:7000"}, {"mount", "/data=s3://datasets/mnist"}, {"disk", "100"}};
  return deployment;
}

}  // namespace tw::launch
