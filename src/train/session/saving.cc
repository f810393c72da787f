// SPDX-License-Identifier: Apache-2.0
#include "train/session/saving.h"

#include <utility>

#include "base/check.h"

namespace tw::train {

Saving::Saving(Core& core, const Doors& doors, std::function<void()> then)
    : core_(core),
      checkpoints_(core.options.run.checkpoint,
                   {to_string(core.options.self), core.facts.words(), core.options.anchor},
                   {core.clock, doors.files, doors.disk, doors.copier, core.waits, std::move(then)}) {}

void Saving::after_round(const wire::Record& record) {
  const bool first = !record.members.empty() && record.members.front().is(core_.self());
  if (first && checkpoints_.is_due(record) && core_.swarm.view().anchors().empty() &&
      checkpoints_.asks_for_anchor())
    core_.events.emit(
        {.round = record.round,
         .why = "checkpoint.to is set, but no peer is an anchor (tw run --role anchor): nothing is copied",
         .fact = event::Copy{.cause = event::Cause::failed}});
  copy();
  if (checkpoints_.is_time_for(record)) save(record);
}

template <class Kind>
void Saving::report(const wire::Record& record, const Status& saved, Duration took) {
  core_.events.emit({.round = record.round,
                     .why = saved.ok() ? "" : saved.error().message,
                     .fact = Kind{.digest = saved.ok() ? to_string(digest_of(record)) : "",
                                  .cause = saved.ok() ? event::Cause::none : event::Cause::failed,
                                  .took_s = to_seconds(took)}});
}

void Saving::save(const wire::Record& record) {
  if (record.last) core_.departure.begin_last_job();
  core_.worker.freeze(record, [this, record](const Learner::Image& image) {
    checkpoints_.save(image, core_.begun, [this, record](const Status& saved, Duration took) {
      report<event::Checkpoint>(record, saved, took);
      copy();
      if (record.last) ++awaits_copy_;
      finish_when_copied();
    });
  });
}

void Saving::copy() {
  if (!checkpoints_.copy_is_due() || others_copy()) return;
  core_.written_before_copy = core_.written_bytes();
  checkpoints_.copy(core_.facts.digest(), [this](const Checkpoints::Copied& copied, Duration took) {
    if (!copied.ok()) {
      report<event::Copy>({.round = core_.round}, copied.error(), took);
    } else if (const auto& [record, stays] = copied.value(); record) {
      report<event::Copy>(*record, Unit{}, took);
      if (!stays.empty()) core_.events.emit({.round = record->round, .why = stays, .fact = event::Warn{}});
    }
    copy();  // of one that was saved meanwhile
    finish_when_copied();
  });
}

/// It has left a run that goes on without it: the end of its process waits for no further copy.
bool Saving::others_copy() const {
  const std::optional<wire::Record>& head = core_.swarm.head();
  return core_.departure.ended() && !leaves_last_ && head && !head->last;
}

/// The checkpoint of the last round is a job until its copy is done or has failed.
void Saving::finish_when_copied() {
  if (checkpoints_.is_copying()) return;
  for (; awaits_copy_ > 0; --awaits_copy_) core_.departure.finish_last_job();
}

/// No member stays. Where all leave at once, the first of them is the last.
bool Saving::is_last_to_leave() const {
  bool before_self = true;
  for (const wire::Member& member : core_.swarm.head()->members) {
    const bool is_self = member.is(core_.self());
    before_self = before_self && !is_self;
    if (is_self || !core_.swarm.view().membership.roster().is_open(member)) continue;
    if (before_self || !core_.swarm.view().membership.stances().of(member.peer).leaving) return false;
  }
  return true;
}

bool Saving::saves_before_it_leaves(const std::string& why) {
  const std::optional<wire::Record>& head = core_.swarm.head();
  TW_CHECK(head);
  leaves_last_ = is_last_to_leave();
  if (!leaves_last_ || !checkpoints_.lacks(*head)) return false;
  core_.departure.begin_last_job();
  core_.worker.freeze(*head, [this, record = *head, why](const Learner::Image& image) {
    checkpoints_.save(image, core_.begun, [this, record, why](const Status& saved, Duration took) {
      report<event::Checkpoint>(record, saved, took);
      copy();  // the process waits for it (WaitReason), the session does not
      core_.departure.finish_last_job();
      core_.departure.end(why);
    });
  });
  return true;
}

}  // namespace tw::train
