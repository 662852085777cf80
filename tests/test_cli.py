"""The command line, in process: what it prints, where it writes, and its exit codes."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import jax
import pytest

from transformer_flows import cli, load, reports
from transformer_flows.experiments import catalogue
from transformer_flows.experiments.claims import CLAIMS, ClaimCheck, Measurement

from .experiments import toy
from .experiments.toy import Toy


@pytest.fixture(autouse=True)
def sandbox(monkeypatch, tmp_path):
    """Toy experiments, an empty directory, a private compilation cache, and JAX's settings put back."""
    monkeypatch.setitem(catalogue.KINDS, "toy", Toy)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(toy, "inside", toy.nothing)
    toy.computed.clear()
    (tmp_path / "toy.toml").write_text('kind = "toy"\ntitle = "a toy"\n')
    settings = {name: getattr(jax.config, name) for name in ("jax_enable_x64", "jax_compilation_cache_dir")}
    yield
    for name, value in settings.items():
        jax.config.update(name, value)


@pytest.fixture
def page(monkeypatch):
    """Stands in for the reports, which have tests of their own."""
    written = []

    def write_report(data, config, provenance, folder):
        written.append(folder)
        (folder / "index.html").write_text("a page")

    monkeypatch.setitem(vars(reports), "write_report", write_report)
    monkeypatch.setitem(vars(reports), "summary", lambda data: f"summary of {dict(data.sizes)}")
    return written


def test_list_names_paper_claim_and_time(capsys):
    assert cli.main(["list"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for words in ("ou_heads_s2", "arXiv:2605.18870", "arXiv:2312.10794", "tokens come near rest", "20 min"):
        assert words in out


def test_run_writes_the_folder_and_prints_a_summary(page, capsys, tmp_path):
    assert cli.main(["run", "toy.toml", "--set", "n=3", "--set", "law=unnormalised"]) == 0
    out = capsys.readouterr().out
    assert "summary of {'k': 3, 'i': 3}" in out
    assert "s compiling" in out and "runs/toy" in out
    assert load("runs/toy").config["law"] == "unnormalised"
    assert page == [load("runs/toy").folder]


def test_run_continues_a_folder_and_does_not_repeat_it(page, capsys):
    cli.main(["run", "toy.toml", "--out", "here", "--set", "n=2"])
    assert cli.main(["run", "here"]) == 0
    assert toy.computed == ["unit0", "unit1"]
    assert "finished already" in capsys.readouterr().err
    assert len(page) == 1
    assert cli.main(["run", "here", "--force"]) == 0
    assert len(toy.computed) == 4 and len(page) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "toy.toml", "--set", "n=0"], "n: got 0; allowed: an integer at least 1"),
        (["run", "toy.toml", "--set", "beta=inf"], "beta: got inf; allowed: a finite number at least 0"),
        (["run", "toy.toml", "--set", "betta=1"], "did you mean 'beta'?"),
        (["run", "toy.toml", "--out", "toy.toml"], "toy.toml is a file"),
        (["run", "toy.toml", "--out", "/proc/nowhere"], "/proc/nowhere"),
        (["run", "ou_heads_s3"], "did you mean 'ou_heads_s2'?"),
        (["verify", "no_such_claim"], "no claim matches 'no_such_claim'"),
        (["view", "nowhere"], "nowhere is not the folder of a run"),
    ],
)
def test_a_wrong_argument_is_one_clean_message_and_code_2(arguments, words, capsys):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err and captured.out == ""
    assert "Traceback" not in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_a_wrong_value_is_refused_before_a_device_is_touched():
    code = """
import sys
from jax._src import xla_bridge
from transformer_flows.cli import main
code = main(["run", "ou_heads_s2", "--set", "n=0"])
sys.exit(code + 10 * xla_bridge.backends_are_initialized())
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 2


def test_an_unknown_option_is_an_error_of_code_2(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "toy.toml", "--sett", "n=3"])
    assert stop.value.code == 2


def test_an_interrupted_run_says_how_to_resume(page, capsys, monkeypatch):
    monkeypatch.setattr(toy, "inside", lambda k: signal.raise_signal(signal.SIGTERM) if k == 1 else None)
    assert cli.main(["run", "toy.toml"]) == 128 + signal.SIGTERM
    assert "Resume with: transformer-flows run runs/toy" in capsys.readouterr().err
    assert page == []
    monkeypatch.setattr(toy, "inside", toy.nothing)
    assert cli.main(["run", "runs/toy"]) == 0
    assert toy.computed == ["unit0", "unit1", "unit2", "unit3"]


def test_the_config_chooses_the_precision_and_compiled_code_is_kept(page, tmp_path):
    jax.config.update("jax_compilation_cache_dir", None)
    cli.main(["run", "toy.toml", "--set", "dtype=float32"])
    assert not jax.config.jax_enable_x64
    cli.main(["run", "toy.toml", "--out", "double"])
    assert jax.config.jax_enable_x64
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "cache" / "transformer_flows" / "jax")


def test_verify_counts_failures_and_goes_on(monkeypatch, capsys):
    def broken(quick):
        raise ZeroDivisionError("no tokens left")

    checks = {
        "holds": lambda quick: Measurement(1.0, 1.05 if quick else 0.9, 0.9, 1.1, 0.02),
        "broken": broken,
        "off": lambda quick: Measurement(1.0, 2.0, 0.9, 1.1),
    }
    checks = {name: ClaimCheck(name, "paper", "words", measure) for name, measure in checks.items()}
    checks["doubted"] = ClaimCheck("doubted", "paper", "words", checks["off"].measure, contradicted="another number")
    monkeypatch.setattr("transformer_flows.experiments.verify.CLAIMS", checks)
    assert cli.main(["verify", "--quick"]) == 1
    captured = capsys.readouterr()
    assert "1.05 ± 0.02" in captured.out
    assert "ZeroDivisionError: no tokens left" in captured.out
    assert captured.out.count("fails") == 2 and captured.out.count("holds") == 2  # one is a name
    assert "Contradicted: another number" in captured.out and captured.out.count("contradicted") == 1
    assert "2 of 4 claims fail: broken, off" in captured.err
    assert cli.main(["verify", "hol"]) == cli.main(["verify", "doubted"]) == 0


def test_view_prints_the_page_and_opens_it_where_there_is_a_display(page, capsys, monkeypatch, tmp_path):
    cli.main(["run", "toy.toml"])
    capsys.readouterr()
    opened = []
    monkeypatch.setattr(cli, "webbrowser", SimpleNamespace(open=opened.append))
    monkeypatch.setattr(cli, "_has_display", lambda: True)
    assert cli.main(["view", "runs/toy", "--no-open"]) == 0
    assert opened == []
    assert cli.main(["view", "runs/toy"]) == 0
    path = tmp_path / "runs" / "toy" / "index.html"
    assert capsys.readouterr().out.split() == [str(path)] * 2
    assert opened == [path.as_uri()]


def test_every_registered_claim_can_be_selected_by_name():
    from transformer_flows.experiments.verify import select

    assert len(CLAIMS) >= 8
    for name in CLAIMS:
        assert name in [check.name for check in select(name)]
    assert [check.name for check in select("two_tok*")] == ["two_tokens"]
