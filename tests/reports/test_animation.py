"""The GIF moves, and shows all tokens from the first frame to the last."""

import itertools

import numpy as np
import pytest
from PIL import Image

from transformer_flows import reports
from transformer_flows.reports.snapshots import draw_tokens

from .synthetic import moving_heads


def pictures(path):
    with Image.open(path) as gif:
        for k in range(gif.n_frames):
            gif.seek(k)
            yield np.asarray(gif.convert("RGB")).astype(int)


def test_first_and_last_frame_differ_and_both_show_every_token(tmp_path, monkeypatch):
    drawn = []

    def spy(ax, state, *args, **kwargs):
        draw_tokens(ax, state, *args, **kwargs)
        drawn.append((state.copy(), sum(len(cloud.get_offsets()) for cloud in ax.collections[2:])))

    monkeypatch.setattr("transformer_flows.reports.animation.draw_tokens", spy)
    data = moving_heads(heads=(1,), frames=30)
    path = reports.animate(data, tmp_path / "tokens.gif", frames=5, dpi=40)
    assert [count for _, count in drawn] == [12] * 5
    np.testing.assert_array_equal(drawn[0][0], data["tokens"][0, 0])
    np.testing.assert_array_equal(drawn[-1][0], data["tokens"][0, -1])
    shots = list(pictures(path))
    assert len(shots) == 5
    assert all(np.abs(a - b).max() > 60 for a, b in itertools.pairwise(shots))
    assert np.abs(shots[0] - shots[-1]).max() > 60


@pytest.mark.parametrize("d", [2, 5])
def test_other_dimensions_and_one_frame(tmp_path, d):
    data = moving_heads(heads=(1, 10), d=d, frames=1)
    path = reports.animate(data, str(tmp_path / "tokens.gif"), dpi=30)
    assert len(list(pictures(path))) == 1
