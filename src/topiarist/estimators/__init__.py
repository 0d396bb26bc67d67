"""Estimators for scikit-learn that find the size of their network by themselves."""

from topiarist.estimators.classifier import RightSizedClassifier
from topiarist.estimators.regressor import RightSizedRegressor

__all__ = ["RightSizedClassifier", "RightSizedRegressor"]
