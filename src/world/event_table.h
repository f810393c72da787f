// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "world/events.h"

/// Meaning of each measurement and fact of an event, by phase; docs/events.md lists the same.
namespace tw::world {

struct Measurement {
  Phase phase{};
  std::string_view name;
  std::string_view meaning;
};

/// Prefix of a site's name in traffic: bytes sent to the site.
inline constexpr std::string_view kSentTo = "to:";
/// Prefixes of a store's name (world::StoreUses) in traffic: bytes read from the store, and requests for
/// them; bytes written into it, and requests to write or list.
inline constexpr std::string_view kReadFrom = "from:", kAskedOf = "asked:";
inline constexpr std::string_view kWrittenTo = "into:", kWrote = "wrote:";

/// Before the id of a peer, in commit: Mbit/s to it, where that is less than the bandwidth of both ends
/// allows.
inline constexpr std::string_view kSlowTo = "slow:";

/// Before the id of a contributor, in commit: the samples that the mean has from it.
inline constexpr std::string_view kSamplesOf = "samples:";

inline constexpr auto kMeasurements = std::to_array<Measurement>({
    {Phase::probe, "up_mbit_s", "the line of this peer, outwards; 0: not long enough to tell"},
    {Phase::probe, "down_mbit_s", "the same, inwards"},
    {Phase::call, "calc_s", "since the round began here"},
    {Phase::call, "members", "peers that get the mean"},
    {Phase::call, "contributions", "gradient sums in it"},
    {Phase::call, "ballot", "of the leader"},
    {Phase::call, "version", "of its plan"},
    {Phase::call, "bound_s", "leader: least time of this averaging by the lines that are known"},
    {Phase::call, "cpu_s", "of the process until now"},
    {Phase::call, "kernel_s", "the kernel's part of it"},
    {Phase::call, "peak_memory", "resident, bytes"},
    {Phase::call, "gpu_busy", "its GPU: share of the time since the last call or commit"},
    {Phase::call, "gpu_memory", "in use on it, by all processes, bytes"},
    {Phase::call, "gpu_memory_total", "that it has, bytes"},
    {Phase::call, "bytes_sent", "by the process until now"},
    {Phase::call, "bytes_received", "by the process until now"},
    {Phase::call, "queued_s", "until now, of its most hindered thread: ready to run and without a processor"},
    {Phase::call, "disk_s", "until now, writing the event log"},
    {Phase::scatter, "since_call_s", ""},
    {Phase::gather, "since_call_s", ""},
    {Phase::commit, "samples", "own ones in the mean"},
    {Phase::commit, "samples_total", "of the run"},
    {Phase::commit, "majority_samples", "those of its history that a majority decided"},
    {Phase::commit, kSamplesOf, "their numbers in the run, as 0-15,64-79, by contributor"},
    {Phase::commit, "parent", "digest of the record before"},
    {Phase::commit, "carried", "samples of the batch that the round before left over"},
    {Phase::commit, "members", "of the record"},
    {Phase::commit, "batch", "with target_batch_size auto: samples that the round has in all"},
    {Phase::commit, "next_batch", "the same of the next round, chosen from what follows"},
    {Phase::commit, "averaging_s", "measured by the leader: averaging of a round; 0: not known"},
    {Phase::commit, "samples_per_s", "the same: speed of all members; 0: not known"},
    {Phase::commit, "at_once", "the same: samples that they compute at once"},
    {Phase::commit, "calc_s", "until own work was done and the plan was here"},
    {Phase::commit, "comm_s", "from then on"},
    {Phase::commit, "hidden_s",
     "with overlap: the part of comm_s in which this peer computed for the next round"},
    {Phase::commit, "last", "1: the run ends with it"},
    {Phase::commit, "loss", "mean of the own samples"},
    {Phase::commit, "cpu_s", "of the process until now"},
    {Phase::commit, "kernel_s", "the kernel's part of it"},
    {Phase::commit, "peak_memory", "resident, bytes"},
    {Phase::commit, "gpu_busy", "its GPU: share of the time since the last call or commit"},
    {Phase::commit, "gpu_memory", "in use on it, by all processes, bytes"},
    {Phase::commit, "gpu_memory_total", "that it has, bytes"},
    {Phase::commit, "bytes_sent", "by the process until now"},
    {Phase::commit, "bytes_received", "by the process until now"},
    {Phase::commit, "queued_s",
     "until now, of its most hindered thread: ready to run and without a processor"},
    {Phase::commit, "disk_s", "until now, writing the event log"},
    {Phase::commit, "work_s", "in microbatches of the round"},
    {Phase::commit, "data_s", "of it, waiting for data, as far as the program said so"},
    {Phase::commit, "up_mbit_s", "the line of this peer, outwards, where it is known"},
    {Phase::commit, "down_mbit_s", "the same, inwards"},
    {Phase::commit, kSlowTo, "Mbit/s to this peer, where that is less than both ends allow"},
    {Phase::apply, "took_s", ""},
    {Phase::apply, "record", "digest of the record after which the peer has these parameters"},
    {Phase::wait, "seconds", "so far"},
    {Phase::wait, "segments", "of the share that others reduce"},
    {Phase::wait, "done", "of what can be counted"},
    {Phase::wait, "total", "of what can be counted"},
    {Phase::lead, "ballot", "under which it leads"},
    {Phase::handover, "bytes", "of the sums"},
    {Phase::handover, "took_s", "from the order to the release"},
    {Phase::handover, "samples", "in the sums"},
    {Phase::handover, "round_left_s", "what the round would have taken with it"},
    {Phase::lost, "silent_s", "since its last sign of life"},
    {Phase::reissue, "microbatches", "given out again"},
    {Phase::reissue, "next_round", "1: in the next one"},
    {Phase::restore, "bytes", "of the state"},
    {Phase::restore, "took_s", ""},
    {Phase::restore, "record", "digest of the record after which the peer has these parameters"},
    {Phase::restore, "parent", "where a history begins anew: digest of the record that it goes on from"},
    {Phase::restore, "offer_s", "of it, until the state is offered"},
    {Phase::restore, "transfer_s", "of it, until the last chunk is here"},
    {Phase::checkpoint, "took_s", ""},
    {Phase::copy, "took_s", ""},
    {Phase::refuse, "count", "refusals that this line stands for"},
    {Phase::start, "microbatch", "samples of one"},
    {Phase::start, "parameters", "values of the model, running statistics included"},
    {Phase::start, "tensors", "of the model, where its program names them"},
    {Phase::start, "state_bytes", "of a checkpoint: the parameters and the optimizer's state"},
    {Phase::start, "insecure", "1: without TLS"},
    {Phase::start, "last_round", "the run ends with it"},
    {Phase::start, "anchor", "1: on a machine that stays"},
    {Phase::start, "usd_per_h", "price of the machine"},
    {Phase::start, "budget_usd", "what the run may cost"},
    {Phase::start, "budget_drains", "1: the run ends when its budget is spent"},
    {Phase::start, "address", "where others reach it, in words"},
    {Phase::start, "checkpoints", "the folder where they are written, or none, in words"},
    {Phase::start, "site", "provider:region:zone, in words"},
    {Phase::start, "hardware", "processor, cores and GPU, in words"},
    {Phase::stop, "bytes_sent", "by the process"},
    {Phase::stop, "bytes_received", "by the process"},
    {Phase::log, "part", "number of the file that begins"},
    {Phase::log, "logged", "lines of all files before it"},
    {Phase::log, "missing", "events that could not be written"},
    {Phase::log, "seconds", "from the first of them on"},
    {Phase::log, "seed", "of the order of samples, which the lines after it have"},
    {Phase::log, "dataset", "samples of an epoch"},
    {Phase::log, "block", "samples that stay side by side in the order"},
    {Phase::notice, "deadline_s", "from now on"},
    {Phase::traffic, kSentTo, "bytes of messages to peers at this site, by the process until now"},
    {Phase::traffic, kReadFrom, "bytes from this store, by the process until now"},
    {Phase::traffic, kAskedOf, "requests to read from this store"},
    {Phase::traffic, kWrittenTo, "bytes into this store, by the process until now"},
    {Phase::traffic, kWrote, "requests to write or list"},
    {Phase::traffic, "up_mbit_s", "the line of this peer, outwards, where it is known"},
    {Phase::traffic, "down_mbit_s", "the same, inwards"},
    {Phase::budget, "usd", "what the run has cost so far"},
    {Phase::budget, "budget_usd", "what it may cost"},
    {Phase::skip, "sample", "its number in the run"},
    {Phase::evaluate, "name", "of what was measured, in words"},
    {Phase::evaluate, "value", "on data that the program does not train on"},
});

inline bool is_described(Phase phase, std::string_view name) {
  return std::ranges::any_of(kMeasurements, [&](const Measurement& known) {
    const bool is_prefix = known.name.ends_with(':') && name.starts_with(known.name);
    return known.phase == phase && (known.name == name || is_prefix);
  });
}

/// True if the table has all measurements and facts of the event.
inline bool is_described(const Event& event) {
  const auto known = [&](const auto& item) { return is_described(event.phase, item.first); };
  return std::ranges::all_of(event.numbers, known) && std::ranges::all_of(event.texts, known);
}

}  // namespace tw::world
