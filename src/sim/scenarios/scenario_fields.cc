// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/scenario_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "base/check.h"
#include "base/text/fields.h"
#include "sim/checkers/checkers.h"
#include "train/run/run_names.h"

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

using Place = std::variant<bool*, int*, Round*, double*, Between*, WholeRange, CountRange, std::string*,
                           std::vector<codec::Codec>*, std::vector<train::Rounding>*,
                           std::vector<average::SiteUse>*, std::vector<train::OptimizerKind>*, CheckerNames>;

/// A number of the file becomes number * times / over in the structs. Both are whole, so that 150 ms are
/// 0.15 s to the last bit.
struct Scale {
  double times = 1;
  double over = 1;
};

constexpr Scale kMilli{.over = 1000};
constexpr Scale kMbit{.times = 125'000};
constexpr Scale kKib{.times = 1024};

constexpr NumberBounds kAny{};
constexpr NumberBounds kPositive{.above_low = true};
constexpr NumberBounds kAtLeastOne{.low = 1};
constexpr NumberBounds kShare{.high = 1};
/// World-wide latencies and lines with room to spare; beyond them arithmetic of times would saturate.
constexpr NumberBounds kLatency{.high = 60'000};
constexpr NumberBounds kSeconds{.high = 1e7};
constexpr NumberBounds kPeers{.low = 1, .high = 4096};
constexpr NumberBounds kLength{.low = 1, .high = 1e8};
constexpr NumberBounds kBatch{.low = 1, .high = 65'536};
constexpr NumberBounds kRounds{.low = kCalmRounds + 1, .high = 1e6};
constexpr NumberBounds kOften{.low = 1, .high = 1000};

}  // namespace

struct ScenarioField {
  ScenarioSection section;
  std::string_view name;
  std::string_view meaning;
  Place (*place)(ScenarioParts&);
  NumberBounds bounds = {};
  Scale unit = {};
};

namespace {

using enum ScenarioSection;

/// Everything a scenario file can say but the names of the faults.
constexpr ScenarioField kFields[] = {
    {top, "name", "for reports; without it, that of the file",
     [](ScenarioParts& p) -> Place { return &p.scenario.name; }},
    {top, "most_peers", "that ever come", [](ScenarioParts& p) -> Place { return &p.scenario.most_peers; },
     kPeers},
    {top, "span_s", "length of the phase with faults; after it everything is healed",
     [](ScenarioParts& p) -> Place { return &p.scenario.times.span_s; }, kSeconds},
    {top, "cue_chance", "share of the faults that wait for a phase of a round; the others strike at a time",
     [](ScenarioParts& p) -> Place { return &p.scenario.times.cue_chance; }, kShare},
    {top, "calm_limit_s", "time within which the run must end after the last fault (L1)",
     [](ScenarioParts& p) -> Place { return &p.scenario.calm_limit_s; }, kSeconds},
    {top, "keep_majority", "deaths are spaced so that a majority of each record's members lives on",
     [](ScenarioParts& p) -> Place { return &p.scenario.keep_majority; }},
    {top, "patience_s", "how long a side without a majority pauses before it goes on alone",
     [](ScenarioParts& p) -> Place { return &p.scenario.patience_s; }, kSeconds},
    {top, "rare_branches", "make rarely taken branches of the protocol common",
     [](ScenarioParts& p) -> Place { return &p.scenario.rare_branches; }},
    {top, "checkers", "those that judge; without it, all",
     [](ScenarioParts& p) -> Place { return CheckerNames{&p.scenario.checkers}; }},

    {site, "name", "by which links speak of it", [](ScenarioParts& p) -> Place { return &p.site.name; }},
    {site,
     "peers",
     "at the beginning",
     [](ScenarioParts& p) -> Place { return &p.site.peers; },
     {.low = 0, .high = 4096}},
    {site, "samples_per_s", "of one peer", [](ScenarioParts& p) -> Place { return &p.site.samples_per_s; },
     kPositive},
    {site, "grain", "microbatches that a peer does at once",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.site.grain}; }, kBatch},
    {site, "up_mbit_s", "a peer's line, outward",
     [](ScenarioParts& p) -> Place { return &p.site.up_bytes_per_s; }, kPositive, kMbit},
    {site, "down_mbit_s", "a peer's line, inward",
     [](ScenarioParts& p) -> Place { return &p.site.down_bytes_per_s; }, kPositive, kMbit},
    {site, "anchors", "its peers are anchors: they lead first, and are asked for the state first",
     [](ScenarioParts& p) -> Place { return &p.site.anchors; }},
    {site, "usd_per_h", "of one peer", [](ScenarioParts& p) -> Place { return &p.site.usd_per_h; }},
    {site, "egress_usd_per_gb", "of what leaves the site",
     [](ScenarioParts& p) -> Place { return &p.site.egress_usd_per_gb; }},

    {link, "from", "name of a site; without it, any", [](ScenarioParts& p) -> Place { return &p.link.from; }},
    {link, "to", "name of a site, that of `from` for paths within it; without it, any",
     [](ScenarioParts& p) -> Place { return &p.link.to; }},
    {link, "latency_ms", "of a path, one way", [](ScenarioParts& p) -> Place { return &p.link.latency_s; },
     kLatency, kMilli},
    {link,
     "jitter",
     "share of the latency that is added at most",
     [](ScenarioParts& p) -> Place { return &p.link.jitter; },
     {.high = 100}},
    {link, "mbit_s", "of a path", [](ScenarioParts& p) -> Place { return &p.link.bytes_per_s; }, kPositive,
     kMbit},
    {link, "window_kib", "under way at once; caps the rate of a path at window / round trip",
     [](ScenarioParts& p) -> Place { return &p.link.window_bytes; }, kPositive, kKib},

    {workload, "parameters", "floats of the vector",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.parameters}; }, kLength},
    {workload, "bulk_scale",
     "bytes on the network for a byte of a bulk message: short vectors stand for long ones",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.bulk_scale; }, kPositive},
    {workload, "segment_length", "floats of a segment",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.segment_length}; }, kLength},
    {workload, "microbatch", "samples of one forward and backward pass",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.microbatch}; }, kBatch},
    {workload, "microbatches", "of a round, over all peers",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.microbatches}; }, kBatch},
    {workload, "codecs", "how gradients cross the wire; one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.codecs; }},
    {workload, "averaging", "whether peers of one site are averaged first (training.sites); one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.averaging; }},
    {workload, "exact_batches",
     "chance that a round makes good what is lost while it is averaged (training.exact_batches)",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.exact_batches; }, kShare},
    {workload, "roundings", "of gradients in int8; one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.roundings; }},
    {workload, "optimizers", "one is drawn",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.optimizers; }},
    {workload, "own_models",
     "chance that each peer begins with parameters of its own, and all but the founder take its state",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.own_models; }, kShare},
    {workload, "broken_samples", "share of the samples that nobody can decode: the run goes on without them",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.broken_samples; }, kShare},
    {workload, "norm_cap", "largest L2 norm per sample of a contribution; 0: none",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.norm_cap; }},
    {workload,
     "checkpoint_every",
     "rounds between two checkpoints; 0: none",
     [](ScenarioParts& p) -> Place { return WholeRange{&p.scenario.workload.checkpoint_every}; },
     {.high = 1e6}},
    {workload, "rounds", "updates until the run ends; the last 4 are calm",
     [](ScenarioParts& p) -> Place { return &p.scenario.workload.rounds; }, kRounds},

    {fault, "chance", "that a run has it at all", [](ScenarioParts& p) -> Place { return &p.fault.chance; },
     kShare},
    {fault, "times", "how often then",
     [](ScenarioParts& p) -> Place {
       return CountRange{&p.fault.least, &p.fault.most};
     },
     kOften},
    {fault, "lasts_s", "of those that end by themselves",
     [](ScenarioParts& p) -> Place { return &p.fault.lasts_s; }, kSeconds},
};

struct FaultMeaning {
  FaultKind kind;
  std::string_view meaning;
};

constexpr FaultMeaning kMeanings[] = {
    {FaultKind::reset, "the link of two peers closes at both ends; what is under way is lost"},
    {FaultKind::black_hole, "half-open: what is sent on a link vanishes, and neither end is told"},
    {FaultKind::slow, "bandwidth of a path down to a tenth"},
    {FaultKind::latency, "latency of a path drawn anew, 0 to 400 ms"},
    {FaultKind::jitter, "jitter of a path, up to ten times its latency"},
    {FaultKind::one_way, "asymmetric partition: what some peers send to the others is held"},
    {FaultKind::partition, "some peers, or a whole site, are cut off from the others"},
    {FaultKind::clog, "swizzled: lines stop one after the other, and go on in another order"},
    {FaultKind::kill, "SIGKILL"},
    {FaultKind::stop, "SIGSTOP, and SIGCONT after `lasts_s`"},
    {FaultKind::away, "the thread that computes belongs to a program that does something else"},
    {FaultKind::preempt_0s, "the machine is gone without notice"},
    {FaultKind::preempt_10s, "notice, and the machine is gone 10 s later"},
    {FaultKind::preempt_30s, "notice, and the machine is gone 30 s later"},
    {FaultKind::preempt_120s, "notice, and the machine is gone 120 s later"},
    {FaultKind::at_risk, "the machine may be taken away soon; it is safe again after lasts_s"},
    {FaultKind::zone_loss, "the machines of a site (or two of them) are gone at once"},
    {FaultKind::return_stale, "killed; comes back with its old identity and the disk as it was"},
    {FaultKind::relaunch, "killed; started again at its old address with its old command line and disk"},
    {FaultKind::rolling_relaunch, "the same of all peers that live, one after the other"},
    {FaultKind::twin, "a second process with the identity of one that runs"},
    {FaultKind::join, "a peer joins"},
    {FaultKind::leave, "a peer hands in what is done, and goes"},
    {FaultKind::disk_full, "no space is left"},
    {FaultKind::disk_error, "reads and writes fail (EIO)"},
    {FaultKind::torn_write, "power is lost in the middle of a write"},
    {FaultKind::lost_fsync, "what was said to be durable is not, and power is lost later"},
    {FaultKind::bit_flip, "one bit of a file changes"},
    {FaultKind::rename_lost, "a rename is not durable, and power is lost"},
    {FaultKind::store_away,
     "its store of samples answers nothing; at most two peers of a run have such faults"},
    {FaultKind::store_lacks, "its store lacks one sample in 16; at most two peers of a run have such faults"},
    {FaultKind::clock_jump, "the wall clock of a peer jumps by an hour"},
    {FaultKind::send_nan, "contributions with values that are not a number"},
    {FaultKind::send_infinite, "contributions with infinite values"},
    {FaultKind::send_huge, "contributions far beyond any honest norm"},
    {FaultKind::send_negated, "contributions with the sign turned"},
    {FaultKind::claim_more, "claims microbatches that it was never leased"},
    {FaultKind::replay, "sends again what belonged to an earlier round"},
    {FaultKind::duplicate, "sends everything twice"},
    {FaultKind::wrong_length, "segments of a wrong length"},
    {FaultKind::wrong_round, "messages that name a wrong round"},
    {FaultKind::malformed, "random bytes in place of messages"},
    {FaultKind::truncated, "messages that end early"},
    {FaultKind::flood, "sends half a megabyte for the next round with each segment"},
    {FaultKind::chunk_flip, "one bit changes in pieces of a state or a mean that others ask it for"},
};

/// What may stand there, for messages and for the reference.
struct Expectation {
  const NumberBounds& bounds;

  std::string operator()(const bool*) const { return "true or false"; }

  std::string operator()(const int*) const { return whole_number_text(bounds); }

  std::string operator()(const Round*) const { return whole_number_text(bounds); }

  std::string operator()(const double*) const { return number_text(bounds); }

  std::string operator()(const Between*) const { return number_text(bounds) + ", or [least, most]"; }

  std::string operator()(const WholeRange&) const { return whole_number_text(bounds) + ", or [least, most]"; }

  std::string operator()(const CountRange&) const { return (*this)(WholeRange{}); }

  std::string operator()(const std::string*) const { return "a name"; }

  std::string operator()(const CheckerNames&) const { return "one or a list of names of checkers"; }

  template <class Enum>
  std::string operator()(const std::vector<Enum>*) const {
    return fmt::format("one or a list of {}", fmt::join(train::names_of(Enum{}), ", "));
  }
};

/// The present value as it would be written.
struct Written {
  const Scale& unit;

  std::string number(double x) const { return fmt::format("{:.12g}", x * unit.over / unit.times); }

  std::string operator()(const bool* at) const { return *at ? "true" : "false"; }

  std::string operator()(const int* at) const { return fmt::to_string(*at); }

  std::string operator()(const Round* at) const { return fmt::to_string(*at); }

  std::string operator()(const double* at) const { return number(*at); }

  std::string operator()(const Between* at) const {
    if (at->least == at->most) return number(at->least);
    return fmt::format("[{}, {}]", number(at->least), number(at->most));
  }

  std::string operator()(const WholeRange& place) const { return (*this)(place.at); }

  std::string operator()(const CountRange& place) const {
    const Between range(*place.least, *place.most);
    return (*this)(&range);
  }

  std::string operator()(const std::string* at) const { return *at; }

  std::string operator()(const CheckerNames& place) const {
    return fmt::format("{}", fmt::join(*place.at, ", "));
  }

  template <class Enum>
  std::string operator()(const std::vector<Enum>* at) const {
    std::vector<std::string> names;
    for (const Enum one : *at) names.emplace_back(train::names_of(one)[static_cast<std::size_t>(one)]);
    return fmt::format("[{}]", fmt::join(names, ", "));
  }
};

/// Stores a value; returns the complaint.
struct Assignment {
  const ScenarioField& field;
  const GivenWords& given;

  std::string operator()(bool* at) const {
    const auto truth = given.is_list ? std::nullopt : truth_in(given.words.front());
    if (!truth) return unexpected();
    *at = *truth;
    return "";
  }

  std::string operator()(int* at) const { return whole(at); }

  std::string operator()(Round* at) const { return whole(at); }

  std::string operator()(double* at) const {
    const auto number = given.is_list ? std::nullopt : within(given.words.front());
    if (!number) return unexpected();
    *at = si(*number);
    return "";
  }

  std::string operator()(Between* at) const { return range(*at, false); }

  std::string operator()(const WholeRange& place) const { return range(*place.at, true); }

  std::string operator()(const CountRange& place) const {
    Between both;
    std::string complaint = range(both, true);
    if (!complaint.empty()) return complaint;
    *place.least = static_cast<int>(both.least);
    *place.most = static_cast<int>(both.most);
    return "";
  }

  std::string operator()(std::string* at) const {
    if (given.is_list || given.words.front().empty()) return unexpected();
    *at = given.words.front();
    return "";
  }

  std::string operator()(const CheckerNames& place) const {
    if (given.words.empty()) return unexpected();
    const std::vector<std::string>& known = checker_names();
    for (const std::string& word : given.words) {
      if (std::find(known.begin(), known.end(), word) == known.end())
        return unexpected(word) + fmt::format("; there are {}", fmt::join(known, ", "));
    }
    *place.at = given.words;
    return "";
  }

  template <class Enum>
  std::string operator()(std::vector<Enum>* at) const {
    const train::Names names = train::names_of(Enum{});
    std::vector<Enum> found;
    for (const std::string& word : given.words) {
      const auto name = std::find(names.begin(), names.end(), word);
      if (name == names.end()) return unexpected(word) + did_you_mean(word, names);
      found.push_back(static_cast<Enum>(name - names.begin()));
    }
    if (found.empty()) return unexpected();
    *at = std::move(found);
    return "";
  }

 private:
  double si(double number) const { return number * field.unit.times / field.unit.over; }

  std::optional<double> within(const std::string& word) const {
    return number_in<double>(word, field.bounds);
  }

  template <class Whole>
  std::string whole(Whole* at) const {
    const auto number = given.is_list ? std::nullopt : number_in<Whole>(given.words.front(), field.bounds);
    if (!number) return unexpected();
    *at = *number;
    return "";
  }

  std::string range(Between& at, bool whole) const {
    if (given.words.size() != (given.is_list ? 2 : 1)) return unexpected();
    const auto least = within(given.words.front()), most = within(given.words.back());
    if (!least || !most) return unexpected();
    if (whole && (std::trunc(*least) != *least || std::trunc(*most) != *most)) return unexpected();
    if (*least > *most) {
      return unexpected() + fmt::format("; did you mean [{}, {}]?", given.words.back(), given.words.front());
    }
    at = {si(*least), si(*most)};
    return "";
  }

  std::string unexpected(const std::string& word) const { return tw::unexpected(expectation(field), word); }

  std::string unexpected() const {
    const std::string words = fmt::format("{}", fmt::join(given.words, ", "));
    return given.is_list ? fmt::format("expected {}, found [{}]", expectation(field), words)
                         : unexpected(words);
  }
};

std::string key_of(const ScenarioField& field) {
  switch (field.section) {
    case top:
      return std::string(field.name);
    case fault:
      return fmt::format("faults.NAME.{}", field.name);
    case workload:
      return fmt::format("workload.{}", field.name);
    case site:
    case link:
      return fmt::format("{}[].{}", name_of(field.section), field.name);
  }
  TW_CHECK(false);
}

}  // namespace

std::string_view name_of(ScenarioSection section) {
  switch (section) {
    case top:
      return "";
    case site:
      return "sites";
    case link:
      return "links";
    case workload:
      return "workload";
    case fault:
      return "faults";
  }
  TW_CHECK(false);
}

const ScenarioField* find_scenario_field(ScenarioSection section, std::string_view name) {
  const auto found = std::find_if(std::begin(kFields), std::end(kFields), [&](const ScenarioField& field) {
    return field.section == section && field.name == name;
  });
  return found == std::end(kFields) ? nullptr : &*found;
}

std::string expectation(const ScenarioField& field) {
  ScenarioParts defaults;
  return std::visit(Expectation{field.bounds}, field.place(defaults));
}

std::string assign(const ScenarioField& field, const GivenWords& given, ScenarioParts& parts) {
  return std::visit(Assignment{field, given}, field.place(parts));
}

std::string unknown_scenario_key(ScenarioSection section, std::string_view name) {
  std::vector<KnownKey> known;
  if (section == top)
    known = {{"sites", "sites"}, {"links", "links"}, {"workload", "workload"}, {"faults", "faults"}};
  for (const ScenarioField& field : kFields) {
    const bool here = field.section == section;
    known.push_back({std::string(field.name), here ? std::string(field.name) : key_of(field), here});
  }
  return unknown_key(name, known);
}

std::string unknown_fault(std::string_view name) {
  std::vector<std::string> known;
  for (const FaultName& row : fault_names()) known.emplace_back(row.name);
  const std::string meant = did_you_mean(name, known);
  return "unknown fault" + (meant.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : meant);
}

std::string_view meaning_of(FaultKind kind) {
  for (const FaultMeaning& row : kMeanings) {
    if (row.kind == kind) return row.meaning;
  }
  TW_CHECK(false);
}

std::string scenario_reference() {
  std::vector<FieldRow> rows;
  ScenarioParts defaults;
  for (const ScenarioField& field : kFields)
    rows.push_back({key_of(field), expectation(field), std::visit(Written{field.unit}, field.place(defaults)),
                    field.meaning});
  std::string text = reference_of(rows);
  text += "\n| fault | what happens |\n|---|---|\n";
  for (const FaultName& row : fault_names()) {
    text += fmt::format("| `{}` | {} |\n", row.name, meaning_of(row.kind));
  }
  return text;
}

}  // namespace tw::sim
