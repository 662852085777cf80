"""Where a result comes from: versions, device, code, seed and time."""

import datetime
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "transformer-flows"
PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "numpy", "scipy", "xarray", "h5netcdf", "h5py")
PACKAGE_FOLDER = Path(__file__).resolve().parents[1]


def provenance(config: Mapping[str, Any], timing: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values that go into `provenance.json`."""
    version = _version(DISTRIBUTION)
    return {
        DISTRIBUTION: version,
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "device": _device(),
        "dtype": config["dtype"],
        "seed": config["seed"],
        "git": git_state(PACKAGE_FOLDER),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **timing,
        "citation": citation(config["source"], version),
    }


def citation(source: str, version: str | None) -> str:
    """What a reader of the result should cite."""
    software = f"{DISTRIBUTION} {version or '(not installed)'}, simulation of transformer token dynamics"
    return f"{software}; experiment of {source}" if source else software


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit of the code and whether it was changed since; None for code that git does not track."""
    # An installed package may lie inside somebody else's repository: ask for the files themselves.
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    return {"commit": _git(folder, "rev-parse", "HEAD"), "dirty": _git(folder, "status", "--porcelain", ".") != ""}


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, or None if it fails or is not installed."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(name: str) -> str | None:
    """The version installed; None for a package that is not, such as this one when run from its checkout."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _device() -> str:
    import jax

    devices = jax.devices()
    return f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"
