# SPDX-License-Identifier: Apache-2.0
"""A model and its optimizer as the engine's callbacks see them. Thread: the run's."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from typing import Any, ContextManager, Dict, Iterable, List, Mapping, Optional, Protocol, Sequence, Tuple

import torch

from ..data.order import span_seed
from ..engine import abi
from ..engine.peer import Engine, Group, HostTensor, ModelShape, Step
from ..errors import MisuseError, UnsupportedError
from .advice import Watch, say_what_changes
from .begun import Begun, say_other_state, say_what_begins_anew
from .device import Staging, all_finite, gpu_facts, host_values, host_view, pin
from .engine_rules import counts_nothing, kind_of, why_not
from .foreign import ForeignRule
from .lamb import Lamb
from .layout import Entry, Layout, Modules, collect, count_passes, describe, modules_of, refuse_renorm
from .memory import Bound, MeanBuffers, flat_tensor, makes_tensors, view_of
from .on_device import DeviceRule
from .optimizers import EngineRule, refuse_no_optimizer, updates_of
from .options import TrainedOptions
from .schedule import SavedSchedulers, Schedule, make_schedulers, refuse_scheduler, saved_schedulers
from .stand_in import UsedRates
from .state import ExtraState
from .sums import DeviceSums

# Names in the identity of a run, which stay when a class moves.
_OWN_NAMES: Dict[type, str] = {Lamb: "tradewind._lamb.Lamb"}


class Rule(Protocol):
    """What updates the run's parameters: the engine, with these groups, or an optimizer of torch."""

    is_foreign: bool
    updates_here: bool  # by update(), not by the engine

    @property
    def state_values(self) -> int: ...

    @property
    def engine_buffers(self) -> int: ...

    def groups(self) -> Tuple[Group, ...]: ...

    def facts(self) -> Iterable[str]: ...

    def check(self) -> None: ...


class Trained:
    """Callbacks of the engine (Calls), and the gradients for it. prepare(), then bind(), then the engine's
    calls.
    """

    contributes = False
    updates_here = False
    steps_here = False  # the loop's own optimizer steps with each gradient

    def __init__(self, model: Modules, optimizer: torch.optim.Optimizer, options: TrainedOptions) -> None:
        refuse_no_optimizer(optimizer)
        self.optimizer = optimizer
        self.round = 0  # whose parameters the model has
        self.updates = 0  # rounds applied by this peer
        self.loads = 0  # of the state of others or a checkpoint, and the one at the beginning
        self._came = False  # to a run that had begun
        self.replaced = False  # the first load brought other values than the model had
        self._model = model
        self._options = options
        self._schedulers = make_schedulers(options.scheduler, optimizer)
        self.used = UsedRates()
        self.extra = ExtraState()
        self.begun = Begun(0, 0)
        self._saved_schedulers = SavedSchedulers()
        self._staging = Staging(always=not options.alias)
        self._mean: Optional[torch.Tensor] = None  # of the engine, once there was one
        self._sums: Optional[DeviceSums] = None  # of gradients that stay where they are
        self._is_foreign()  # refuses now what start() would refuse

    def add_scheduler(self, scheduler: Any) -> None:
        """One more; before prepare()."""
        refuse_scheduler(scheduler, self.optimizer)
        self._schedulers.append(scheduler)
        self._saved_schedulers.load(self._schedulers, self.optimizer)

    def state_dict(self) -> Dict[str, Any]:
        """The optimizer's, and the schedulers'."""
        return {"optimizer": self.optimizer.state_dict(), "schedulers": saved_schedulers(self._schedulers)}

    def load_state_dict(self, state: Mapping[str, Any], begun: Begun) -> None:
        """What state_dict() gave, of so many rounds and samples; before prepare()."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.begun = begun
        self._saved_schedulers = SavedSchedulers(state.get("schedulers") or (), self.optimizer)
        self._saved_schedulers.load(self._schedulers, self.optimizer)

    @property
    def rounds_before(self) -> int:
        """Rounds of a run before from whose state this one goes on."""
        return self.begun.round

    @property
    def layout(self) -> Layout:
        """After prepare()."""
        return self._layout

    @property
    def engine_buffers(self) -> int:
        """After prepare(): vectors of optimizer state that the engine has."""
        return self._rule.engine_buffers

    @makes_tensors
    def prepare(self, codec: Optional[str] = None, data: Sequence[str] = ()) -> ModelShape:
        """Looks at the model as it is now, for the engine. codec: training.codec, if known. data: what names
        the data sets.
        """
        groups = self.optimizer.param_groups
        if not self.steps_here:
            refuse_renorm(self._model)
        layout = self._layout = collect(self._model, groups, self._options.means(codec))
        if layout.buffers:
            self._options.refuse_codec(codec)
        say_what_changes(layout)
        count_passes(layout.moving)
        self._saved_schedulers.refuse_others(self._schedulers, self.begun.round)
        self._rule = self._make_rule(layout)
        self.updates_here = self._rule.updates_here
        kind = kind_of(self.optimizer) if isinstance(self._rule, EngineRule) else None
        self._schedule = Schedule(layout, self.optimizer, self._schedulers, kind)
        self._sizes = layout.tensor_sizes[1:]
        self._tensors = [entry.tensor for entry in layout.parameters]
        if not self.contributes and self._options.keeps_gradients(self._tensors):
            self.contributes = True
            self._sums = DeviceSums(layout.parameters)
        self._beside: List[torch.Tensor] = []  # sums of what else the vector has: counts, buffers
        self._in_hand: List[torch.Tensor] = []  # the same, of the gradient in hand
        self._there: Tuple[List[float], torch.Tensor] = ([], host_values(0))
        self._watch = Watch(modules_of(self._model), layout, self._options.mean_buffers)
        extra = self.extra.prepare()
        sizes = (self._schedule.state_values, self.extra.state_values, self._rule.state_values)
        state_sizes = [size for size in sizes if size]
        return ModelShape(
            groups=self._groups(),
            tensor_sizes=layout.tensor_sizes,
            state_sizes=tuple(state_sizes),
            clip_norm=self._options.clip_norm,
            layout=describe(layout, [*data, *self._facts(), *extra]),
        )

    def _is_foreign(self) -> bool:
        """Whether torch computes the optimizer as it is now. UnsupportedError: it would have to."""
        why = why_not(self.optimizer)
        if self._options.engine == "tradewind" and why is not None:
            raise UnsupportedError(f'engine="tradewind": {why}.')
        return self._options.engine == "torch" or why is not None

    def _make_rule(self, layout: Layout) -> Rule:
        if self._is_foreign():
            return ForeignRule(self.optimizer, layout)
        if self._options.updates_on_device(self.optimizer, [entry.tensor for entry in layout.parameters]):
            return DeviceRule(self.optimizer, layout)
        return EngineRule(self.optimizer, layout)

    def _groups(self) -> Tuple[Group, ...]:
        return (Group(1, kind=abi.TW_UPDATES), *self._rule.groups(), *self._averages())

    def _averages(self) -> Tuple[Group, ...]:
        return tuple(
            Group(tensors, kind=abi.TW_AVERAGE)
            if momentum is None
            else Group(tensors, kind=abi.TW_MOVING, momentum=momentum)
            for momentum, tensors in self._layout.averages
        )

    def _facts(self) -> List[str]:
        kind = type(self.optimizer)
        facts = [
            (
                f"optimizer: {_OWN_NAMES.get(kind, f'{kind.__module__}.{kind.__qualname__}')} "
                f"computed by {'torch' if self._rule.is_foreign else 'the engine'}"
            ),
            f"clip_grad_norm: {self._options.clip_norm}",
            f"buffers: {'mean' if self._options.mean_buffers else 'local'}",
            *self._schedule.facts(),
        ]
        if not isinstance(self._rule, EngineRule):
            facts.extend(self._rule.facts())
        return facts

    def gpu_facts(self) -> List[Tuple[str, str]]:
        """Settings that name the GPU of the first parameter."""
        return gpu_facts(self._tensors[0].device) if self._tensors else []

    def initial(self) -> Tuple[List[HostTensor], List[Any]]:
        """The model's values now, and what has to live until they are read."""
        states = (self.optimizer.state.get(entry.tensor) for entry in self._layout.parameters)
        if self.steps_here or counts_nothing(self.optimizer):  # peers that begin at other rounds differ by this
            states = ({"step": self.begun.round} for _ in self._layout.parameters)
        passes = (float(one.module.num_batches_tracked) for one in self._layout.moving if one.momentum is not None)
        counts = self._of_each([*(updates_of(state or {}) for state in states), *passes])
        buffers = [one.tensor for one in self._layout.moving]
        tensors = [counts, *(entry.tensor for entry in self._layout.parameters), *buffers]
        return Staging().host(tensors, self._layout.tensor_sizes)

    def _of_each(self, values: Sequence[float]) -> torch.Tensor:
        """float32, a value for each parameter and moving average, as the vector begins."""
        found = host_values(self._layout.tensor_sizes[0]).zero_()
        found[: len(values)] = torch.tensor(values, dtype=torch.float32, device="cpu")
        return found

    @makes_tensors
    def bind(self, engine: Engine) -> None:
        """Takes the engine's vectors, after its start. The model changes at the first load()."""
        vectors: List[torch.Tensor] = []
        while True:
            array = engine.vector(len(vectors))
            if array is None:
                break
            if not vectors:
                self._memory = self._pinned(array)
            vectors.append(flat_tensor(array))
        sizes = (self._schedule.state_values, self.extra.state_values, self._rule.state_values)
        own = len(vectors) - sum(1 for size in sizes if size)
        flat, buffers, kept = vectors[0], vectors[1:own], iter(vectors[own:])
        self._text, self._extra, self._state = (next(kept) if size else host_values(0) for size in sizes)
        alias = self._options.alias and not isinstance(self._rule, DeviceRule)
        self._bound = Bound(self._layout.parameters, flat, alias)
        passes = flat[len(self._layout.parameters) : self._layout.counted]
        self._means = MeanBuffers(self._layout.moving, self._layout.buffers, flat, passes)
        counts = Entry("updates", host_values(1)[0], 0, 1)
        self._counts = [view_of(flat, counts._replace(first=at)) for at in range(len(self._layout.parameters))]
        if isinstance(self._rule, EngineRule):
            self._rule.attach(buffers, self._counts)

    def _pinned(self, array: ctypes.Array[ctypes.c_float]) -> ctypes.Array[ctypes.c_float]:
        if any(tensor.device.type == "cuda" for tensor in self._tensors):
            pin(array)
        return array

    @property
    def flat(self) -> torch.Tensor:
        """float32: updates of each parameter, passes of each moving average, parameters, mean buffers; the engine's memory."""
        return self._bound.flat

    # Calls of the engine, inside next().

    def settings(self, round: int, wanted: str) -> Optional[Sequence[Group]]:
        """Rates and so on of this update, which the optimizer's groups get."""
        self._keep_changes()
        self._schedule.follow(wanted, round)
        return self._groups()

    @makes_tensors
    def update(self, round: int, mean: ctypes.Array[ctypes.c_float], steps: Sequence[Step]) -> None:
        """The update where the parameters are; save() has them in the vector."""
        if isinstance(self._rule, ForeignRule):
            seed = span_seed(self._options.seed, self.begun.round + round)
            self._rule.update(self._read(mean), steps, seed)
            if self._bound.rounds:
                self._bound.give()
        else:
            assert isinstance(self._rule, DeviceRule)
            self._rule.update(self._read(mean), steps)
        self._bound.mark()

    def _read(self, mean: ctypes.Array[ctypes.c_float]) -> torch.Tensor:
        """It is in the same memory each time, which lives as long as that of the vectors."""
        if self._mean is None:
            mean.owner = self._memory  # type: ignore[attr-defined]
            self._mean = flat_tensor(self._pinned(mean))
        return self._mean

    @makes_tensors
    def load(self, round: int, restored: bool) -> None:
        """The vectors are those after this round."""
        self.round = round
        if restored:
            self._restore()
        else:
            self.updates += 1
        self._take(round, restored)
        if not restored:
            self.used.note(self.optimizer.param_groups)
            self._schedule.step(self.begun.round + round)
            if self.extra.follows_rounds:  # the context copies the model
                with self.committed():
                    self.extra.after_round()  # may change the model, on every peer alike
                    self._keep_changes()
                    self._bound.mark()

    def _keep_changes(self) -> None:
        """The run takes what the program changed in the model."""
        if isinstance(self._rule, DeviceRule):
            self._rule.keep_changes()
        elif not self.updates_here:
            self._bound.keep_changes()

    def _take(self, round: int, restored: bool) -> None:
        if restored or not self.updates_here:
            self._bound.take()
        if restored and isinstance(self._rule, DeviceRule):
            self._rule.load(self.flat)
        self._means.reset()

    def contribution(self, round: int, total: ctypes.Array[ctypes.c_float]) -> None:
        """What step() added up since the last call."""
        assert self._sums is not None
        flat = flat_tensor(total)
        self._sums.move_to(flat)
        for place, values in zip(self._places_beside(flat), self._beside):
            place.add_(values)
        self._beside = []

    def _places_beside(self, flat: torch.Tensor) -> List[torch.Tensor]:
        """Where the vector has counts and buffers."""
        return [flat[: self._layout.tensor_sizes[0]], *(view_of(flat, entry) for entry in self._layout.buffers)]

    def _restore(self) -> None:
        self.loads += 1
        if not self._bound.is_bound:
            self.replaced = self._bound.differs()
        written = bool(self._text[:2].view(torch.int64).item())
        self._load_schedule()
        if self._extra.numel():
            self.extra.load(self._extra)
        if written and isinstance(self._rule, ForeignRule):
            self._rule.load(self._state)
        if written and self.round and not self.updates and not self._came:
            self._came = True
            own = () if self._options.mean_buffers else modules_of(self._model)
            say_what_begins_anew(own, [self.optimizer] if self.steps_here else [], self.round + self.begun.round)

    def _load_schedule(self) -> None:
        self._begins_with(self._schedule.load(self._text))

    def _begins_with(self, run: Optional[Sequence[int]]) -> None:
        """The run goes on from so many rounds and samples; None: nobody else has told of it."""
        mine, self.begun = self.begun, self.begun if run is None else Begun(*run)
        say_other_state(mine, self.begun, self.round)

    def save(self, all: bool) -> None:
        """Writes parameters and state that the program keeps into the vectors. Not all: parameters."""
        if isinstance(self._rule, DeviceRule):
            self._rule.save(self.flat, all)
        elif self.updates_here:
            self._bound.give()
        elif all and not self.steps_here:
            self._keep_changes()
        if not all:
            return
        self._schedule.save(self._text, self.begun)
        if self._extra.numel():
            self.extra.save(self._extra)
        if isinstance(self._rule, ForeignRule):
            self._rule.save(self._state)

    # For the other ranks of a node.

    def shared(self, loaded: bool) -> List[torch.Tensor]:
        """What all ranks of a node need: parameters and mean buffers, and the schedule's state; that of the loop
        after a load.
        """
        return [self.flat, self._text, *([self._extra] if loaded and self._extra.numel() else [])]

    def share(self) -> None:
        """Brings shared() up to date."""
        if self.updates_here:
            self._bound.give()
        self._schedule.save(self._text, self.begun)

    def follow(self, updates: int, loads: int, round: int) -> None:
        """shared has the values of the node's peer after this many updates and loads."""
        loaded, updated = loads != self.loads, updates != self.updates
        self.updates, self.loads, self.round = updates, loads, round
        if not self._bound.is_bound:
            self.replaced = self._bound.differs()
        self._load_schedule()
        self._bound.take()
        self._means.reset()
        if loaded and self._extra.numel():
            self.extra.load(self._extra)
        if updated and self.extra.follows_rounds:
            shared = self.flat.clone()
            self.extra.after_round()
            self.flat.copy_(shared)  # it has what that changed already
            self._bound.take()

    # For step().

    def check(self) -> Optional[str]:
        """MisuseError: a parameter was converted, a module or the optimizer was changed, or a setting is wrong. Returns
        the name of a parameter that has other values than after the last step().
        """
        changed = self._bound.check()
        if self._watch.check(self.updates, self.optimizer):
            self._rule.check()
        self._schedule.check()
        return changed

    def gradients(self, samples: int) -> Tuple[Optional[List[HostTensor]], List[Any]]:
        """Of so many samples: which parameters have a gradient and passes per sample, p.grad of all, and what buffers
        gained; and what has to live until they are read.

        UnsupportedError: a sparse one. The engine looks whether they are finite. None: they are added up here.
        """
        gradients = [tensor.grad for tensor in self._tensors]
        self._refuse_sparse(gradients)
        passes = self._means.passes()
        there = self._shares(
            [*(float(one is not None) for one in gradients), *(one / samples for one in passes)]
        )
        differences = self._means.differences(passes)
        if self._sums is not None:
            self._in_hand = [there, *differences]
            return None, []
        found, alive = self._staging.host(gradients, self._sizes)
        alive.extend([there, *differences])
        return [host_view(there), *found, *map(host_view, differences)], alive

    def added(self, samples: int) -> None:
        """So many samples of the gradient in hand count."""
        if self._sums is None:
            return
        self._sums.add(samples)
        if not self._beside:
            self._beside = [torch.zeros_like(values) for values in self._in_hand]
        for summed, values in zip(self._beside, self._in_hand):
            summed.add_(values, alpha=samples)

    def skipped(self, samples: int) -> None:
        """So many samples count with a gradient of zero."""

    def committed(self) -> ContextManager[None]:
        """A context in which the model has the run's parameters."""
        return nullcontext()

    def settle(self) -> None:
        """The run is over for this peer."""

    def _refuse_sparse(self, gradients: Sequence[Optional[torch.Tensor]]) -> None:
        for at, gradient in enumerate(gradients):
            if gradient is not None and gradient.layout != torch.strided:
                raise UnsupportedError(
                    f"the gradient of {self._layout.parameters[at].name} is sparse: only dense gradients can be"
                    " averaged."
                )

    def _shares(self, there: List[float]) -> torch.Tensor:
        """_of_each of these, mostly those of the step before."""
        if there != self._there[0]:
            self._there = (there, self._of_each(there))
        return self._there[1]

    def wanted(self) -> str:
        """Settings that the loop wants for the update."""
        return self._schedule.wanted()

    def infinite(self) -> Optional[str]:
        """Name of a parameter whose gradient has a value that is not finite."""
        tensors = [tensor.grad for tensor in self._tensors]
        with torch.no_grad():
            if all_finite([gradient for gradient in tensors if gradient is not None]):
                return None
        for entry in self._layout.parameters:
            gradient = entry.tensor.grad
            if gradient is not None and not bool(torch.isfinite(gradient).all()):
                return entry.name
        return None

    def refuse_infinite(self) -> None:
        """MisuseError names a parameter whose gradient is not finite, or such a buffer."""
        name = self.infinite()
        what = f"the gradient of {name}" if name is not None else self._means.infinite()
        if what is not None:
            raise MisuseError(
                f"{what} is not finite: give the batch up with run.skip(), or use a GradScaler or a lower learning"
                " rate."
            )

    def undo_forward(self) -> None:
        """Statistics get the round's values: what a forward pass did to them does not count."""
        self._means.undo()

    def zero_gradients(self) -> Optional[List[HostTensor]]:
        """A gradient of zeros; None: nothing has to be handed in for it."""
        if self.contributes:
            return None
        return [HostTensor(0, count, abi.TW_FLOAT32) for count in self._layout.tensor_sizes]
