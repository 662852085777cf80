"""Differentiable simulation of transformer token dynamics: tokens as particles, attention as an interaction.

Start with `solve`. A flow (`AttentionFlow`) is a vector field on a manifold (`Sphere`, `Euclidean`); its weights are
`Heads`, or a path of heads in time; observables (`Energy`, `EnergyBalance`, …) are reduced inside the solve.
"""

from . import theory as theory, transport as transport
from .dynamics import (
    NGPT as NGPT,
    AbstractFlow as AbstractFlow,
    AbstractPlacement as AbstractPlacement,
    AttentionFlow as AttentionFlow,
    CommonNoiseDensityFlow as CommonNoiseDensityFlow,
    CommonNoiseFlow as CommonNoiseFlow,
    DensityFlow as DensityFlow,
    ItoFlow as ItoFlow,
    LNScaling as LNScaling,
    MobilityFlow as MobilityFlow,
    Network as Network,
    NoisyTangentFlow as NoisyTangentFlow,
    NormalisedFlow as NormalisedFlow,
    OneNorm as OneNorm,
    PeriNorm as PeriNorm,
    PostNorm as PostNorm,
    PreNorm as PreNorm,
    RestFlow as RestFlow,
    SqrtPostNorm as SqrtPostNorm,
    TangentFlow as TangentFlow,
    TwoNorms as TwoNorms,
    ValueNoiseFlow as ValueNoiseFlow,
)
from .experiments import load as load
from .geometry import (
    AbstractBasis as AbstractBasis,
    AbstractManifold as AbstractManifold,
    Euclidean as Euclidean,
    FourierModes as FourierModes,
    Frame as Frame,
    Polar as Polar,
    Sphere as Sphere,
    SphericalHarmonics as SphericalHarmonics,
)
from .integrate import (
    Solution as Solution,
    Status as Status,
    run_layers as run_layers,
    solve as solve,
    solve_ensemble as solve_ensemble,
)
from .models import (
    AbstractBackend as AbstractBackend,
    AbstractField as AbstractField,
    AbstractHeads as AbstractHeads,
    AbstractKind as AbstractKind,
    AbstractMask as AbstractMask,
    Blockwise as Blockwise,
    Causal as Causal,
    Dense as Dense,
    GaussianField as GaussianField,
    Gram as Gram,
    Hardmax as Hardmax,
    Harmonics as Harmonics,
    Heads as Heads,
    IdiosyncraticField as IdiosyncraticField,
    Measure as Measure,
    Monomials as Monomials,
    Padding as Padding,
    RandomFeatures as RandomFeatures,
    RandomMLP as RandomMLP,
    Softmax as Softmax,
    TiedHeads as TiedHeads,
    Unnormalised as Unnormalised,
    random_symmetric as random_symmetric,
)
from .observables import (
    AbstractIntegral as AbstractIntegral,
    AbstractObservable as AbstractObservable,
    Action as Action,
    Balance as Balance,
    ClusterCount as ClusterCount,
    Diameter as Diameter,
    Dissipation as Dissipation,
    Energy as Energy,
    EnergyBalance as EnergyBalance,
    EnergySlope as EnergySlope,
    GapEnergy as GapEnergy,
    LeastDensity as LeastDensity,
    LogEnergy as LogEnergy,
    NematicOrder as NematicOrder,
    OrderParameter as OrderParameter,
    PairwiseCosine as PairwiseCosine,
    Slope as Slope,
    TimeIntegral as TimeIntegral,
    settling_time as settling_time,
)
from .paths import (
    AbstractPath as AbstractPath,
    AbstractProcess as AbstractProcess,
    Brownian as Brownian,
    Constant as Constant,
    Interpolated as Interpolated,
    OrnsteinUhlenbeck as OrnsteinUhlenbeck,
    Oscillating as Oscillating,
    PiecewiseConstant as PiecewiseConstant,
    Prescribed as Prescribed,
    RandomHeads as RandomHeads,
    Variation as Variation,
    phase_locked as phase_locked,
    phase_spread as phase_spread,
    realise as realise,
    variation as variation,
)

__version__ = "0.1.0"
