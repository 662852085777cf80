"""What a reader of a record needs of every variable."""

import numpy as np
import xarray


def unnamed(data: xarray.Dataset) -> list[str]:
    """The variables that do not say what they are, or numbers that do not say in which units."""
    numbers = lambda variable: np.issubdtype(variable.dtype, np.number)
    return [
        str(name)
        for name, variable in data.data_vars.items()
        if not variable.attrs.get("long_name") or (numbers(variable) and not variable.attrs.get("units"))
    ]
