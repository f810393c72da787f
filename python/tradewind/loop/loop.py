# SPDX-License-Identifier: Apache-2.0
"""The work of a started run at each batch and step(): counting samples, handing gradients in. Thread: the run's."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Union

import torch

from ..engine.peer import DataOrder, Order, Work
from ..errors import MisuseError, warn
from ..model.advice import Advice, NoGradients, Sizes, SumLosses, about_swaps, number_of_loss, with_the_runs
from ..model.trained import Trained
from .counts import NO_BATCH, NO_SAMPLES, BatchCount, count_of, known_samples, said_samples, why_fewer
from .driver import Driver, applied_samples

Loss = Union[torch.Tensor, float]
Closure = Callable[[], Loss]

# After so many steps the share of samples that were lost is known.
_STEPS_OF_A_SHARE = 16
# So many steps after the end are more than what is left of most epochs of a small loop.
_STEPS_AFTER_END = 100


def computed(closure: Closure) -> Loss:
    """Its loss. As in torch, it is called with gradients."""
    with torch.enable_grad():
        return closure()


class StepsAfterEnd:
    """Counts calls of step() after the end, which train nothing, and says once that a loop goes on and on."""

    def __init__(self) -> None:
        self._steps = 0

    def step(self, closure: Optional[Closure]) -> Any:
        """As torch's: the loss of the closure; without one whether a round was applied."""
        self._steps += 1
        if self._steps == _STEPS_AFTER_END:
            warn(
                f"the run is over for this peer, and the loop has called step() {self._steps} times since, which trains"
                " nothing: end it when run.finished is true. In a library end it by a callback that asks so, or use"
                " tradewind.transformers.Trainer or tradewind.lightning.Strategy."
            )
        return False if closure is None else computed(closure)


class Loop:
    """Between wait() and step() the parameters are those of one round; they change inside step() alone."""

    def __init__(
        self, driver: Driver, trained: Trained, batch_size: Optional[int], ended: Callable[[], None]
    ) -> None:
        """batch_size: samples of a step if nothing else tells. ended: called once, when the run is over."""
        self.driver = driver
        counted = ("steps", "inner_steps", "surplus", "dropped", "skipped", "staleness")
        self.counters: Dict[str, int] = dict.fromkeys(counted, 0)
        self._trained = trained
        self._batch_size = batch_size
        self._ended = ended
        self._sum_losses = SumLosses()
        self._no_gradients = NoGradients([entry.tensor for entry in trained.layout.parameters])
        self._count = BatchCount((entry.tensor for entry in trained.layout.parameters), trained.infinite)
        # Samples of the shard's batch in hand; 0: handed in; None: no shard.
        self._sharded: Optional[int] = None
        self._sharded_of: Optional[Order] = None
        self.advice = Advice()
        self._seen = 0  # updates and loads when the loop last got the parameters
        self._said_fewer = self._unmade = self._is_over = False
        self._last = 0  # samples of the last batch; 0: not known
        self._added = 0  # samples of the gradients that were added, surplus and all

    @property
    def finished(self) -> bool:
        """Whether the run is over for this peer."""
        return self.driver.finished

    @property
    def round(self) -> int:
        """The round that the model's parameters are of."""
        return self._trained.begun.round + self._trained.round

    def counted_on(self, view: Dict[str, Any]) -> Dict[str, Any]:
        """A view of the engine with the rounds and samples of the run before, if this one goes on from it; applied: the
        samples in the rounds that the model has.
        """
        begun, round = self._trained.begun, self._trained.round
        if "samples" in view:
            view.setdefault("applied", applied_samples(view, round))
        view.pop("totals", None)
        of_both = (("round", begun.round), ("rounds", begun.round))
        for key, more in (*of_both, ("samples", begun.samples), ("applied", begun.samples)):
            if more and view.get(key) is not None:
                view[key] += more
        return view

    def wait(self) -> None:
        """Until an order is in hand, or the run is over."""
        self.driver.wait()
        self._seen = self._trained.updates + self._trained.loads
        self._look_at_end()
        if not self.finished:
            sizes = Sizes(self.driver.at_once, self._sharded is not None, self._lost())
            self.advice.look(self.driver.engine.view, sizes)

    def finish(self) -> None:
        """Until the run is over for this peer, after driver.leave()."""
        self.driver.finish()
        self._look_at_end()

    def _look_at_end(self) -> None:
        """At the end the model gets the run's parameters once: what is loaded after it stays."""
        if self.finished and not self._is_over:
            self._is_over = True
            self._trained.settle()
            self._ended()

    def _lost(self) -> float:
        """Which share of the samples were beyond their round; 0 before many steps."""
        is_known = self._added > 0 and self.counters["steps"] >= _STEPS_OF_A_SHARE
        return self.counters["surplus"] / self._added if is_known else 0.0

    def _is_current(self) -> bool:
        """Has an order in hand (or the end); whether the parameters are those that the loop last got."""
        seen = self._seen
        if self.driver.order is None:
            self.wait()
        return seen == self._seen

    def _is_wanted(self) -> bool:
        """Whether the gradient in hand is of these parameters and, with a shard, of these samples."""
        current = self._is_current()
        return current and self._is_of_order()

    def _is_of_order(self) -> bool:
        """Whether the order in hand is one for the samples in hand: with a shard, for these."""
        order, mine = self.driver.order, self._sharded_of
        if order is None or not self._sharded:
            return order is not None
        same = mine is not None and (mine.round, mine.first) == (order.round, order.first)
        return same and self._sharded <= order.samples

    # Batches.

    def taken(self, batch: Any, samples: Union[int, str, None]) -> None:
        """The loop gets a batch of a loader of its own. samples: of it, if known, or why they are not."""
        self._void_skipped()
        found = count_of(batch) if samples is None else samples
        self._last = found if isinstance(found, int) else 0
        if self._count.take(found):
            self._void()
        self.advice.of_no_step(self._count, self.driver.engine.view, self._trained.check)

    def look(self, batch: Any, made_of: int) -> None:
        """Says once that a collate_fn may leave samples out."""
        self._last = made_of
        self._unmade = batch is None  # told by step(), as a loop may skip() it
        if not self._unmade:
            self._say_fewer(batch, made_of)

    def _say_fewer(self, batch: Any, made_of: int) -> None:
        found = None if self._said_fewer else why_fewer(batch, made_of)
        if found is not None:
            self._said_fewer = True
            own = "" if self._sharded is not None else ", or say step(samples=...)"
            warn(
                f"{found}. If it left samples out, they count with the gradient of the others: leave them out of the"
                f" data set{own}."
            )

    def next_indices(self, data: DataOrder, batch_size: int) -> List[int]:
        """Indices of the shard's next batch, at most batch_size; none: the run is over."""
        self._void_skipped()
        if self._sharded:
            self._give_back_void()
        self._is_current()
        order = self.driver.order
        if order is None:
            return []
        samples = min(batch_size, order.samples)
        indices = self._indices(data, samples)
        if not indices:
            return []
        self.driver.expect(batch_size)
        self._sharded, self._sharded_of = len(indices), self.driver.order
        self._count.take(len(indices))
        return indices

    def part_taken(self, taken: int, filled: int) -> None:
        """The loop gets a part of the shard's batch; taken: samples so far. filled: further ones in this part,
        which do not count.
        """
        self._sharded = taken
        self.counters["surplus"] += filled

    def ahead(self, data: DataOrder, most: int) -> List[int]:
        """Indices of the batches after the shard's batch in hand, as far as known, at most `most`."""
        if not most or not self._sharded or self.driver.order is None:
            return []
        return self.driver.ahead(data, self._sharded, most)

    def _indices(self, data: DataOrder, samples: int) -> List[int]:
        try:
            return self.driver.samples(data, samples)
        except MisuseError:
            # The order was given to others while the loop was away; the next one is as good.
            self.wait()
            order = self.driver.order
            if order is None:
                return []
            return self.driver.samples(data, min(samples, order.samples))

    def _give_back_void(self) -> None:
        """A GradScaler that finds infinities calls no step(): its samples go to others. MisuseError: it was
        no such.
        """
        if self._trained.infinite() is None:
            order = self.driver.order
            where = f" from sample {order.first} on, of round {order.round}," if order else ""
            raise MisuseError(
                f"a batch of {self._sharded} samples{where} was not handed in: {with_the_runs(self._trained.check())}"
                " after it, or run.skip(); for several batches a step say run.shard(..., accumulate=)."
            )
        self._void()

    def zeroed(self) -> None:
        """zero_grad() is about to come."""
        self._void_skipped()
        if self._count.zeroed():
            self._void()

    def offered(self) -> None:
        """A GradScaler has the gradient in hand, and calls step() unless it found infinities."""
        self._count.offer()

    def _void_skipped(self) -> None:
        """Whoever zeroes the gradients: what a GradScaler did not step with counts for nothing."""
        if self._count.is_offered:
            self._count.stepped()
            self._void()

    def _void(self) -> None:
        """Gradients were not finite, and no step() came: nothing of them counts."""
        self.counters["skipped"] += 1
        self._trained.undo_forward()
        if self._sharded:
            self._sharded = 0
            self._count.stepped()
            if self.driver.order is not None:
                self.driver.drop()
                self.driver.order = None

    def give_back_unused(self) -> None:
        """The order in hand goes to others, unless a batch of it may be in work."""
        self._void_skipped()
        if self.driver.order is not None and not self._sharded and not self._count.has_any:
            self.driver.drop()
            self.driver.order = None

    def barrier(self) -> None:
        """run.barrier() of a run that goes on."""
        self._void_skipped()
        if self._sharded or self._count.samples:
            raise MisuseError("run.barrier() with a batch in hand: call it after step().")
        self.driver.barrier()
        self._seen = self._trained.updates + self._trained.loads
        self._look_at_end()

    def skip(self) -> None:
        """Gives up what was taken since the last step()."""
        self._count.stepped()
        self.counters["skipped"] += 1
        self._trained.undo_forward()
        if self._sharded:
            samples, wanted = self._sharded, self._is_wanted()
            self._sharded = 0
            if wanted:
                if self.driver.engine.done(self._trained.zero_gradients(), Work(0.0, samples, samples, 0.0)):
                    self._trained.skipped(samples)
                self.wait()

    # Steps.

    def step(self, closure: Optional[Closure], samples: Optional[int], loss: Optional[Loss]) -> Any:
        """Optimizer.step() of a started run."""
        self._count.is_offered = False
        if self._unmade:
            self._say_fewer(None, self._last)
        if closure is None:
            had = self.samples_in_hand(samples)
            return self._hand_in(had, loss) if self._is_wanted() else self.discard()
        counts = self._is_wanted() or not (self.finished or self._sharded)
        found = computed(closure)
        if counts:
            self._hand_in(self.samples_in_hand(samples), found)
        else:
            self.discard()
        return found

    def samples_in_hand(self, samples: Optional[int]) -> int:
        """Samples of the gradient in p.grad. MisuseError: unknown."""
        if self._sharded is None:
            if samples is None and self._count.unknown and not self._batch_size:
                raise MisuseError(self._count.unknown)
            if samples is None and self._count.is_empty:
                raise MisuseError(NO_SAMPLES)
            if samples is None and self._count.had_any and not (self._count.has_any or self._batch_size):
                raise MisuseError(NO_BATCH)
            return known_samples(samples, self._count.samples, self._batch_size)
        if self._sharded == 0:
            raise MisuseError(
                "step() without a batch: the last one was handed in; take the next from run.shard()."
            )
        if samples is not None and said_samples(samples) != self._sharded:
            raise MisuseError(
                f"step(samples={samples}): the batch of run.shard() in hand has {self._sharded}."
            )
        return self._sharded

    def _hand_in(self, had: int, loss: Optional[Loss]) -> bool:
        trained = self._trained
        changed = trained.check()
        if changed is not None:
            warn(
                f"{changed} was changed outside of step(): the other peers do not know, so this one may have to take"
                " their state. Load weights before run.start(), or change them in after_round= of"
                f" run.extra_state(), on every peer alike.{about_swaps(trained.optimizer)}"
            )
        self._sum_losses.look(loss, had, self._last)
        self._no_gradients.look()
        told = number_of_loss(loss)
        updates, begun = trained.updates, trained.updates + trained.loads
        if self.driver.order is not None:
            self.counters["staleness"] = self.driver.order.round - 1 - trained.round
        try:
            verdict = self.driver.done(
                trained, had, told, lambda: trained.updates + trained.loads == begun and self._is_of_order()
            )
        except MisuseError:
            trained.refuse_infinite()
            raise
        if loss is not None and not math.isfinite(told):
            self.advice.of_no_loss(told, self.round + 1)
        if verdict.added:
            self._added += verdict.had
            self.counters["surplus"] += verdict.had - verdict.counted
            self.counters["inner_steps"] += trained.steps_here
        else:
            self.counters["dropped"] += 1
        self._stepped()
        self.wait()
        return trained.updates > updates

    def discard(self) -> bool:
        """The gradient in hand is that of other parameters than the run has now."""
        self.counters["dropped"] += 1
        self._stepped()
        return False

    def _stepped(self) -> None:
        self.counters["steps"] += 1
        self._trained.undo_forward()
        self._count.stepped()
        if self._sharded is not None:
            self._sharded = 0
