"""The variables of a record that say how an error falls with a level; `reports.plot_scaling` draws them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .power_law import PowerLaw

UNITS = {"units": "dimensionless"}
FITTED = {
    "power": ("exponent", "power b of the law a·level^b fitted to the means over the draws"),
    "power_low": ("low", "low end of the 95 % interval of the power"),
    "power_high": ("high", "high end of the 95 % interval of the power"),
    "prefactor": ("prefactor", "prefactor a of the fitted law"),
}


def scaling_variables(
    error: np.ndarray,
    levels: np.ndarray,
    laws: Sequence[PowerLaw],
    expected: Sequence[float],
    level_names: str | Sequence[str],
) -> dict[str, Any]:
    """Variables of a dataset from errors (series, level, draw), their levels (series, level) and fitted laws.

    `expected` holds the powers that theory gives, NaN where it gives none; `level_names` says what the levels are, of
    all series or of each. A series with fewer draws holds NaN for the rest.
    """
    names = [level_names] * len(levels) if isinstance(level_names, str) else [*level_names]
    fitted = {
        f"scaling_{name}": ("series", np.array([getattr(law, field) for law in laws]), about(long_name))
        for name, (field, long_name) in FITTED.items()
    }
    return {
        "scaling_error": (("series", "level", "draw"), error, about("error")),
        "scaling_level": (("series", "level"), levels, about(names[0] if len({*names}) == 1 else "level")),
        "scaling_level_name": ("series", np.array(names), {"long_name": "what the levels are"}),
        **fitted,
        "scaling_power_expected": ("series", np.array(expected, float), about("power that theory gives")),
    }


def about(long_name: str) -> dict[str, str]:
    """Attributes of a variable without units."""
    return UNITS | {"long_name": long_name}
