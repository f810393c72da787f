// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "event/cause.h"
#include "event/facts.h"

/// What the events of a process tell: its state, its files, its machine.
namespace tw::event {

struct Restore {
  std::string digest;  ///< of the parameters; empty: it fetches them
  Cause cause{};       ///< checkpoint, anew; none: from other peers
  std::string record, parent;
  Count bytes, last_round;
  Measure took_s, offer_s, transfer_s;

  static void fields(auto& self, auto&& field) {
    field("digest", self.digest, "of the parameters; none: it asks others for their state");
    field("cause", self.cause,
          "`checkpoint`; `anew`: its own state, as it reaches no member; none: from other peers");
    field("record", self.record, "digest of the record after which the peer has these parameters");
    field("parent", self.parent, "where a history begins anew: digest of the record that it goes on from");
    field("bytes", self.bytes, "of the state");
    field("took_s", self.took_s, "how long it took");
    field("offer_s", self.offer_s, "of it, until the state is offered");
    field("transfer_s", self.transfer_s, "of it, until the last chunk is here");
    field("last_round", self.last_round,
          "where the state shows another one than `start` has: the run ends with it");
  }
};

struct Checkpoint {
  std::string digest;  ///< of the record
  Cause cause{};       ///< failed, skipped; none: it is durable
  Measure took_s;

  static void fields(auto& self, auto&& field) {
    field("digest", self.digest, "of the record");
    field("cause", self.cause, "`failed`; `skipped`: one on disk that cannot be read");
    field("took_s", self.took_s, "how long it took");
  }
};

struct Copy {
  std::string digest;  ///< of the record
  Cause cause{};       ///< failed; none: it was made
  Measure took_s;

  static void fields(auto& self, auto&& field) {
    field("digest", self.digest, "of the record");
    field("cause", self.cause, "`failed`");
    field("took_s", self.took_s, "how long it took");
  }
};

struct Refuse {
  Cause cause{};
  Count count;

  static void fields(auto& self, auto&& field) {
    field("cause", self.cause, "why, in a word");
    field("count", self.count, "refusals that this line stands for");
  }
};

struct Start {
  std::string digest;  ///< of the run
  std::string address, site, checkpoints, hardware;
  Count last_round;
  bool anchor = false;
  Count microbatch, parameters, state_bytes, tensors;
  bool insecure = false;
  Measure usd_per_h, budget_usd;
  bool budget_drains = false;

  static void fields(auto& self, auto&& field) {
    field("digest", self.digest, "of the run");
    field("address", self.address, "where others reach it");
    field("site", self.site, "provider:region:zone");
    field("checkpoints", self.checkpoints, "the folder where they are written, or `none`");
    field("hardware", self.hardware, "processor, cores and GPU");
    field("last_round", self.last_round, "the run ends with it");
    field("anchor", self.anchor, "1: on a machine that stays");
    field("microbatch", self.microbatch, "samples of a microbatch");
    field("parameters", self.parameters, "values of the model, running statistics included");
    field("state_bytes", self.state_bytes, "of a checkpoint: the parameters and the optimizer's state");
    field("tensors", self.tensors, "of the model, where its program names them");
    field("insecure", self.insecure, "1: without TLS");
    field("usd_per_h", self.usd_per_h, "price of the machine");
    field("budget_usd", self.budget_usd, "what the run may cost");
    field("budget_drains", self.budget_drains, "1: the run ends when its budget is spent");
  }
};

struct Stop {
  Count bytes_sent, bytes_received;

  static void fields(auto& self, auto&& field) {
    field("bytes_sent", self.bytes_sent, "of the process");
    field("bytes_received", self.bytes_received, "of the process");
  }
};

struct Kill {
  static void fields(auto&, auto&&) {}
};

/// One of three: a further file (part, logged), lines that are missing (missing, seconds), which samples the
/// log names (seed, dataset, block, begun).
struct Log {
  std::string seed;
  Count part, logged, missing;
  Measure seconds;
  Count dataset, block, begun;

  static void fields(auto& self, auto&& field) {
    field("seed", self.seed, "of the order of samples, which the lines after it have");
    field("part", self.part, "number of the file that begins");
    field("logged", self.logged, "lines of all files before it");
    field("missing", self.missing, "events that could not be written");
    field("seconds", self.seconds, "from the first of them on");
    field("dataset", self.dataset, "samples of an epoch");
    field("block", self.block, "samples that stay side by side in the order");
    field("begun", self.begun, "samples before the first one, of the run that this one goes on from");
  }
};

struct Notice {
  Cause cause{};       ///< preempt, at_risk, maintenance, freeze
  std::string source;  ///< spot::kSources
  Measure deadline_s;

  /// The process will end: spot::goes.
  bool goes() const { return cause == Cause::preempt || cause == Cause::maintenance; }

  static void fields(auto& self, auto&& field) {
    field("cause", self.cause, "its kind: `preempt`, `maintenance`, `freeze`, `at_risk`");
    field("source", self.source,
          "who says so: `aws`, `gcp`, `azure`, `file`, `slurm`, `kubernetes`, `signal`");
    field("deadline_s", self.deadline_s, "from then on; none for `at_risk`");
  }
};

struct Traffic {
  CountsOf to, from, asked, into, wrote;
  Bandwidth bandwidth;

  static void fields(auto& self, auto&& field) {
    field("to:", self.to,
          "bytes of messages without framing to peers of this site; `to:` alone: peers without `--site`");
    field("from:", self.from, "bytes read from this store");
    field("asked:", self.asked, "requests to read from it, failed ones included");
    field("into:", self.into, "bytes written into this store");
    field("wrote:", self.wrote, "requests to write into it or list it");
    Bandwidth::fields(self.bandwidth, field);
  }
};

struct Budget {
  Measure usd, budget_usd;

  static void fields(auto& self, auto&& field) {
    field("usd", self.usd, "what the run has cost so far");
    field("budget_usd", self.budget_usd, "what it may cost");
  }
};

struct Evaluate {
  std::string name;
  Measure value;

  static void fields(auto& self, auto&& field) {
    field("name", self.name, "of what was measured");
    field("value", self.value, "on data that the program does not train on");
  }
};

struct Warn {
  static void fields(auto&, auto&&) {}
};

}  // namespace tw::event
