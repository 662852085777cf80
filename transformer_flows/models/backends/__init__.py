"""Backends: tilted sums over tokens, computed in different ways with one result."""

from ._backend import AbstractBackend as AbstractBackend
from .blockwise import Blockwise as Blockwise
from .choose import choose_backend as choose_backend
from .dense import Dense as Dense
