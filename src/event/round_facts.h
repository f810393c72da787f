// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "event/cause.h"
#include "event/facts.h"

/// What the events of a round and its members tell.
namespace tw::event {

struct Accumulate {
  static void fields(auto&, auto&&) {}
};

struct Probe {
  Bandwidth bandwidth;  ///< 0: not long enough to tell

  static void fields(auto& self, auto&& field) { Bandwidth::fields(self.bandwidth, field); }
};

struct Call {
  Measure calc_s;
  std::uint64_t members = 0, contributions = 0, ballot = 0, version = 0;
  Measure bound_s;
  Use use;

  static void fields(auto& self, auto&& field) {
    field("calc_s", self.calc_s, "since the round began here");
    field("members", self.members, "peers that get the mean");
    field("contributions", self.contributions, "gradient sums in it");
    field("ballot", self.ballot, "of the leader");
    field("version", self.version, "of its plan");
    field("bound_s", self.bound_s,
          "of the leader: the least that this averaging takes by the bandwidth that is known");
    Use::fields(self.use, field);
  }
};

struct Scatter {
  Measure since_call_s;

  static void fields(auto& self, auto&& field) {
    field("since_call_s", self.since_call_s, "from the call to here");
  }
};

struct Gather {
  Measure since_call_s;

  static void fields(auto& self, auto&& field) {
    field("since_call_s", self.since_call_s, "from the call to here");
  }
};

/// With target_batch_size auto: what the leader measured, and the batch that follows from it. 0: not known.
struct Batch {
  Count batch, next_batch;
  Measure averaging_s, samples_per_s;
  Count at_once;

  static void fields(auto& self, auto&& field) {
    field("batch", self.batch, "with `target_batch_size: auto`: samples of the round in all");
    field("next_batch", self.next_batch,
          "of the next round, chosen from `averaging_s`, `samples_per_s` and `at_once`");
    field("averaging_s", self.averaging_s, "of a round, as the leader measured; 0: not known");
    field("samples_per_s", self.samples_per_s, "of all members, as the leader measured; 0: not known");
    field("at_once", self.at_once, "samples that all members compute at once");
  }
};

struct Commit {
  std::string digest;         ///< of the record
  Cause cause{};              ///< minority, or none
  std::vector<PeerId> peers;  ///< contributors
  std::string parent;
  TextsOf samples_of;
  std::uint64_t samples = 0, samples_total = 0, majority_samples = 0, carried = 0, members = 0;
  Measure calc_s, comm_s, hidden_s;
  bool last = false;
  Batch batch;
  Measure loss;
  Use use;
  Measure work_s, data_s;
  Bandwidth bandwidth;
  MeasuresOf slow;

  static void fields(auto& self, auto&& field) {
    field("digest", self.digest, "of the record");
    field("cause", self.cause, "`minority`: without a majority of the members");
    field("peers", self.peers, "the contributors");
    field("parent", self.parent, "digest of the record before");
    field("samples:", self.samples_of,
          "the samples that the mean has from this contributor, by their numbers in the run (`0-15,64-79`)");
    field("samples", self.samples, "own ones in the mean");
    field("samples_total", self.samples_total, "of the run");
    field("majority_samples", self.majority_samples, "of its history, by records that a majority decided");
    field("carried", self.carried, "samples that the round before left over");
    field("members", self.members, "of the record");
    field("calc_s", self.calc_s, "until own work was done and the plan was here");
    field("comm_s", self.comm_s, "from then to the commit");
    field("hidden_s", self.hidden_s, "the part of `comm_s` in which this peer computed for the next round");
    field("last", self.last, "1: the run ends with it");
    Batch::fields(self.batch, field);
    field("loss", self.loss, "mean of the own samples");
    Use::fields(self.use, field);
    field("work_s", self.work_s, "of this peer in microbatches of the round");
    field("data_s", self.data_s,
          "of it, waiting for data, as far as the program says so (`tw_waited`; loops of the Python package "
          "do)");
    Bandwidth::fields(self.bandwidth, field);
    field("slow:", self.slow,
          "Mbit/s to this peer, where that is less than the bandwidth of both ends allows");
  }
};

struct Apply {
  std::string digest;  ///< of the parameters
  std::string record;
  Measure took_s;

  static void fields(auto& self, auto&& field) {
    field("digest", self.digest, "of the parameters");
    field("record", self.record, "digest of the record after which the peer has these parameters");
    field("took_s", self.took_s, "how long it took");
  }
};

struct Wait {
  std::vector<PeerId> peers;  ///< awaited ones
  Measure seconds;
  Count segments, done, total;

  static void fields(auto& self, auto&& field) {
    field("peers", self.peers, "the awaited peers");
    field("seconds", self.seconds, "so far");
    field("segments", self.segments, "that others reduce for a slow peer");
    field("done", self.done, "where it can be counted");
    field("total", self.total, "where it can be counted");
  }
};

struct Lead {
  Count ballot;

  static void fields(auto& self, auto&& field) { field("ballot", self.ballot, "under which it leads"); }
};

struct Join {
  static void fields(auto&, auto&&) {}
};

struct Leave {
  static void fields(auto&, auto&&) {}
};

struct Handover {
  Count bytes;
  Measure took_s;
  Count samples;
  Measure round_left_s;

  static void fields(auto& self, auto&& field) {
    field("bytes", self.bytes, "of the sums");
    field("took_s", self.took_s, "from the order to the release");
    field("samples", self.samples, "in the sums");
    field("round_left_s", self.round_left_s, "what the round would have taken with it");
  }
};

struct Lost {
  Cause cause{};
  Measure silent_s;

  static void fields(auto& self, auto&& field) {
    field("cause", self.cause, "`verdict`: only its gradient is excluded");
    field("silent_s", self.silent_s, "since its last sign of life");
  }
};

struct Reissue {
  Cause cause{};
  Count microbatches;
  bool next_round = false;

  static void fields(auto& self, auto&& field) {
    field("cause", self.cause, "`sample`: this peer returned a sample for another peer");
    field("microbatches", self.microbatches, "given out again");
    field("next_round", self.next_round, "1: in the next round");
  }
};

struct Skip {
  Count sample;

  static void fields(auto& self, auto&& field) { field("sample", self.sample, "its number in the run"); }
};

}  // namespace tw::event
