// SPDX-License-Identifier: Apache-2.0
#include "bind/tradewind.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/text/printable.h"
#include "bind/boundary.h"
#include "bind/peer_thread.h"
#include "bind/settings.h"
#include "data/sample_order.h"
#include "host/system/allocation.h"
#include "host/system/signal_tap.h"
#include "host/system/standard_streams.h"
#include "host/tcp/fork_guard.h"
#include "train/run/run_names.h"

using namespace tw;
using namespace tw::bind;

/// A vector that the program looks at, as long as either of them needs it.
struct tw_memory {
  std::shared_ptr<train::TrainState> state;  // owners: the peer, and these
};

struct tw_peer {
  CallerModel model;
  Callbacks callbacks{nullptr};
  Settings settings;
  std::unique_ptr<PeerThread> thread{};
  std::uint64_t barrier = 0;  ///< number of the one at which it stands; 0: at none
  std::thread::id compute{};  ///< the program's thread, from tw_start on
  RangeSet in_hand{};         ///< samples of the order that tw_next told of; empty: none
  RangeSet ahead{};           ///< samples that will follow them, as far as known
  std::optional<data::SampleOrder> samples{};
  bool has_several_datasets = false;
  double data_s = 0;  ///< tw_waited since the last tw_done

  std::size_t work_threads() const { return threads_for(model.parameters(), settings.threads); }
};

namespace {

/// A text of a message has 4096 at most (wire/limits.h).
constexpr std::size_t kMostSettingsBytes = 4000;
constexpr std::size_t kMostNameBytes = 64;

/// In a child that was forked beside open peers nothing of the engine runs.
bool forked = false;                  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<std::size_t> peers_open;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

template <class Call>
int guarded(const Call& call) {
  if (forked) return misuse("this process was forked from one that takes part in a run; only that one may");
  return without_throwing(call);
}

/// Why a call of any thread cannot be served; empty when it can.
std::string not_started(const tw_peer* peer) {
  if (peer == nullptr) return "no peer";
  return peer->thread ? "" : "the peer has not been started (tw_start)";
}

/// The same for a call of the compute thread.
std::string not_ready(const tw_peer* peer) {
  if (std::string why = not_started(peer); !why.empty()) return why;
  if (peer->compute != std::this_thread::get_id())
    return "called from another thread than the one that started the peer";
  return {};
}

/// The engine has stopped.
int ended(const tw_peer& peer) {
  if (const std::string why = peer.thread->executor().failure(); !why.empty()) {
    failed(why);
    return why == CallbackFailed().what() ? TW_CALLBACK : TW_FAILED;
  }
  const View view = peer.thread->view();
  if (view.failure.empty()) return TW_FINISHED;
  return failed(view.failure);
}

int next(tw_peer& peer, std::uint32_t limit_ms, tw_order& order) {
  using News = host::CallerExecutor::News;
  const News news = peer.thread->executor().work_until_gradient(std::chrono::milliseconds(limit_ms));
  peer.thread->say_news();
  peer.in_hand = {};
  if (news == News::nothing) return TW_TIMEOUT;
  if (news == News::gradient) {
    const swarm::WorkItem item = peer.thread->learner().item();
    peer.in_hand = item.samples;
    peer.ahead = item.ahead;
    order = {item.round, item.samples.count(), item.samples.ranges().front().first};
    return TW_GRADIENT;
  }
  return ended(peer);
}

std::string text_of_dataset(std::uint64_t size, std::uint64_t block) {
  return block > 1 ? fmt::format("{} samples in blocks of {}", size, block) : fmt::format("{} samples", size);
}

/// Why the samples of two data sets in one run are not each once an epoch.
std::string other_dataset(const data::SampleOrder& before, const tw_dataset& data) {
  return fmt::format(
      "a data set of {}, while the samples so far were of one of {}: in the epoch under way samples may come "
      "twice or not at all; with steps that alternate between the two, in every epoch. Make one data set of "
      "them (ConcatDataset, StackDataset, or a sampler that chooses), or use run.batches(loader)",
      text_of_dataset(data.size, data.block), text_of_dataset(before.dataset_size(), before.block()));
}

/// The order in which the data set is gone through; `begun` changes with the state that a peer takes.
void choose_order(tw_peer& peer, const tw_dataset& data) {
  const data::SampleOrder order(peer.settings.run.seed, data.size, data.block, data.begun);
  const std::optional<data::SampleOrder> before = std::exchange(peer.samples, order);
  if (before == order) return;
  peer.thread->tell_order(order);
  const bool is_other = before && (before->dataset_size() != data.size || before->block() != data.block);
  if (is_other && !std::exchange(peer.has_several_datasets, true))
    peer.thread->warn(other_dataset(*before, data));
}

/// Which samples of the data set these samples of the run are. After choose_order().
void write_indices(const tw_peer& peer, const RangeSet& samples, std::int64_t* indices) {
  for (const Range& range : samples.ranges()) {
    for (std::uint64_t s = range.first; s < range.first + range.count; ++s)
      *indices++ = static_cast<std::int64_t>(peer.samples->index_of(s));
  }
}

/// The error in what is said of a data set; empty: none.
std::string wrong_in(const tw_dataset* data) {
  constexpr std::uint64_t kMost = data::SampleOrder::kLargest;
  if (data == nullptr) return "a null pointer";
  if (data->size < 1 || data->size > kMost)
    return fmt::format("a data set of {} samples, expected 1 to {}", data->size, kMost);
  if (data->block < 1 || data->block > data->size)
    return fmt::format("blocks of {} samples, expected 1 to {}", data->block, data->size);
  if (data->begun > kMost)
    return fmt::format("a run that goes on from {} samples, expected 0 to {}", data->begun, kMost);
  return {};
}

int hand_in(tw_peer& peer, const HandIn& handed) {
  peer.thread->work().hand_in(handed);
  peer.in_hand = {};
  return peer.thread->executor().gradient_ready() ? TW_OK : TW_STALE;
}

int barrier(tw_peer& peer, std::uint32_t limit_ms) {
  using News = host::CallerExecutor::News;
  constexpr std::uint32_t kSlice_ms = 10;
  if (peer.barrier == 0) {
    if (!peer.in_hand.empty()) hand_in(peer, {});
    peer.barrier = peer.thread->view().barriers + 1;
    peer.thread->arrive_at_barrier();
  }
  for (std::uint32_t spent_ms = 0;; spent_ms += kSlice_ms) {
    const News news = peer.thread->executor().work_until_gradient(std::chrono::milliseconds(kSlice_ms));
    peer.thread->say_news();
    if (news == News::stopped) return ended(peer);
    if (news == News::gradient) hand_in(peer, {});  // an order from before it came here
    if (peer.thread->view().barriers >= peer.barrier) {
      peer.barrier = 0;
      return TW_OK;
    }
    if (spent_ms >= limit_ms) return TW_TIMEOUT;
  }
}

/// So that others get this peer's state while its program is busy.
int written_out(train::TrainState& state) {
  try {
    state.collect();
    state.write_out();
    return TW_OK;
  } catch (const CallbackFailed& asked) {
    failed(asked.what());
    return TW_CALLBACK;
  }
}

std::string not_a_notice(int signal) {
  return fmt::format("signal {}: expected SIGINT, SIGTERM, SIGHUP, SIGUSR1 or SIGUSR2", signal);
}

int start(tw_peer& peer, std::span<const tw_tensor> initial) {
  if (peer.thread) return misuse("the peer has been started already");
  if (const Status fits = check_tensors(peer.model, initial); !fits) return misuse(fits.error().message);
  if (const auto bad = first_not_finite(initial, peer.work_threads()); bad)
    return misuse(fmt::format("the initial value of tensor {} is not finite", *bad));
  auto links = peer::read_links(peer.settings.links, peer::Spelling::python);
  if (!links) return misuse(links.error().message);
  links.value().session.run = peer.settings.run;
  links.value().session.when_complete = train::WhenComplete::takes_end;
  links.value().session.averaging.threads = peer.settings.threads;
  links.value().gpu = peer.settings.gpu;
  links.value().gpu_uuid = peer.settings.gpu_uuid;
  std::ranges::copy(peer.settings.warnings, std::back_inserter(links.value().warnings));
  tw::host::keep_freed_memory();
  peer::look_at_past(links.value(), peer.model.parameters());
  peer::look_for_peers(links.value(), peer.model.parameters());
  peer::place_checkpoints(links.value(), peer.model.parameters());
  std::vector<float> parameters(peer.model.parameters());
  add_tensors(initial, 1, parameters);
  auto thread =
      std::make_unique<PeerThread>(PeerThread::Plan{peer.model, peer.callbacks, std::move(links).value(),
                                                    peer.settings.grain, peer.settings.begun},
                                   std::move(parameters));
  if (const auto address = thread->started(); !address) {
    failed(address.error().message);
    return thread->view().ending == train::Ending::notice ? TW_CONDEMNED : TW_FAILED;
  }
  peer.thread = std::move(thread);
  peer.compute = std::this_thread::get_id();
  return TW_OK;
}

}  // namespace

const char* tw_last_error(void) { return last_error().c_str(); }

uint32_t tw_abi(void) { return TW_ABI; }

const char* tw_version(void) { return TW_VERSION; }

char* tw_settings(const tw_setting* given, size_t count) {
  char* text = nullptr;
  without_throwing([&] {  // in a fork, too: nothing of the engine is needed
    if (given == nullptr && count > 0) return misuse("a null pointer");
    const auto read = read_settings({given, count});
    if (!read) return misuse(read.error().message);
    text = copy_of(to_json(read.value()));
    return int{TW_OK};
  });
  return text;
}

int tw_open(const tw_setting* settings, size_t count, const tw_model* model, const tw_calls* calls,
            tw_peer** peer) {
  return guarded([&] {
    if (model == nullptr || peer == nullptr || (settings == nullptr && count > 0))
      return misuse("a null pointer");
    tw::host::hold_standard_streams();
    auto given = read_model(*model);
    if (!given) return misuse(given.error().message);
    const Callbacks callbacks(calls);
    if (const Status fits = check_update(given.value(), callbacks); !fits)
      return misuse(fits.error().message);
    auto read = read_settings({settings, count});
    if (!read) return misuse(read.error().message);
    if (read.value().run.is_local() && !callbacks.has_contribution())
      return misuse(fmt::format("training.mode {}: it needs tw_calls.contribution",
                                train::name_of(read.value().run.mode.kind)));
    if (read.value().run.mode.fragments_used() > 1 && callbacks.has_update())
      return misuse("training.fragments: expected 1 with tw_calls.update, which gets the mean of all values");
    if (const Status fits = adapt(read.value(), given.value()); !fits) return misuse(fits.error().message);
    *peer = new tw_peer{std::move(given).value(), callbacks, std::move(read).value()};
    ++peers_open;
    tw::host::take_tapped_signals();  // a run before this one was over when they came
    return int{TW_OK};
  });
}

int tw_start(tw_peer* peer, const tw_tensor* initial, size_t count) {
  return guarded([&] {
    if (peer == nullptr || initial == nullptr) return misuse("a null pointer");
    return start(*peer, {initial, count});
  });
}

int tw_next(tw_peer* peer, uint32_t limit_ms, tw_order* order) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (order == nullptr) return misuse("a null pointer");
    return next(*peer, limit_ms, *order);
  });
}

int tw_samples(tw_peer* peer, const tw_dataset* data, int64_t* indices, size_t count) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (const std::string why = wrong_in(data); !why.empty()) return misuse(why);
    if (indices == nullptr) return misuse("a null pointer");
    RangeSet samples = peer->in_hand;
    const RangeSet first = samples.take(count);
    if (count > first.count())
      return misuse(fmt::format("{} samples, the order in hand has {}", count, first.count()));
    choose_order(*peer, *data);
    write_indices(*peer, first, indices);
    return int{TW_OK};
  });
}

int tw_ahead(tw_peer* peer, const tw_dataset* data, int64_t* indices, size_t* count) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (const std::string why = wrong_in(data); !why.empty()) return misuse(why);
    if (indices == nullptr || count == nullptr) return misuse("a null pointer");
    RangeSet samples = peer->in_hand.empty() ? RangeSet() : peer->ahead;
    const RangeSet first = samples.take(*count);
    *count = first.count();
    choose_order(*peer, *data);
    write_indices(*peer, first, indices);
    return int{TW_OK};
  });
}

int tw_fragment(tw_peer* peer, uint64_t round, uint64_t* first, uint64_t* count) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (first == nullptr || count == nullptr) return misuse("a null pointer");
    const average::Fragment& fragment = peer->thread->fragments().of(round);
    *first = fragment.first;
    *count = fragment.geometry.length;
    return int{TW_OK};
  });
}

int tw_done(tw_peer* peer, const tw_gradient* gradient) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (peer->in_hand.empty()) return misuse("no order is in hand (tw_next)");
    if (gradient == nullptr) return misuse("a null pointer");
    const bool later = peer->callbacks.has_contribution();
    if (later != (gradient->gradients == nullptr))
      return misuse(later ? "gradients, while tw_calls.contribution has them" : "a null pointer");
    const std::span<const tw_tensor> given(gradient->gradients, later ? 0 : gradient->gradient_count);
    if (const Status fits = later ? Status(Unit{}) : check_tensors(peer->model, given); !fits)
      return misuse(fits.error().message);
    if (const auto bad = first_not_finite(given, peer->work_threads()); bad)
      return misuse(fmt::format("the gradient of tensor {} is not finite", *bad));
    if (!later && !std::isfinite(static_cast<float>(gradient->weight)))
      return misuse(
          fmt::format("a gradient with the weight {}, expected a finite float32", gradient->weight));
    const std::uint64_t samples = gradient->samples, most = peer->in_hand.count();
    if (samples == 0 || samples > most)
      return misuse(fmt::format("{} samples, expected 1 to {}, which the order has", samples, most));
    const std::string settings = gradient->settings != nullptr ? gradient->settings : "";
    if (settings.size() > kMostSettingsBytes)
      return misuse(
          fmt::format("settings of {} bytes, expected {} at most", settings.size(), kMostSettingsBytes));
    peer->thread->learner().set_grain(std::max(gradient->had, samples));
    train::WorkDone done{samples, samples, gradient->loss_sum};
    done.settings = settings;
    done.data_s = std::exchange(peer->data_s, 0);
    return hand_in(*peer, {given, gradient->weight, std::move(done), peer->work_threads()});
  });
}

int tw_waited(tw_peer* peer, double seconds) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (!(seconds >= 0 && std::isfinite(seconds)))
      return misuse(fmt::format("waited for data for {} s, expected a number of at least 0", seconds));
    peer->data_s += seconds;
    return int{TW_OK};
  });
}

int tw_evaluated(tw_peer* peer, uint64_t round, const char* name, double value) {
  return guarded([&] {
    if (const std::string why = not_started(peer); !why.empty()) return misuse(why);
    const train::SessionView seen = peer->thread->view().session;
    // A run that is complete may have more of them than were asked for now.
    if (round > std::max(seen.rounds, seen.round))
      return misuse(fmt::format("an evaluation after round {}, while the run has {}", round, seen.rounds));
    const std::string what = name != nullptr ? name : "";
    if (what.empty() || what.size() > kMostNameBytes)
      return misuse(fmt::format("an evaluation with a name of {} bytes, expected 1 to {}", what.size(),
                                kMostNameBytes));
    if (!is_printable_line(what))
      return misuse(fmt::format("an evaluation with the name \"{}\", expected plain text in UTF-8",
                                printable_line(what)));
    if (!std::isfinite(value))
      return misuse(fmt::format("the evaluation \"{}\" is {}, expected a finite number", what, value));
    peer->thread->tell_evaluation({round, what, value});
    return int{TW_OK};
  });
}

int tw_begun(tw_peer* peer, uint64_t rounds) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (!peer->thread->is_loading()) return misuse("tw_begun: expected in tw_calls.load alone");
    peer->thread->goes_on_from(rounds);
    return int{TW_OK};
  });
}

int tw_drop(tw_peer* peer) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    if (peer->in_hand.empty()) return misuse("no order is in hand (tw_next)");
    return hand_in(*peer, {});
  });
}

int tw_busy(tw_peer* peer, const char* why) {
  return guarded([&] {
    if (const std::string missing = not_started(peer); !missing.empty()) return misuse(missing);
    train::TrainState& state = *peer->thread->state();
    if (why == nullptr) state.write_again();
    int done = TW_OK;
    if (why != nullptr && peer->compute == std::this_thread::get_id()) done = written_out(state);
    peer->thread->pause(why != nullptr);
    return done;
  });
}

int tw_barrier(tw_peer* peer, uint32_t limit_ms) {
  return guarded([&] {
    if (const std::string why = not_ready(peer); !why.empty()) return misuse(why);
    return barrier(*peer, limit_ms);
  });
}

tw_memory* tw_vector(tw_peer* peer, uint32_t which, float** data, uint64_t* count) {
  tw_memory* memory = nullptr;
  guarded([&] {
    if (const std::string why = not_started(peer); !why.empty()) return misuse(why);
    if (data == nullptr || count == nullptr) return misuse("a null pointer");
    const std::vector<std::span<float>> parts = peer->thread->state()->parts();
    if (which >= parts.size()) return misuse(fmt::format("vector {}: there are {}", which, parts.size()));
    *data = parts[which].data();
    *count = parts[which].size();
    memory = new tw_memory{peer->thread->state()};
    return int{TW_OK};
  });
  return memory;
}

void tw_release(tw_memory* memory) { delete memory; }

char* tw_view(tw_peer* peer) {
  char* text = nullptr;
  guarded([&] {
    if (const std::string why = not_started(peer); !why.empty()) return misuse(why);
    text = copy_of(to_json(peer->thread->view()));
    return int{TW_OK};
  });
  return text;
}

char* tw_events(tw_peer* peer) {
  char* text = nullptr;
  guarded([&] {
    if (const std::string why = not_started(peer); !why.empty()) return misuse(why);
    text = copy_of(peer->thread->take_events());
    return int{TW_OK};
  });
  return text;
}

void tw_free(char* text) { std::free(text); }  // NOLINT: copy_of allocated it

int tw_leave(tw_peer* peer, int at_once) {
  return guarded([&] {
    if (const std::string why = not_started(peer); !why.empty()) return misuse(why);
    if (at_once < 0 || at_once > 3)
      return misuse(fmt::format("tw_leave: at_once is {}, expected 0 to 3", at_once));
    if (at_once >= 2)
      peer->thread->close(at_once == 2);
    else
      peer->thread->leave(at_once != 0);
    return int{TW_OK};
  });
}

int tw_end_run(tw_peer* peer) {
  return guarded([&] {
    if (const std::string why = not_started(peer); !why.empty()) return misuse(why);
    peer->thread->end_run();
    return int{TW_OK};
  });
}

int tw_signal(tw_peer* peer, int signal) {
  return guarded([&] {
    if (const std::string why = not_started(peer); !why.empty()) return misuse(why);
    const std::optional<spot::Signal> notice = notice_of(signal);
    if (!notice) return misuse(not_a_notice(signal));
    if (!tw::host::is_tapped(signal)) peer->thread->take(*notice);
    return int{TW_OK};
  });
}

int tw_heed(tw_peer* peer, int signal) {
  return guarded([&] {
    if (peer == nullptr) return misuse("no peer");
    if (!notice_of(signal)) return misuse(not_a_notice(signal));
    tw::host::tap_signal(signal);
    return int{TW_OK};
  });
}

void tw_close(tw_peer* peer) {
  if (forked || peer == nullptr) return;
  delete peer;
  --peers_open;
}

void tw_after_fork(void) {
  forked = forked || peers_open > 0;
  tw::host::close_guarded_sockets();
}
