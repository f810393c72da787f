// SPDX-License-Identifier: Apache-2.0
#include "train/session/checkpoints.h"

#include <utility>

#include "base/check.h"

namespace tw::train {

namespace {

// owners: the jobs
using Stores = std::pair<std::shared_ptr<sync::CheckpointStore>, std::shared_ptr<sync::CheckpointStore>>;

Checkpoints::Copied copy_newest(const Stores& stores, const Digest& run) {
  const auto newest = stores.first->load_newest(run);
  if (!newest) return newest.error();
  if (!newest.value()) return std::optional<Round>();
  const sync::StateImage& image = newest.value()->image;
  if (const Status saved = stores.second->save(image); !saved) return saved.error();
  return std::optional(image.record.round);
}

Checkpoints::Loaded load_from(const Stores& stores, const Digest& run) {
  if (Status made = stores.first->make_folder(); !made) return made.error();
  auto own = stores.first->load_newest(run);
  const bool none = own.ok() && !own.value();
  return none && stores.second ? stores.second->load_newest(run) : std::move(own);
}

}  // namespace

Checkpoints::Checkpoints(CheckpointOptions options, const Writer& writer, Surroundings surroundings)
    : options_(std::move(options)), surroundings_(std::move(surroundings)) {
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
  return are_kept() && ((options_.every != 0 && record.round % options_.every == 0) || record.last);
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
void Checkpoints::save(std::shared_ptr<const sync::StateImage> image,
                       std::function<void(const Status&, Duration)> done) {
  TW_CHECK(image != nullptr);
  const swarm::Wait what{
      .kind = swarm::Wait::Kind::saving, .round = image->record.round, .total = image->bytes()};
  submit<Status>(
      what, [image = std::move(image), store = store_] { return store->save(*image); },
      [this, done = std::move(done)](const Status& saved, Duration took) {
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
        if (!copied.ok()) copy_from_ = surroundings_.clock.now() + kRetryCopy;
        done(copied, took);
      });
}

void Checkpoints::load(const Digest& run, std::function<void(Loaded&)> done) {
  submit<Loaded>(
      {.kind = swarm::Wait::Kind::loading},
      [stores = Stores(store_, copies_), run] { return load_from(stores, run); },
      [done = std::move(done)](Loaded& loaded, Duration) { done(loaded); });
}

}  // namespace tw::train
