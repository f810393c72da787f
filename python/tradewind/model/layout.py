# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a model are one flat vector, in which order, and the text by which peers compare that.

The order is that of the optimizer's groups, and in a group that of its parameters, so a group is one range.
Values of a tensor lie in row-major order whatever its strides are, so peers may use other memory formats.
After the parameters come tensors that change without a gradient: running statistics of torch's normalisations, and
frozen copies of trained modules, which a loop moves (EMA teachers, momentum encoders, target networks). Both are
found by module and name, since a forward pass may assign another tensor.
"""

from __future__ import annotations

import itertools
import math
import re
import zlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.instancenorm import _InstanceNorm

from ..engine.host_bytes import bytes_of
from ..errors import MisuseError, UnsupportedError

Named = Sequence[Tuple[str, torch.nn.Module]]
_Signature = Tuple[Tuple[str, torch.Size, torch.dtype], ...]


class Moving(NamedTuple):
    """A tensor that its module has under this name now. is_copy: of a frozen copy, else a running statistic.
    momentum: of a moving average, 0 for the mean over all passes; None: it is no moving average.
    """

    name: str
    module: torch.nn.Module
    leaf: str
    is_copy: bool
    momentum: Optional[float] = None

    @property
    def tensor(self) -> torch.Tensor:
        """As it is now."""
        found: torch.Tensor = getattr(self.module, self.leaf)
        return found


def all_modules(modules: Named) -> Iterator[Tuple[str, torch.nn.Module]]:
    """(name with its dot, module) of each, also below."""
    for prefix, root in modules:
        for name, module in root.named_modules():
            yield f"{prefix}{name}." if name else prefix, module


def _statistics(module: torch.nn.Module) -> List[str]:
    """Names of a module's running statistics."""
    if isinstance(module, _NormBase):
        return ["running_mean", "running_var"]
    if type(module).__name__ == "_SpectralNorm":
        return ["_u", "_v"]
    hooks = module._forward_pre_hooks.values()
    return [
        f"{hook.name}_{end}" for hook in hooks if type(hook).__name__ == "SpectralNorm" for end in ("u", "v")
    ]


def is_counter(module: torch.nn.Module, leaf: str) -> bool:
    """Whether a buffer counts a normalisation's passes, as the run does."""
    return isinstance(module, _NormBase) and leaf == "num_batches_tracked"


def _momentum_of(module: torch.nn.Module) -> Optional[float]:
    if not isinstance(module, _NormBase) or module.num_batches_tracked is None:
        return None
    if module.momentum is None:
        return None if isinstance(module, _InstanceNorm) else 0.0
    return float(module.momentum) if 0 < module.momentum <= 1 else None


def _count_pass(module: torch.nn.Module, *_: Any) -> None:
    if module.training:
        module.num_batches_tracked += 1


def count_passes(moving: Sequence[Moving]) -> None:
    """InstanceNorm has a count of its passes as BatchNorm has, but leaves it at 0: from now on it moves."""
    for one in moving:
        hooks = one.module._forward_hooks
        if one.momentum and isinstance(one.module, _InstanceNorm) and _count_pass not in hooks.values():
            one.module.register_forward_hook(_count_pass)


def statistics_of(modules: Named) -> List[Moving]:
    """Running statistics of torch's normalisations: BatchNorm and InstanceNorm in all their forms, spectral_norm.
    Each once, if its values are finite; moving averages of one momentum follow each other, and come first.
    """
    found: List[Moving] = []
    seen: Set[int] = set()
    # A loop may move those of a frozen module in other ways than by passes.
    roots = [root for prefix, module in modules for _, root in _frozen_modules(prefix, module)]
    frozen = {id(module) for root in roots for module in root.modules()}
    for prefix, module in all_modules(modules):
        for leaf in _statistics(module):
            buffer = module._buffers.get(leaf)
            if buffer is None or not buffer.dtype.is_floating_point or id(buffer) in seen:
                continue
            if bool(torch.isfinite(buffer).all()):
                seen.add(id(buffer))
                momentum = None if id(module) in frozen else _momentum_of(module)
                found.append(Moving(prefix + leaf, module, leaf, False, momentum))
    order = list(dict.fromkeys(one.momentum for one in found))
    return sorted(found, key=lambda one: (one.momentum is None, order.index(one.momentum)))


def _is_frozen(module: torch.nn.Module) -> bool:
    parameters = list(module.parameters())
    return bool(parameters) and not any(parameter.requires_grad for parameter in parameters)


def _frozen_modules(prefix: str, module: torch.nn.Module) -> Iterator[Tuple[str, torch.nn.Module]]:
    """The largest modules that are frozen as a whole."""
    if _is_frozen(module):
        yield prefix, module
        return
    for name, child in module.named_children():
        yield from _frozen_modules(f"{prefix}{name}.", child)


def _signature(module: torch.nn.Module) -> _Signature:
    return tuple((name, value.shape, value.dtype) for name, value in module.named_parameters())


def _without_numbers(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _is_copy(module: torch.nn.Module, other: torch.nn.Module) -> bool:
    if not any(parameter.requires_grad for parameter in other.parameters()):
        return False
    pairs = zip(module.parameters(), other.parameters())
    return all(mine.device == theirs.device and torch.equal(mine, theirs) for mine, theirs in pairs)


def frozen_copies(modules: Named) -> List[Moving]:
    """Parameters of frozen modules that begin as copies of trained ones."""
    waiting = [found for prefix, root in modules for found in _frozen_modules(prefix, root)]
    if not waiting:
        return []
    roots = {prefix for prefix, _ in modules}
    by_signature: Dict[_Signature, List[Tuple[str, torch.nn.Module]]] = {}
    for name, module in all_modules(modules):
        by_signature.setdefault(_signature(module), []).append((name, module))
    found: List[Moving] = []
    seen: Set[int] = set()
    while waiting:
        name, module = waiting.pop(0)
        others = [
            other
            for other_name, other in by_signature.get(_signature(module), [])
            # Layers of one stack are no copies of each other, though some of them are frozen.
            if {name, other_name} <= roots or _without_numbers(name) != _without_numbers(other_name)
        ]
        if any(_is_copy(module, other) for other in others):
            found.extend(_parameters(name, module, seen))
        else:
            children = [(f"{name}{part}.", child) for part, child in module.named_children()]
            waiting.extend(child for child in children if _is_frozen(child[1]))
    return found


def _parameters(prefix: str, module: torch.nn.Module, seen: Set[int]) -> Iterator[Moving]:
    for name, part in module.named_modules():
        for leaf, parameter in part.named_parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield Moving(f"{prefix}{name}.{leaf}" if name else prefix + leaf, part, leaf, True)


Modules = Union[torch.nn.Module, Sequence[torch.nn.Module]]

# So many bytes of a frozen tensor, evenly spread, are compared: enough to tell other weights.
_SAMPLED_BYTES = 4096
# Values that a codec scales together, at most.
_BLOCK = 256
_SHARDED = ("DTensor", "ShardedTensor", "FlatParameter", "FlatParameterShard")
_PARALLEL = ("DistributedDataParallel", "DataParallel")
_SHARDING = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")


class Means(NamedTuple):
    """What is averaged beside parameters: running statistics, and frozen copies of trained modules."""

    statistics: bool
    copies: bool


class Entry(NamedTuple):
    """A tensor of the vector: its name, and its first value's place."""

    name: str
    tensor: torch.Tensor
    first: int
    values: int


class Layout(NamedTuple):
    """A value for each parameter, which counts its updates, and for each moving average, which counts its passes;
    parameters, group by group (as many as group_sizes say); then buffers, which are `moving`. Frozen ones are
    outside the vector. groups: of the optimizer.
    """

    parameters: Tuple[Entry, ...]
    group_sizes: Tuple[int, ...]
    groups: Tuple[Dict[str, Any], ...]
    buffers: Tuple[Entry, ...]
    moving: Tuple[Moving, ...]
    frozen: Tuple[Tuple[str, torch.Tensor], ...]

    @property
    def entries(self) -> Tuple[Entry, ...]:
        """All tensors of the vector that the model has, in its order."""
        return self.parameters + self.buffers

    @property
    def tensor_sizes(self) -> Tuple[int, ...]:
        """Values of each tensor of the vector."""
        return (_in_blocks(self.counted), *(entry.values for entry in self.entries))

    @property
    def counted(self) -> int:
        """Tensors with a count: parameters, and moving averages after them."""
        return len(self.parameters) + _moving_averages(self.moving)

    @property
    def averages(self) -> Tuple[Tuple[Optional[float], int], ...]:
        """(momentum, tensors) of the buffers, as they follow each other."""
        groups = itertools.groupby(self.moving, key=lambda one: one.momentum)
        return tuple((momentum, len(list(ones))) for momentum, ones in groups)


def _moving_averages(moving: Sequence[Moving]) -> int:
    return sum(1 for one in moving if one.momentum is not None)


def _in_blocks(counted: int) -> int:
    """Values that count updates and passes: whole blocks, so that a coarse codec does not scale them by gradients."""
    return -(-counted // _BLOCK) * _BLOCK


def modules_of(model: Modules) -> Tuple[Tuple[str, torch.nn.Module], ...]:
    """(prefix of its names, module) of each. MisuseError: something else."""
    if isinstance(model, torch.nn.Module):
        return (("", _bare(model)),)
    if not isinstance(model, (list, tuple)) or not all(isinstance(one, torch.nn.Module) for one in model):
        raise MisuseError(
            f"run.optimizer(model, optimizer): expected a torch.nn.Module or a list of them, found {model!r:.80}."
        )
    return tuple((f"{at}.", _bare(module)) for at, module in enumerate(model))


def _bare(module: torch.nn.Module) -> torch.nn.Module:
    """The module inside of DistributedDataParallel or torch.compile: names are those of other peers."""
    while True:
        if type(module).__name__ in _PARALLEL:
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def _type_names(value: object) -> Set[str]:
    return {kind.__name__ for kind in type(value).__mro__}


def _refuse_modules(modules: Sequence[Tuple[str, torch.nn.Module]]) -> None:
    for prefix, root in modules:
        for name, module in root.named_modules():
            if _type_names(module) & set(_SHARDING):
                raise UnsupportedError(
                    f"{prefix}{name or type(module).__name__} is sharded ({type(module).__name__}): a peer"
                    " holds all parameters; use DistributedDataParallel inside the node and"
                    " join(group=...)."
                )
            if getattr(module, "sparse", False) is True and isinstance(
                module, (torch.nn.Embedding, torch.nn.EmbeddingBag)
            ):
                weight = f"{prefix}{name}.weight".replace("..", ".").lstrip(".")
                raise UnsupportedError(
                    f"{weight} gets sparse gradients ({type(module).__name__} with sparse=True), and only dense"
                    " ones can be averaged: set sparse=False."
                )


def refuse_renorm(model: Modules) -> None:
    """UnsupportedError: an embedding whose forward pass changes its weight."""
    for prefix, module in all_modules(modules_of(model)):
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.max_norm is not None:
            if module.weight.requires_grad:
                raise UnsupportedError(
                    f"{prefix}weight is changed by each forward pass ({type(module).__name__} with max_norm=), on each"
                    " peer in another way: leave max_norm out, and shorten its rows in after_round= of"
                    " run.extra_state()."
                )


def _refuse_tensor(name: str, tensor: torch.Tensor) -> None:
    if _type_names(tensor) & set(_SHARDED) or _type_names(tensor.data) & set(_SHARDED):
        raise UnsupportedError(
            f"{name} is a {type(tensor.data).__name__}, a shard: a peer holds all parameters; use "
            "DistributedDataParallel inside the node and join(group=...)."
        )
    if _type_names(tensor) & {"UninitializedParameter", "UninitializedTensorMixin"}:
        raise UnsupportedError(f"{name} has no shape yet: run one batch through the model first.")
    if tensor.layout != torch.strided:
        raise UnsupportedError(
            f"{name} is not dense ({tensor.layout}): only dense parameters can be trained."
        )
    if not tensor.dtype.is_floating_point:
        raise UnsupportedError(
            f"{name} has dtype {tensor.dtype}: only floating point parameters can be trained."
        )
    if any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride())):
        raise UnsupportedError(f"{name} has values that share memory (expand): give the Parameter a clone() of them.")
    if tensor.device.type == "meta":
        raise UnsupportedError(
            f"{name} is on the meta device: give it memory (to_empty) before the run starts."
        )


def _refuse_lazy_buffers(modules: Sequence[Tuple[str, torch.nn.Module]]) -> None:
    for prefix, module in modules:
        for name, buffer in module.named_buffers():
            if "UninitializedBuffer" in _type_names(buffer):
                raise UnsupportedError(f"{prefix}{name} has no shape yet: run one batch through the model first.")


def _names(modules: Sequence[Tuple[str, torch.nn.Module]]) -> Dict[int, str]:
    """Names of parameters by id; a tied one has the first of its names."""
    names: Dict[int, str] = {}
    for prefix, module in modules:
        for name, parameter in module.named_parameters():
            names.setdefault(id(parameter), prefix + name)
    return names


class _Span(NamedTuple):
    """The addresses in which a tensor has its values."""

    begin: int
    end: int
    entry: Entry


def _span(entry: Entry) -> _Span:
    tensor = entry.tensor
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return _Span(tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size(), entry)


def _refuse_overlap(entries: Sequence[Entry]) -> None:
    """Two tensors that share some of their memory cannot both be updated."""
    spans = sorted((_span(entry) for entry in entries if entry.values), key=lambda span: span.begin)
    while spans:
        together = [spans.pop(0)]
        while spans and spans[0].begin < max(span.end for span in together):
            together.append(spans.pop(0))
        _refuse_shared(together)


def _refuse_shared(spans: Sequence[_Span]) -> None:
    """Spans may overlap without a value that is in two tensors: columns of one, for example."""
    if len(spans) == 1:
        return
    begin, end = spans[0].begin, max(span.end for span in spans)
    unit = 0  # bytes
    for span in spans:
        unit = math.gcd(math.gcd(unit, span.begin - begin), span.entry.tensor.element_size())
    owners = torch.zeros((end - begin) // unit, dtype=torch.int32, device="cpu")  # 1: the first one
    for number, (first, _, entry) in enumerate(spans, 1):
        tensor, units = entry.tensor, entry.tensor.element_size() // unit
        strides = [*(stride * units for stride in tensor.stride()), 1]
        sizes = [size if stride else 1 for size, stride in zip(tensor.shape, tensor.stride())]  # not expanded ones
        mine = owners.as_strided([*sizes, units], strides, (first - begin) // unit)
        other = int(mine.max())
        if other:
            raise UnsupportedError(
                f"{spans[other - 1].entry.name} and {entry.name} share memory: tie them as one Parameter, or copy one of"
                " them."
            )
        mine.fill_(number)


def _untrained(
    modules: Sequence[Tuple[str, torch.nn.Module]], known: Set[int]
) -> Iterator[Tuple[str, torch.Tensor]]:
    for prefix, module in modules:
        for name, parameter in module.named_parameters():
            if id(parameter) in known:
                continue
            if parameter.requires_grad:
                raise UnsupportedError(
                    f"{prefix}{name} is trained (requires_grad) but not in the optimizer: add it, or freeze"
                    " it with requires_grad_(False)."
                )
            yield prefix + name, parameter


def collect(model: Modules, param_groups: Sequence[Dict[str, Any]], means: Means) -> Layout:
    """The layout of a model and its optimizer's groups. UnsupportedError: what cannot be trained, by its
    name.

    A parameter of the optimizer that requires no gradient is left out, as torch leaves it alone. A group may have
    none.
    """
    modules = modules_of(model)
    _refuse_modules(modules)
    names = _names(modules)
    trained: List[Tuple[str, torch.Tensor]] = []
    frozen: List[Tuple[str, torch.Tensor]] = []
    group_sizes: List[int] = []
    known: Set[int] = set()
    for number, group in enumerate(param_groups):
        before = len(trained)
        for at, parameter in enumerate(group["params"]):
            name = names.get(id(parameter), f"group{number}.{at}")
            if id(parameter) in known:
                raise UnsupportedError(f"{name} is in the optimizer twice.")
            known.add(id(parameter))
            if not parameter.requires_grad:
                frozen.append((name, parameter))
                continue
            _refuse_tensor(name, parameter)
            trained.append((name, parameter))
        group_sizes.append(len(trained) - before)
    _refuse_lazy_buffers(modules)
    moving = statistics_of(modules) if means.statistics else []
    moving += frozen_copies(modules) if means.copies else []
    first = _in_blocks(len(trained) + _moving_averages(moving))
    parameters, end = _placed(trained, first)
    if end == first:
        raise UnsupportedError("the optimizer has no parameter that requires a gradient.")
    _refuse_overlap(parameters)
    frozen.extend(_untrained(modules, known))
    buffers, _ = _placed([(one.name, one.tensor) for one in moving], end)
    copies = {id(one.tensor) for one in moving if one.is_copy}
    return Layout(
        parameters,
        tuple(group_sizes),
        tuple(param_groups),
        buffers,
        tuple(moving),
        tuple((name, tensor) for name, tensor in frozen if id(tensor) not in copies),
    )


def _placed(tensors: Sequence[Tuple[str, torch.Tensor]], first: int) -> Tuple[Tuple[Entry, ...], int]:
    """Entries from place `first` on, and where they end."""
    entries: List[Entry] = []
    for name, tensor in tensors:
        entries.append(Entry(name, tensor, first, tensor.numel()))
        first += tensor.numel()
    return tuple(entries), first


def _sampled(tensor: torch.Tensor) -> str:
    """A checksum over a sample of a tensor's bytes, the same on every machine."""
    values = tensor.detach().reshape(-1)
    if values.numel() == 0:
        return "0"
    stride = max(1, values.numel() * values.element_size() // _SAMPLED_BYTES)
    return format(zlib.crc32(bytes_of(values[::stride].contiguous().cpu())), "08x")


def _line(name: str, tensor: torch.Tensor) -> str:
    return f"{name} {tuple(tensor.shape)} {str(tensor.dtype).replace('torch.', '')}"


def describe(layout: Layout, facts: Sequence[str]) -> str:
    """One fact a line, so that the first line in which two peers differ says what differs."""
    lines = list(facts)
    lines.append(f"updates: updates ({layout.tensor_sizes[0]},) float32")
    at = 0
    for number, size in enumerate(layout.group_sizes):
        for entry in layout.parameters[at : at + size]:
            lines.append(f"group {number}: {_line(entry.name, entry.tensor)}")
        at += size
    lines.extend(f"momentum {momentum}: {tensors} buffers" for momentum, tensors in layout.averages)
    lines.extend(f"buffer: {_line(entry.name, entry.tensor)}" for entry in layout.buffers)
    lines.extend(f"frozen: {_line(name, tensor)} {_sampled(tensor)}" for name, tensor in layout.frozen)
    return "\n".join(lines)
