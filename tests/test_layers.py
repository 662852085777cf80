"""The tree reads in one direction: a package imports only from packages above it in the list of the design."""

import ast
import pathlib

import pytest

import transformer_flows

ROOT = pathlib.Path(transformer_flows.__file__).parent
ORDER = (
    "geometry",
    "theory",
    "models",
    "paths",
    "dynamics",
    "observables",
    "integrate",
    "transport",
    "control",
    "pretrained",
    "experiments",
    "reports",
    "cli",
)
FOR_ALL = ("_types", "_checks")
ONLY_IN = {
    "diffrax": ("integrate",),
    "optax": ("control",),
    "matplotlib": ("reports",),
    "plotly": ("reports",),
    "ott": ("transport",),
}


def room(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: pathlib.Path) -> set[str]:
    """Full names of the modules that a file imports, relative ones resolved."""
    package = ("transformer_flows", *path.relative_to(ROOT).parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *filter(None, [node.module])))
            names |= {stem} if node.module else {f"{stem}.{alias.name}" for alias in node.names}
    return names


def wrong_arrows(path: pathlib.Path) -> list[str]:
    here = room(path)
    wrong = []
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "transformer_flows":
            there = parts[1] if len(parts) > 1 else "__init__"
            above = there in FOR_ALL or there == here or (there in ORDER and ORDER.index(there) < _index(here))
            if not above:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
        elif here not in ONLY_IN.get(parts[0], (here,)):
            wrong.append(f"{path.relative_to(ROOT)} imports {name}, which lives in {ONLY_IN[parts[0]]} only")
    return wrong


def _index(here: str) -> int:
    if here in FOR_ALL:
        return 0
    return len(ORDER) if here == "__init__" else ORDER.index(here)


FILES = sorted(ROOT.rglob("*.py"))


def test_every_room_is_in_the_order():
    assert {room(path) for path in FILES} <= {*ORDER, *FOR_ALL, "__init__"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_upwards(path):
    assert not wrong_arrows(path)


def test_a_wrong_arrow_is_seen(tmp_path, monkeypatch):
    """The checker itself: a drawing that imports Diffrax from geometry is caught."""
    monkeypatch.setattr("tests.test_layers.ROOT" if __name__.startswith("tests.") else f"{__name__}.ROOT", tmp_path)
    bad = tmp_path / "geometry" / "bad.py"
    bad.parent.mkdir()
    bad.write_text("import diffrax\nfrom ..dynamics import AttentionFlow\nfrom .. import reports\nimport numpy\n")
    assert len(wrong_arrows(bad)) == 3


def test_files_stay_short():
    long = {str(path.relative_to(ROOT)): n for path in FILES if (n := len(path.read_text().splitlines())) > 400}
    assert not long
