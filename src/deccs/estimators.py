"""What makes scikit-learn's estimators of methods: ``class DECCS(Transformer, ..., SoftEstimator)``."""

from __future__ import annotations

from typing import Any

from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import ClassifierTags


class Estimator(ClusterMixin, BaseEstimator):
    """The last of the bases of every method: parameters are ours."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


class SoftEstimator(Estimator):
    """The same of a method that gives probabilities."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks of sparse input read these tags of all with predict_proba
        tags.classifier_tags = ClassifierTags()
        return tags


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The first of the bases of a method that clusters a representation of the data."""

    def transform(self, X: Any) -> Any:
        """The representation of X: (n_points, n_latent)."""
        return super().transform(X)  # wrapped by scikit-learn, see set_output

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
