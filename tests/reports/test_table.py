"""The summary holds the right numbers and survives whatever a title or a run contains."""

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from transformer_flows import reports
from transformer_flows.reports.cells import number
from transformer_flows.reports.markup import summary_table
from transformer_flows.reports.table import with_spread

from .synthetic import diagram, equiangular, moving_heads


def rows(data):
    return dict(reports.summarise(data).rows)


def test_moving_heads_have_a_column_per_head_count():
    data = moving_heads()
    content = reports.summarise(data)
    assert content.columns == ("H = 1", "H = 10", "H = 100")
    last = data["slope"][1, :, -1]
    expected = f"{float(last.mean()):.4g} ± {float(last.std(ddof=1)):.2g}"
    assert rows(data)["G² at t = 20"][1] == expected
    assert rows(data)["paths"] == ("3", "3", "3")
    assert rows(data)["the same with the realised noise term"] == ("0.02", "0.02", "0.02")
    assert content.notes == (
        "± is the standard deviation over the paths",
        "mean G² ≈ 1.2 · H^b with b = -1.000, interval [-1.100, -0.900]",
    )


def test_scalar_laws_and_diagram():
    assert reports.summarise(equiangular()).columns == ("softmax", "unnormalisé")
    assert rows(equiangular())["largest |cosine − predicted|"] == ("1e-06", "1e-06")
    assert rows(equiangular())["largest relative error of the hitting time"] == ("0.01", "0.01")
    assert len(rows(diagram())) == 1


def test_blocks_with_other_cases_stand_one_below_the_other():
    both = xr.merge([equiangular().drop_dims("t"), moving_heads()[["mean_slope"]]])
    both.attrs["title"] = "both"
    content = reports.summarise(both)
    heads, laws = content.blocks
    assert (heads[0], laws[0]) == (["H = 1", "H = 10", "H = 100"], ["softmax", "unnormalisé"])
    assert [len(cells) for _, cells in content.rows] == [3, 3, 2]
    # in the terminal and on the page: no cell is empty, and each block has a head of its own
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(reports.summary(both))
    lines = console.export_text().splitlines()
    first, second = (next(k for k, line in enumerate(lines) if name in line) for name in ("H = 100", "softmax"))
    assert lines[0].strip() == "both" and lines[-1].strip().startswith("±") and second > first + 3
    filled = [line for line in lines if line.startswith("│")]
    assert len(filled) == 3 and all(cell.strip() for line in filled for cell in line.strip("│").split("│"))
    page = summary_table(content)
    assert page.count("<table>") == 2 and '<td class="number"></td>' not in page


@pytest.mark.parametrize(
    ("sample", "text"),
    [([1.0, 3.0], "2 ± 1.4"), ([2.0], "2"), ([1.0, 3.0, np.nan], "2 ± 1.4 (2 of 3 paths)"), ([np.nan], "–")],
)
def test_spread_is_over_the_finite_paths(sample, text):
    assert with_spread(np.array(sample)) == text


@pytest.mark.parametrize("data", [moving_heads(heads=(1,), paths=1, times=1), equiangular(), diagram(), xr.Dataset()])
def test_prints_with_brackets_and_letters_of_any_kind(data):
    data.attrs["title"] = "[bold]Köpfe — 头[/nothing]"
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(reports.summary(data))
    assert "[bold]Köpfe — 头[/nothing]" in " ".join(console.export_text().split())  # a narrow table breaks its title


def test_nothing_finite_is_a_dash():
    data = moving_heads()
    for name in data.data_vars:
        data[name] = data[name].astype(float) * np.nan
    assert rows(data)["largest |residual| of the balance"] == ("–", "–", "–")


def test_a_largest_value_says_when_it_is_not_that_of_the_whole_run():
    data = moving_heads()
    data["balance_residual"][1, 0, 4:] = np.nan
    data["balance_residual"][2] = np.inf
    first, second, third = rows(data)["largest |residual| of the balance"]
    assert (first.partition(" ")[2], second.partition(" ")[2], third) == ("", "(of the finite values)", "–")
    assert float(second.split()[0]) > 0


@pytest.mark.parametrize(("value", "words"), [(np.inf, "∞"), (-np.inf, "−∞"), (np.nan, "–"), (1e300, "1e+300")])
def test_numbers_that_are_not_finite_have_words(value, words):
    assert number(value) == words
