# SPDX-License-Identifier: Apache-2.0
"""What of a model changes without a gradient, and is part of the run: running statistics of torch's normalisations,
and frozen copies of trained modules, which a loop moves (EMA teachers, momentum encoders, target networks).

Both are found by module and name, since a forward pass may assign another tensor.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

import torch
from torch.nn.modules.batchnorm import _NormBase

Named = Sequence[Tuple[str, torch.nn.Module]]
_Signature = Tuple[Tuple[str, torch.Size, torch.dtype], ...]


class Moving(NamedTuple):
    """A tensor that its module has under this name now. is_copy: of a frozen copy, else a running statistic."""

    name: str
    module: torch.nn.Module
    leaf: str
    is_copy: bool

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
    """Whether a buffer counts batches, which nothing but BatchNorm(momentum=None) looks at."""
    return isinstance(module, _NormBase) and leaf == "num_batches_tracked" and module.momentum is not None


def statistics_of(modules: Named) -> List[Moving]:
    """Running statistics of torch's normalisations: BatchNorm and InstanceNorm in all their forms, spectral_norm.
    Each once, if its values are finite.
    """
    found: List[Moving] = []
    seen: Set[int] = set()
    for prefix, module in all_modules(modules):
        for leaf in _statistics(module):
            buffer = module._buffers.get(leaf)
            if buffer is None or not buffer.dtype.is_floating_point or id(buffer) in seen:
                continue
            if bool(torch.isfinite(buffer).all()):
                seen.add(id(buffer))
                found.append(Moving(prefix + leaf, module, leaf, False))
    return found


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
