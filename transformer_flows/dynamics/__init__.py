"""Vector fields."""

from ._flow import AbstractFlow as AbstractFlow
from .attention import AttentionFlow as AttentionFlow
