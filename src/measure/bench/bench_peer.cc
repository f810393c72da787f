// SPDX-License-Identifier: Apache-2.0
#include "measure/bench/bench_peer.h"

namespace tw::measure {

std::vector<std::string> words_of(const BenchPeer& peer, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"bench",    "peer",
                                    "--id",     std::to_string(peer.id),
                                    "--peers",  std::to_string(peer.peers),
                                    "--bytes",  std::to_string(peer.bytes),
                                    "--codec",  std::string(name_of(peer.codec)),
                                    "--rounds", std::to_string(peer.rounds),
                                    "--out",    peer.out,
                                    "--listen", peer.listen};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace tw::measure
