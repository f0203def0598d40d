"""Sensor noise: looks random, is none."""

import torch

from horizon_rl.task.noise import fold_seed, random_rows, symmetric_noise

ROWS, STEPS = torch.arange(200), torch.full((200,), 7)


def noise(seed=0, rows=ROWS, steps=STEPS):
    return symmetric_noise(fold_seed(seed), rows, steps, 45)


def test_values_are_pinned_on_every_device_and_version():
    values = symmetric_noise(
        fold_seed(3), torch.tensor([0, 5]), torch.tensor([0, 9]), 2
    )
    expected = torch.tensor(
        [
            [0.8994665145874023, 0.6955783367156982],
            [0.018830537796020508, 0.8584773540496826],
        ]
    )
    torch.testing.assert_close(values, expected, rtol=0.0, atol=0.0)


def test_noise_is_uniform_and_uncorrelated():
    steps = torch.arange(200).repeat_interleave(200)
    values = noise(rows=ROWS.repeat(200), steps=steps)
    assert values.min() >= -1.0 and values.max() < 1.0
    # 1.8 million values: the mean of a uniform one has s.d. 0.0004.
    assert abs(float(values.mean())) < 0.002
    assert abs(float(values.var()) - 1.0 / 3.0) < 0.002
    counts = torch.histc(values, bins=20, min=-1.0, max=1.0) / values.numel()
    assert (counts - 0.05).abs().max() < 0.001
    grid = values.view(200, 200, 45)
    for axis in range(3):
        a, b = (
            grid.narrow(axis, 0, grid.shape[axis] - 1),
            grid.narrow(axis, 1, grid.shape[axis] - 1),
        )
        assert abs(float((a * b).mean()) * 3.0) < 0.005


def test_noise_hangs_on_scenario_step_and_seed_alone():
    alone = noise(rows=torch.tensor([17]), steps=torch.tensor([7]))
    torch.testing.assert_close(noise()[17:18], alone, rtol=0.0, atol=0.0)
    for other in (noise(seed=1), noise(rows=ROWS + 1), noise(steps=STEPS + 1)):
        assert not torch.equal(noise(), other)


def test_rows_look_drawn_and_hang_on_world_step_and_seed_alone():
    key, worlds = fold_seed(0), torch.arange(400)
    drawn = torch.stack(
        [random_rows(key, worlds, torch.tensor(step), 50) for step in range(200)]
    )
    # 80 000 draws of 50 rows: 1600 of each, with s.d. 40.
    counts = torch.bincount(drawn.flatten(), minlength=50)
    assert len(counts) == 50 and (counts - 1600).abs().max() < 200
    # Neighbours in time and in the batch agree as often as chance has it: 1 in 50.
    for axis in range(2):
        same = (drawn.diff(dim=axis) == 0).float().mean()
        assert abs(float(same) - 0.02) < 0.003
    again = random_rows(torch.tensor(key), torch.tensor([17]), torch.tensor(7), 50)
    assert again == drawn[7, 17]
    other = random_rows(fold_seed(1), worlds, torch.tensor(7), 50)
    assert not torch.equal(other, drawn[7])


def test_large_seeds_differ():
    keys = {
        fold_seed(seed) for seed in (0, 1, 1 << 31, 1 << 32, 1 << 61, (1 << 61) + 1)
    }
    assert len(keys) == 6


def test_channels_can_be_had_one_by_one():
    key = fold_seed(0)
    last = symmetric_noise(key, ROWS, STEPS, 1, first=44)
    assert torch.equal(last, noise()[:, 44:])
