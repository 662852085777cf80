"""The variables of a record that say how an error falls with a level; `reports.plot_scaling` draws them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .power_law import PowerLaw

UNITS = {"units": "dimensionless"}


def scaling_variables(
    error: np.ndarray, levels: np.ndarray, laws: Sequence[PowerLaw], expected: Sequence[float], long_name: str
) -> dict[str, Any]:
    """Variables of a dataset from errors (series, level, draw), their levels (series, level) and fitted laws.

    `expected` holds the powers that theory gives, NaN where it gives none; `long_name` says what the levels are. A
    series with fewer draws holds NaN for the rest.
    """
    fields = {
        "scaling_power": "exponent",
        "scaling_power_low": "low",
        "scaling_power_high": "high",
        "scaling_prefactor": "prefactor",
    }
    fitted = {
        name: ("series", np.array([getattr(law, field) for law in laws]), UNITS) for name, field in fields.items()
    }
    return {
        "scaling_error": (("series", "level", "draw"), error, UNITS | {"long_name": "error"}),
        "scaling_level": (("series", "level"), levels, UNITS | {"long_name": long_name}),
        **fitted,
        "scaling_power_expected": ("series", np.array(expected, float), UNITS),
    }
