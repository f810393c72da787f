# SPDX-License-Identifier: Apache-2.0
"""Processes that read samples of a data set: a batch is split over them, the next samples are read ahead."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import random
import threading
import traceback
from collections import Counter, deque
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
import torch.multiprocessing
import torch.utils.data._utils.worker as torch_worker

from ..errors import TradewindError

# How often an idle worker looks whether the process that started it still lives.
_LOOK_S = 1.0


class Work(NamedTuple):
    """What a DataLoader says of its workers. context: of multiprocessing; initial: worker_init_fn; timeout_s:
    0 waits without end; generator: draws the seed.
    """

    context: Any = None
    initial: Any = None
    timeout_s: float = 0
    generator: Any = None

    @staticmethod
    def of(loader: Any) -> "Work":
        """loader: a DataLoader, or None."""
        if loader is None:
            return Work()
        return Work(loader.multiprocessing_context, loader.worker_init_fn, loader.timeout, loader.generator)


class _Place(NamedTuple):
    """One worker of several."""

    number: int
    workers: int
    seed: int  # of all; each adds its number


def _introduce(place: _Place, dataset: Any) -> None:
    """Seeds, and get_worker_info(), as torch's own workers have them."""
    seed = place.seed + place.number
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        pass
    else:
        numpy.random.seed(torch_worker._generate_state(place.seed, place.number))
    torch_worker._worker_info = torch_worker.WorkerInfo(
        id=place.number, num_workers=place.workers, seed=seed, dataset=dataset
    )


def samples_of(dataset: Any, indices: Sequence[int]) -> List[Any]:
    """The samples of these indices; at once, where the data set can do that (as PyTorch's loaders ask)."""
    at_once = getattr(dataset, "__getitems__", None)
    return list(at_once(indices)) if at_once is not None else [dataset[index] for index in indices]


def _read(dataset: Any, indices: List[int]) -> Tuple[bool, Any]:
    try:
        return True, samples_of(dataset, indices)
    except Exception as error:
        return False, (_portable(error), traceback.format_exc())


def _portable(error: Exception) -> Optional[Exception]:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return None


def _tensor_of(content: bytearray, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    if not content:
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.frombuffer(content, dtype=dtype).reshape(shape)


def _is_plain(value: Any) -> bool:
    """Whether a tensor is its values, type and shape alone."""
    return (
        type(value) is torch.Tensor
        and value.device.type == "cpu"
        and value.layout == torch.strided
        and not (value.requires_grad or value.is_quantized)
        and not value.__dict__
    )


class _ByValue(pickle.Pickler):
    """Tensors go as their bytes. torch's own way in multiprocessing costs a file descriptor for each, and
    that of pickle takes all of a storage for a row of it.
    """

    def reducer_override(self, value: Any) -> Any:
        """As pickle asks for it."""
        if not _is_plain(value):
            return NotImplemented
        whole = value.resolve_conj().resolve_neg().contiguous()
        size = whole.numel() * whole.element_size()
        content = bytearray((ctypes.c_char * size).from_address(whole.data_ptr())) if size else bytearray()
        return _tensor_of, (content, value.dtype, tuple(value.shape))


def _packed(answer: Tuple[bool, Any]) -> bytes:
    buffer = io.BytesIO()
    _ByValue(buffer, pickle.HIGHEST_PROTOCOL).dump(answer)
    return buffer.getvalue()


def _answer_to(dataset: Any, indices: List[int]) -> bytes:
    """The samples, or why there are none; that they cannot be packed is such a reason too."""
    answer = _read(dataset, indices)
    try:
        return _packed(answer)
    except Exception as error:
        return _packed((False, (_portable(error), traceback.format_exc())))


def _send_all(connection: Connection, answers: "SimpleQueue[bytes]") -> None:
    """Sends until the other side is gone: a worker reads on while an answer waits for the loop."""
    try:
        while True:
            connection.send_bytes(answers.get())
    except (BrokenPipeError, ConnectionResetError):
        return
    except Exception:
        traceback.print_exc()
        os._exit(1)  # else the loop would wait without end


def _begin(place: _Place, dataset: Any, initial: Any) -> Optional[bytes]:
    """Calls worker_init_fn; what it raised is the answer to all that is asked."""
    torch.set_num_threads(1)
    try:
        _introduce(place, dataset)
        if initial is not None:
            initial(place.number)
    except Exception as error:
        return _packed((False, (_portable(error), traceback.format_exc())))
    return None


def _serve(dataset: Any, connection: Connection, place: _Place, initial: Any) -> None:
    """The life of a worker: indices come in, samples go out, until the other side is gone."""
    failed = _begin(place, dataset, initial)
    parent = os.getppid()
    answers: "SimpleQueue[bytes]" = SimpleQueue()
    threading.Thread(target=_send_all, args=(connection, answers), daemon=True).start()
    while True:
        try:
            while not connection.poll(_LOOK_S):
                if os.getppid() != parent:
                    return
            indices = connection.recv()
            if indices is None:
                return
            answers.put(failed or _answer_to(dataset, indices))
        except (EOFError, OSError, KeyboardInterrupt):
            return


class _Broken(NamedTuple):
    """Replaces a sample that could not be read."""

    error: Optional[Exception]
    trace: str


class _Part(NamedTuple):
    """One request to a worker; ahead: the loop does not wait for it yet."""

    indices: List[int]
    ahead: bool


class WorkerPool:
    """Workers of one data set. Thread: the run's. samples() raises what the data set raised."""

    def __init__(self, dataset: Any, workers: int, work: Work = Work()) -> None:
        context = work.context or torch.multiprocessing.get_context()
        self._timeout_s = work.timeout_s
        self._connections: List[Any] = []
        self._processes: List[Any] = []
        # What each worker was asked for and has not answered; and which of them has an index.
        self._asked: List[Deque[_Part]] = [deque() for _ in range(workers)]
        self._reader: Dict[Any, int] = {}
        self._read: Dict[Any, Any] = {}
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=work.generator).item())
        for number in range(workers):
            ours, theirs = context.Pipe()
            place = _Place(number, workers, seed)
            process = context.Process(
                target=_serve, args=(dataset, theirs, place, work.initial), daemon=True
            )
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)

    def samples(self, indices: Sequence[Any], ahead: Sequence[Any] = ()) -> List[Any]:
        """The samples of these indices, in their order; one that comes again is read again. ahead: those that
        come next, read meanwhile.
        """
        unlike = list(dict.fromkeys(indices))
        counts = Counter(indices)
        again = [index for index in unlike for _ in range(counts[index] - 1)]
        first = self._each(unlike, [*again, *ahead])
        if not again:
            return first
        left = dict(zip(unlike, first))
        more: Dict[Any, List[Any]] = {}
        for index, sample in zip(again, self.samples(again, ahead)):
            more.setdefault(index, []).append(sample)
        return [left.pop(index) if index in left else more[index].pop() for index in indices]

    def _each(self, indices: Sequence[Any], ahead: Sequence[Any]) -> List[Any]:
        """Of indices that differ."""
        wanted = {*indices, *ahead}
        self._read = {index: sample for index, sample in self._read.items() if index in wanted}
        self._ask(indices)
        for first in range(0, len(ahead), len(indices)):
            self._ask(ahead[first : first + len(indices)], ahead=True)
        for index in indices:
            while index not in self._read:
                if index not in self._reader:  # a part that was asked for ahead could not be read
                    self._ask(indices)
                self._receive(self._reader[index], wanted)
        found = [self._read[index] for index in indices]
        for index in indices:
            del self._read[index]
        for sample in found:
            if isinstance(sample, _Broken):
                raise TradewindError(f"a worker could not read a sample:\n{sample.trace}") from sample.error
        return found

    def _ask(self, indices: Sequence[int], ahead: bool = False) -> None:
        """Splits samples that are not being read over the workers."""
        fresh = [index for index in dict.fromkeys(indices) if index not in self._read and index not in self._reader]
        share = -(-len(fresh) // len(self._connections))
        by_queue = sorted(range(len(self._connections)), key=lambda number: len(self._asked[number]))
        for number, first in zip(by_queue, range(0, len(fresh), share or 1)):
            part = fresh[first : first + share]
            try:
                self._connections[number].send(part)
            except OSError as error:
                raise self._ended(number) from error
            self._asked[number].append(_Part(part, ahead))
            self._reader.update(dict.fromkeys(part, number))

    def _receive(self, number: int, wanted: Set[int]) -> None:
        """Takes the oldest answer of a worker; what is not wanted any more is forgotten.

        So is a part that was asked for ahead and failed: most of its samples are good.
        """
        good, content = self._answer(number)
        part = self._asked[number].popleft()
        read = content if good else [_Broken(*content)] * len(part.indices)
        for index, sample in zip(part.indices, read):
            del self._reader[index]
            if index in wanted and (good or not part.ahead):
                self._read[index] = sample

    def _answer(self, number: int) -> Tuple[bool, Any]:
        if self._timeout_s and not self._connections[number].poll(self._timeout_s):
            raise TradewindError(
                f"worker {number} of the data set gave no samples for {self._timeout_s:g} s, the timeout= of"
                " the loader."
            )
        try:
            packed = self._connections[number].recv_bytes()
        except (EOFError, OSError) as error:
            raise self._ended(number) from error
        answer: Tuple[bool, Any] = pickle.loads(packed)
        return answer

    def _ended(self, number: int) -> TradewindError:
        self._processes[number].join(1)
        code = self._processes[number].exitcode
        return TradewindError(f"worker {number} of the data set ended (exit code {code}).")

    def close(self) -> None:
        """Ends the workers: politely, then by signal."""
        for connection in self._connections:
            try:
                connection.send(None)
            except OSError:
                pass
            connection.close()
        for process in self._processes:
            process.join(1)
            if process.is_alive():
                process.terminate()
                process.join()
        self._connections, self._processes = [], []
