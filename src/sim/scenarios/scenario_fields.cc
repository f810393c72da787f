// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/scenario_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/text/field_values.h"
#include "sim/checkers/checkers.h"
#include "train/run/run_names.h"
#include "wire/limits.h"

namespace tw::sim {
namespace {

/// Where a value is stored; the alternative says how it is written.
struct WholeRange {
  Between* at;
};

struct CountRange {
  int *least, *most;
};

struct SiteFields {
  std::string* at;
};

struct CheckerNames {
  std::vector<std::string>* at;
};

using Place =
    std::variant<bool*, int*, Round*, double*, Between*, WholeRange, CountRange, std::string*,
                 std::vector<codec::Codec>*, std::vector<train::Rounding>*, std::vector<train::Mode>*,
                 std::vector<swarm::SiteUse>*, std::vector<train::OptimizerKind>*, CheckerNames>;

constexpr NumberUnit kMilli{.over = 1000};
constexpr NumberUnit kMbit{.times = 125'000};
constexpr NumberUnit kKib{.times = 1024};

constexpr NumberBounds kAny{};
constexpr NumberBounds kPositive{.above_low = true};
constexpr NumberBounds kAtLeastOne{.low = 1};
constexpr NumberBounds kShare{.high = 1};
/// World-wide latencies and lines with room to spare; beyond them arithmetic of times would saturate.
constexpr NumberBounds kLatency{.high = 60'000};
constexpr NumberBounds kSeconds{.high = 1e7};
constexpr NumberBounds kPeers{.low = 1, .high = 4096};
constexpr NumberBounds kLength{.low = 1, .high = 1e8};
/// A segment travels as one message, at most as fp32.
constexpr NumberBounds kSegmentFloats{.low = 1, .high = wire::kMaxPayloadBytes / sizeof(float)};
constexpr NumberBounds kBatch{.low = 1, .high = 65'536};
constexpr NumberBounds kFragments{.low = 1, .high = 64};
constexpr NumberBounds kRounds{.low = 5, .high = 1e6};
constexpr NumberBounds kCompared{.low = 1, .high = 1000};
constexpr NumberBounds kOften{.low = 1, .high = 1000};

}  // namespace

struct ScenarioField : Field<ScenarioParts, Place> {};

namespace {

/// Everything a scenario file can say but the names of the faults.
constexpr ScenarioField kFields[] = {
    {"", "name", "for reports; without it, that of the file",
     [](ScenarioParts& p) -> Place { return &p.scenario.name; }},
    {"", "most_peers", "that ever come", [](ScenarioParts& p) -> Place { return &p.scenario.most_peers; },
     kPeers},
    {"", "span_s", "length of the phase with faults; after it everything is healed",
     [](ScenarioParts& p) -> Place { return &p.scenario.times.span_s; }, kSeconds},
    {"", "cue_chance", "share of the faults that wait for a phase of a round; the others strike at a time",
     [](ScenarioParts& p) -> Place { return &p.scenario.times.cue_chance; }, kShare},
    {"",
     "calm_rounds",
     "rounds at the end without faults; 0: they go on until span_s",
     [](ScenarioParts& p) -> Place { return &p.scenario.times.calm_rounds; },
     {.high = 1000}},
    {"", "calm_limit_s",
     "time within which the run must end after the last fault (L1); without `keep_majority` that of the "
     "slowest "
     "peer alone comes on top",
     [](ScenarioParts& p) -> Place { return &p.scenario.calm_limit_s; }, kSeconds},
    {"", "keep_majority", "deaths are spaced so that a majority of each record's members lives on",
     [](ScenarioParts& p) -> Place { return &p.scenario.keep_majority; }},
    {"", "patience_s", "how long a side without a majority pauses before it goes on alone",
     [](ScenarioParts& p) -> Place { return &p.scenario.patience_s; }, kSeconds},
    {"", "rare_branches", "make rarely taken branches of the protocol common",
     [](ScenarioParts& p) -> Place { return &p.scenario.rare_branches; }},
    {"", "checkers", "those that judge; without it, all",
     [](ScenarioParts& p) -> Place { return CheckerNames{&p.scenario.checkers}; }},

    {kSites, "name", "by which links speak of it", [](ScenarioParts& p) -> Place { return &p.site.name; }},
    {kSites,
     "peers",
     "at the beginning",
     [](ScenarioParts& p) -> Place { return &p.site.peers; },
     {.low = 0, .high = 4096}},
    {kSites, "samples_per_s", "of one peer", [](ScenarioParts& p) -> Place { return &p.site.samples_per_s; },
     kPositive},
    {kSites, "grain", "microbatches that a peer does at once",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.site.grain}; }, kBatch},
    {kSites, "job_ms",
     "each job of a peer's compute thread (a gradient, an update, a copy) takes this on top",
     [](ScenarioParts& p) -> Place { return &p.site.job_s; }, kLatency, kMilli},
    {kSites, "up_mbit_s", "bandwidth of a peer, sending",
     [](ScenarioParts& p) -> Place { return &p.site.up_bytes_per_s; }, kPositive, kMbit},
    {kSites, "down_mbit_s", "bandwidth of a peer, receiving",
     [](ScenarioParts& p) -> Place { return &p.site.down_bytes_per_s; }, kPositive, kMbit},
    {kSites, "anchors", "its peers are anchors: they lead first, and are asked for the state first",
     [](ScenarioParts& p) -> Place { return &p.site.anchors; }},
    {kSites, "usd_per_h", "of one peer", [](ScenarioParts& p) -> Place { return &p.site.usd_per_h; }},
    {kSites, "egress_usd_per_gb", "of what leaves the site",
     [](ScenarioParts& p) -> Place { return &p.site.egress_usd_per_gb; }},

    {kLinks, "from", "name of a site; without it, any",
     [](ScenarioParts& p) -> Place { return &p.link.from; }},
    {kLinks, "to", "name of a site, that of `from` for paths within it; without it, any",
     [](ScenarioParts& p) -> Place { return &p.link.to; }},
    {kLinks, "latency_ms", "of a path, one way", [](ScenarioParts& p) -> Place { return &p.link.latency_s; },
     kLatency, kMilli},
    {kLinks,
     "jitter",
     "share of the latency that is added at most",
     [](ScenarioParts& p) -> Place { return &p.link.jitter; },
     {.high = 100}},
    {kLinks, "mbit_s", "of a path", [](ScenarioParts& p) -> Place { return &p.link.bytes_per_s; }, kPositive,
     kMbit},
    {kLinks, "window_kib", "under way at once; caps the rate of a path at window / round trip",
     [](ScenarioParts& p) -> Place { return &p.link.window_bytes; }, kPositive, kKib},

    {kWorkload, "parameters", "floats of the vector",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.parameters}; }, kLength},
    {kWorkload, "bulk_scale",
     "bytes on the network for a byte of a bulk message: short vectors stand for long ones",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.bulk_scale; }, kPositive},
    {kWorkload, "segment_length", "floats of a segment",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.segment_length}; },
     kSegmentFloats},
    {kWorkload, "microbatch", "samples of one forward and backward pass",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.microbatch}; }, kBatch},
    {kWorkload, "microbatches", "of a round, over all peers",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.microbatches}; }, kBatch},
    {kWorkload, "codecs", "how gradients cross the wire; one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.codecs; }},
    {kWorkload, "averaging", "whether peers of one site are averaged first (training.sites); one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.averaging; }},
    {kWorkload, "exact_batches",
     "chance that a round makes good what is lost while it is averaged (training.exact_batches)",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.exact_batches; }, kShare},
    {kWorkload, "auto_batches",
     "chance that the leader chooses the samples of each round (training.target_batch_size: auto), from half "
     "of "
     "what is drawn to four times as many",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.auto_batches; }, kShare},
    {kWorkload, "roundings", "of gradients in int8; one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.roundings; }},
    {kWorkload, "optimizers", "one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.optimizers; }},
    {kWorkload, "modes", "what peers do while a round is averaged (training.mode); one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.modes; }},
    {kWorkload, "fragments", "parts of the vector that rounds average in turn (training.fragments)",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.fragments}; }, kFragments},
    {kWorkload, "own_models",
     "chance that each peer begins with parameters of its own, and all but the founder take its state",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.own_models; }, kShare},
    {kWorkload, "broken_samples", "share of the samples that nobody can decode: the run goes on without them",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.broken_samples; }, kShare},
    {kWorkload, "gone_samples",
     "share of the samples that are gone from every store: the run goes on without them once three peers "
     "lack them",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.gone_samples; }, kShare},
    {kWorkload, "norm_cap", "largest L2 norm per sample of a contribution; 0: none",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.norm_cap; }},
    {kWorkload,
     "checkpoint_every",
     "rounds between two checkpoints; 0: none",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.checkpoint_every}; },
     {.high = 1e6}},
    {kWorkload, "copies", "chance that anchors copy their checkpoints to a store that all share",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.copies; }, kShare},
    {kWorkload, "rounds", "updates until the run ends",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.rounds; }, kRounds},
    {kWorkload, "digest_every", "rounds between two comparisons of the parameters (training.digest_every)",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.digest_every; }, kCompared},

    {kFault, "chance", "that a run has it at all", [](ScenarioParts& p) -> Place { return &p.fault.chance; },
     kShare},
    {kFault, "times", "how often then",
     [](ScenarioParts& p) -> Place {
       return CountRange{&p.fault.least, &p.fault.most};
     },
     kOften},
    {kFault, "lasts_s", "of those that end by themselves",
     [](ScenarioParts& p) -> Place { return &p.fault.lasts_s; }, kSeconds},
};

/// What may stand there, for messages and for the reference.
struct Expectation : ExpectedValue {
  using ExpectedValue::operator();

  std::string operator()(const Between*) const { return number_text(bounds) + ", or [least, most]"; }

  std::string operator()(const WholeRange&) const { return whole_number_text(bounds) + ", or [least, most]"; }

  std::string operator()(const CountRange&) const { return (*this)(WholeRange{}); }

  std::string operator()(const CheckerNames&) const { return "one or a list of names of checkers"; }
};

/// The present value as it would be written.
struct Written : WrittenValue {
  using WrittenValue::operator();

  std::string operator()(const Between* at) const {
    if (at->least == at->most) return number(at->least);
    return fmt::format("[{}, {}]", number(at->least), number(at->most));
  }

  std::string operator()(const WholeRange& place) const { return (*this)(place.at); }

  std::string operator()(const CountRange& place) const {
    const Between range(*place.least, *place.most);
    return (*this)(&range);
  }

  std::string operator()(const CheckerNames& place) const {
    return fmt::format("{}", fmt::join(*place.at, ", "));
  }
};

/// Stores a value; returns the complaint.
struct Assignment : ValueAssignment {
  using ValueAssignment::operator();

  std::string operator()(Between* at) const { return range(*at, false); }

  std::string operator()(const WholeRange& place) const { return range(*place.at, true); }

  std::string operator()(const CountRange& place) const {
    Between both;
    std::string wrong = range(both, true);
    if (!wrong.empty()) return wrong;
    *place.least = static_cast<int>(both.least);
    *place.most = static_cast<int>(both.most);
    return "";
  }

  std::string operator()(const CheckerNames& place) const {
    if (given.words.empty()) return complaint();
    const std::vector<std::string>& known = checker_names();
    for (const std::string& word : given.words) {
      if (std::find(known.begin(), known.end(), word) == known.end())
        return unexpected(expected, word) + fmt::format("; there are {}", fmt::join(known, ", "));
    }
    *place.at = given.words;
    return "";
  }

 private:
  std::string range(Between& at, bool whole) const {
    if (given.words.size() != (given.is_list ? 2 : 1)) return complaint();
    const auto least = number(given.words.front()), most = number(given.words.back());
    if (!least || !most) return complaint();
    if (whole && (std::trunc(*least) != *least || std::trunc(*most) != *most)) return complaint();
    if (*least > *most) {
      return complaint() + fmt::format("; did you mean [{}, {}]?", given.words.back(), given.words.front());
    }
    at = {*least, *most};
    return "";
  }
};

}  // namespace

const ScenarioField* find_scenario_field(std::string_view section, std::string_view name) {
  return find_field<ScenarioField>(kFields, section, name);
}

std::string expectation(const ScenarioField& field) {
  ScenarioParts defaults;
  return expected_at<Expectation>(field, defaults);
}

std::string assign(const ScenarioField& field, const GivenValue& given, ScenarioParts& parts) {
  return assign_field<Expectation, Assignment>(field, given, parts);
}

std::string unknown_scenario_key(std::string_view section, std::string_view name) {
  return unknown_field<ScenarioField>(kFields, section, name);
}

std::string unknown_fault(std::string_view name) {
  std::vector<std::string> known;
  for (const FaultRow& row : fault_rows()) known.emplace_back(row.name);
  const std::string meant = did_you_mean(name, known);
  return "unknown fault" + (meant.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : meant);
}

std::string scenario_reference() {
  std::string text = reference_of<Expectation, Written, ScenarioField>(kFields, ScenarioParts());
  text += "\n| fault | what happens |\n|---|---|\n";
  for (const FaultRow& row : fault_rows()) {
    text += fmt::format("| `{}` | {} |\n", row.name, row.meaning);
  }
  return text;
}

}  // namespace tw::sim
