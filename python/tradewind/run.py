# SPDX-License-Identifier: Apache-2.0
"""A run, as the training loop of one peer sees it, and the way into it."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional

import torch

from .data.samples import Collate, Given, Samples
from .engine.settings import Settings, resolve, together
from .errors import MisuseError, described, function, truth, whole
from .loop.driver import Node
from .loop.life import Life, OpenEngine
from .loop.styles import Accumulate, Batches, BatchLoss, Gradients, Optimizer, Shard, Summary, fit, shard_of
from .model.begun import Begun
from .model.layout import Modules
from .model.local import trained_of
from .model.schedule import SchedulerLike
from .model.stand_in import RoundScheduler
from .model.options import TrainedOptions
from .model.trained import Trained

# Of run.fit(), where neither an argument nor a DataLoader says.
_BATCH_SIZE = 32


def join(
    file: Optional[Any] = None,
    *,
    settings: Optional[Mapping[str, Any]] = None,
    group: Optional[Any] = None,
    **named: Any,
) -> "Run":
    """Checks the settings of a run; it starts with run.start(), the first batch or step(), not before.

    file: the run file (YAML). named, settings: keys of the run file (docs/run_file.md; rounds= is enough for
    training.rounds) and options of `tw run` (join=, listen=, token=, run=, insecure=, site=,
    id=, out=, wait_for=, ...), threads= of torch, progress="auto"|"line"|"off". What is left out is taken
    from the environment TRADEWIND_*. group: ranks of torch.distributed that are one peer together
    (DistributedDataParallel in a node); each calls the same. SettingError: unknown, or wrong. MisuseError:
    a run is open in this process already.
    """
    node = None if group is None else Node(group)
    return Run(resolve(together({"file": file, **named}, settings)), node=node)


class _Context(ContextDecorator, ContextManager[None]):
    """A context that may be entered again and again, made of those that may be entered once."""

    def __init__(self, make: Callable[[], ContextManager[None]]) -> None:
        self._make = make
        self._entered: List[ContextManager[None]] = []

    def __enter__(self) -> None:
        context = self._make()
        context.__enter__()
        self._entered.append(context)

    def __exit__(self, *error: Any) -> Optional[bool]:
        return self._entered.pop().__exit__(*error)


class Run:
    """One peer of a run. Thread: that of the first start, batch or step(); leave(), end() and properties: any."""

    def __init__(
        self, settings: Settings, open_engine: Optional[OpenEngine] = None, node: Optional[Node] = None
    ) -> None:
        self._life = Life(settings, open_engine, node)

    # What it trains.

    def optimizer(
        self,
        model: Modules,
        optimizer: torch.optim.Optimizer,
        *,
        scheduler: SchedulerLike = None,
        clip_grad_norm: Optional[float] = None,
        buffers: str = "mean",
        batch_size: Optional[int] = None,
        engine: str = "auto",
        alias: bool = True,
        accumulate: str = "auto",
    ) -> Optimizer:
        """The optimizer for the loop: its step() trains with all peers.

        scheduler: steps once a round; an object made on `optimizer`, a function of it, or several.
        clip_grad_norm: L2 norm to which the mean gradient of a round is clipped. buffers: running
        statistics (BatchNorm) are averaged ("mean") or each peer's own ("local"). batch_size: samples of a
        step() where nothing else tells. engine: "auto" computes SGD, Adam, AdamW and Lamb with the bits of the
        engine, the first three on the model's device, and runs others as they are; "torch" runs all as they are;
        "tradewind" refuses others, and has the engine compute on the host. alias: False
        keeps the model's memory apart from the engine's. accumulate: where the gradients of a round are added up:
        "host" (the engine), "device" (where they are; they cross once a round), or "auto" ("host" on the CPU).
        """
        life = self._life
        life.refuse_second()
        options = TrainedOptions(scheduler, clip_grad_norm, buffers, engine, alias, accumulate)
        life.batch_size = None if batch_size is None else whole("run.optimizer(): batch_size", batch_size)
        life.trained = trained_of(model, optimizer, options, life.settings.values, life.node is not None)
        return Optimizer(life, optimizer)

    def scheduler(self, scheduler: Any) -> Any:
        """For loops that call scheduler.step(): a stand-in whose step() does nothing; the run steps it once
        a round.
        """
        trained = self._before_start("run.scheduler()")
        trained.add_scheduler(scheduler)
        return RoundScheduler(scheduler, trained.used)

    def extra_state(
        self,
        save: Callable[[], Any],
        load: Callable[[Any], Any],
        after_round: Optional[Callable[[], Any]] = None,
    ) -> None:
        """State that the loop keeps itself, such as an EMA or a queue: joiners and restarts get it, and checkpoints
        have it.

        save(): the state now, as dicts, lists and tuples of tensors, numbers and texts. Tensors keep their shapes and
        dtypes from the start on. load(state): takes what another peer saved. after_round(): is called after each
        update, on every peer and once a round, so that a state which it alone changes is the same everywhere.
        """
        self._before_start("run.extra_state()").extra.add(save, load, after_round)

    def state_dict(self) -> Dict[str, Any]:
        """round, samples, the optimizer's state_dict(), and the state of the schedulers: for torch.save(); the run itself
        keeps checkpoints.
        """
        return {"round": self.round, "samples": self.samples, **self._life.trained.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what state_dict() gave, before the start: the state of optimizer and schedulers, and the rounds
        and samples that were done, which count for `rounds`. The order of run.shard() and run.fit() goes on after those
        samples. Peers that join take all of it from the run.
        """
        trained = self._before_start("run.load_state_dict()")
        missing = {"round", "samples", "optimizer"} - set(state if isinstance(state, Mapping) else ())
        if missing:
            raise MisuseError(
                f"run.load_state_dict() of {described(state)} without {', '.join(sorted(missing))}: expected"
                " what run.state_dict() gave; the model has a load_state_dict() of its own."
            )
        trained.load_state_dict(state, Begun(int(state["round"]), int(state["samples"])))

    def _before_start(self, call: str) -> Trained:
        """What is trained. MisuseError: nothing yet, or the run has started."""
        self._life.refuse_started(call)
        return self._life.trained

    # How: with batches of the run, with those of the program, or without a loop.

    def shard(
        self,
        data: Any,
        *,
        batch_size: Optional[int] = None,
        collate_fn: Optional[Collate] = None,
        num_workers: int = 0,
        accumulate: Accumulate = 1,
    ) -> Shard:
        """Batches of the samples that the run gives to this peer, until the run is over; each one once an
        epoch.

        data: a map-style data set, or a DataLoader of one: docs/python.md lists what becomes of its
        arguments. Each batch is followed by one step(), or each `accumulate` batches (a function says how many before
        each step()); the last ones of a round may be smaller.
        """
        return shard_of(self._life, data, Given(batch_size, collate_fn, num_workers), accumulate)

    def batches(self, loader: Any, *, batch_size: Optional[int] = None, distinct: bool = False) -> Batches:
        """The loader's own batches, counted, epoch after epoch until the run is over. Several may make one
        step().

        Each peer goes through a DataLoader with shuffle=True in an order of its own; with any other one it
        warns, unless distinct says that this peer has samples of its own. batch_size: samples of each batch,
        where neither loader nor batch tells.
        """
        return Batches(self._life, loader, batch_size, distinct)

    def fit(
        self,
        model: Modules,
        loss: BatchLoss,
        dataset: Any,
        optimizer: torch.optim.Optimizer,
        *,
        batch_size: Optional[int] = None,
        collate: Optional[Collate] = None,
        workers: int = 0,
        autocast: Optional[torch.dtype] = None,
        evaluate: Optional[Callable[[Any], Any]] = None,
        evaluate_every: int = 0,
        **options: Any,
    ) -> Summary:
        """Trains until the run is over: the run asks for gradients, so no loop is needed.

        loss(model, batch): the mean over the batch, without dimensions. dataset: map-style, or a
        DataLoader. batch_size: left out, that of the DataLoader, or 32. autocast: dtype of the forward pass; float16 scales the loss. evaluate(model): on the
        first peer, in evaluation mode and without gradients, every `evaluate_every` rounds (0: none) and at
        the end. options: those of
        run.optimizer(). Dropout is a function of the samples, so any peer's work can be done again by
        another.
        """
        function("run.fit(): loss", loss, "the model and a batch")
        if evaluate is not None:
            function("run.fit(): evaluate", evaluate, "the model")
        every = whole("run.fit(): evaluate_every", evaluate_every, 0)
        samples = Samples(dataset, Given(batch_size, collate, workers, _BATCH_SIZE, self._life.seed))
        wrapped = self.optimizer(model, optimizer, batch_size=samples.batch_size, **options)
        self._life.uses(samples)
        gradients = Gradients(model, loss, wrapped, autocast)
        return fit(self._life, gradients, samples, evaluate, every)

    # Its life.

    def start(self, samples: Optional[int] = None) -> None:
        """Joins or starts the run, and waits until it wants a gradient. Then the model has the run's
        parameters. samples: those of the first step(); left out, batch_size= of run.optimizer().
        """
        self._life.start(self._life.batch_size if samples is None else whole("run.start(): samples", samples))

    def paused(self, why: str) -> ContextManager[None]:
        """The loop does something else (evaluates, saves): others do this peer's part meanwhile, and the model has the
        run's parameters, in every mode.

        Inside another pause it changes nothing.
        """
        return _Context(lambda: self._life.paused(why))

    def committed(self) -> ContextManager[None]:
        """A context in which the model has the run's parameters, as in run.paused(). With mode="local" and "streaming"
        it has its own else, until the run is over.
        """
        return _Context(lambda: self._life.trained.committed())

    def evaluated(self, values: Optional[Mapping[str, Any]] = None, **named: Any) -> None:
        """What the program measured of the run's parameters, such as accuracy=0.93, on data that it does not train on.

        Log, page, report, `tw top` and TensorBoard show it. Numbers, or tensors of one element. After the run's
        end, too, until run.close(). run.fit(), the Trainer of transformers and Lightning say it themselves.
        """
        if not isinstance(values or {}, Mapping):
            raise MisuseError(f"run.evaluated({values!r}): expected names, as run.evaluated(accuracy=0.93).")
        self._life.evaluated({**(values or {}), **named})

    def barrier(self) -> None:
        """Waits until all live peers of the run have called it as often; between steps.

        A peer that leaves or dies is not waited for; run.waiting names those that are. Peers that still train
        do this peer's part meanwhile, so the parameters may change. Returns at once when the run is over.
        """
        self._life.barrier()

    def skip(self) -> None:
        """Gives up the batch in hand: of a shard its samples count with a gradient of zero; else they do
        not count.
        """
        self._life.skip()

    def leave(self, at_once: bool = False, *, wait: bool = False) -> None:
        """This peer hands in what is done and leaves after the round; the loop ends as at the run's end.
        Any thread, after the start. wait: it has left then, and the model has the run's parameters, for a loop
        that is over already; in that loop's thread. In a group all ranks have to call that.
        """
        self._life.leave(at_once, truth("run.leave(): wait", wait))

    def end(self) -> None:
        """Ends the run for all its peers before its last round, as early stopping does: with the round under way, or
        the next one where that was called already. Any thread, after the start; any rank of a group.

        The loop goes on until then: run.finished. A restart does not go on after it, unless rounds is raised.
        """
        self._life.end_run()

    def close(self, failed: bool = False) -> None:
        """Waits a second at most for the end of the round, and says goodbye (3 s at most, longer while a checkpoint is
        saved or copied; the last peer of a run saves one). The model stays usable; another run may be joined. A second
        call does nothing. failed: because of an error, so that run.ending is "failed", not "left".
        """
        self._life.close(truth("run.close(): failed", failed))

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Leaves after the round; then closes, on an exception within a second."""
        try:
            if kind is None:
                self._life.finish()
        finally:
            self.close(failed=kind is not None)

    def on_event(self, listener: Callable[[Dict[str, Any]], None]) -> None:
        """Calls listener(event) inside step() for each event of the log (docs/events.md) from now on."""
        function("run.on_event(): listener", listener, "an event")
        self._life.listeners.append(listener)

    # Its state. Thread: any.

    @property
    def settings(self) -> Dict[str, str]:
        """Values of all settings but the token, by key, such as "training.rounds", as texts; empty: none. Before the
        start, too.
        """
        return {key: value for key, value in self._life.settings.values.items() if key != "token"}

    @property
    def started(self) -> bool:
        """Whether the run was joined."""
        return self._life.started

    @property
    def finished(self) -> bool:
        """Whether the run is over, or this peer has left or closed it."""
        return self._life.finished

    @property
    def view(self) -> Dict[str, Any]:
        """The engine's view: round, samples, peers, leader, waiting, address, ..."""
        return self._life.view

    @property
    def round(self) -> int:
        """The round that the model's parameters are of: rounds that were applied."""
        return self._life.round

    @property
    def samples(self) -> int:
        """Samples of all peers in these rounds."""
        return int(self.view.get("applied", self._life.begun.samples))

    @property
    def peers(self) -> int:
        """Peers of the run now."""
        return int(self.view.get("peers", 0))

    @property
    def ending(self) -> str:
        """How this peer's part ended: "complete" (with the run), "notice" (of a preemption), "left", "failed" (also by
        an exception in `with run:`), "lost" (nothing is left of the run's state); empty before.
        """
        return str(self.view.get("ending") or "")

    @property
    def exit_code(self) -> int:
        """For sys.exit(): 75 when this peer left on a notice, so that the run goes on and whoever started this
        process may start it again; 1 when it failed, or when the run's last checkpoint is missing; 2 when nothing is
        left of the run, or other peers have other parameters, so that another start cannot help; else 0.
        """
        if self.ending == "complete" and (self.unsaved or self.differs):
            return 2 if self.differs else 1
        return {"notice": 75, "failed": 1, "lost": 2}.get(self.ending, 0)

    @property
    def unsaved(self) -> str:
        """Why the newest checkpoint that was due could not be written; empty: it was, or none was due."""
        return str(self.view.get("unsaved") or "")

    @property
    def differs(self) -> str:
        """Of a complete run: which peers have other parameters than this one, and why; empty: none has."""
        return str(self.view.get("differs") or "")

    @property
    def waiting(self) -> str:
        """The peers or event that this peer waits for; empty: none."""
        return str(self.view.get("waiting") or "")

    @property
    def is_first(self) -> bool:
        """Whether this peer has been in the run for longest: one that evaluates, saves and logs for all.

        It stays so until it leaves or is lost; then the next one is.
        """
        return self._life.is_first

    @property
    def metrics(self) -> Dict[str, Any]:
        """Numbers by name: round, samples, peers and loss of the run (over the samples of all peers in its newest
        round that all have told of; None: no step() said a loss=); of this peer steps, surplus (samples
        beyond the round's), dropped (gradients that came too late), skipped (batches), waited_s.

        Of modes: inner_steps (of the loop's own optimizer; local and streaming), staleness (updates of earlier rounds
        that the parameters of the last gradient lacked).
        """
        view = self.view
        shown: Dict[str, Any] = {key: view.get(key) for key in ("samples", "peers", "loss")}
        shown["round"] = self.round
        loop = self._life.loop
        if loop is not None:
            shown.update(loop.counters, waited_s=loop.driver.waited_s)
        return shown
