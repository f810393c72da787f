// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/input.h"

/// What is fed with arbitrary bytes: each function takes one input from beginning to end, and TW_CHECKs its
/// laws. tests/fuzz/libfuzzer.cc makes a coverage-guided fuzzer of each, random_test.cc an ordinary test.
namespace tw::fuzz {

struct Target {
  const char* name;
  void (*run)(Input&);
};

void wire(Input& input);   ///< frames of any bytes, and messages of every type
void token(Input& input);  ///< tokens of any characters, and right checksums over any fields
void fp32(Input& input);   ///< a codec each: its decoder on any bytes, by every kernel
void fp16(Input& input);
void bf16(Input& input);
void int8(Input& input);
void int4(Input& input);
void checkpoint(Input& input);   ///< files of any bytes, and sound digests over any header
void logs(Input& input);         ///< lines of the event log; run files
void tar(Input& input);          ///< tar files, and decoders of fields, of any bytes
void twi(Input& input);          ///< indexes of shards: any bytes, and sound digests over any
void http_answer(Input& input);  ///< what stores and their metadata services answer
void swarm(Input& input);        ///< membership, leases, ballots, votes
void reduction(Input& input);    ///< segments and plans
void fetch(Input& input);        ///< the joiner's side
void donor(Input& input);        ///< the other side
void session(Input& input);      ///< all of them together, as a peer runs them

inline constexpr Target kTargets[] = {
    {"wire", wire},
    {"token", token},
    {"fp32", fp32},
    {"fp16", fp16},
    {"bf16", bf16},
    {"int8", int8},
    {"int4", int4},
    {"checkpoint", checkpoint},
    {"logs", logs},
    {"swarm", swarm},
    {"reduction", reduction},
    {"fetch", fetch},
    {"donor", donor},
    {"session", session},
    {"tar", tar},
    {"twi", twi},
    {"http_answer", http_answer},
};

}  // namespace tw::fuzz
