"""Random velocity fields: noise as a displacement of tokens, linear in the increments of a Brownian motion."""

from ._field import AbstractField as AbstractField, SumOfFields as SumOfFields
from ._realisation import AbstractRealisation as AbstractRealisation
from .gaussian import GaussianField as GaussianField
from .gram import Gram as Gram
from .harmonics import Harmonics as Harmonics
from .idiosyncratic import IdiosyncraticField as IdiosyncraticField
from .monomials import Monomials as Monomials
from .random_features import RandomFeatures as RandomFeatures
