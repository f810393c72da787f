// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/deployment.h"
#include "launch/engine.h"

/// Scripts for `sh -s` that start, look at and stop one peer as a process of the machine on which they run.
/// None holds a secret. Pure.
namespace tw::launch {

/// Where a machine has the files of one run. Words of sh that need no quotes, or are quoted already.
struct HostPlaces {
  std::string program;  ///< `tw`
  std::string folder;   ///< of the run; each peer has one below it
  std::string out;      ///< event logs of all its peers
};

/// Starts the peer in a session of its own. Its folder gets pid (and start time), exit once it has ended, log
/// (its output), starts (how many so far, those of PeerJob::starts at least). A running peer is not touched.
std::string start_script(const Deployment& deployment, const PeerJob& peer, const HostPlaces& places);

/// Sets the machine up for the user's program, and looks whether it can run there. The last line of stderr
/// says what is missing. where: name of the machine, for messages.
std::string ready_script(const Deployment& deployment, const PeerJob& peer, const HostPlaces& places,
                         const std::string& where);

/// Prints one line of JSON for state_in().
std::string state_script(const PeerJob& peer, const HostPlaces& places);

/// SIGTERM, then up to `grace` until it has left, then SIGKILL.
std::string stop_script(const PeerJob& peer, const HostPlaces& places, Duration grace);

/// Copies the output of the peer to places.out, where it stays when the plan has this peer no more. For
/// machines that share the state folder.
std::string keep_output(const PeerJob& peer, const HostPlaces& places);

/// The run file, and token and variables of each peer, for machines that share the state folder.
std::vector<File> shared_files(const Deployment& deployment);

/// Parses the output of state_script. Error: anything else.
Result<PeerReport> state_in(const std::string& text);

}  // namespace tw::launch
