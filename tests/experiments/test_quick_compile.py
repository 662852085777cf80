"""Flags that make XLA compile quickly: asked for only where XLA has them, and never in place of the user's own."""

import os

import pytest

from transformer_flows.experiments import quick_compile


def test_flags_are_known_or_not():
    """XLA would end this process at a flag that it lacks."""
    assert quick_compile.known("--xla_backend_optimization_level=0")
    assert not quick_compile.known("--xla_no_such_flag=1")


@pytest.mark.parametrize("own", ["", "--xla_backend_optimization_level=3"])
def test_flags_of_the_user_are_kept(monkeypatch, own):
    monkeypatch.setenv("XLA_FLAGS", own)
    quick_compile.compile_quickly(0)
    assert os.environ["XLA_FLAGS"] == own


def test_flags_are_set_where_xla_has_them(monkeypatch):
    monkeypatch.setattr(os, "environ", {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"})
    monkeypatch.setattr(quick_compile, "known", lambda flags: False)
    quick_compile.compile_quickly(1)
    assert "XLA_FLAGS" not in os.environ
    monkeypatch.setattr(quick_compile, "known", lambda flags: True)
    quick_compile.compile_quickly(1)
    assert "level=1" in os.environ["XLA_FLAGS"]
