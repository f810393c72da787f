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

// owners: the jobs
using Stores = std::pair<std::shared_ptr<sync::CheckpointStore>, std::shared_ptr<sync::CheckpointStore>>;

Checkpoints::Copied copy_newest(const Stores& stores, const Digest& run) {
  TW_TRY(const auto newest, stores.first->load_newest(run));
  if (!newest) return std::optional<wire::Record>();
  const sync::StateImage& image = newest->image;
  TW_TRY(stores.second->save(image, newest->origin, newest->begun));
  return std::optional(image.record);
}

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

// A copy counts as much as an own one. Where the own ones cannot be used a copy is enough, and the other way
// round; but no newer one is passed over in silence.
Checkpoints::Loaded load_from(const Stores& stores, const Digest& run) {
  TW_TRY(stores.first->make_folder());
  if (!stores.second) return stores.first->load_newest(run);
  Found own = stores.first->find(run), copies = stores.second->find(run);
  const auto *mine = newest_of(own), *copy = newest_of(copies);
  if (mine == nullptr && copy == nullptr) return refused(own, copies);
  const bool takes_copy = mine == nullptr || (copy != nullptr && sync::is_newer(*copy, *mine));
  sync::FoundCheckpoints& from = (takes_copy ? copies : own).value();
  sync::LoadedCheckpoint& taken = *from.newest;
  taken.skipped = sync::passed_over(from.unusable, taken.image.record.round);
  const std::string& other = (takes_copy ? stores.first : stores.second)->folder();
  std::ranges::move(passed_over_in(takes_copy ? own : copies, other, taken),
                    std::back_inserter(taken.skipped));
  return std::move(from.newest);
}

}  // namespace

Checkpoints::Checkpoints(CheckpointOptions options, const Writer& writer, Surroundings surroundings)
    : options_(std::move(options)),
      surroundings_(std::move(surroundings)),
      saved_at_(surroundings_.clock.now()) {
  if (options_.folder.empty()) return;
  const auto store_in = [&](const std::string& folder) {
    const sync::CheckpointStore::Options store{folder, static_cast<std::size_t>(options_.keep), writer.unique,
                                               writer.words};
    // owners: this and disk jobs
    return std::make_shared<sync::CheckpointStore>(surroundings_.files, store);
  };
  store_ = store_in(options_.folder);
  if (options_.to.empty()) return;
  copies_ = store_in(options_.to);
  if (writer.anchor) copy_ = Copy::due;
}

bool Checkpoints::is_due(const wire::Record& record) const {
  if (!are_kept()) return false;
  const bool by_rounds = options_.every != 0 && record.round % options_.every == 0;
  const bool again = history_ == History::failed && surroundings_.clock.now() - saved_at_ >= kRetry;
  return by_rounds || record.last || again || history_ == History::taken || is_due_by_time();
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
void Checkpoints::submit(swarm::Wait what, std::function<R()> run, std::function<void(R&, Duration)> done) {
  TW_CHECK(are_kept());
  const auto result = std::make_shared<std::optional<R>>();  // owners: both halves of the job
  surroundings_.waits.disk().submitted(surroundings_.clock.now(), std::move(what));
  surroundings_.disk.submit(
      {[run = std::move(run), result] { result->emplace(run()); },
       [this, alive = std::weak_ptr<int>(alive_), done = std::move(done), result](Duration took) {
         if (alive.expired()) return;
         surroundings_.waits.disk().finished(surroundings_.clock.now(), took);
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
  const swarm::Wait what{
      .kind = swarm::Wait::Kind::saving, .round = image->record.round, .total = image->bytes()};
  const Digest record = digest_of(image->record);
  submit<Status>(
      what,
      [image = std::move(image), store = store_, origin = origin_, begun] {
        return store->save(*image, origin, begun);
      },
      [this, record, done = std::move(done)](const Status& saved, Duration took) {
        took_ = took;
        if (saved.ok()) saved_ = record;
        if (!saved.ok() && history_ == History::saved) history_ = History::failed;
        if (saved.ok() && copy_ != Copy::none) {
          copy_ = Copy::due;
          copy_from_ = {};
        }
        done(saved, took);
      });
}

void Checkpoints::copy(const Digest& run, std::function<void(const Copied&, Duration)> done) {
  TW_CHECK(copy_is_due());
  copy_ = Copy::under_way;
  submit<Copied>(
      {.kind = swarm::Wait::Kind::saving},
      [stores = Stores(store_, copies_), run] { return copy_newest(stores, run); },
      [this, done = std::move(done)](const Copied& copied, Duration took) {
        if (copy_ == Copy::under_way) copy_ = copied.ok() ? Copy::idle : Copy::due;
        if (!copied.ok()) copy_from_ = surroundings_.clock.now() + kRetry;
        done(copied, took);
      });
}

void Checkpoints::load(const Digest& run, std::function<void(Loaded&)> done) {
  submit<Loaded>(
      {.kind = swarm::Wait::Kind::loading},
      [stores = Stores(store_, copies_), run] { return load_from(stores, run); },
      [this, done = std::move(done)](Loaded& loaded, Duration) {
        if (loaded.ok() && loaded.value()) newest_ = loaded.value()->image.record.round;
        done(loaded);
      });
}

void Checkpoints::set_aside(const Digest& run, std::function<void(const Status&)> done) {
  submit<Status>(
      {.kind = swarm::Wait::Kind::loading},
      [stores = Stores(store_, copies_), run] {
        Status moved = stores.first->set_aside(run);
        return moved && stores.second ? stores.second->set_aside(run) : moved;
      },
      [done = std::move(done)](const Status& moved, Duration) { done(moved); });
}

}  // namespace tw::train
