"""Gaussian-process classification."""

import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from errorband import parameters
from errorband.data import TrainingData
from errorband.estimators import one_vs_rest
from errorband.estimators.candidates import is_auto, is_plain
from errorband.estimators.defaults import CLASS_KERNELS, class_kernels
from errorband.estimators.mixture import with_members
from errorband.estimators.online import streams
from errorband.estimators.predicting_classes import PredictsClasses
from errorband.estimators.scaling import READ_AS, Scaling, training_inputs
from errorband.estimators.sharpness import learned_sharpness
from errorband.estimators.spec import Spec, as_kernel, class_likelihood_names
from errorband.estimators.validation import check_columns_are_numeric, check_magnitude, check_weights
from errorband.inference import EP, Inference, Laplace
from errorband.kernels import Kernel
from errorband.likelihoods import Bernoulli, ClassLikelihood, Likelihood, Softmax
from errorband.parameters import POSITIVE, Parameter
from errorband.precision import in_double_precision
from errorband.priors import HalfCauchy
from errorband.training import Objective

LINKS = "probit", "logit"
# Labels hardly tell a large latent variance from a larger one: where classes do not overlap the evidence rises with it
# for ever, and Laplace's approximation, which is poor there, comes to say that nothing is known. This prior holds it
# back beyond a standard deviation of three or so, from one class to the other with certainty, and lets small ones be.
# Its tail is heavy: classes that part along differences of inputs that are nearly the same need a large variance.
VARIANCE_PRIOR = HalfCauchy(10.0)
ONE_VS_REST = "one_vs_rest"


class GPClassifier(ClassifierMixin, PredictsClasses):
    """Gaussian-process classification: class probabilities that know what the model has not seen.

    Two classes have one latent function f and p(y = ±1 | f) = s(yf), s the normal cdf (probit) or the logistic
    function. More classes have one latent function each, joined by the softmax, or a two-class model each. The
    posterior of f is approximated by a Gaussian (EP or Laplace), and probabilities are averaged over it.
    Hyperparameters are found by maximising the evidence.

    Parameters
    ----------
    kernel : Kernel or str, optional
        Covariance function, from :mod:`errorband.kernels`, or its name: ``"matern52+linear"``. Default: squared
        exponential, with a length-scale per input where the evidence pays for it. "auto" mixes some kernels, up to
        2000 rows, and chooses one beyond; see ``candidates_``. Values given are where the search starts; values left
        out are chosen from the data. A variance left out also has a prior, ``HalfCauchy(10)``: labels say little about
        it.
    mean : {"zero", "constant", "linear"} or Mean
        Prior mean of the latent function. The joint model of three or more classes has mean zero.
    likelihood : {"probit", "logit", "auto", "robust-threshold", "softmax", "ordinal"} or ClassLikelihood
        How labels arise from the latent function. "probit" and "logit" are the link of two classes, and of each class
        against the rest, with a learned bias if ``mean`` is zero; the joint model of several classes then is the
        softmax. "auto" chooses one of the two. Objects: ``Bernoulli("probit", bias=..., label_noise=...)``,
        ``RobustThreshold()``, ``TwinnedLabels()``, ``Softmax(C)``, ``Ordinal(C)`` (classes in their sorted order).
    approximation : "auto", "exact", another name or Approximation
        How the prior covariance is kept: whole, or by inducing points, for instance ``FITC(200)`` of
        :mod:`errorband.approximations`, or ``"fitc(200)"``. "auto": whole up to 2000 rows (fewer in a joint model of
        more than two classes), else ``FITC()``.
    inference : "auto", "laplace", "ep", "kl" or Inference
        How the posterior is found. "auto": EP with one latent function and for ``TwinnedLabels``, Laplace with
        several; ``inference_`` says which it was.
    multi_class : {"auto", "joint", "one_vs_rest"}
        For three or more classes: one model with a latent function for each class, or a two-class model for each class
        against the others, their probabilities normalised. Two classes are one two-class model either way. "auto":
        one against the rest, which is the quicker and usually the better one, unless ``likelihood`` is one of several
        classes, such as ``Softmax(C)``.
    optimizer : "lbfgs", LBFGS or None
        Search for hyperparameters; None keeps the given values.
    n_restarts : int
        Additional random starts of the search.
    calibrate : bool
        Learn from rows left out how sure probabilities should be, ``sharpness_``. For two classes, or one model per
        class, without approximation and without ``sample_weight``, if ``inference`` is "auto"; ``optimizer=None``
        learns nothing. Latent functions and the most probable class are not concerned.
    normalize : bool
        Standardise the inputs first, so that starting values suit any data. All that you give and get stays in the
        units of the data.
    random_state : int, RandomState or None
        Seed of all that is drawn: restarts, where inducing inputs start, rows held out to choose the number of inducing
        inputs, the rows of ``SubsetOfData`` and those ``IVM`` begins with.
    verbose : int
        1 shows progress on a terminal.

    Attributes
    ----------
    classes_ : array (C,)
        The labels, sorted: the order of all columns of probabilities.
    class_prior_ : array (C,)
        Their shares among the training rows.
    log_evidence_ : float
        Log marginal likelihood of the labels, approximated by the inference rule. With one model per class the sum over
        the models, which is not comparable with that of the joint model.
    kernel_, likelihood_, mean_, approximation_, inference_
        The fitted parts, with plain values in the units of the data. With one model per class these are lists, but for
        ``inference_``, and so are the attributes below that speak of rows and inducing inputs.
    approximation_reason_ : str
        Why this approximation.
    active_rows_ : array
        Positions of the rows learned from; only with ``SubsetOfData`` and ``IVM``.
    inducing_sweep_, moved_inducing_
        As in :class:`GPRegressor`.
    sharpness_ : float
        The power of the probabilities before these are divided by their sum, if ``calibrate`` learned one: above one
        they were not sure enough.
    estimators_ : list of GPClassifier
        The two-class models, in the order of ``classes_``; only with one model per class.
    fit_result_ : FitResult, list of FitResult or None
        How the search went.
    search_log_evidence_ : float
        Log evidence of the rows the search saw; only after :meth:`condition_on`, where ``log_evidence_`` is that of
        other rows.
    inference_status_ : Status
        Whether the inference rule converged, after how many sweeps, and a sentence about it.
    posterior_ : Posterior
        What predictions are made from; with one model per class see ``estimators_``.
    candidates_ : Candidates
        What "auto" chose from or mixed, with log evidence, leave-one-out log density and share of each; a list with
        one model per class. ``kernel_`` and what else is of one model are then those of the candidate chosen.
    jitter_ : float
        What had to be added to the covariance's diagonal; 0 almost always.
    scaling_ : Scaling
        How inputs become what the model sees: ``x_shift`` and ``x_scale``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> y = np.where(np.sin(2 * X[:, 0]) > 0, "up", "down")
    >>> model = GPClassifier().fit(X, y)
    >>> model.predict([[0.8], [2.4]]).tolist()
    ['up', 'down']
    >>> model.predict_proba([[0.8], [30.0]]).round(1)  # far from the data it does not know
    array([[0. , 1. ],
           [0.5, 0.5]])
    >>> model.decide([[0.8], [30.0]], reject=0.1).tolist()
    ['up', None]
    """

    _kernel_candidates: ClassVar = CLASS_KERNELS
    _learns_bias: ClassVar[bool] = True
    _mixes_candidates: ClassVar[bool] = True
    short_names: ClassVar = {}  # what the other names are of

    multi_class: str
    calibrate: Any = False  # of relatives that do not offer it

    def __init__(
        self,
        kernel=None,
        *,
        mean="zero",
        likelihood="probit",
        approximation="auto",
        inference="auto",
        multi_class="auto",
        optimizer="lbfgs",
        n_restarts=0,
        calibrate=True,
        normalize=True,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.mean = mean
        self.likelihood = likelihood
        self.approximation = approximation
        self.inference = inference
        self.multi_class = multi_class
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.calibrate = calibrate
        self.normalize = normalize
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ fitting
    def _kernels_to_try(self, X):
        return class_kernels(X)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GPClassifier":
        """Fit to inputs X (n, D) and labels y (n,).

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
            Labels of two or more classes: words, numbers or booleans.
        sample_weight : array (n,), optional
            Power of each row's likelihood: 2 counts a row twice, 0 leaves it out. Exactly so, except that under
            FITC and PITC copies of a row would have residuals of their own (``docs/theory/targets.md``).
        """
        values, codes, weights = self._validated(X, y, sample_weight)
        if self._one_for_each_class():
            self._fit_each_class(values, codes, weights)
        elif not self._fit_candidates(X, y, sample_weight=sample_weight):
            self._fit(*self._training(values, codes, weights))
        if self.calibrate and weights is None:
            self._learn_sharpness(codes)
        return self

    def condition_on(self, X: Any, y: Any, sample_weight: Any = None) -> "GPClassifier":
        """Return a new model with the same hyperparameters and the same scaling, conditioned on other data.

        Nothing is searched and this model is left as it is. ``classes_``, ``fit_result_`` and
        ``approximation_reason_`` of the new model are those of this one; the rows it was fitted to are forgotten unless
        they are passed again.

        Parameters
        ----------
        X : array or DataFrame (n, D)
            With the columns seen in ``fit``.
        y : array (n,)
            Labels among ``classes_``; not all of them need to occur.
        sample_weight : array (n,), optional
            Power of each row's likelihood: 2 counts a row twice, 0 leaves it out.

        Returns
        -------
        model : GPClassifier

        Examples
        --------
        >>> import numpy as np
        >>> from errorband import GPClassifier
        >>> x = np.linspace(-3, 3, 60)
        >>> label = np.where(np.sin(2 * x) > 0, "up", "down")
        >>> model = GPClassifier().fit(x[::2, None], label[::2])
        >>> other = model.condition_on(x[1::2, None], label[1::2])
        >>> other.predict([[0.8], [2.4]]).tolist()
        ['up', 'down']
        """
        check_is_fitted(self)
        if hasattr(self, "mixture_members_"):
            return with_members(self, [m.condition_on(X, y, sample_weight) for m in self.mixture_members_])
        new = copy.copy(self)
        X, codes, weights = new._validated(X, y, sample_weight, classes=self.classes_)
        if hasattr(self, "estimators_"):
            models = [m.condition_on(X, codes == c, weights) for c, m in enumerate(self.estimators_)]
            new._remember_search()
            new._keep_models(models, X, codes, weights)
        else:
            new._condition_on(new._training(X, codes, weights, self.scaling_)[1])
        return new

    @available_if(streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "GPClassifier":
        """Take in more rows, of a model with inducing points or other features; the first call is :meth:`fit`.

        As :meth:`GPRegressor.partial_fit`; with more than two classes for ``multi_class="one_vs_rest"``. The sites of a
        batch are found with all that was learned before for a prior, and are not looked at again.

        Parameters
        ----------
        X : array or DataFrame (n, D)
        y : array (n,)
            Labels; the first batch has a row of each class.
        classes : array, optional
            All labels that may come, to be checked in the first call.
        sample_weight : array (n,), optional
            Power of each row's likelihood.
        """
        if not hasattr(self, "likelihood_"):
            if classes is not None and (
                absent := sorted(set(np.unique(classes).tolist()) - set(np.unique(y).tolist()))
            ):
                raise ValueError(f"The first batch has no row of {absent[0]!r}; begin with one that has all classes.")
            return self.fit(X, y, sample_weight)
        before = self._class_rows
        X, codes, weights = self._validated(X, y, sample_weight, classes=self.classes_)
        self._count_classes(before + self._class_rows)
        if not hasattr(self, "estimators_"):
            self._take_in(self._training(X, codes, weights, self.scaling_)[1])
            return self
        for c, model in enumerate(self.estimators_):
            model._take_in(model._training(X, (codes == c).astype(int), weights, model.scaling_)[1])
        self._keep_models(self.estimators_, X, codes, weights)
        self._training_data = None
        return self

    def exact_limit(self, n_classes: int = 2) -> int:
        """Return up to how many rows ``approximation="auto"`` keeps the whole covariance with so many classes."""
        unfitted: Any = clone(self)
        unfitted.classes_ = np.arange(n_classes)
        if unfitted._one_for_each_class():
            unfitted.classes_ = np.arange(2)
        return unfitted._exact_limit(unfitted._likelihood())

    def objective(self, X: Any, y: Any, sample_weight: Any = None) -> Objective:
        """The function ``fit`` maximises, for those who bring their own optimiser or sampler."""
        X, codes, weights = self._validated(X, y, sample_weight)
        if self._one_for_each_class():
            raise ValueError("With multi_class='one_vs_rest' each class has an objective of its own; pass y == label.")
        spec, data, _ = self._training(X, codes, weights)
        return self._objective(spec, data)

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Inputs, positions of the labels in ``classes_`` and weights, of the rows that count.

        With ``classes`` the labels must be among them; else ``classes_`` is set to the labels found.
        """
        check_columns_are_numeric(X)
        X, y = validate_data(self, X, y, reset=classes is None, dtype=READ_AS)
        check_classification_targets(y)
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(y))
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        found, codes = np.unique(y, return_inverse=True)
        if classes is not None:
            strange = ", ".join(map(repr, found[~np.isin(found, classes)].tolist()[:3]))
            if strange:
                raise ValueError(f"y has labels the model was not fitted to: {strange}. Pass labels among classes_.")
            codes = np.searchsorted(classes, found)[codes]
        self.classes_ = found if classes is None else classes
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(
                f"A classifier needs two classes or more; y has one class ({only!r}). Add rows of another class."
            )
        self._count_classes(np.bincount(codes, weights, minlength=len(self.classes_)))
        return X, codes, weights

    def _count_classes(self, rows: np.ndarray) -> None:
        """Remember how many training rows each class has."""
        self._class_rows = rows.astype(float)
        self.class_prior_ = rows / rows.sum()

    def _training(
        self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, scaling: Scaling | None = None
    ) -> tuple[Spec, TrainingData, Scaling]:
        """The model to be, validated data as it sees them, and their scaling: the one given, or one made from them."""
        spec = self._spec(X.shape[1], fresh=scaling is None)
        if scaling is None:
            scaling = self._scaling(spec, X, weights=weights)
        else:
            check_magnitude(X, "X")
        likelihood: Any = spec.likelihood
        labels = likelihood.class_values[codes]
        data = TrainingData(training_inputs(X, scaling), labels, weights=weights)
        return self._seen(spec, scaling), data, scaling

    def _one_for_each_class(self) -> bool:
        if self.multi_class not in ("auto", "joint", ONE_VS_REST):
            raise ValueError(f"multi_class={self.multi_class!r}: choose 'auto', 'joint' or 'one_vs_rest'.")
        n, joint, likelihood = len(self.classes_), self.multi_class == "joint", self.likelihood
        if self.multi_class == "auto" and n > 2:
            if isinstance(likelihood, str) and not (likelihood in LINKS or is_auto(likelihood)):
                likelihood = class_likelihood_names(n)(likelihood)
            several = isinstance(likelihood, ClassLikelihood) and len(likelihood.class_values) > 2
            joint = several or isinstance(self.kernel, dict)
        return n > 2 and not joint

    @in_double_precision  # as one computation: Ctrl-C ends the search of this class and of those after it
    def _fit_each_class(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> None:
        names = getattr(self, "feature_names_in_", None)  # the models below see an array: columns by position
        left_open = self.kernel is None or is_auto(self.kernel)
        kernel = self.kernel if left_open else as_kernel(self.kernel).with_columns(names, X.shape[1])
        alike: Any = [clone(self) for _ in self.classes_]
        for model in alike:
            model.calibrate = False  # all of them are, together
        models = [m.set_params(kernel=kernel).fit(X, codes == c, weights) for c, m in enumerate(alike)]
        self._forget()
        self._keep_models(models, X, codes, weights)

    def _learn_sharpness(self, codes: np.ndarray) -> None:
        """Learn how sure probabilities should be, where rows left out cost little and say it."""
        models, each_class = self.members_, hasattr(self, "estimators_")
        results = [m.fit_result_ for m in models]
        searched = all(r is not None and not r.interrupted for r in results) and all(is_plain(m) for m in models)
        if not searched or self.inference != "auto" or (len(self.classes_) > 2 and not each_class):
            return
        # What many models do not add up to has nothing to do with what they learned.
        numbers = 1.0 if each_class else self._numbers_learned()
        self.sharpness_ = learned_sharpness(self._shares_left_out(), codes, numbers)

    def _numbers_learned(self) -> float:
        """How many numbers the search found; of a mixture on average."""
        mixed = getattr(self, "mixture_members_", [self])
        weights = self.posterior_.weights if len(mixed) > 1 else None
        return max(1.0, float(np.average([m.fit_result_.n_numbers for m in mixed], weights=weights)))

    def _keep_models(
        self, models: list["GPClassifier"], X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Store fitted two-class models, one for each class, and what follows from them."""
        self.estimators_ = models
        vars(self).update(one_vs_rest.fitted_attributes(self.estimators_))
        self._training_data = TrainingData(training_inputs(X, self.scaling_), codes.astype(float), weights=weights)

    def _completed(self, kernel: Kernel) -> Kernel:
        """Variances of which nothing was said have a prior."""
        return _with_variance_prior(kernel)

    def _likelihood_candidates(self, y: np.ndarray) -> tuple[str, ...]:
        return LINKS

    def _likelihood(self, fresh: bool = False) -> ClassLikelihood:
        n, likelihood = len(self.classes_), self.likelihood
        if is_auto(likelihood):
            likelihood = LINKS[0] if fresh else getattr(self, "likelihood_", LINKS[0])
        names = class_likelihood_names(n)
        if isinstance(likelihood, str):
            if likelihood in LINKS:
                zero = isinstance(self.mean, str) and self.mean == "zero"
                bias = 0.0 if self._learns_bias and zero else None
                return Bernoulli(likelihood, bias=bias) if n == 2 else Softmax(n)
            likelihood = names(likelihood)
        if not isinstance(likelihood, ClassLikelihood):
            raise TypeError(
                f"likelihood must be an errorband likelihood of classes or the name of one ({names.listed()}); got "
                f"{type(likelihood).__name__}."
            )
        fits = len(likelihood.class_values)
        if fits != n:
            other = " or multi_class='one_vs_rest'" if fits == 2 else ""
            raise ValueError(
                f"{type(likelihood).__name__} is for {fits} classes; y has {n}. Use likelihood='probit'{other}."
            )
        return likelihood

    def _spec(self, n_features: int, fresh: bool = False) -> Spec:
        spec = super()._spec(n_features, fresh)
        if spec.likelihood.simplex and any(np.size(l.mean.basis(np.zeros((1, n_features)))) for l in spec.latents):
            raise ValueError(
                f"mean={self.mean!r}: the joint model of several classes has mean zero. Use mean='zero' or "
                "multi_class='one_vs_rest'."
            )
        return spec

    def _site_rule(self, likelihood: Likelihood) -> Inference:
        """EP with one latent function: for labels it converges whatever their noise, and is the more accurate."""
        if likelihood.closed_tilted:
            return super()._site_rule(likelihood)
        return EP() if likelihood.n_latents == 1 else Laplace()


def _with_variance_prior(kernel: Kernel) -> Kernel:
    said_nothing = (False, None, POSITIVE)
    variances = [e for e in parameters.entries(kernel) if e.path[-1] == "variance"]
    bare = [e.path for e in variances if e.value is None and (e.fixed, e.prior, e.constraint) == said_nothing]
    return parameters.replace_values(kernel, dict.fromkeys(bare, Parameter(None, prior=VARIANCE_PRIOR)))
