"""Runs that stop, crash, are damaged, or meet each other."""

import io
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from rich.console import Console

from transformer_flows.experiments.folder import RunFolder, RunFolderError
from transformer_flows.experiments.record import load
from transformer_flows.experiments.runner import RunInterrupted, compute, run

from . import toy
from .toy import Toy

SPEC = Toy(n=5, title="toy", seed=3)


@pytest.fixture
def console():
    return Console(record=True, file=io.StringIO(), width=200)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    toy.computed.clear()
    monkeypatch.setattr(toy, "inside", toy.nothing)


def fail_in(number):
    def inside(k):
        if k == number:
            raise OverflowError("too large")

    return inside


def test_a_run_leaves_a_record(tmp_path, console):
    record = run(SPEC, tmp_path / "run", console=console)
    assert record.data.identical(compute(SPEC))
    assert record.data["x"].attrs["units"] == "dimensionless"
    assert record.config == SPEC.as_dict()
    assert record.provenance["seed"] == 3 and record.provenance["units"] == 5
    assert {"python", "jax", "device", "dtype", "git", "citation"} <= record.provenance.keys()
    assert record.provenance["wall_seconds"] >= record.provenance["compile_seconds"] >= 0
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["config.toml", "provenance.json", "record.nc"]


def test_a_failed_run_resumes_bitwise(tmp_path, console, monkeypatch):
    whole = run(SPEC, tmp_path / "whole", console=console).data
    toy.computed.clear()
    monkeypatch.setattr(toy, "inside", fail_in(3))
    with pytest.raises(OverflowError, match="too large") as caught:
        run(SPEC, tmp_path / "part", console=console)
    assert caught.value.__notes__ == ["in the unit 'unit3' of the run"]
    monkeypatch.setattr(toy, "inside", toy.nothing)
    record = run(SPEC, tmp_path / "part", console=console)
    assert toy.computed == ["unit0", "unit1", "unit2", "unit3", "unit4"]
    assert record.data.identical(whole)
    assert record.provenance["units_resumed"] == 3


@pytest.mark.parametrize(
    ("signals", "codes", "words"),
    # Which of two signals is handled first is not certain on a busy machine.
    [([signal.SIGKILL], {-signal.SIGKILL}, ""), ([signal.SIGTERM, signal.SIGINT], {130, 143}, "Stopped at once")],
    ids=["kill -9", "second signal"],
)
def test_a_process_that_dies_loses_one_unit(signals, codes, words, tmp_path, console):
    program = f"""
from tests.experiments import toy
from transformer_flows.experiments.runner import run
toy.signal_in_unit(2, {[int(number) for number in signals]})
run(toy.Toy(n=5, title="toy", seed=3, dtype="float32"), {str(tmp_path)!r})
"""
    dead = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert dead.returncode in codes, dead.stderr
    assert words in dead.stderr
    assert sorted(p.name for p in (tmp_path / "units").iterdir()) == ["unit0.npz", "unit1.npz"]
    (tmp_path / "record.nc.123.part").write_text("half a file")
    spec = Toy(n=5, title="toy", seed=3, dtype="float32")
    record = run(spec, tmp_path, console=console)  # and the lock of the dead process is no obstacle
    assert toy.computed == ["unit2", "unit3", "unit4"]
    assert record.data.identical(compute(spec))
    assert not list(tmp_path.glob("*.part"))


def test_a_signal_finishes_the_unit_and_says_how_to_resume(tmp_path, console, monkeypatch):
    monkeypatch.setattr(toy, "inside", lambda k: os.kill(os.getpid(), signal.SIGINT) if k == 1 else None)
    with pytest.raises(RunInterrupted, match=r"Stopped after 2 of 5 units. Resume with: transformer-flows run") as stop:
        run(SPEC, tmp_path / "run", console=console)
    assert stop.value.exit_code == 130
    assert "Finishing the current unit" in console.export_text()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(FileNotFoundError, match="not finished"):
        load(tmp_path / "run")
    monkeypatch.setattr(toy, "inside", toy.nothing)
    assert run(SPEC, tmp_path / "run", console=console).data.identical(compute(SPEC))


def test_runs_outside_the_main_thread(tmp_path, console):
    thread = threading.Thread(target=run, args=(SPEC, tmp_path), kwargs={"console": console})
    thread.start()
    thread.join()
    assert load(tmp_path).config == SPEC.as_dict()


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


def of_another_unit(path):
    path.write_bytes(path.with_name("unit0.npz").read_bytes())


@pytest.mark.parametrize("damage", [flip_a_byte, cut_in_half, empty, of_another_unit])
def test_a_damaged_checkpoint_is_computed_again(damage, tmp_path, console, monkeypatch):
    monkeypatch.setattr(toy, "inside", fail_in(3))
    with pytest.raises(OverflowError):
        run(SPEC, tmp_path, console=console)
    damage(tmp_path / "units" / "unit1.npz")
    monkeypatch.setattr(toy, "inside", toy.nothing)
    toy.computed.clear()
    record = run(SPEC, tmp_path, console=console)
    assert toy.computed == ["unit1", "unit3", "unit4"]
    assert record.data.identical(compute(SPEC))
    assert "checkpoint not usable" in console.export_text()


def test_a_finished_run_is_not_computed_again_unless_forced(tmp_path, console):
    first = run(SPEC, tmp_path, console=console)
    toy.computed.clear()
    assert run(SPEC, tmp_path, console=console).data.identical(first.data)
    assert toy.computed == []
    assert "is finished already" in console.export_text()
    (tmp_path / "index.html").write_text("the page of the old run")
    run(SPEC, tmp_path, force=True, console=console)
    assert len(toy.computed) == 5
    assert not (tmp_path / "index.html").exists()


def test_a_folder_of_another_config_is_refused(tmp_path, console):
    run(SPEC, tmp_path, console=console)
    other = Toy(n=5, title="toy", seed=4)
    with pytest.raises(RunFolderError, match="seed: 3 in the folder, 4 asked for"):
        run(other, tmp_path, console=console)
    assert run(other, tmp_path, force=True, console=console).config["seed"] == 4


def test_a_folder_with_other_files_is_refused(tmp_path, console):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunFolderError, match="is not empty and is not the folder of a run"):
        run(SPEC, tmp_path, console=console)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_runs_in_one_folder(tmp_path, console):
    with (
        RunFolder(tmp_path).locked(),
        pytest.raises(RunFolderError, match=f"in use by another run \\(process {os.getpid()}\\)"),
    ):
        run(SPEC, tmp_path, console=console)
    run(SPEC, tmp_path, console=console)


def test_nothing_is_pickled(tmp_path, console, monkeypatch):
    monkeypatch.setattr(toy, "inside", fail_in(1))
    with pytest.raises(OverflowError):
        run(SPEC, tmp_path, console=console)
    with np.load(tmp_path / "units" / "unit0.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


def test_float64_must_be_on(tmp_path, console, monkeypatch):
    import jax

    with jax.enable_x64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
        run(SPEC, tmp_path, console=console)
