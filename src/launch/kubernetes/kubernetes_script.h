// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/kubernetes/kubernetes.h"

/// Scripts of sh that ask a cluster more than one question; they run on this machine and call kubectl.
namespace tw::launch {

/// For requests that are neither a watch nor a stream: kubectl says what is wrong before tw ends it.
inline constexpr const char* kRequestTimeout = "--request-timeout=25s";

/// kubectl, with the context and the namespace of the settings.
std::vector<std::string> kubectl_words(const PodSettings& settings, const std::vector<std::string>& words);

/// All Jobs and pods of a peer, whatever its restart, as kubectl selects them.
std::string peer_selector(const Deployment& deployment, const PeerJob& peer);

/// Appends to the logs of the state folder what the pods of a peer wrote since the last time: its event log,
/// and its output, those of ended pods too as long as the cluster has them.
std::string collect_pods_script(const Deployment& deployment, const PeerJob& peer,
                                const PodSettings& settings);

/// Deletes the peer's Jobs, waits until its pods are gone, and fetches their event logs up to the last line.
std::string stop_pods_script(const Deployment& deployment, const PeerJob& peer, const PodSettings& settings);

}  // namespace tw::launch
