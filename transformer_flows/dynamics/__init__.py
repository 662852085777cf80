"""Vector fields."""

from ._flow import AbstractFlow as AbstractFlow, existing_tokens as existing_tokens
from ._heads_flow import AbstractHeadsFlow as AbstractHeadsFlow, refuse_untied as refuse_untied
from ._measure_flow import AbstractMeasureFlow as AbstractMeasureFlow
from ._noisy_flow import (
    AbstractItoFlow as AbstractItoFlow,
    AbstractNoisyFlow as AbstractNoisyFlow,
    AbstractStratonovichFlow as AbstractStratonovichFlow,
)
from .attention import AttentionFlow as AttentionFlow
from .common_noise import CommonNoiseFlow as CommonNoiseFlow, ItoFlow as ItoFlow
from .common_noise_density import CommonNoiseDensityFlow as CommonNoiseDensityFlow
from .density import DensityFlow as DensityFlow
from .gaussian import GaussianFlow as GaussianFlow
from .mobility import MobilityFlow as MobilityFlow
from .network import AbstractBlock as AbstractBlock, Network as Network, OneNorm as OneNorm, TwoNorms as TwoNorms
from .normalisation import (
    NGPT as NGPT,
    AbstractPlacement as AbstractPlacement,
    LNScaling as LNScaling,
    NormalisedFlow as NormalisedFlow,
    PeriNorm as PeriNorm,
    PostNorm as PostNorm,
    PreNorm as PreNorm,
    SqrtPostNorm as SqrtPostNorm,
)
from .rest import RestFlow as RestFlow
from .tangent import NoisyTangentFlow as NoisyTangentFlow, TangentFlow as TangentFlow
from .value_noise import ValueNoiseFlow as ValueNoiseFlow
