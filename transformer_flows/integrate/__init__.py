"""Solving: the only room that knows Diffrax."""

from diffrax import Bosh3 as Bosh3, Euler as Euler, Heun as Heun, Tsit5 as Tsit5

from ._observe import check_observe as check_observe
from ._start import check_start as check_start, refuse_outside_noise as refuse_outside_noise
from .ensemble import solve_ensemble as solve_ensemble
from .layers import run_layers as run_layers
from .solution import Solution as Solution, Status as Status
from .solve import solve as solve
