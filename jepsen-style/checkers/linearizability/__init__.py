"""Is there one order, within everybody's real time, that a sequential object could have produced?

The general answer for any model of `models`: exponential in the worst case, fast on what systems
do in practice.
"""

from .check import check_linearizable
from .models import MODELS, Model, model_named

__all__ = ["MODELS", "Model", "check_linearizable", "model_named"]
