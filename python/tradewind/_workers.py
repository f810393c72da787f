# SPDX-License-Identifier: Apache-2.0
"""Processes that read samples of a data set: each batch is split over them."""

from __future__ import annotations

import os
import pickle
import random
import traceback
from multiprocessing.connection import Connection
from typing import Any, List, Optional, Tuple

import torch
import torch.multiprocessing

from ._errors import TradewindError

# How often an idle worker looks whether the process that started it still lives.
_LOOK_S = 1.0


def _seed(number: int, seed: int) -> None:
    random.seed(seed + number)
    torch.manual_seed(seed + number)


def _read(dataset: Any, indices: List[int]) -> Tuple[bool, Any]:
    try:
        return True, [dataset[index] for index in indices]
    except Exception as error:
        return False, (_portable(error), traceback.format_exc())


def _portable(error: Exception) -> Optional[Exception]:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return None


def _serve(dataset: Any, connection: Connection, number: int, seed: int, initial: Any) -> None:
    """The life of a worker: indices come in, samples go out, until the other side is gone."""
    torch.set_num_threads(1)
    _seed(number, seed)
    if initial is not None:
        initial(number)
    parent = os.getppid()
    while True:
        try:
            while not connection.poll(_LOOK_S):
                if os.getppid() != parent:
                    return
            indices = connection.recv()
            if indices is None:
                return
            connection.send(_read(dataset, indices))
        except (EOFError, OSError, KeyboardInterrupt):
            return


class WorkerPool:
    """Workers of one data set. Thread: the run's. samples() raises what the data set raised."""

    def __init__(self, dataset: Any, workers: int, loader: Any = None) -> None:
        """loader: its multiprocessing_context and worker_init_fn are used."""
        context = getattr(loader, "multiprocessing_context", None) or torch.multiprocessing.get_context()
        initial = getattr(loader, "worker_init_fn", None)
        self._connections: List[Any] = []
        self._processes: List[Any] = []
        seed = torch.initial_seed() % (1 << 62)
        for number in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(dataset, theirs, number, seed, initial), daemon=True
            )
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)

    def samples(self, indices: List[int]) -> List[Any]:
        """The samples of these indices, in their order."""
        share = -(-len(indices) // len(self._connections))
        parts = [indices[first : first + share] for first in range(0, len(indices), share)]
        for part, connection in zip(parts, self._connections):
            connection.send(part)
        found: List[Any] = []
        failure: Any = None
        for number in range(len(parts)):
            good, content = self._receive(number)
            if good:
                found.extend(content)
            else:
                failure = failure or content
        if failure is not None:
            error, trace = failure
            raise TradewindError(f"a worker could not read a sample:\n{trace}") from error
        return found

    def _receive(self, number: int) -> Tuple[bool, Any]:
        try:
            answer: Tuple[bool, Any] = self._connections[number].recv()
            return answer
        except (EOFError, OSError) as error:
            self._processes[number].join(1)
            code = self._processes[number].exitcode
            raise TradewindError(f"worker {number} of the data set ended (exit code {code}).") from error

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
