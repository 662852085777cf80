"""Distances between clouds of tokens."""

from .wasserstein import optimal_matching as optimal_matching, wasserstein as wasserstein
