"""Paths: weights, controls and noise as functions of time, fixed before a solve."""

from ._path import AbstractPath as AbstractPath, AbstractProcess as AbstractProcess, Increment as Increment
from ._realise import find_paths as find_paths, find_processes as find_processes, realise as realise
from .brownian import Brownian as Brownian, BrownianPath as BrownianPath
from .constant import Constant as Constant
from .interpolated import Interpolated as Interpolated
from .ornstein_uhlenbeck import OrnsteinUhlenbeck as OrnsteinUhlenbeck, OrnsteinUhlenbeckPath as OrnsteinUhlenbeckPath
from .oscillating import Oscillating as Oscillating, phase_locked as phase_locked, phase_spread as phase_spread
from .piecewise_constant import PiecewiseConstant as PiecewiseConstant
from .prescribed import Prescribed as Prescribed
from .random_heads import RandomHeads as RandomHeads
from .variation import Variation as Variation, variation as variation
