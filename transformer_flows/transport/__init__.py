"""Distances between clouds of tokens, and between Gaussians."""

from .bures import (
    bures_wasserstein as bures_wasserstein,
    squared_bures_wasserstein as squared_bures_wasserstein,
)
from .jko import jko_flow as jko_flow
from .sinkhorn import SinkhornDistance as SinkhornDistance, sinkhorn_distance as sinkhorn_distance
from .sliced import SlicedDistance as SlicedDistance, sliced_wasserstein as sliced_wasserstein
from .wasserstein import optimal_matching as optimal_matching, wasserstein as wasserstein
from .weighted import WeightedDistance as WeightedDistance, weighted_distance as weighted_distance
