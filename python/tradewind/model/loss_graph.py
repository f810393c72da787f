# SPDX-License-Identifier: Apache-2.0
"""What autograd's graph tells of a loss: whether it is a sum over the samples of a batch."""

from __future__ import annotations

import math
from typing import Any, List, Sequence, Set

import torch

_SUM = 2  # torch's number of reduction="sum"
_COPIES = ("AliasBackward", "CloneBackward", "ToCopyBackward")
_SHAPES = ("ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward", "SqueezeBackward", "UnsqueezeBackward")
_VIEWS = (*_COPIES, *_SHAPES)
_TERMS = ("AddBackward", "SubBackward", "RsubBackward")
# Several losses in one sum: each may be a mean.
_SEVERAL = ("StackBackward", "CatBackward")
_FACTORS = ("MulBackward", "DivBackward")
# These keep the samples apart. A factor inside of the linear ones is one of their result, too.
_LINEAR = (*_VIEWS, *_TERMS, "NegBackward", "MeanBackward1", "SumBackward1")
_OF_EACH = (*_FACTORS, "PowBackward", "AbsBackward", "ExpBackward", "LogBackward", "SqrtBackward", "ClampBackward")
# Where inputs meet parameters: an operand has no gradient, or autograd does not tell.
_PRODUCTS = ("Addmm", "Mm", "Addmv", "Mv", "Bmm", "Baddbmm", "Linear", "Convolution", "CudnnConv", "MkldnnConv")
_INPUTS = ("Embedding", "CompiledFunction", "CheckpointFunction", "torch::jit")


def _inner(node: Any) -> List[Any]:
    return [one for one, _ in node.next_functions if one is not None]


def _is_reduced_by_sum(node: Any) -> bool:
    return bool(getattr(node, "_saved_reduction", None) == _SUM)


def _sizes(node: Any) -> Sequence[int]:
    """Of the tensor that an operation got; empty: unknown, or a scalar."""
    return getattr(node, "_saved_self_sym_sizes", getattr(node, "_saved_self_sizes", None)) or ()


def _joins_samples(node: Any) -> bool:
    """Whether a sum or a mean goes over the first dimension, too."""
    sizes, dims = _sizes(node), getattr(node, "_saved_dim", None)
    return not dims or not sizes or 0 in [(dim - (1 << 64) if dim >> 63 else dim) % len(sizes) for dim in dims]


def _may_be_mean(nodes: Sequence[Any], plain: bool) -> bool:
    """Whether something between the model and these nodes averages over the batch, or may do so. plain: their values
    are summed as they are, so that factors may be weights.
    """
    todo, seen = [(node, plain) for node in nodes], set()
    while todo:
        node, plain = at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        name, inner = node.name(), _inner(node)
        if name.startswith(("MeanBackward", "SumBackward")) and _joins_samples(node):
            return True
        is_square = len(inner) == 2 and inner[0] is inner[1]
        if plain and (name.startswith(_SEVERAL) or name.startswith(_FACTORS) and not is_square):
            return True
        if name.startswith((*_LINEAR, *_OF_EACH)):
            todo += [(one, plain and name.startswith(_LINEAR)) for one in inner]
    return False


def _is_of_batch(node: Any) -> bool:
    """Whether inputs of the model are below; False: parameters alone, or not known."""
    todo, seen = [node], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        inner = _inner(node)
        name = node.name()
        if name.startswith(_INPUTS) or name.startswith(_PRODUCTS) and len(inner) < len(node.next_functions):
            return True
        todo += inner
    return False


def _terms(node: Any) -> List[Any]:
    """Of a sum of losses."""
    found: List[Any] = []
    todo = [node]
    while todo:
        node = todo.pop()
        if node.name().startswith(_TERMS):
            todo += _inner(node)
        else:
            found.append(node)
    return found


def _is_sum(node: Any, batches: Set[int]) -> bool:
    while node is not None and node.name().startswith(_VIEWS):
        node = node.next_functions[0][0]
    if node is None:
        return False
    if _is_reduced_by_sum(node):
        return not _may_be_mean(_inner(node), plain=False)
    if node.name().startswith(_TERMS):  # such as a reconstruction and a penalty
        of_batch = [one for one in _terms(node) if _is_reduced_by_sum(one) and _is_of_batch(one)]
        return any(not _may_be_mean(_inner(one), plain=False) for one in of_batch)
    if not node.name().startswith("SumBackward0") or not _inner(node):
        return False
    summed, sizes = _inner(node)[0], [_sizes(node)]
    while summed.name().startswith((*_VIEWS, "SumBackward1")) and _inner(summed):
        sizes.append(_sizes(summed))
        summed = _inner(summed)[0]
    if all(math.prod(one) == 1 for one in sizes):
        return _is_sum(summed, batches)
    is_batch = any(one[0] in batches for one in sizes if one)
    return is_batch and not _may_be_mean([summed], plain=True)


def is_sum(loss: Any, batches: Set[int]) -> bool:
    """Whether this loss was summed over a batch, of one of these numbers of samples. False where autograd does not
    tell (divided later, weighed, compiled).
    """
    return isinstance(loss, torch.Tensor) and loss.numel() == 1 and _is_sum(loss.grad_fn, batches)
