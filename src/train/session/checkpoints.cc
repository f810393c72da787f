// SPDX-License-Identifier: Apache-2.0
#include "train/session/checkpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace tw::train {

namespace {

using Found = Result<sync::FoundCheckpoints>;

const sync::LoadedCheckpoint* newest_of(const Found& found) {
  return found.ok() && found.value().newest ? &*found.value().newest : nullptr;
}

/// Why the folder has nothing to go on from; empty: it holds no checkpoints.
std::string trouble_of(const Found& found) { return found.ok() ? found.value().none : found.error().message; }

/// One line for all folders with troubles, and what to do; nothing where they hold no checkpoints.
Checkpoints::Loaded refused(const Found& own, const Found& copies) {
  std::vector<std::string> troubles;
  std::string remedy;
  for (const Found* found : {&own, &copies}) {
    if (std::string trouble = trouble_of(*found); !trouble.empty()) troubles.push_back(std::move(trouble));
    if (found->ok() && remedy.empty()) remedy = found->value().remedy;
  }
  if (troubles.empty()) return std::optional<sync::LoadedCheckpoint>();
  return Error{fmt::format("{}{}{}", fmt::join(troubles, "; "), remedy.empty() ? "" : ". ", remedy)};
}

/// What the folder has that may be newer than the checkpoint of the other folder, from which the run goes on.
std::vector<std::string> passed_over_in(const Found& found, const std::string& folder,
                                        const sync::LoadedCheckpoint& taken) {
  const Round round = taken.image.record.round;
  const std::string newest = fmt::format("the newest one that can be used is {}", taken.path);
  if (!found.ok()) return {fmt::format("{}: it may hold a newer one; {}", found.error().message, newest)};
  std::vector<sync::UnusableCheckpoint> files = found.value().unusable;
  const bool may_be_newer = std::ranges::any_of(
      files, [&](const sync::UnusableCheckpoint& file) { return file.round >= taken.image.record.round; });
  if (!may_be_newer) return {};
  if (!found.value().none.empty()) return {fmt::format("{}; {}", found.value().none, newest)};
  std::erase_if(files,
                [&](const sync::UnusableCheckpoint& file) { return taken.path.ends_with("/" + file.name); });
  for (sync::UnusableCheckpoint& file : files) file.name = folder + "/" + file.name;
  return sync::passed_over(files, round);
}

}  // namespace

// The newest one alone: those that it overtook while another copy was under way are not copied.
Checkpoints::Copied Checkpoints::copy_newest(const Stores& stores, const Digest& run) {
  auto found = stores.first->load_newest(run);
  // Where one is kept, a save may have removed it for a newer one since the folder was listed.
  if (!found || !found.value()) found = stores.first->load_newest(run);
  TW_TRY(const auto newest, std::move(found));
  if (!newest) return AtTarget{};
  const sync::StateImage& image = newest->image;
  const std::lock_guard turn(stores.second->taking_turns);
  sync::CheckpointStore& copies = stores.second->store;
  TW_TRY(copies.add(image, newest->origin, newest->begun));
  AtTarget there{.record = image.record};
  if (const Status pruned = copies.prune(image.record, newest->origin); !pruned)
    there.stays = fmt::format(
        "copies are made, but old ones cannot be removed, and more than checkpoint.keep stay in {}: {}",
        copies.folder(), pruned.error().message);
  return there;
}

// A copy counts as much as an own one. Where the own ones cannot be used a copy is enough, and the other way
// round; but no newer one is passed over in silence.
Checkpoints::Loaded Checkpoints::load_from(const Stores& stores, const Digest& run) {
  TW_TRY(stores.first->make_folder());
  if (!stores.second) return stores.first->load_newest(run);
  const std::lock_guard turn(stores.second->taking_turns);
  Found own = stores.first->find(run), copies = stores.second->store.find(run);
  const auto *mine = newest_of(own), *copy = newest_of(copies);
  if (mine == nullptr && copy == nullptr) return refused(own, copies);
  const bool takes_copy = mine == nullptr || (copy != nullptr && sync::is_newer(*copy, *mine));
  sync::FoundCheckpoints& from = (takes_copy ? copies : own).value();
  sync::LoadedCheckpoint& taken = *from.newest;
  taken.skipped = sync::passed_over(from.unusable, taken.image.record.round);
  const std::string& other = (takes_copy ? *stores.first : stores.second->store).folder();
  std::ranges::move(passed_over_in(takes_copy ? own : copies, other, taken),
                    std::back_inserter(taken.skipped));
  return std::move(from.newest);
}

Checkpoints::Checkpoints(CheckpointOptions options, const Writer& writer, Surroundings surroundings)
    : options_(std::move(options)),
      surroundings_(std::move(surroundings)),
      saved_at_(surroundings_.clock.now()) {
  if (options_.folder.empty()) return;
  const auto store_in = [&](const std::string& folder) {
    return sync::CheckpointStore(
        surroundings_.files, {folder, static_cast<std::size_t>(options_.keep), writer.unique, writer.words});
  };
  store_ = std::make_shared<sync::CheckpointStore>(store_in(options_.folder));  // owners: this and disk jobs
  if (options_.to.empty()) return;
  copied_ = std::make_shared<sync::CheckpointStore>(store_in(options_.folder));  // owners: this and copies
  copies_ = std::make_shared<Copies>(store_in(options_.to));                     // owners: this and the jobs
  next_copy_ = {.kind = swarm::Wait::Kind::copying, .place = options_.to};
  if (writer.anchor) copy_ = Copy::due;
}

bool Checkpoints::is_due(const wire::Record& record) const {
  if (!are_kept()) return false;
  const bool by_rounds = options_.every != 0 && record.round % options_.every == 0;
  const bool again = history_ == History::failed && surroundings_.clock.now() - saved_at_ >= kRetry;
  const bool waits = history_ == History::taken || history_ == History::owed;
  return by_rounds || record.last || again || waits || is_due_by_time();
}

bool Checkpoints::is_time_for(const wire::Record& record) {
  if (!is_due(record)) return false;
  if (saves_ == 0 || record.last) return true;
  // By time it is due when that one has shown how long it takes.
  if (options_.every != 0 && history_ != History::taken) history_ = History::owed;
  return false;
}

bool Checkpoints::is_due_by_time() const {
  if (options_.every != 0 || options_.interval == Duration{}) return false;
  constexpr int kPause = 50;  // times that of saving: 2 %
  return surroundings_.clock.now() - saved_at_ >= std::max(options_.interval, kPause * took_);
}

void Checkpoints::took_state(const wire::Record& record) {
  if (newest_ >= record.round) history_ = History::taken;
  if (record.restarts < restarts_) origin_ = {};
}

void Checkpoints::resumed(const wire::Record& from) {
  origin_ = digest_of(from);
  restarts_ = from.restarts + 1;
}

bool Checkpoints::copy_is_due() const {
  return copy_ == Copy::due && surroundings_.clock.now() >= copy_from_;
}

bool Checkpoints::asks_for_anchor() {
  const bool asks = copies_ != nullptr && copy_ == Copy::none && !asked_for_anchor_;
  asked_for_anchor_ = asked_for_anchor_ || asks;
  return asks;
}

template <class R>
void Checkpoints::submit(Thread on, swarm::Wait what, std::function<R()> run,
                         std::function<void(R&, Duration)> done) {
  TW_CHECK(are_kept());
  const auto result = std::make_shared<std::optional<R>>();  // owners: both halves of the job
  on.work.submitted(surroundings_.clock.now(), std::move(what));
  on.executor.submit({[run = std::move(run), result] { result->emplace(run()); },
                      [this, &work = on.work, alive = std::weak_ptr<int>(alive_), done = std::move(done),
                       result](Duration took) {
                        if (alive.expired()) return;
                        work.finished(surroundings_.clock.now(), took);
                        done(**result, took);
                        surroundings_.then();
                      }});
}

// owners: the job
void Checkpoints::save(std::shared_ptr<const sync::StateImage> image, Round begun,
                       std::function<void(const Status&, Duration)> done) {
  TW_CHECK(image != nullptr);
  newest_ = image->record.round;
  saved_at_ = surroundings_.clock.now();
  history_ = History::saved;
  ++saves_;
  const swarm::Wait what{
      .kind = swarm::Wait::Kind::saving, .round = image->record.round, .total = image->bytes()};
  const Digest record = digest_of(image->record);
  submit<Status>(
      disk(), what,
      [image = std::move(image), store = store_, origin = origin_, begun] {
        return store->save(*image, origin, begun);
      },
      [this, record, what, done = std::move(done)](const Status& saved, Duration took) {
        --saves_;
        took_ = took;
        if (saved.ok()) saved_ = record;
        if (!saved.ok() && history_ == History::saved) history_ = History::failed;
        if (saved.ok() && copy_ != Copy::none) {
          copy_ = is_copying() ? Copy::overtaken : Copy::due;
          copy_from_ = {};
          next_copy_.round = what.round;
          next_copy_.total = what.total;
        }
        done(saved, took);
      });
}

void Checkpoints::copy(const Digest& run, std::function<void(const Copied&, Duration)> done) {
  TW_CHECK(copy_is_due());
  copy_ = Copy::under_way;
  submit<Copied>(
      copier(), next_copy_, [stores = Stores(copied_, copies_), run] { return copy_newest(stores, run); },
      [this, done = std::move(done)](Copied& copied, Duration took) {
        if (copied.ok() && std::exchange(old_copies_stay_, !copied.value().stays.empty()))
          copied.value().stays.clear();
        const bool again = copy_ == Copy::overtaken;
        copy_ = again || !copied.ok() ? Copy::due : Copy::idle;
        if (!copied.ok() && !again) copy_from_ = surroundings_.clock.now() + kRetry;
        done(copied, took);
      });
}

void Checkpoints::load(const Digest& run, std::function<void(Loaded&)> done) {
  submit<Loaded>(
      disk(), {.kind = swarm::Wait::Kind::loading},
      [stores = Stores(store_, copies_), run] { return load_from(stores, run); },
      [this, done = std::move(done)](Loaded& loaded, Duration) {
        if (loaded.ok() && loaded.value()) newest_ = loaded.value()->image.record.round;
        done(loaded);
      });
}

void Checkpoints::set_aside(const Digest& run, std::function<void(const Status&)> done) {
  submit<Status>(
      disk(), {.kind = swarm::Wait::Kind::loading},
      [stores = Stores(store_, copies_), run] {
        Status moved = stores.first->set_aside(run);
        if (!moved || !stores.second) return moved;
        const std::lock_guard turn(stores.second->taking_turns);
        return stores.second->store.set_aside(run);
      },
      [done = std::move(done)](const Status& moved, Duration) { done(moved); });
}

}  // namespace tw::train
