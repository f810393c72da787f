// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/deployment.h"

namespace tw::launch {

/// A secret that must stand in no argument list and no file that others read.
inline constexpr const char* kTestToken = "tw1_PEER_SECRET";
inline constexpr const char* kTestAnchorToken = "tw1_ANCHOR_SECRET";

inline constexpr const char* kTestVariable = "hf_VARIABLE_SECRET";

/// Three peers: an anchor in one site, two spot machines in another.
inline Deployment three_peers() {
  const auto at = [](const char* site, market::Purchase purchase) {
    return Machine{
        .site = market::parse_site(site).value(), .gpu = "T4", .purchase = purchase, .usd_per_h = 0.1};
  };
  Deployment deployment{.run = "words",
                        .folder = "/state/words",
                        .run_file = "training: {seed: 7}\n",
                        .token = kTestToken,
                        .anchor_token = kTestAnchorToken,
                        .program = "/opt/tw",
                        .archive = "/state/words/tw.tar",
                        .archive_digest = "0123abcd",
                        .archive_bytes = 77,
                        .user = {.command = {"python3", "train.py"}},
                        .settings = {"training.rounds=20", "checkpoint.folder=/data/it's"}};
  deployment.peers = {{.number = 1,
                       .machine = at("onprem:eu", market::Purchase::owned),
                       .anchor = true,
                       .host = "ada@gpu1",
                       .address = "10.0.0.1",
                       .port = 7000},
                      {.number = 2,
                       .machine = at("gcp:us-west1", market::Purchase::spot),
                       .host = "gpu2",
                       .home = "/data/tw home",
                       .address = "10.0.0.2",
                       .port = 7000},
                      {.number = 3,
                       .machine = at("gcp:us-west1", market::Purchase::spot),
                       .host = "gpu2",
                       .home = "/data/tw home",
                       .address = "10.0.0.2",
                       .port = 7001}};
  return deployment;
}

/// The same peers with a program of the user's own.
inline Deployment with_program(Deployment deployment) {
  deployment.user = {.command = {"python3", "train.py", "--name", "it's $HOME $(id)\n"},
                     .files = {"src/model.py", "train.py"},
                     .bytes = 2000,
                     .setup = {"pip install -r requirements.txt"},
                     .setup_key = "5e70",
                     .env = {{"HF_TOKEN", kTestVariable}}};
  return deployment;
}

}  // namespace tw::launch
