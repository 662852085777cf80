"""Checking claims one after the other, with a table that grows while they are checked."""

import contextlib
import fnmatch
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from . import (
    claims_common_noise_density as _common_noise_density,
    claims_mean_field as _mean_field,
    claims_moving_heads as _moving_heads,
    claims_scalar_laws as _scalar_laws,
    claims_stability as _stability,
    claims_synchronisation as _synchronisation,
    claims_transport as _transport,
    claims_two_flows as _two_flows,
)
from .claims import CLAIMS, Claim, ClaimCheck
from .spec import SpecError, known_names

# Imported for their effect: each module registers its claims.
SUBJECTS = (
    _scalar_laws,
    _moving_heads,
    _two_flows,
    _transport,
    _stability,
    _mean_field,
    _synchronisation,
    _common_noise_density,
)
WORKERS = 2
STYLES = {"holds": "green", "contradicted": "bold yellow", "fails": "bold red"}


def select(pattern: str) -> list[ClaimCheck]:
    """The claims whose name contains the pattern, or matches it where it holds wildcards; `SpecError` if none does."""
    wild = pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"
    chosen = [check for name, check in CLAIMS.items() if fnmatch.fnmatchcase(name, wild)]
    if not chosen:
        raise SpecError(f"pattern: no claim matches {pattern!r}; {known_names(pattern, [*CLAIMS])}")
    return chosen


def verify(checks: Iterable[ClaimCheck], *, quick: bool, console: Console) -> list[Claim]:
    """Check each claim and print the table: predicted, measured ± interval, verdict."""
    table = _table()
    done: list[Claim] = []
    # Only a terminal can show a table that grows.
    live = Live(table, console=console, auto_refresh=False) if console.is_terminal else contextlib.nullcontext()
    # Most of the time is compilation, which two threads share well.
    with live, ThreadPoolExecutor(WORKERS) as pool:
        try:
            for claim in pool.map(lambda check: check(quick), checks):
                done.append(claim)
                table.add_row(*_row(claim))
                if isinstance(live, Live):
                    live.refresh()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if not console.is_terminal:
        console.print(table)
    return done


def _table() -> Table:
    table = Table(title="Claims", title_justify="left")
    table.add_column("claim", overflow="fold")
    for name in ("predicted", "measured", "accepted"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    table.add_column("s", justify="right")
    return table


def _row(claim: Claim) -> tuple[str | Text, ...]:
    about = Text.assemble((claim.name, "bold"), f"\n{claim.statement} ({claim.source})")
    if claim.fault:
        about.append(f"\n{claim.fault}", style="red")
    elif claim.contradicted:
        about.append(f"\nContradicted: {claim.contradicted}", style="yellow")
    measured = f"{claim.measured:.4g}" + (f" ± {claim.error:.1g}" if claim.error else "")
    accepted = f"{claim.low:.4g} … {claim.high:.4g}"
    verdict = Text(claim.verdict, style=STYLES[claim.verdict])
    return about, f"{claim.predicted:.4g}", measured, accepted, verdict, f"{claim.seconds:.1f}"
