"""What a network is worth and what it costs: quality, size, arithmetic and time."""

from topiarist.measurement.measurement import Measurement, measure
from topiarist.measurement.score import predict_logits

__all__ = ["Measurement", "measure", "predict_logits"]
