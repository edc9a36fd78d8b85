"""Which steps of a scikit-learn pipeline see the records without privacy.

A private estimator protects what *it* computes. A scaler before it that was fitted on the same records has learnt their
mean and spread, and what it hands on changes for everyone when one record does: one person then moves every row, and
the proof, which is about one row, says nothing of that. The fitted step itself, pickled with the pipeline, holds exact
statistics of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from fogline.estimators._base import ReleasedState

__all__ = ["FittedStep", "PipelineCheck", "check_pipeline"]

SKIPPED = (None, "drop", "passthrough")

LEARNS_NOTHING: dict[str, Callable[[Any], bool]] = {
    "GaussianRandomProjection": lambda step: step.n_components != "auto",
    "MissingIndicator": lambda step: step.features == "all",
    "OneHotEncoder": lambda step: _named_categories(step),
    "OrdinalEncoder": lambda step: _named_categories(step),
    "PolynomialFeatures": lambda _: True,
    "RBFSampler": lambda step: step.gamma != "scale",
    "SimpleImputer": lambda step: step.strategy == "constant" and step.keep_empty_features and not step.add_indicator,
    "SparseRandomProjection": lambda step: step.n_components != "auto" and step.density != "auto",
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
}
"""Transformers of scikit-learn that must be fitted, and when all that they keep is public."""

SCALE = "leave it out and give public bounds, in which columns are compared; or divide by public constants"
HINTS = {
    "KBinsDiscretizer": "cut at public edges, with FunctionTransformer and numpy.digitize",
    "MaxAbsScaler": SCALE,
    "MinMaxScaler": SCALE,
    "OneHotEncoder": 'give its categories and handle_unknown="ignore"',
    "OrdinalEncoder": 'give its categories and handle_unknown="use_encoded_value"',
    "PCA": 'PrivateModeClustering(projection="private") and private_pca find directions privately',
    "PowerTransformer": "take logarithms, or powers that are public, with FunctionTransformer",
    "QuantileTransformer": SCALE,
    "RobustScaler": SCALE,
    "SimpleImputer": "leave it out, since records with a missing value contribute nothing; or fill in a public "
    'constant, with strategy="constant" and keep_empty_features=True',
    "StandardScaler": SCALE,
    "TruncatedSVD": 'PrivateModeClustering(projection="private") and private_pca find directions privately',
}
"""The way round, by class."""


@dataclass(frozen=True)
class FittedStep:
    """A step that is fitted on the records without privacy.

    Attributes
    ----------
    path : str
        As ``set_params`` has it, such as "preprocess__num__scale"; empty for the object that was checked.
    kind : str
        Name of its class.
    why : str
        What is wrong with it, and the way round where one is known.
    """

    path: str
    kind: str
    why: str

    def __str__(self) -> str:
        return f"{self.path or 'the whole'} ({self.kind}): {self.why}"


@dataclass(frozen=True)
class PipelineCheck:
    """What :func:`check_pipeline` found; true where nothing is wrong.

    Attributes
    ----------
    steps : tuple of FittedStep
        Steps that are fitted on the records without privacy.
    private : tuple of str
        Paths of the private estimators.
    """

    steps: tuple[FittedStep, ...]
    private: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there is a private estimator and nothing else is fitted on the records."""
        return bool(self.private) and not self.steps

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[FittedStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        if self.ok:
            return "Only private estimators are fitted on the records."
        lines = [f"- {step}" for step in self.steps]
        if not self.private:
            return "\n".join(["There is no private estimator here.", *lines])
        void = "The guarantee does not cover this pipeline: these steps are fitted on the records without privacy."
        return "\n".join([void, *lines])


def check_pipeline(pipe: object) -> PipelineCheck:
    """Name the steps of a pipeline that are fitted on the records without privacy; free, before or after a fit.

    A guarantee covers what a private estimator does with the rows that it is given. Where an earlier step has learnt
    something from all records, such as a mean, one record changes all rows, and the guarantee is void.

    Parameters
    ----------
    pipe : estimator
        A ``Pipeline``, ``ColumnTransformer``, ``FeatureUnion``, ``TransformedTargetRegressor`` or a search over
        parameters, nested in any way, or a single estimator. Nothing is fitted.

    Returns
    -------
    PipelineCheck
        True, and ``ok``, where only private estimators are fitted on the records; else ``steps`` names the others.

    Notes
    -----
    Steps that learn nothing are fine: those whose tag says so (``requires_fit`` of scikit-learn's tags), such as
    ``FunctionTransformer``, ``Normalizer`` and ``Binarizer``, and those all of whose parameters are given, such as
    ``OneHotEncoder`` with its categories. What a function inside ``FunctionTransformer`` does cannot be seen: it must
    look at each row alone.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer, StandardScaler
    >>> from fogline import PrivateModes, check_pipeline
    >>> modes = PrivateModes(epsilon=1.0, delta=1e-6, bounds=[(-4, 4)])
    >>> found = check_pipeline(make_pipeline(StandardScaler(), modes))
    >>> found.ok, [(step.path, step.kind) for step in found]
    (False, [('standardscaler', 'StandardScaler')])
    >>> print(check_pipeline(make_pipeline(FunctionTransformer(), modes)))
    Only private estimators are fitted on the records.
    """
    if isinstance(pipe, type) or not callable(getattr(pipe, "fit", None)):
        raise TypeError(f"pipe must be an estimator or a pipeline of them, got {_named(pipe)}")
    steps: list[FittedStep] = []
    private: list[str] = []
    _visit(pipe, "", steps, private)
    return PipelineCheck(tuple(steps), tuple(private))


def _visit(step: object, path: str, steps: list[FittedStep], private: list[str]) -> None:
    """Look at one step and at what it is made of."""
    if isinstance(step, ReleasedState):
        private.append(path)  # what it is made of sees records only behind its own noise
        return
    inside, why = _parts(step)
    if why:
        steps.append(FittedStep(path, type(step).__name__, why))
    for name, part in inside:
        if not _skipped(part):
            _visit(part, f"{path}__{name}" if path else name, steps, private)


def _parts(step: object) -> tuple[list[tuple[str, Any]], str]:
    """Parts of a step, and what is wrong with the step itself; empty if nothing is."""
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import FeatureUnion, Pipeline

    if isinstance(step, Pipeline):
        return list(step.steps), ""
    if isinstance(step, FeatureUnion):
        return list(step.transformer_list), ""
    if isinstance(step, ColumnTransformer):
        return [*((name, part) for name, part, _ in step.transformers), ("remainder", step.remainder)], ""
    if isinstance(step, TransformedTargetRegressor):
        return [("transformer", step.transformer), ("regressor", step.regressor)], ""
    if isinstance(step, BaseSearchCV):
        why = (
            "chooses parameters by scores on the records, which nobody has paid for, and every fit of its folds spends "
            "a budget; choose on the release, which is free"
        )
        return [("estimator", step.estimator)], why
    return _nested(step), "" if _learns_nothing(step) else _why(step)


def _nested(step: object) -> list[tuple[str, Any]]:
    """Estimators among the parameters of an estimator that combines others, such as one that votes."""
    found = []
    parameters = step.get_params(deep=False) if hasattr(step, "get_params") else {}
    for name, value in parameters.items():
        if _is_estimator(value):
            found.append((name, value))
        elif isinstance(value, list | tuple):
            # Voters and stacks hold their estimators as pairs of a name and an estimator.
            named = [entry for entry in value if isinstance(entry, tuple) and len(entry) == 2]
            found += [(str(inner), part) for inner, part in named if _is_estimator(part)]
    return found


def _is_estimator(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "fit", None))


def _skipped(part: object) -> bool:
    return part is None or (isinstance(part, str) and part in SKIPPED)


def _learns_nothing(step: object) -> bool:
    """Whether all that a fitted step keeps is public."""
    from sklearn.utils import get_tags

    kind = type(step)
    if kind.__module__.split(".")[0] == "sklearn" and kind.__name__ in LEARNS_NOTHING:
        return bool(LEARNS_NOTHING[kind.__name__](step))
    # What says nothing about itself may learn anything.
    if not hasattr(step, "__sklearn_tags__"):
        return False
    return not get_tags(step).requires_fit


class _Encoder(Protocol):
    """An encoder of scikit-learn."""

    categories: object
    handle_unknown: str


def _named_categories(step: _Encoder) -> bool:
    """Whether an encoder is told its categories, neither counts them nor fails where a record has another."""
    counts = (getattr(step, name, None) for name in ("min_frequency", "max_categories"))
    told = not isinstance(step.categories, str) and step.handle_unknown != "error"
    return told and all(limit is None for limit in counts)


def _why(step: object) -> str:
    why = "is fitted on the records, so that one record changes what all rows become"
    if not hasattr(step, "transform"):
        why = "is fitted on the records without noise"
    hint = HINTS.get(type(step).__name__)
    return why if hint is None else f"{why}; {hint}"


def _named(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
