# SPDX-License-Identifier: Apache-2.0
"""What a run gives to its program: an optimizer, and batches of the run's samples (Shard) or of the program's own (Batches); or
the whole loop (fit).
"""

from __future__ import annotations

import contextlib
import numbers
import operator
import sys
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Tuple, TypeVar, Union

import torch

from ..data.samples import (
    CountedBatch,
    Given,
    Samples,
    copied,
    counting,
    has_own_part,
    is_map_style,
    may_give_samples,
    reordered,
    to_device,
    usual_size,
)
from ..errors import MisuseError, described, truth, whole
from ..model.optimizers import ONE_STEP
from .counts import count_of, count_unless_single
from .life import Life
from .loop import Closure, Loss

SAME_SAMPLES = (
    "run.batches(): the run has {peers} peers, and nothing shows that they train on different samples: use"
    " run.shard(loader), or a DataLoader with shuffle=True; if each peer has a part of its own, say"
    " run.batches(loader, distinct=True)."
)

BatchLoss = Callable[[Any, Any], torch.Tensor]
Evaluate = Callable[[Any], Any]
Call = TypeVar("Call", bound=Callable[..., Any])
Accumulate = Union[int, Callable[[], int]]  # batches of a step(), or what is asked for them before each

# Dynamic scaling of float16 losses, as torch's GradScaler has it.
_FIRST_SCALE = 65536.0
_GROWTH_STEPS = 2000


def _untraced(call: Call) -> Call:
    """torch.compile of a function that calls it does not look inside, as with torch's own optimizers (2.1 and later)."""
    leave_out: Any = getattr(torch, "_disable_dynamo", None)
    found: Call = call if leave_out is None else leave_out(call)
    return found


class Optimizer(torch.optim.Optimizer):
    """The user's optimizer, over all peers. param_groups, state and defaults are those of the optimizer
    inside.

    torch's schedulers, GradScaler, Accelerate and Lightning take it for what it is: a torch.optim.Optimizer.
    """

    def __init__(self, life: Life, inner: torch.optim.Optimizer) -> None:
        # Not the base's constructor: it would make groups and state of its own.
        self._life = life
        self._inner = inner

    @_untraced
    def step(  # type: ignore[override]
        self,
        closure: Optional[Closure] = None,
        *,
        samples: Optional[int] = None,
        loss: Optional[Loss] = None,
    ) -> Any:
        """Hands in the gradient in p.grad, the mean over `samples` samples, and waits until the next one is
        wanted.

        samples: what the loop computed since the last step(); not needed with run.shard(), run.batches() or
        batch_size=. loss: their mean loss, for logs. closure: computes loss and gradient, called once.
        Returns whether a round was applied meanwhile, or with a closure its loss. Trains nothing once the run
        is over.
        """
        if closure is not None and not callable(closure):
            raise MisuseError(
                f"step() of {described(closure)}: expected a function that computes the loss; what else it takes has"
                " names, step(samples=32, loss=loss)."
            )
        return self._life.step(closure, samples, loss)

    def add_loss(self, loss: Loss) -> None:
        """A part of the mean loss of the next step(), where a trainer that says no loss= calls that."""
        life = self._life
        life.loss = loss if life.loss is None else life.loss + loss

    def forget_loss(self) -> None:
        """The parts that add_loss() got are of a step() that never came."""
        self._life.loss = None

    @_untraced
    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        """As torch's."""
        self._life.zeroed()
        self._inner.zero_grad(*arguments, **named)

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """False, also where the optimizer inside is fused: a GradScaler unscales the gradients, and calls step()
        unless it found infinities. It asks here just before, in its own step(); others that ask have no gradient.
        """
        if sys._getframe(1).f_code.co_name == "step":
            self._life.offered()
        return False

    @property
    def param_groups(self) -> List[Dict[str, Any]]:  # type: ignore[override]
        """Those of the optimizer inside."""
        groups: List[Dict[str, Any]] = self._inner.param_groups
        return groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """That of the optimizer inside; of SGD, Adam, AdamW and Lamb views of the engine's buffers."""
        return self._inner.state

    @property
    def defaults(self) -> Dict[str, Any]:  # type: ignore[override]
        """Those of the optimizer inside."""
        defaults: Dict[str, Any] = self._inner.defaults
        return defaults

    def state_dict(self) -> Dict[str, Any]:
        """As torch's."""
        state: Dict[str, Any] = self._inner.state_dict()
        return state

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """As torch's, before the start."""
        if self._life.started:
            raise MisuseError(
                "load_state_dict() after the start: the run has the state; load before run.start()."
            )
        self._inner.load_state_dict(state_dict)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """As torch's, before the start."""
        if self._life.started:
            raise MisuseError(
                "add_param_group() after the start: all peers need the same groups before run.start(). Add the"
                " group before; freeze its parameters with requires_grad_(False) after the start, and thaw them"
                " when they shall train."
            )
        self._inner.add_param_group(param_group)

    def __getattr__(self, name: str) -> Any:
        # Hooks and counters that torch's constructor would have made.
        if name in ("_life", "_inner"):
            raise AttributeError(name)
        found = getattr(self._inner, name)
        if name.endswith("_step") and not name.startswith("_") and callable(found):
            raise MisuseError(
                f"{type(self._inner).__name__}.{name}() would move the parameters of this peer alone: a round has one"
                f" gradient and one step(), so an optimizer of several steps cannot be used. {ONE_STEP}"
            )
        return found

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise MisuseError("the optimizer of a run cannot be copied or pickled: copy or save its state_dict().")

    def __repr__(self) -> str:
        return f"tradewind.Optimizer of {self._inner!r}"


class Shard:
    """The result of run.shard(); iterate it once or again, until the run is over."""

    def __init__(self, life: Life, samples: Samples, batch_size: int, accumulate: Accumulate) -> None:
        """accumulate: batches of a step."""
        self._life = life
        self._samples = samples
        self._batch_size = batch_size
        self._accumulate = accumulate

    def __iter__(self) -> Iterator[Any]:
        life, samples = self._life, self._samples
        try:
            while True:
                several = self._accumulate
                count = whole("run.shard(): accumulate()", several()) if callable(several) else several
                found = life.next_indices(samples, self._batch_size * count)
                if not found:
                    samples.close()
                    return
                parts = samples.parts(found, self._batch_size, count)
                ahead = [*sum(parts[1:], []), *samples.order.indices(life.ahead(samples))]
                taken = 0
                for part in parts:
                    with life.fetching():
                        batch = samples.batch(part, ahead)
                    life.look(batch, len(part))
                    counted = min(len(part), len(found) - taken)
                    taken += counted
                    life.part_taken(taken, len(part) - counted)
                    yield batch
                    ahead = ahead[len(part) :]
        finally:
            samples.rest()


def shard_of(life: Life, data: Any, given: Given, accumulate: Accumulate) -> Shard:
    """Shard of a data set or DataLoader. MisuseError: its batch size is not known, or accumulate is no number."""
    several: Accumulate = accumulate if callable(accumulate) else whole("run.shard(): accumulate", accumulate)
    samples = Samples(data, given._replace(usual_batch_size=life.batch_size, seed=life.seed))
    if samples.batch_size is None:
        raise MisuseError(
            "no batch size known: run.shard(dataset, batch_size=...), or a DataLoader that has one."
        )
    life.uses(samples)
    return Shard(life, samples, samples.batch_size, several)


def _fetched(life: Life, source: Any) -> Iterator[Any]:
    """What a loader gives in one epoch. MisuseError: nothing, so a loop over epochs would never end."""
    batches, is_empty = iter(source), True
    while True:
        with life.fetching():
            try:
                batch = next(batches)
            except StopIteration:
                break
        is_empty = False
        yield batch
    if is_empty and not life.finished:
        raise MisuseError(f"run.batches(): the loader has no batch; {_why_empty(source)}.")


def _refuse_no_batches(loader: Any, batch_size: Optional[int]) -> None:
    """MisuseError: what is no loader."""
    if isinstance(loader, type) or not (hasattr(loader, "__iter__") or hasattr(loader, "__getitem__")):
        raise MisuseError(f"run.batches({loader!r:.80}): expected a DataLoader, or another iterable of batches.")
    if is_map_style(loader) and batch_size is None:
        raise MisuseError(
            f"run.batches() of {type(loader).__name__}, a data set: it has samples, no batches. Give"
            " run.batches() a DataLoader of it, or say run.shard(dataset, batch_size=...)."
        )


def _why_empty(loader: Any) -> str:
    size = usual_size(loader)
    samples: Any = getattr(loader, "sampler", None)
    if getattr(loader, "drop_last", False) and size and hasattr(samples, "__len__"):
        return f"it has {len(samples)} samples, and drop_last=True leaves out what is less than batch_size={size}"
    return "a generator can be gone through only once"


class Batches:
    """The result of run.batches(): the loader's batches, counted, epoch after epoch until the run is over.

    A trainer with epochs of its own iterates once(), an epoch each; one that takes batches ahead goes through
    fetched(), and calls take() when it gives one to the program.
    """

    def __init__(self, life: Life, loader: Any, batch_size: Optional[int], distinct: bool) -> None:
        _refuse_no_batches(loader, batch_size)
        self._life = life
        self._loader = loader
        self._batch_size = None if batch_size is None else whole("run.batches(): batch_size", batch_size)
        self._distinct = truth("run.batches(): distinct", distinct)
        self._is_advised = False
        self._count = count_unless_single if may_give_samples(loader) else count_of

    def __iter__(self) -> Iterator[Any]:
        life = self._life
        for epoch, source in enumerate(self._sources()):
            if life.finished:
                return
            sampler: Any = getattr(source, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            yield from self._pass(source)

    def once(self) -> Iterator[Any]:
        """The loader's batches, counted, once, or until the run is over. set_epoch() of its sampler is the caller's."""
        yield from self._pass(self._start())

    def fetched(self) -> Iterator[Any]:
        """What the loader gives in one epoch, for take(), which counts it. Before the start, too."""
        return _fetched(self._life, self._counting(self._loader))

    def take(self, fetched: Any, made: Any = None) -> Any:
        """The batch in what fetched() gave: the program gets it now, so its samples count. Before the start nothing does.

        made: what a trainer made of it, which is counted where the loader does not tell its samples.
        """
        life, batch, samples = self._life, batch_in(fetched), self._batch_size
        if isinstance(fetched, CountedBatch):
            samples = 0 if count_of(batch) == 0 else fetched.samples
            if samples and batch is not None:
                life.look(batch, samples)
        if batch is not None:  # collate_fn left all samples out, and the loop goes on to the next batch
            life.taken(batch, self._count(batch if made is None else made) if samples is None else samples)
        return batch

    def advise(self) -> None:
        """Warns once when the run has several peers, unless this one has samples of its own. After the start."""
        if not self._is_advised and not self._has_own_samples():
            self._is_advised = True
            self._life.advise(SAME_SAMPLES)

    def _has_own_samples(self) -> bool:
        return self._distinct or has_own_part(self._loader, self._life.ranks)

    def _counting(self, loader: Any) -> Any:
        return loader if self._batch_size else counting(loader)

    def _sources(self) -> Iterator[Any]:
        """The loader to go through, for each epoch. What the program changes in its own one holds in the next."""
        while True:
            source = self._start()
            made_of = now = copied(self._loader, source)
            while len(now) == len(made_of) and all(map(operator.is_, now, made_of)):
                yield source
                now = copied(self._loader, source)

    def _start(self) -> Any:
        """The loader to go through; the run has started."""
        life, loader = self._life, self._loader
        life.start(self._batch_size or usual_size(loader) or life.batch_size)
        peer = life.peer_number
        other = None if peer is None or self._has_own_samples() else reordered(loader, peer)
        if other is None:
            self.advise()
        return self._counting(loader if other is None else other)

    def _pass(self, source: Any) -> Iterator[Any]:
        life = self._life
        if life.finished:
            return
        for fetched in _fetched(life, source):
            batch = self.take(fetched)
            if life.finished:
                return
            yield batch


def batch_in(fetched: Any) -> Any:
    """The batch itself, as the loader made it, where it may be counted."""
    return fetched.batch if isinstance(fetched, CountedBatch) else fetched


class Summary(NamedTuple):
    """Result of run.fit(): rounds and samples of the run, and steps of this peer. The samples are
    rounds times the target batch size, less those that were lost too late for their round: the next one took them in place of new ones.

    loss: mean over the samples of all peers in the last round. evaluations: (round, result of evaluate). ended: why.
    """

    rounds: int
    samples: int
    steps: int
    loss: Optional[float]
    evaluations: List[Tuple[int, Any]]
    ended: str


def _modules(model: Any) -> List[torch.nn.Module]:
    """The module, or each of several. MisuseError: something else."""
    found = list(model) if isinstance(model, (list, tuple)) else [model]
    if not found or not all(isinstance(one, torch.nn.Module) for one in found):
        raise MisuseError(
            f"run.fit(): model is {described(model)}: expected a torch.nn.Module or a list of them, with the parameters"
            " of the optimizer."
        )
    return found


class Gradients:
    """Gradients of batches in p.grad. model: a module, or a list of them. autocast: dtype of the forward pass; float16
    scales the loss.
    """

    def __init__(self, model: Any, loss: BatchLoss, optimizer: Optimizer, autocast: Optional[torch.dtype]) -> None:
        self.model = model
        self.optimizer = optimizer
        self._loss = loss
        self._autocast = autocast
        self._scale = _FIRST_SCALE if autocast == torch.float16 else 1.0
        self._good_steps = 0
        self._device = next(one for module in _modules(model) for one in module.parameters()).device

    def _forward(self) -> ContextManager[Any]:
        if self._autocast is None:
            return contextlib.nullcontext()
        cast: ContextManager[Any] = torch.autocast(self._device.type, dtype=self._autocast)
        return cast

    def compute(self, batch: Any, seed: int) -> torch.Tensor:
        """The mean loss of a batch; its gradient is in p.grad. Done again with a smaller scale where
        float16 ended.
        """
        moved = to_device(batch, self._device)
        while True:
            torch.manual_seed(seed)
            self.optimizer.zero_grad()
            with self._forward():
                loss = self._loss(self.model, moved)
            if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
                raise MisuseError(
                    f"run.fit(): loss(model, batch) returned {described(loss)}: expected a tensor of one element, the"
                    " mean over the batch, such as loss.mean(). Return that alone."
                )
            (loss * self._scale if self._scale != 1 else loss).backward()  # type: ignore[no-untyped-call]
            if self._autocast != torch.float16 or self._unscale():
                return loss

    def _unscale(self) -> bool:
        """Whether all gradients are finite, or the scale can become no smaller."""
        gradients = [
            p.grad for group in self.optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        for gradient in gradients:
            gradient.mul_(1 / self._scale)
        if self._scale > 1 and not all(bool(torch.isfinite(gradient).all()) for gradient in gradients):
            self._scale, self._good_steps = self._scale / 2, 0
            return False
        self._good_steps += 1
        if self._good_steps == _GROWTH_STEPS:
            self._scale, self._good_steps = self._scale * 2, 0
        return True


def evaluated(model: Any, evaluate: Evaluate) -> Any:
    """evaluate(model) in evaluation mode and without gradients; the model trains on after it."""
    modules = _modules(model)
    training = [module for one in modules for module in one.modules() if module.training]
    for one in modules:
        one.eval()
    try:
        with torch.no_grad():
            return evaluate(model)
    finally:
        for module in training:
            module.training = True


def told(life: Life, found: Any) -> Any:
    """What evaluate() found: as a number or a dict of numbers, the run's log and page show it."""
    if isinstance(found, dict):
        life.evaluated({name: value for name, value in found.items() if is_number(value)})
    elif is_number(found):
        life.evaluated({"evaluation": found})
    return found


def is_number(value: Any) -> bool:
    """A number, or a tensor of one element."""
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and not value.is_complex()
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def fit(
    life: Life, gradients: Gradients, samples: Samples, evaluate: Optional[Evaluate], every: int
) -> Summary:
    """The loop of run.fit()."""
    steps, batch_size = 0, samples.batch_size or 1
    evaluations: List[Tuple[int, Any]] = []
    try:
        while True:
            indices = life.next_indices(samples, batch_size)
            if not indices:
                break
            seed = life.seed_in_hand
            (part,) = samples.parts(indices, batch_size)
            with life.fetching():
                batch = samples.batch(part, samples.order.indices(life.ahead(samples)))
            life.look(batch, len(part))
            life.part_taken(len(indices), len(part) - len(indices))
            applied = gradients.optimizer.step(loss=gradients.compute(batch, seed))
            steps += 1
            if applied and evaluate is not None and every and life.round % every == 0 and life.is_first:
                with life.paused("evaluating"):
                    evaluations.append((life.round, told(life, evaluated(gradients.model, evaluate))))
    finally:
        samples.close()
    view = life.view
    if evaluate is not None and life.is_first and (not evaluations or evaluations[-1][0] != life.round):
        evaluations.append((life.round, told(life, evaluated(gradients.model, evaluate))))
    samples_done, ended = int(view.get("samples", 0)), str(view.get("ended") or "")
    return Summary(life.round, samples_done, steps, view.get("loss"), evaluations, ended)
