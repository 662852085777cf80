"""Tokens on spheres and circles: all of them, at the right place, on the right side, in colours that stay."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from transformer_flows import reports
from transformer_flows.reports.access import snapshot_frames
from transformer_flows.reports.snapshots import cosine_shares
from transformer_flows.reports.sphere import camera, draw_sphere
from transformer_flows.reports.style import sequential

from .synthetic import moving_heads


def clouds(ax):
    return [artist for artist in ax.collections if isinstance(artist, PathCollection)]


def test_a_row_per_head_count_and_a_column_per_snapshot():
    data = moving_heads(frames=11)  # frames at 0, 2, …, 20
    figure = reports.plot_snapshots(data)
    assert len(figure.axes) == 12
    titles = [ax.get_title(loc="center") for ax in figure.axes[:4]]
    assert titles == ["$t$ = 0", "$t$ = 16", "$t$ = 18", "$t$ = 20"]
    assert [figure.axes[k].get_ylabel() for k in (0, 4, 8)] == ["$H$ = 1", "$H$ = 10", "$H$ = 100"]
    assert all(sum(len(cloud.get_offsets()) for cloud in clouds(ax)) == 12 for ax in figure.axes)


def test_tokens_stand_where_they_are_and_on_their_side():
    data = moving_heads(frames=11)
    placed = data["tokens"][1, 0].to_numpy() @ camera().T
    near = placed[:, 2] >= 0
    far_cloud, near_cloud = clouds(reports.plot_snapshots(data).axes[4])
    np.testing.assert_allclose(near_cloud.get_offsets(), placed[near, :2])
    np.testing.assert_allclose(far_cloud.get_offsets(), placed[~near, :2])
    assert far_cloud.get_zorder() < near_cloud.get_zorder()
    assert far_cloud.get_alpha() < near_cloud.get_alpha()


def test_the_eye_sees_what_it_looks_at_in_the_middle():
    elevation, azimuth = np.deg2rad([22.0, 32.0])
    towards = [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    np.testing.assert_allclose(camera((22.0, 32.0)) @ towards, [0, 0, 1], atol=1e-15)
    np.testing.assert_allclose(camera() @ camera().T, np.eye(3), atol=1e-15)
    assert np.linalg.det(camera()) == pytest.approx(1.0)  # no mirror image
    assert (camera() @ [0, 0, 1])[1] > 0  # north is up


def test_a_token_keeps_its_colour():
    ax = Figure().subplots()
    tokens = np.array([[0.0, 0, 1], [0, 0, -1], [1, 0, 0]])
    colours = sequential(3)
    draw_sphere(ax, tokens, colours, view=(0.0, 0.0))
    draw_sphere(ax, -tokens, colours, view=(0.0, 0.0))
    before, after = clouds(ax)[1], clouds(ax)[2]  # the third token, near and then far
    np.testing.assert_allclose(before.get_facecolors()[-1][:3], after.get_facecolors()[0][:3])
    assert len(set(colours)) == 3


def test_circle_shows_every_token():
    data = moving_heads(d=2)
    ax = reports.plot_snapshots(data).axes[0]
    np.testing.assert_allclose(clouds(ax)[0].get_offsets(), data["tokens"][0, 0])
    assert ax.get_aspect() == 1.0


def test_more_dimensions_show_the_cosines_of_all_pairs():
    data = moving_heads(d=5)
    figure = reports.plot_snapshots(data)
    heights = figure.axes[0].patches[0].get_data().values
    share, _ = cosine_shares(data["tokens"][0, 0].to_numpy())
    np.testing.assert_allclose(heights[share > 0], share[share > 0])
    assert figure.axes[0].get_yscale() == "log"


def test_shares_of_pairs():
    tokens = np.array([[2.0, 0, 0, 0], [1, 0, 0, 0], [-1, 0, 0, 0], [np.nan, 0, 0, 0]])
    share, bounds = cosine_shares(tokens)
    assert share[-1] == pytest.approx(1 / 3)
    assert share[0] == pytest.approx(2 / 3)
    assert (bounds[0], bounds[-1]) == (-1.0, 1.0)
    assert cosine_shares(tokens[:1])[0].sum() == 0


def test_a_state_that_was_not_reached_says_so():
    data = moving_heads(frames=11)
    data["tokens"][1, -1] = np.nan
    figure = reports.plot_snapshots(data)
    assert [len(ax.texts) for ax in figure.axes] == [0] * 7 + [1] + [0] * 4
    assert figure.axes[7].texts[0].get_text() == "not reached"


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [([0, 16, 18, 20], [0, 4, 5]), (16.0, [4]), (np.array([20.0]), [5]), (None, [0, 2, 3, 5]), ([], [0, 2, 3, 5])],
)
def test_snapshots_are_the_nearest_frames_once_each(snapshots, expected):
    tokens = moving_heads()["tokens"]  # frames at 0, 4, …, 20; 18 is as far from 16 as from 20: the earlier one
    tokens.attrs = {} if snapshots is None else {"snapshots": snapshots}
    assert snapshot_frames(tokens).tolist() == expected
