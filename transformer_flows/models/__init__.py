"""The transformer: heads, kinds of attention, masks, the backends that evaluate them, random MLPs and fields."""

from .backends import (
    AbstractBackend as AbstractBackend,
    Blockwise as Blockwise,
    Dense as Dense,
    choose_backend as choose_backend,
)
from .fields import (
    AbstractField as AbstractField,
    AbstractRealisation as AbstractRealisation,
    GaussianField as GaussianField,
    Gram as Gram,
    Harmonics as Harmonics,
    IdiosyncraticField as IdiosyncraticField,
    Monomials as Monomials,
    RandomFeatures as RandomFeatures,
    SumOfFields as SumOfFields,
)
from .heads import (
    AbstractHeads as AbstractHeads,
    Heads as Heads,
    TiedHeads as TiedHeads,
    random_symmetric as random_symmetric,
)
from .kinds import (
    AbstractKind as AbstractKind,
    Hardmax as Hardmax,
    Softmax as Softmax,
    Unnormalised as Unnormalised,
)
from .masks import AbstractMask as AbstractMask, Causal as Causal, Padding as Padding
from .measure import Measure as Measure
from .random_mlp import RandomMLP as RandomMLP
from .tilt import (
    Tilt as Tilt,
    apply_heads as apply_heads,
    log_harmonic_mean as log_harmonic_mean,
    mean_norm_square as mean_norm_square,
    mean_square as mean_square,
    pair_products as pair_products,
    queries as queries,
    times_exp as times_exp,
)
