// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "market/offer.h"
#include "market/site.h"

/// What runs where: the peers of one run as jobs of an engine. Values alone, without input or output.
namespace tw::launch {

/// A machine for a peer.
struct Machine {
  market::Site site;
  std::string vm_type;  ///< the provider's own name; empty: any that has the GPU
  std::string gpu;      ///< "T4", or "4xT4" for four in one machine; empty: none
  market::Purchase purchase = market::Purchase::on_demand;
  double usd_per_h = 0;

  bool operator==(const Machine&) const = default;
};

/// A peer: one job of the engine, started and stopped on its own.
struct PeerJob {
  std::uint32_t number = 0;   ///< from 1; never given to another machine while the run lasts
  std::uint32_t restart = 0;  ///< how often --keep started it again: in the names of its jobs
  Machine machine{};
  bool anchor = false;                  ///< on an on-demand or owned machine: others find the run through it
  std::vector<Machine> alternatives{};  ///< in the planner's order, in case `machine` is not available
  std::string host{};                   ///< ssh: destination of ssh; empty if the engine chooses
  std::string home{};                   ///< ssh: folder there for program and runs; empty: ~/.tradewind
  std::string address{};                ///< where others reach it, without a port; empty: the engine finds it
  std::uint16_t port = 0;               ///< port at which it listens; unique on its host
  bool untried = false;                 ///< no start has got so far that it may live: nobody asks for it
  std::int64_t started_unix_s = 0;      ///< of its last start by `tw up`; 0: long ago, or stopped since
  std::uint32_t starts = 0;             ///< by `tw up`, so far; a machine that lost its disk does not know

  bool operator==(const PeerJob&) const = default;
};

/// The user's own program, which each peer runs in a folder with its files.
struct UserProgram {
  std::vector<std::string> command;        ///< not empty; as the user wrote it: no shell reads its words
  std::vector<std::string> files;          ///< below `program/` of the run's folder, in order
  std::vector<std::string> folders{};      ///< the same, of those that are empty
  std::uint64_t bytes = 0;                 ///< of all files
  std::vector<std::string> setup;          ///< lines of sh
  std::string setup_key;                   ///< changes with the lines and the files that they name
  std::map<std::string, std::string> env;  ///< secret: only on stdin and in files of mode 0600

  bool operator==(const UserProgram&) const = default;
};

/// All data for the files and commands of an engine.
struct Deployment {
  std::string run;                   ///< name: is_run_name()
  std::string folder;                ///< absolute: the state folder of the run on this machine
  std::string run_file;              ///< text of run.yaml, its paths absolute
  std::vector<PeerJob> peers;        ///< by number
  std::vector<PeerJob> elsewhere{};  ///< peers of the run that other engines have; in no state file
  std::string token;                 ///< a secret: only on stdin and in files of mode 0600
  std::string anchor_token;          ///< the same, for anchors; empty: theirs is `token`
  std::string program;               ///< path of `tw`
  std::string archive;               ///< of ssh: path of an archive with `tw` and the Python package
  std::string archive_digest;        ///< of its bytes, in hex: names the copy on a host
  std::uint64_t archive_bytes = 0;
  UserProgram user;
  std::string image;                          ///< of containers
  std::vector<std::string> settings;          ///< KEY=VALUE for the run file (`tw run --set`)
  std::map<std::string, std::string> on;      ///< the engine's own settings: partition, namespace, ...; of
                                              ///< several engines: ssh.control, slurm.partition
  Duration grace = std::chrono::seconds(25);  ///< between SIGTERM and the end
  std::uint32_t founder = 0;                  ///< number of the peer that began the run, or resumes it in its
                                              ///< place; 0: not known
  bool begun = false;                         ///< a peer of the run lives, or may: all starts have `--rejoin`
  bool anew = false;                          ///< this start begins the run anew; in no state file

  bool operator==(const Deployment&) const = default;
};

/// 1 to 40 of a-z, 0-9 and -, a letter first, no - at the end: valid in the names of every engine.
bool is_run_name(const std::string& name);

/// "RUN-p3", after two restarts "RUN-p3-r2": the name of the engine's job. Equal peers have equal names.
std::string job_name(const Deployment& deployment, const PeerJob& peer);

/// "p3": its name among the files of the run.
std::string short_name(const PeerJob& peer);

/// nullptr: no such peer of this engine.
const PeerJob* find_peer(const Deployment& deployment, std::uint32_t number);

/// One of these peers has this number.
bool has_peer(const std::vector<PeerJob>& peers, std::uint32_t number);

/// USD an hour of its machine: nothing if the price is not known, or an alternative has another price.
std::optional<double> price_of(const PeerJob& peer);

/// Sets PeerJob::started_unix_s of those that have the numbers of these peers. 0: their start failed, or they
/// were stopped; else it is another start, and each of them may live from now on.
void mark_started(Deployment& deployment, const std::vector<PeerJob>& peers, std::int64_t unix_s);

const std::string& token_of(const Deployment& deployment, const PeerJob& peer);

/// HOST:PORT of the peers that others dial: the anchors and, if there are fewer than two, other peers by
/// number. Those of other engines are among them. Peers without a known address are left out.
std::vector<std::string> bootstrap_of(const Deployment& deployment);

/// The peer that begins a new run, of any engine: the first anchor whose address is known, else the first
/// such peer; where none is known, the first anchor, else the first peer.
const PeerJob& first_of(const Deployment& deployment);

/// The same of these peers; there is one.
const PeerJob& first_of(const std::vector<PeerJob>& peers);

/// The peer is the founder and comes back. Where no peer has the state any more, it resumes the run: if all
/// joined, they would wait for each other. So it joins nobody if others can dial it, and dials those that it
/// knew.
bool may_resume(const Deployment& deployment, const PeerJob& peer);

/// Paths and addresses of a peer's machine.
struct PeerPaths {
  std::string run_file;
  std::string token_file;
  std::string out;                  ///< folder of the event log
  std::string listen;               ///< HOST:PORT
  std::vector<std::string> join{};  ///< HOST:PORT of others; its own may be among them
};

/// The kind of start that a command line is for.
enum class Start {
  begin,  ///< the very first one: it begins the run once enough peers are linked. It alone has --anew
  join,   ///< the run begins meanwhile, or is running
  again,  ///< as join, and the run had begun before: `--rejoin`; its founder may resume it
};

Start start_of(const Deployment& deployment, const PeerJob& peer);

/// The words after `tw` that start a peer: `run RUN.yaml --token @FILE ...`. Those of command_words() follow.
std::vector<std::string> peer_words(const Deployment& deployment, const PeerJob& peer, Start start,
                                    const PeerPaths& paths);

/// `--` and the user's program.
std::vector<std::string> command_words(const Deployment& deployment);

/// For sh: in single quotes where needed, nothing is expanded.
std::string shell_word(const std::string& word);
std::string shell_line(const std::vector<std::string>& words);

/// A line that does not occur in the text, for a here-document: `mark`, made longer if needed.
std::string heredoc_end(std::string mark, const std::string& text);

}  // namespace tw::launch
