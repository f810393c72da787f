// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoints.h"

#include <utility>

#include "base/check.h"

namespace tw::train {

Checkpoints::Checkpoints(CheckpointOptions options, std::string unique, Surroundings surroundings)
    : options_(std::move(options)), surroundings_(std::move(surroundings)) {
  if (options_.folder.empty()) return;
  const sync::CheckpointStore::Options store{options_.folder, static_cast<std::size_t>(options_.keep),
                                             std::move(unique)};
  store_ = std::make_shared<sync::CheckpointStore>(surroundings_.files, store);  // owners: this and disk jobs
}

bool Checkpoints::is_due(const wire::Record& record) const {
  return are_kept() && ((options_.every != 0 && record.round % options_.every == 0) || record.last);
}

template <class R>
void Checkpoints::submit(swarm::Wait what, std::function<R(sync::CheckpointStore&)> run,
                         std::function<void(R&, Duration)> done) {
  TW_CHECK(are_kept());
  const auto result = std::make_shared<std::optional<R>>();  // owners: both halves of the job
  surroundings_.waits.disk().submitted(surroundings_.clock.now(), std::move(what));
  surroundings_.disk.submit(
      {[store = store_, run = std::move(run), result] { result->emplace(run(*store)); },
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
      what, [image = std::move(image)](sync::CheckpointStore& store) { return store.save(*image); },
      [done = std::move(done)](const Status& saved, Duration took) { done(saved, took); });
}

void Checkpoints::load(const Digest& run, std::function<void(Loaded&)> done) {
  submit<Loaded>(
      {.kind = swarm::Wait::Kind::loading},
      [run](sync::CheckpointStore& store) { return store.load_newest(run); },
      [done = std::move(done)](Loaded& loaded, Duration) { done(loaded); });
}

}  // namespace tw::train
