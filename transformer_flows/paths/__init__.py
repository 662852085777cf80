"""Paths: weights, controls and noise as functions of time, fixed before a solve."""

from ._path import AbstractPath as AbstractPath, AbstractProcess as AbstractProcess, Increment as Increment
from .constant import Constant as Constant
from .interpolated import Interpolated as Interpolated
from .piecewise_constant import PiecewiseConstant as PiecewiseConstant
from .prescribed import Prescribed as Prescribed
