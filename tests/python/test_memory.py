# SPDX-License-Identifier: Apache-2.0
"""What a loop does to its weights beside step(): other values, other memory. A run takes them as torch."""

import warnings

import pytest
import torch
from models import assert_close, data, loss_of, mlp
from tradewind import MisuseError
from tradewind.model import trained
from tradewind.model.layout import Entry
from tradewind.model.memory import Bound

STEPS = 6


def transposed(model):
    """Its first weight is not contiguous."""
    model[0].weight.data = model[0].weight.data.t().contiguous().t()
    return model


MODELS = {
    "view": (mlp, {}),
    "bfloat16": (lambda: mlp().bfloat16(), {}),
    "transposed": (lambda: transposed(mlp()), {}),
    "shared": (lambda: mlp().share_memory(), {}),
    "copy": (mlp, {"alias": False}),
}
OPTIMIZERS = {
    "engine": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    "torch": lambda model: torch.optim.RMSprop(model.parameters(), lr=0.01),
}
RULES = ("engine", "device", "torch")


def update_by(rule, monkeypatch):
    """The optimizer of a rule; "device": the engine's, computed where the parameters are."""
    monkeypatch.setattr(trained.TrainedOptions, "updates_on_device", lambda *_: rule == "device")
    return OPTIMIZERS["torch" if rule == "torch" else "engine"]


def told(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


def step(model, opt, seed=0):
    inputs, targets = (one.to(model[0].weight.dtype) for one in data(8, seed=seed))
    opt.zero_grad()
    loss_of(model, inputs, targets).backward()
    opt.step()


def loop(model, opt, change, changes=range(STEPS)):
    for at in range(STEPS):
        step(model, opt, at)
        if at in changes:
            change(model)


def clip(model):
    for one in model.parameters():
        one.data.clamp_(-0.2, 0.2)


@torch.no_grad()
def clip_in_place(model):
    for one in model.parameters():
        one.clamp_(-0.2, 0.2)


def load(model):
    model.load_state_dict({name: 0.5 * value for name, value in model.state_dict().items()})


def give_other_memory(model):
    for one in model.parameters():
        one.data = one.data.clamp(-0.2, 0.2)


def set_from_vector(model):
    vector = 0.99 * torch.cat([one.detach().reshape(-1) for one in model.parameters()])
    torch.nn.utils.vector_to_parameters(vector, model.parameters())


def send(model):
    """As a learner sends weights to its actors: torch moves them into shared memory."""
    torch.multiprocessing.get_context("fork").SimpleQueue().put(model.state_dict())


def share(model):
    model.share_memory()


CHANGES = (clip, clip_in_place, load, give_other_memory, set_from_vector, send, share)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", MODELS)
def test_a_lone_peer_equals_the_bare_loop(kind, change, rule, fake_run, monkeypatch):
    make, options = MODELS[kind]
    optimizer = update_by(rule, monkeypatch)
    bare, model = make(), make()
    loop(bare, optimizer(bare), change)
    run = fake_run(target_batch_size=8, rounds=STEPS)
    opt = run.optimizer(model, optimizer(model), batch_size=8, **options)
    told(lambda: loop(model, opt, change))
    assert run.finished
    # The run rounds to bfloat16 once a step, torch twice.
    assert_close(model, bare, **({"rtol": 0, "atol": 4e-3} if kind == "bfloat16" else {}))


@pytest.mark.parametrize("kind", MODELS)
def test_a_joiner_gets_what_the_loop_changed(kind, fake_run):
    make, options = MODELS[kind]
    model, joiner = make(), make()
    run = fake_run(target_batch_size=8)
    run.optimizer(model, OPTIMIZERS["engine"](model), batch_size=8, **options)
    run.start()
    clip(model)
    state = fake_run.engines[-1].saved()
    run.close()
    run = fake_run(given=state, target_batch_size=8)
    run.optimizer(joiner, OPTIMIZERS["engine"](joiner), batch_size=8, **options)
    run.start()
    for mine, theirs in zip(joiner.parameters(), model.parameters()):
        assert torch.equal(mine, theirs) and mine.abs().max().item() <= 0.201


def test_shared_weights_are_updated_where_their_readers_see_them(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8)
    opt = run.optimizer(model, OPTIMIZERS["engine"](model), batch_size=8)
    step(model, opt)
    model.share_memory()
    place, before = model[0].weight.data_ptr(), model[0].weight.detach().clone()
    step(model, opt)
    assert model[0].weight.data_ptr() == place and model[0].weight.is_shared()
    assert not torch.equal(model[0].weight, before)


def test_weights_that_were_given_other_memory_are_a_view_again(fake_run):
    model = mlp()
    run = fake_run(target_batch_size=8)
    opt = run.optimizer(model, OPTIMIZERS["engine"](model), batch_size=8)
    step(model, opt)
    place = model[0].weight.data_ptr()
    give_other_memory(model)
    assert model[0].weight.data_ptr() != place
    told(lambda: step(model, opt))
    assert model[0].weight.data_ptr() == place


@pytest.mark.parametrize("checked", [False, True])
def test_other_memory_that_the_engine_takes_before_the_next_step_is_named(fake_run, checked):
    model = mlp()
    run = fake_run(target_batch_size=8)
    opt = run.optimizer(model, OPTIMIZERS["engine"](model), batch_size=8)
    step(model, opt), step(model, opt)
    bound = run._life.trained._bound
    if checked:
        assert bound.check() is None  # in the middle of a round
    expected = model[0].weight.detach() + 1
    model[0].weight.data = expected.clone()
    run._life.trained.save(True)
    assert bound.check() == "0.weight" and bound.check() is None
    assert torch.equal(model[0].weight, expected)


# ---- what the program has of their memory since before the start


def flat_of(model):
    """A vector of the program's, of which all weights are parts."""
    vector = torch.cat([one.detach().reshape(-1) for one in model.parameters()])
    torch.nn.utils.vector_to_parameters(vector, model.parameters())
    return [vector]


HOLDERS = {
    "state_dict": lambda model: list(model.state_dict().values()),
    "data": lambda model: [one.data for one in model.parameters()],
    "numpy": lambda model: [one.detach().numpy() for one in model.parameters()],
    "part": lambda model: [one.detach().view(-1)[:1] for one in model.parameters()],
    "vector": flat_of,
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_it_follows_the_training_as_in_torch(holder, rule, fake_run, monkeypatch):
    bare, model = mlp(), mlp()
    held, expected = HOLDERS[holder](model), HOLDERS[holder](bare)
    optimizer = update_by(rule, monkeypatch)
    loop(bare, optimizer(bare), lambda _: None)
    run = fake_run(target_batch_size=8, rounds=STEPS)
    loop(model, run.optimizer(model, optimizer(model), batch_size=8), lambda _: None)
    assert_close(model, bare)
    for mine, theirs in zip(held, expected):
        torch.testing.assert_close(torch.as_tensor(mine), torch.as_tensor(theirs), rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("rule", ["engine", "torch"])
def test_a_weight_that_nobody_else_holds_becomes_a_view_at_the_first_step(rule, fake_run, monkeypatch):
    model = mlp()
    opt = fake_run(target_batch_size=8).optimizer(model, update_by(rule, monkeypatch)(model), batch_size=8)
    held, places = model[0].weight.data, [one.data_ptr() for one in model.parameters()]
    inputs, targets = data(8)
    outputs = model(inputs)
    (outputs - targets).pow(2).mean().backward()
    opt.step()
    stays = [one.data_ptr() == place for one, place in zip(model.parameters(), places)]
    assert stays == [True, False, False, False] and torch.equal(held, model[0].weight)


def test_weights_that_were_given_memory_of_others_stay_there(fake_run):
    model = mlp()
    opt = fake_run(target_batch_size=8).optimizer(model, OPTIMIZERS["engine"](model), batch_size=8)
    step(model, opt)
    (vector,) = flat_of(model)
    for seed in range(3):
        told(lambda: step(model, opt, seed))
        assert torch.equal(vector, torch.cat([one.detach().reshape(-1) for one in model.parameters()]))


# ---- the warning


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", MODELS)
def test_values_that_were_put_back_are_no_change(kind, rule, fake_run, monkeypatch):
    make, options = MODELS[kind]
    model = make()
    run = fake_run(target_batch_size=8)
    opt = run.optimizer(model, update_by(rule, monkeypatch)(model), batch_size=8, **options)
    other = [torch.zeros_like(one) for one in model.parameters()]

    @torch.no_grad()
    def evaluate():
        with run.paused("evaluating"):
            kept = [one.clone() for one in model.parameters()]
            for values in (other, kept):
                for mine, theirs in zip(model.parameters(), values):
                    mine.copy_(theirs)

    for seed in range(4):
        step(model, opt, seed)
        evaluate()
        assert not told(lambda: step(model, opt, seed))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("change", [clip, clip_in_place, give_other_memory])
@pytest.mark.parametrize("kind", MODELS)
def test_each_changed_weight_is_named_once(kind, change, rule, fake_run, monkeypatch):
    make, options = MODELS[kind]
    model = make()
    run = fake_run(target_batch_size=8)
    opt = run.optimizer(model, update_by(rule, monkeypatch)(model), batch_size=8, **options)
    step(model, opt)
    for at in range(3):
        with torch.no_grad():
            model[2].weight.fill_(1.0)
        change(model)
        texts = told(lambda: step(model, opt, at))
        assert [text.split()[0] for text in texts] == (["0.weight"] if at == 0 else [])
        step(model, opt, at)


@pytest.mark.parametrize(
    "shape", [(3000, 1024), (1024, 3000), (1 << 20,), (2, 3, 50, 7), ()], ids=str
)
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
def test_other_weights_of_any_shape_are_seen(shape, order):
    if order == torch.channels_last and len(shape) != 4:
        shape = (64, 8, 3, 3)
    bound, tensor = bound_to(torch.rand(shape).contiguous(memory_format=order))
    assert bound.check() is None
    with torch.no_grad():
        tensor.mul_(1)
        assert bound.check() is None
        tensor.mul_(0.5)
    assert bound.check() == "weight"


def test_changes_through_data_are_seen_on_the_host_once_a_round():
    bound, tensor = bound_to(torch.tensor([1.0, float("nan")]))
    assert bound.check() is None  # a value that is no number equals itself
    bound.mark()
    tensor.data[0] = 2.0
    assert bound.check() == "weight"
    bound.mark()
    assert bound.check() is None
    tensor.data[0] = 3.0
    assert bound.check() is None


# ---- the vector


def bound_to(values, alias=True):
    """One parameter with these values, bound to a vector."""
    tensor = torch.nn.Parameter(values.clone())  # nobody else holds its memory
    flat = values.reshape(-1).clone()
    bound = Bound([Entry("weight", tensor, 0, tensor.numel())], flat, alias)
    bound.take()
    return bound, tensor


@pytest.mark.parametrize("alias", [True, False])
def test_weights_of_others_reach_a_tensor_that_was_given_other_memory(alias):
    bound, tensor = bound_to(torch.ones(4), alias)
    tensor.data = torch.full((4,), 3.0)
    bound.flat.fill_(2.0)
    bound.take()
    assert tensor.tolist() == bound.flat.tolist() == [2.0] * 4


@pytest.mark.parametrize("alias", [True, False])
@pytest.mark.parametrize("call", ["take", "keep_changes", "mark"])
def test_a_tensor_that_was_converted_is_refused_before_any_value_crosses(call, alias):
    bound, tensor = bound_to(torch.ones(4), alias)
    tensor.data = tensor.data.half()
    with pytest.raises(MisuseError, match="weight has dtype torch.float16 now"):
        getattr(bound, call)()


def test_values_that_the_loop_left_alone_keep_their_float32_bits():
    tensor, flat = torch.nn.Parameter(torch.zeros(100).bfloat16()), torch.rand(100)
    bound = Bound([Entry("weight", tensor, 0, 100)], flat, True)
    bound.take()
    expected = flat.clone()
    tensor.data[7] = expected[7] = 2.5
    bound.keep_changes()
    assert torch.equal(flat, expected) and not torch.equal(flat, tensor.float())
