"""The interactive figure: every frame is a state, nothing is shared between them, and the size has a bound."""

import json

import numpy as np
import pytest

from transformer_flows import reports
from transformer_flows.reports.interactive import MOST_FRAMES, encoded_bytes, thin

from .synthetic import moving_heads

COORDINATES = ("x", "y", "z")


def test_frames_are_the_states_of_the_chosen_heads():
    data = moving_heads()
    figure = reports.interactive_tokens(data, 10)
    tokens = data["tokens"].sel(heads=10).to_numpy()
    assert len(figure.frames) == 6
    for frame, state in zip(figure.frames, tokens, strict=True):
        moving = np.stack([frame.data[0][name] for name in COORDINATES], axis=-1)
        np.testing.assert_allclose(moving, state, atol=1e-7)
    assert figure.frames[0].traces == (len(figure.data) - 1,)
    assert [step.label for step in figure.layout.sliders[0].steps] == ["0", "4", "8", "12", "16", "20"]
    assert [step.args[0] for step in figure.layout.sliders[0].steps] == [(str(k),) for k in range(6)]


def test_first_frame_and_figure_are_separate_copies():
    data = moving_heads()
    before = data["tokens"].to_numpy().copy()
    figure = reports.interactive_tokens(data)
    shown, first = figure.data[-1], figure.frames[0].data[0]
    for name in COORDINATES:
        assert not np.shares_memory(shown[name], first[name])
        np.testing.assert_array_equal(shown[name], first[name])
    figure.data[-1].x = np.zeros(12)
    assert np.abs(first.x).min() > 0
    np.testing.assert_array_equal(data["tokens"], before)
    text = figure.to_json()
    content = json.loads(text)
    assert content["frames"][0]["data"][0]["x"]["bdata"] != content["frames"][1]["data"][0]["x"]["bdata"]


def test_unknown_heads_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"got 7, but the run has \[1, 10, 100\]"):
        reports.interactive_tokens(moving_heads(), 7)


def test_circle_and_histogram():
    circle = reports.interactive_tokens(moving_heads(d=2))
    assert [trace.type for trace in circle.data] == ["scatter", "scatter"]
    assert circle.layout.yaxis.scaleanchor == "x"
    bars = reports.interactive_tokens(moving_heads(d=5))
    assert [trace.type for trace in bars.data] == ["bar"]
    assert bars.frames[-1].data[0].y.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [(4001, 200, 3), (50, 20_000, 3), (3, 1_000_000, 3), (1, 5, 2), (20_000, 50, 1)])
def test_thinning_keeps_the_budget_the_ends_and_the_snapshots(shape):
    budget = 600_000
    keep = np.unique([0, shape[0] // 2, shape[0] - 1])
    frames, tokens = thin(shape, budget, keep=keep)
    assert (frames.size + 1) * encoded_bytes(tokens.size, shape[2]) <= budget
    assert {0, shape[0] - 1} <= set(frames.tolist())
    assert set(keep.tolist()) <= set(frames.tolist())
    assert frames.size >= min(shape[0], 20)
    assert frames.size <= MOST_FRAMES + keep.size
    assert np.unique(tokens).size == tokens.size <= shape[1]


def test_left_out_tokens_are_said_and_keep_name_and_colour():
    data = moving_heads(heads=(1,), n=60, frames=8)
    full = reports.interactive_tokens(data)
    figure = reports.interactive_tokens(data, token_bytes=2_000)
    assert figure.layout.annotations[0].text.endswith("of 60 tokens shown")
    trace, whole = figure.data[-1], full.data[-1]
    assert len(trace.x) == len(trace.text) < 60
    index = [int(text.split()[1]) for text in trace.text]
    np.testing.assert_array_equal(trace.x, whole.x[index])
    assert list(trace.marker.color) == [whole.marker.color[i] for i in index]


def test_missing_tokens_and_a_single_frame_are_no_fault():
    data = moving_heads(heads=(1,), frames=1)
    data["tokens"][...] = np.nan
    figure = reports.interactive_tokens(data)
    assert len(figure.frames) == 1
    assert "NaN" not in figure.to_json()
