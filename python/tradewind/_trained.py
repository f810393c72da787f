# SPDX-License-Identifier: Apache-2.0
"""A model and its optimizer as the engine's callbacks see them. Thread: the run's."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch

from . import _abi
from ._buffers import MeanBuffers
from ._device import Bound, Staging, flat_tensor, host_view
from ._engine import Engine, Group, HostTensor, ModelShape
from ._errors import MisuseError, UnsupportedError
from ._foreign import ForeignRule
from ._layout import Layout, Modules, collect, describe
from ._options import TrainedOptions
from ._rules import EngineRule, why_not
from ._scheduler import Schedule, make_schedulers, refuse_scheduler


class Trained:
    """Callbacks of the engine (Calls), and the gradients for it. prepare(), then bind(), then the engine's
    calls.
    """

    def __init__(self, model: Modules, optimizer: torch.optim.Optimizer, options: TrainedOptions) -> None:
        self.optimizer = optimizer
        self.round = 0  # whose parameters the model has
        self.updates = 0  # rounds applied by this peer
        self.loads = 0  # of the state of others or a checkpoint, and the one at the beginning
        self.replaced = False  # the first load brought other values than the model had
        self._model = model
        self._options = options
        self._schedulers = make_schedulers(options.scheduler, optimizer)
        self._staging = Staging(always=not options.alias)
        self._why_foreign = why_not(optimizer)
        if options.engine == "tradewind" and self._why_foreign:
            raise UnsupportedError(f'engine="tradewind": {self._why_foreign}.')

    def add_scheduler(self, scheduler: Any) -> None:
        """One more; before prepare()."""
        refuse_scheduler(scheduler)
        self._schedulers.append(scheduler)

    @property
    def layout(self) -> Layout:
        """After prepare()."""
        return self._layout

    @property
    def engine_buffers(self) -> int:
        """After prepare(): vectors of optimizer state that the engine has."""
        return self._rule.engine_buffers

    @property
    def has_mean_buffers(self) -> bool:
        """After prepare(): whether running statistics are part of the vector."""
        return bool(self._layout.buffers)

    def prepare(self, codec: Optional[str] = None, data: Sequence[str] = ()) -> ModelShape:
        """Looks at the model as it is now, for the engine. codec: training.codec, if known. data: what names
        the data sets.
        """
        groups = self.optimizer.param_groups
        layout = self._layout = collect(self._model, groups, self._options.mean_buffers)
        if layout.buffers:
            self._options.refuse_codec(codec)
        foreign = self._options.engine == "torch" or self._why_foreign is not None
        self._rule: Union[EngineRule, ForeignRule] = (
            ForeignRule(self.optimizer, layout) if foreign else EngineRule(self.optimizer, layout)
        )
        self._schedule = Schedule(self.optimizer, self._schedulers)
        state_sizes = [self._schedule.state_values]
        if self._rule.state_values:
            state_sizes.append(self._rule.state_values)
        return ModelShape(
            groups=self._groups(),
            tensor_sizes=layout.tensor_sizes,
            state_sizes=tuple(state_sizes),
            clip_norm=self._options.clip_norm,
            layout=describe(layout, [*data, *self._facts()]),
        )

    def _groups(self) -> Tuple[Group, ...]:
        groups = self._rule.groups()
        if self._layout.buffers:
            groups += (Group(len(self._layout.buffers), kind=_abi.TW_AVERAGE),)
        return groups

    def _facts(self) -> List[str]:
        kind = type(self.optimizer)
        facts = [
            (
                f"optimizer: {kind.__module__}.{kind.__qualname__} "
                f"computed by {'torch' if self._rule.is_foreign else 'the engine'}"
            ),
            f"clip_grad_norm: {self._options.clip_norm}",
            f"buffers: {'mean' if self._options.mean_buffers else 'local'}",
            (
                "schedulers:"
                f" {', '.join(type(scheduler).__name__ for scheduler in self._schedulers) or 'none'}"
            ),
            f"settings at the start: {self._schedule.text()}",
        ]
        if isinstance(self._rule, ForeignRule):
            facts.extend(self._rule.facts())
        return facts

    def initial(self) -> Tuple[List[HostTensor], List[Any]]:
        """The model's values now, and what has to live until they are read."""
        tensors = [entry.tensor for entry in self._layout.entries]
        return Staging().host(tensors, self._layout.tensor_sizes)

    def bind(self, engine: Engine) -> None:
        """Takes the engine's vectors, after its start. The model changes at the first load()."""
        vectors: List[torch.Tensor] = []
        while True:
            array = engine.vector(len(vectors))
            if array is None:
                break
            vectors.append(flat_tensor(array))
        own = 2 if self._rule.state_values else 1
        flat, buffers = vectors[0], vectors[1:-own]
        self._text, self._state = vectors[-own], vectors[-1]
        self._bound = Bound(self._layout.parameters, flat, self._options.alias)
        self._means = MeanBuffers(self._layout.buffers, flat)
        if isinstance(self._rule, EngineRule):
            self._rule.attach(buffers)

    @property
    def flat(self) -> torch.Tensor:
        """float32: parameters and mean buffers, the engine's memory."""
        return self._bound.flat

    # Calls of the engine, inside next().

    def settings(self, round: int) -> Optional[Sequence[Group]]:
        """Rates and so on as the optimizer's groups have them now."""
        return self._groups()

    def update(self, round: int, mean: ctypes.Array[ctypes.c_float]) -> None:
        """One step of a foreign optimizer on the mean of the parameters, without the buffers'."""
        assert isinstance(self._rule, ForeignRule)
        self._rule.update(torch.frombuffer(mean, dtype=torch.float32))
        self._bound.give()

    def load(self, round: int, restored: bool) -> None:
        """The vectors are those after this round."""
        self.round = round
        if restored:
            self._restore()
        else:
            self.updates += 1
        self._bound.take()
        self._means.reset()
        self._rule.loaded(round)
        if not restored:
            self._schedule.step()

    def _restore(self) -> None:
        self.loads += 1
        if not self._bound.is_bound:
            self.replaced = self._bound.differs()
        written = bool(self._text[:2].view(torch.int64).item())
        self._schedule.load(self._text)
        if written and isinstance(self._rule, ForeignRule) and self._rule.state_values:
            self._rule.load(self._state)

    def save(self) -> None:
        """Writes the state that the program keeps into its vectors."""
        self._schedule.save(self._text)
        if isinstance(self._rule, ForeignRule) and self._rule.state_values:
            self._rule.save(self._state)

    # For the other ranks of a node.

    @property
    def shared(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """Parameters and mean buffers, and the schedule's state: what all ranks of a node need."""
        return self.flat, self._text

    def share(self) -> None:
        """Brings shared up to date."""
        self._schedule.save(self._text)

    def follow(self, updates: int, loads: int, round: int) -> None:
        """shared has the values of the node's peer after this many updates and loads."""
        self.updates, self.loads, self.round = updates, loads, round
        if not self._bound.is_bound:
            self.replaced = self._bound.differs()
        self._schedule.load(self._text)
        self._bound.take()
        self._means.reset()
        self._rule.loaded(round)

    # For step().

    def check(self) -> Optional[str]:
        """MisuseError: a parameter moved. Returns the name of a parameter changed in place outside of
        step().
        """
        changed = self._bound.check()
        if changed is not None:
            self._bound.mark()
        return changed

    def gradients(self) -> Tuple[List[HostTensor], List[Any]]:
        """p.grad of all parameters and what buffers gained; and what has to live until they are read.

        UnsupportedError: a sparse one. MisuseError: one that is not finite.
        """
        gradients: List[Optional[torch.Tensor]] = []
        for entry in self._layout.parameters:
            gradient = entry.tensor.grad
            if gradient is not None and gradient.layout != torch.strided:
                raise UnsupportedError(
                    f"the gradient of {entry.name} is sparse: only dense gradients can be averaged."
                )
            gradients.append(gradient)
        self.refuse_infinite()
        found, alive = self._staging.host(gradients, [entry.values for entry in self._layout.parameters])
        differences = self._means.differences()
        alive.extend(differences)
        found.extend(host_view(difference) for difference in differences)
        return found, alive

    def infinite(self) -> Optional[str]:
        """Name of a parameter whose gradient has a value that is not finite."""
        tensors = [entry.tensor.grad for entry in self._layout.parameters]
        with torch.no_grad():
            if _all_finite([gradient for gradient in tensors if gradient is not None]):
                return None
        for entry in self._layout.parameters:
            gradient = entry.tensor.grad
            if gradient is not None and not bool(torch.isfinite(gradient).all()):
                return entry.name
        return None

    def refuse_infinite(self) -> None:
        """MisuseError names a parameter whose gradient is not finite."""
        name = self.infinite()
        if name is not None:
            raise MisuseError(
                f"the gradient of {name} is not finite: give the batch up with run.skip(), or use a"
                " GradScaler or a lower learning rate."
            )

    def undo_forward(self) -> None:
        """Buffers get the round's values: what a forward pass did to them does not count."""
        self._means.reset()

    def zero_gradients(self) -> List[HostTensor]:
        """A gradient of zeros."""
        return [HostTensor(0, count, _abi.TW_FLOAT32) for count in self._layout.tensor_sizes]


def _all_finite(gradients: Sequence[torch.Tensor]) -> bool:
    """Whether the norms are finite: one pass, one wait for each device. Large values may overflow."""
    by_device: Dict[torch.device, List[torch.Tensor]] = {}
    for gradient in gradients:
        by_device.setdefault(gradient.device, []).append(gradient)
    return all(bool(torch.isfinite(_norms(found)).all()) for found in by_device.values())


def _norms(gradients: List[torch.Tensor]) -> torch.Tensor:
    if hasattr(torch, "_foreach_norm"):
        norms = torch._foreach_norm(gradients)
    else:
        norms = [gradient.norm() for gradient in gradients]
    return torch.stack([norm.float() for norm in norms])
