"""Checking claims one after the other, with a table that grows while they are checked."""

import contextlib
import fnmatch
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

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
Take = Callable[[deque[tuple[int, ClaimCheck]]], tuple[int, ClaimCheck]]
# Most of the time is compilation, which two threads share well: one takes claims from the front, one from the back.
ENDS: tuple[Take, ...] = (deque.popleft, deque.pop)
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
    waiting = deque(enumerate(checks))
    done: dict[int, Claim] = {}
    # Only a terminal can show a table that grows.
    live = Live(_table({}), console=console, auto_refresh=False) if console.is_terminal else contextlib.nullcontext()
    with live, ThreadPoolExecutor(len(ENDS)) as pool:
        try:
            for place, claim in _as_checked(pool, waiting, quick):
                done[place] = claim
                if isinstance(live, Live):
                    live.update(_table(done), refresh=True)
        except KeyboardInterrupt:
            waiting.clear()
            pool.shutdown(wait=False)
            raise
    if not console.is_terminal:
        console.print(_table(done))
    return [done[place] for place in sorted(done)]


def _as_checked(
    pool: ThreadPoolExecutor, waiting: deque[tuple[int, ClaimCheck]], quick: bool
) -> Iterator[tuple[int, Claim]]:
    """Check claims from both ends at once; yields each with its place when it is done.

    Neighbours share what they compute, or the code for it, so that threads side by side would wait for each other.
    """
    running: dict[Future[Claim], tuple[int, Take]] = {}

    def start(take: Take) -> None:
        if waiting:
            place, check = take(waiting)
            running[pool.submit(check, quick)] = place, take

    for take in ENDS:
        start(take)
    while running:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            place, take = running.pop(future)
            start(take)
            yield place, future.result()


def _table(done: Mapping[int, Claim]) -> Table:
    table = Table(title="Claims", title_justify="left")
    table.add_column("claim", overflow="fold")
    for name in ("predicted", "measured", "accepted"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    table.add_column("s", justify="right")
    for place in sorted(done):
        table.add_row(*_row(done[place]))
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
