"""What GRAM's networks compute: the epinet, the spread of a guess, the trust in it."""

from typing import Any

import pytest
import torch

from horizon_rl.learning import GramCfg
from horizon_rl.learning.gram_networks import Epinet, HistoryEncoder, adaptation

GRAM = GramCfg(latent_dim=3, history=4, history_dims=(32, 16), epinet_dims=(16, 16))


def test_epinet_against_a_hand_computation():
    net: Any = Epinet(1, GramCfg(latent_dim=2, epinet_dims=(1, 1)), gain=1.0)
    _, second, _, last = net.rest
    with torch.no_grad():
        net.first.weight.copy_(torch.tensor([[1.0, 1.0, 1.0]]))
        second.weight.fill_(0.5)
        last.weight.copy_(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
    # Index (1, 2): 1 + 1 + 2 = 4, half of it 2, so ((2, 4), (6, 8)) times the index.
    # Index (-1, 1): 1 - 1 + 1 = 1, half of it 0.5, so ((0.5, 1), (1.5, 2)).
    found = net(torch.ones(1, 1), torch.tensor([[1.0, 2.0], [-1.0, 1.0]]))
    assert found.tolist() == [[[10.0, 22.0], [0.5, 0.5]]]


def test_the_spread_is_the_variance_that_indices_make():
    torch.manual_seed(0)
    encoder = HistoryEncoder(2, GRAM)
    history = torch.randn(5, 8)
    latent, spread = encoder.guess(history)
    features = encoder.trunk(history)
    seen = torch.cat((history, features), dim=1)
    for world in range(5):
        values = torch.stack(
            [
                (
                    encoder.epinet(seen[world], i[None])
                    - encoder.prior(seen[world], i[None])
                )
                for i in encoder.indices
            ]
        ).squeeze(1)
        mean = values.mean(dim=0)
        expected = ((values - mean).square().sum(dim=0) / (len(values) - 1)).sum()
        assert spread[world].item() == pytest.approx(expected.item(), rel=1e-4)
    torch.testing.assert_close(latent, encoder.head(features))
    # The prior is what the guess does not depend on, and nothing moves it.
    assert not any(p.requires_grad for p in encoder.prior.parameters())


def test_what_the_epinet_learns_does_not_move_the_guess():
    encoder = HistoryEncoder(2, GRAM)
    _, added = encoder(torch.randn(5, 8), encoder.indices)
    added.square().sum().backward()
    learnt = {
        name.split(".")[0]
        for name, p in encoder.named_parameters()
        if p.grad is not None
    }
    assert learnt == {"epinet"}


def test_trust_is_whole_up_to_the_usual_spread_and_falls_beyond():
    quantiles = torch.tensor([2.0, 4.0])
    found = adaptation(torch.tensor([0.0, 2.0, 3.0, 4.0, 6.0]), quantiles)
    assert found.tolist() == pytest.approx([1.0, 1.0, 0.1, 0.01, 1e-4])
    assert adaptation(torch.tensor([0.5]), torch.zeros(2)).item() == 0.0
