# SPDX-License-Identifier: Apache-2.0
"""Which tensors are the vector, how the model's memory meets it, and what is refused."""

import pytest
import torch
from models import assert_equal, data, loss_of, mlp, train, with_batch_norm
from tradewind import UnsupportedError
from tradewind.model.layout import Means, collect, describe


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def layout_of(model, optimizer, mean_buffers=False):
    return collect(model, optimizer.param_groups, Means(mean_buffers, mean_buffers))


def test_the_order_is_that_of_the_groups():
    model = mlp()
    optimizer = torch.optim.SGD(
        [{"params": model[2].parameters()}, {"params": model[0].parameters()}], lr=0.1
    )
    layout = layout_of(model, optimizer)
    assert [entry.name for entry in layout.parameters] == ["2.weight", "2.bias", "0.weight", "0.bias"]
    assert [entry.first for entry in layout.parameters] == [256, 264, 265, 297]
    assert layout.group_sizes == (2, 2)


def test_a_tied_parameter_is_there_once():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    layout = layout_of(model, sgd(model.parameters()))
    assert [entry.name for entry in layout.parameters] == ["0.weight", "0.bias", "1.bias"]


def test_frozen_parameters_are_outside_but_compared():
    model = mlp()
    model[0].weight.requires_grad_(False)
    layout = layout_of(model, sgd(model.parameters()))
    assert "0.weight" not in [entry.name for entry in layout.parameters]
    text = describe(layout, [])
    assert "frozen: 0.weight (8, 4) float32" in text
    with torch.no_grad():
        model[0].weight[0, 0] += 1
    assert describe(layout, []) != text


def test_a_trained_parameter_outside_of_the_optimizer_is_named():
    model = mlp()
    with pytest.raises(
        UnsupportedError, match="2.weight is trained .*not in the optimizer.*requires_grad_"
    ):
        layout_of(model, sgd(model[0].parameters()))


def test_names_are_those_inside_of_what_torch_wraps_around():
    class Compiled(torch.nn.Module):
        def __init__(self, module):
            super().__init__()
            self._orig_mod = module

    model = Compiled(torch.nn.DataParallel(mlp()))
    layout = layout_of(model, sgd(model.parameters()))
    assert [entry.name for entry in layout.parameters] == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_tensors_that_share_part_of_their_memory_are_named():
    base = torch.zeros(6)
    model = torch.nn.Module()
    model.a, model.b = torch.nn.Parameter(base[:4]), torch.nn.Parameter(base[3:])
    with pytest.raises(UnsupportedError, match="a and b share memory"):
        layout_of(model, sgd(model.parameters()))


def parameters_of(*tensors):
    return torch.nn.ParameterList([torch.nn.Parameter(one) for one in tensors])


def test_tensors_in_one_memory_without_a_common_value_are_trained(fake_run):
    def columns():
        torch.manual_seed(1)
        whole = torch.randn(4, 9)
        return parameters_of(whole[:, :4], whole[:, 5:], whole[:, 4])

    def steps(model, opt):
        for _ in range(3):
            opt.zero_grad()
            sum((one - 1).pow(2).sum() for one in model).backward()
            opt.step()

    model, bare = columns(), columns()
    steps(bare, sgd(bare.parameters()))
    run = fake_run(target_batch_size=8)
    steps(model, run.optimizer(model, sgd(model.parameters()), batch_size=8))
    for mine, theirs in zip(model, bare):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_the_two_that_share_a_value_are_named():
    whole = torch.zeros(4, 9)
    bytes_ = torch.zeros(12, dtype=torch.uint8)
    for tensors, text in (
        ((whole[:, :4], whole[:, 6:], whole[:, 3:6]), "0 and 2 share memory"),
        ((whole, whole[1:2, 2]), "0 and 1 share memory"),
        ((whole[:, 0], whole[2]), "0 and 1 share memory"),
        ((bytes_[:8].view(torch.float32), bytes_[6:].view(torch.bfloat16)), "0 and 1 share memory"),
    ):
        model = parameters_of(*tensors)
        with pytest.raises(UnsupportedError, match=text):
            layout_of(model, sgd(model.parameters()))


class DTensor(torch.nn.Parameter):
    """What torch calls a shard."""


class FullyShardedDataParallel(torch.nn.Sequential):
    """torch's class of that name, by its name."""


def test_what_cannot_be_one_vector_is_refused():
    model = torch.nn.Module()
    model.a = DTensor(torch.zeros(2))
    with pytest.raises(UnsupportedError, match="a is a .*shard"):
        layout_of(model, sgd(model.parameters()))
    sharded = FullyShardedDataParallel(torch.nn.Linear(2, 2))
    with pytest.raises(UnsupportedError, match="FullyShardedDataParallel.*DistributedDataParallel"):
        layout_of(sharded, sgd(sharded.parameters()))
    lazy = torch.nn.LazyLinear(3)
    with pytest.raises(UnsupportedError, match="weight has no shape yet"):
        layout_of(lazy, sgd([lazy.weight]))
    complex_ = torch.nn.Module()
    complex_.c = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(UnsupportedError, match="c has dtype torch.complex64"):
        layout_of(complex_, sgd(complex_.parameters()))
    model = mlp().requires_grad_(False)
    with pytest.raises(UnsupportedError, match="no parameter that requires"):
        layout_of(model, sgd(model.parameters()))


def test_what_a_forward_pass_or_an_update_would_break_is_refused_by_name(fake_run):
    expanded = torch.nn.ParameterDict({"p": torch.nn.Parameter(torch.ones(1).expand(4))})
    lazy = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LazyBatchNorm1d(affine=False))
    renormed = torch.nn.Sequential(torch.nn.Embedding(5, 4, max_norm=1.0))
    for model, text in (
        (expanded, "p has values that share memory.*clone"),
        (lazy, "1.running_mean has no shape yet"),
        (renormed, "0.weight is changed by each forward pass.*max_norm"),
    ):
        run = fake_run()
        run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
        with pytest.raises(UnsupportedError, match=text):
            run.start()
        run.close()


def test_memory_that_other_processes_have_stays_theirs(fake_run):
    model = mlp().share_memory()
    run = fake_run(target_batch_size=8, rounds=1)
    opt = run.optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8)
    before = model[0].weight.data_ptr()
    loss_of(model, *data()).backward()
    opt.step()
    assert model[0].weight.is_shared() and model[0].weight.data_ptr() == before


def test_the_text_has_names_shapes_dtypes_and_groups():
    model = with_batch_norm()
    text = describe(layout_of(model, sgd(model.parameters()), mean_buffers=True), ["optimizer: x"])
    assert text.splitlines()[:3] == [
        "optimizer: x",
        "updates: updates (256,) float32",
        "group 0: 0.weight (6, 4) float32",
    ]
    assert "buffer: 1.running_mean (6,) float32" in text and "num_batches" not in text


def loop(run, opt, model, steps):
    inputs, targets = data()
    for _ in range(steps):
        opt.zero_grad()
        loss_of(model, inputs.to(model[0].weight.dtype), targets.to(model[0].weight.dtype)).backward()
        opt.step()


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_copies_equal_aliases_bit_for_bit(fake_run, kind):
    models = mlp(), mlp()
    for model, alias in zip(models, (True, False)):
        run = fake_run(target_batch_size=8, rounds=10)
        opt = run.optimizer(model, kind(model.parameters(), lr=0.01), batch_size=8, alias=alias)
        pointer = model[0].weight.data_ptr()
        loop(run, opt, model, 10)
        assert run.finished and (model[0].weight.data_ptr() == pointer) is not alias
        run.close()
    assert_equal(*models)


def test_bfloat16_parameters_have_a_float32_master(fake_run):
    model, other = mlp().bfloat16(), mlp()
    for name, value in other.state_dict().items():
        value.copy_(model.state_dict()[name])
    run = fake_run(target_batch_size=8, rounds=50)
    opt = run.optimizer(model, sgd(model.parameters()), batch_size=8)
    run.start()
    master = fake_run.engines[0].vectors[0]
    for _ in range(50):
        opt.zero_grad()
        for mine, theirs in zip(model.parameters(), other.parameters()):
            mine.grad = torch.full_like(mine, 1e-5)  # one step is less than bfloat16 can add
            theirs.grad = torch.full_like(theirs, float(torch.tensor(1e-5).bfloat16()))
        opt.step()
        with torch.no_grad():
            for theirs in other.parameters():
                theirs.sub_(0.1 * theirs.grad)
    flat = torch.cat([p.detach().reshape(-1) for p in other.parameters()])
    torch.testing.assert_close(torch.from_numpy(master[256:].copy()), flat, rtol=0, atol=1e-7)
    for mine, theirs in zip(model.parameters(), other.parameters()):
        assert torch.equal(mine, theirs.bfloat16())


def test_channels_last_stays(fake_run):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 1))
    other = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 1))
    other.load_state_dict(model.state_dict())
    model = model.to(memory_format=torch.channels_last)
    run = fake_run(target_batch_size=2, rounds=3)
    opt = run.optimizer(model, sgd(model.parameters()), batch_size=2)
    inputs = torch.randn(2, 3, 4, 4)
    bare = sgd(other.parameters())
    for _ in range(3):
        for one, optimizer in ((model, opt), (other, bare)):
            optimizer.zero_grad()
            one(inputs).pow(2).mean().backward()
            optimizer.step()
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(model[0].weight, other[0].weight, rtol=1e-5, atol=1e-6)


def test_several_modules_are_one_model(fake_run):
    first, second = mlp(), mlp(seed=2)
    optimizer = sgd([*first.parameters(), *second.parameters()])
    assert [entry.name for entry in layout_of([first, second], optimizer).parameters][4] == "1.0.weight"


def test_the_parameters_of_the_run_reach_a_model_that_had_others(fake_run):
    donor, model = mlp(seed=1), mlp(seed=2)
    run = fake_run(target_batch_size=8)
    run.optimizer(donor, sgd(donor.parameters()), batch_size=8)
    run.start()
    state = fake_run.engines[0].saved()
    run.close()
    run = fake_run(given=state, target_batch_size=8)
    run.optimizer(model, sgd(model.parameters()), batch_size=8)
    run.start()
    assert_equal(model, donor)
    train(donor, sgd(donor.parameters()), 1)
