"""Vector fields."""

from ._flow import AbstractFlow as AbstractFlow, existing_tokens as existing_tokens
from .attention import AttentionFlow as AttentionFlow
