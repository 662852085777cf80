"""Vector fields."""

from ._flow import AbstractFlow as AbstractFlow, existing_tokens as existing_tokens
from ._heads_flow import AbstractHeadsFlow as AbstractHeadsFlow
from .attention import AttentionFlow as AttentionFlow
from .mobility import MobilityFlow as MobilityFlow
