"""The kernel contract, and sums, products and scalings of kernels.

A new kernel is a subclass of :class:`Kernel` (or of :class:`~errorband.kernels.stationary.Radial`) that declares
its hyperparameters and implements ``evaluate``, the covariance matrix of two arrays of inputs.
"""

import abc
import dataclasses
import functools
import numbers
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from errorband.parameters import Change, Module, Parameter, check, entries, fill, plain, unit_of, value_of, with_fields
from errorband.precision import double_precision
from errorband.programs import program


class Kernel(Module):
    """Covariance function k(x, z): a frozen pytree.

    Parameters
    ----------
    active_dims : sequence of int or str, optional
        The inputs the kernel depends on, by position or by DataFrame column name; all of them by default.

    Notes
    -----
    Users call ``k(X, Z)`` and ``k.diag(X)``, which take and return NumPy arrays (float64). Library code calls ``gram``
    and ``gram_diag``, which JAX can trace. Authors of kernels implement ``evaluate`` (and ``evaluate_diag`` if there is
    a cheaper way than the default), which receive the active inputs only. ``k + k``, ``k * k`` and ``number * k`` are
    kernels.
    """

    active_dims: tuple[int | str, ...] | None = eqx.field(
        default=None, static=True, kw_only=True, converter=lambda d: None if d is None else _as_dims(d)
    )

    passes_units: ClassVar[bool] = True
    """Whether child kernels see inputs in the units that this one does."""

    # ------------------------------------------------------------------ implemented by subclasses
    @abc.abstractmethod
    def evaluate(self, X: Float[Array, "N D"], Z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        """Covariance of the rows of X with the rows of Z, which have the active columns only."""

    def evaluate_diag(self, X: Float[Array, "N D"]) -> Float[Array, "N"]:
        """k(x, x) for each row of X."""
        return jax.vmap(lambda x: self.evaluate(x[None], x[None])[0, 0])(X)

    def defaults(self, X: np.ndarray, y_variance: float) -> dict[str, Any]:
        """Starting values, computed from the data, for the hyperparameters that are None."""
        raise NotImplementedError(f"{type(self).__name__} has hyperparameters but no defaults for them.")

    def scale_free(self) -> bool:
        """Whether the inputs may be standardised first (False if they are labels)."""
        return True

    def check_inputs(self, X: np.ndarray) -> None:
        """Raise ValueError for active inputs outside the domain; by default, if vector hyperparameters do not fit."""
        for e in entries(self):
            if len(e.path) == 1 and np.ndim(e.value) == 1 and len(e.value) not in (1, X.shape[1]):
                raise ValueError(
                    f"{e.name} of {type(self).__name__} has {len(e.value)} entries for {X.shape[1]} inputs; give one "
                    "number for all, or one for each."
                )

    # ------------------------------------------------------------------ called by library code
    def gram(self, X: Float[Array, "N D"], Z: Float[Array, "M D"]) -> Float[Array, "N M"]:
        """Covariance matrix of two arrays with all columns. Traceable."""
        return self.evaluate(self.select(X), self.select(Z))

    def gram_diag(self, X: Float[Array, "N D"]) -> Float[Array, "N"]:
        """Prior variances at inputs with all columns. Traceable."""
        return self.evaluate_diag(self.select(X))

    def select(self, X: Any) -> Any:
        """The active columns of X."""
        return X if self.active_dims is None else X[:, np.asarray(self.active_dims)]

    def children(self) -> dict[str, "Kernel"]:
        """Kernels among the fields, by field name."""
        held = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: child for name, child in held.items() if isinstance(child, Kernel)}

    def child_inputs(self, X: Any) -> Any:
        """The inputs passed to the child kernels."""
        return self.select(X)

    def child_columns(self, names: Sequence[str] | None, n_features: int) -> tuple[Sequence[str] | None, int]:
        """Names and number of the inputs of the child kernels, given those of the active inputs."""
        return names, n_features

    def carries_unit(self, child: str) -> bool:
        """Whether the variance of this child kernel, by field name, has the unit of the targets."""
        return True

    def initialised(self, X: np.ndarray, y_variance: float) -> "Kernel":
        """Copy in which hyperparameters that are None have their values from :meth:`defaults`."""
        kernel = self
        if any(len(e.path) == 1 and e.value is None for e in entries(self)):
            kernel = fill(self, self.defaults(np.asarray(self.select(X)), y_variance))
        for name, child in kernel.children().items():
            kernel = with_fields(kernel, **{name: child.initialised(np.asarray(kernel.child_inputs(X)), y_variance)})
        return kernel

    def with_columns(self, names: Sequence[str] | None, n_features: int) -> "Kernel":
        """Copy whose ``active_dims`` are positions; names are looked up in the column names."""
        kernel = self
        if self.active_dims is not None:
            dims = tuple(_position(d, names, n_features) for d in self.active_dims)
            kernel = with_fields(kernel, active_dims=dims)
            names, n_features = (None if names is None else [names[d] for d in dims]), len(dims)
        names, n_features = self.child_columns(names, n_features)
        for name, child in kernel.children().items():
            kernel = with_fields(kernel, **{name: child.with_columns(names, n_features)})
        return kernel

    def without_column(self, column: int, n_features: int) -> "Kernel":
        """Copy that does not depend on a column, if its own columns were left open; columns are by position."""
        if self.active_dims is not None:
            return self
        kernel, children = self, self.children()
        if children and type(self).child_columns is Kernel.child_columns:  # children see the same columns
            for name, child in children.items():
                kernel = with_fields(kernel, **{name: child.without_column(column, n_features)})
            return kernel
        return with_fields(kernel, active_dims=tuple(d for d in range(n_features) if d != column))

    def raw_columns(self, n_features: int) -> np.ndarray:
        """Mask of the columns that must not be standardised."""
        mask = np.zeros(n_features, bool)
        columns = np.arange(n_features) if self.active_dims is None else np.asarray(self.active_dims, int)
        if not self.scale_free():
            mask[columns] = True
        for child in self.children().values():
            mask[columns] |= child.raw_columns(len(columns))
        return mask

    def columns_alike(self, n_features: int) -> list[np.ndarray]:
        """Groups of columns that must be standardised by one number, for something said of them has a common unit.

        That is a number given for all of them, such as one length-scale; or bounds or a prior.
        """
        columns = np.arange(n_features) if self.active_dims is None else np.asarray(self.active_dims, int)
        of_children = [g for child in self.children().values() for g in child.columns_alike(len(columns))]
        return ([columns] if self._says_of_all_inputs() else []) + [columns[g] for g in of_children]

    def _says_of_all_inputs(self) -> bool:
        """Whether a hyperparameter in the unit of the inputs was given one number, bounds or a prior for them all."""
        fields = [f for f in dataclasses.fields(self) if getattr(unit_of(self, f), "x", 0)]
        held = [h for f in fields if (h := getattr(self, f.name)) is not None]
        limited = any(isinstance(h, Parameter) and (h.prior or h.bounds) for h in held)
        return limited or any(value_of(h) is not None and np.size(value_of(h)) == 1 for h in held)

    def in_units(self, change: Change) -> "Kernel":
        """Copy that says of data in other units what this one says of the data as they are."""
        return super().in_units(self.own_change(change))

    def own_change(self, change: Change) -> Change:
        """The change of the active inputs."""
        return change if self.active_dims is None else change.of_columns(self.active_dims)

    def check(self, X: np.ndarray) -> None:
        """Check inputs with all columns against the domain of this kernel and its children."""
        self.check_inputs(np.asarray(self.select(X)))
        for child in self.children().values():
            child.check(np.asarray(self.child_inputs(X)))

    # ------------------------------------------------------------------ called by users
    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Covariance matrix of X with Z (of X with itself by default), as a float64 NumPy array."""
        kernel, X, Z = self._ready(X, X if Z is None else Z)
        with double_precision():
            return np.asarray(compiled_gram(kernel, X, Z))

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) for each row, as a float64 NumPy array."""
        kernel, X = self._ready(X)
        with double_precision():
            return np.asarray(compiled_gram_diag(kernel, X))

    def _ready(self, *inputs: Any) -> tuple[Any, ...]:
        """Kernel with plain values, and inputs, both checked. Values that are None get their defaults for unit data."""
        arrays = [_as_inputs(X) for X in inputs]
        names, n_features = getattr(inputs[0], "columns", None), arrays[0].shape[1]
        check(self)
        kernel = self.with_columns(None if names is None else list(names), n_features)
        for X in arrays:
            kernel.check(X)
        unit = np.broadcast_to([[-1.0], [1.0]], (2, n_features))
        return plain(kernel.initialised(unit, 1.0)), *arrays

    def __add__(self, other: Any) -> "Kernel":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Kernel":
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, numbers.Real) else NotImplemented

    __rmul__ = __mul__
    __array_ufunc__ = None  # so that np.float64(2) * kernel calls __rmul__, and an array times a kernel fails


# A covariance of thousands of inputs is millions of numbers: unvectorised it takes six times as long.
@program(numbers=lambda kernel, X, Z: len(X) * len(Z))
def compiled_gram(kernel: Kernel, X: Any, Z: Any) -> Array:
    """Compiled once per shape; :mod:`errorband.kernels.padded` keeps the number of shapes small."""
    return kernel.gram(X, Z)


@program
def compiled_gram_diag(kernel: Kernel, X: Any) -> Array:
    """``gram_diag``, compiled once per shape."""
    return kernel.gram_diag(X)


# ------------------------------------------------------------------------------------------------- combinations
class Sum(Kernel):
    """k(x, z) = left + right: the covariance of a sum of two independent functions.

    Parameters
    ----------
    left, right : Kernel
        The terms; the same as ``left + right``.
    active_dims : sequence of int or str, optional
        Inputs of both; their own ``active_dims`` are positions among these.

    Examples
    --------
    >>> from errorband.kernels import Constant, Linear
    >>> k = Linear(2.0) + Constant(0.5)  # a line with an intercept
    >>> k
    Linear(variance=2) + Constant(variance=0.5)
    >>> k([[1.0]], [[3.0]])
    array([[6.5]])
    """

    short_names: ClassVar = {}  # written +

    left: Kernel
    right: Kernel

    def evaluate(self, X, Z):
        return self.left.gram(X, Z) + self.right.gram(X, Z)

    def evaluate_diag(self, X):
        return self.left.gram_diag(X) + self.right.gram_diag(X)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}" if self.active_dims is None else super().__repr__()


class Product(Kernel):
    """k(x, z) = left · right: correlated where both kernels are.

    Parameters
    ----------
    left, right : Kernel
        The factors; the same as ``left * right``. If both have a variance, the left one starts at the variance of the
        targets and the right one at 1.
    active_dims : sequence of int or str, optional
        Inputs of both; their own ``active_dims`` are positions among these.

    Examples
    --------
    >>> from errorband.kernels import Periodic, SquaredExponential
    >>> k = Periodic(1.0, 1.0, period=1.0) * SquaredExponential(10.0, 1.0)  # a season that changes slowly
    >>> k([[0.0]], [[0.5], [1.0], [10.0]]).round(3)
    array([[0.135, 0.995, 0.607]])
    """

    short_names: ClassVar = {}  # written *

    left: Kernel
    right: Kernel

    def evaluate(self, X, Z):
        return self.left.gram(X, Z) * self.right.gram(X, Z)

    def evaluate_diag(self, X):
        return self.left.gram_diag(X) * self.right.gram_diag(X)

    def initialised(self, X, y_variance):  # the left factor has the variance
        X = np.asarray(self.select(X))
        return with_fields(self, left=self.left.initialised(X, y_variance), right=self.right.initialised(X, 1.0))

    def carries_unit(self, child):  # and the unit
        return child == "left"

    def in_units(self, change):
        change = self.own_change(change)
        return with_fields(self, left=self.left.in_units(change), right=self.right.in_units(change.of_inputs()))

    def __repr__(self) -> str:
        infix = " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right))
        return infix if self.active_dims is None else super().__repr__()


class Scaled(Kernel):
    """A kernel times a given positive number, which is not learned (kernels have a variance for that).

    Parameters
    ----------
    kernel : Kernel
        The kernel to scale.
    factor : float
        Positive factor; the same as ``factor * kernel``.
    active_dims : sequence of int or str, optional
        Inputs of the kernel; its own ``active_dims`` are positions among these.

    Examples
    --------
    >>> from errorband.kernels import SquaredExponential
    >>> k = 2.5 * SquaredExponential(1.0, 1.0)
    >>> k
    2.5 * SquaredExponential(lengthscale=1, variance=1)
    >>> k.diag([[0.0]])
    array([2.5])
    """

    short_names: ClassVar = {}  # written *

    kernel: Kernel
    factor: float = eqx.field(static=True)

    def __check_init__(self):
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise ValueError(f"A kernel can be scaled by a positive number only; got {self.factor!r}.")

    def evaluate(self, X, Z):
        return self.factor * self.kernel.gram(X, Z)

    def evaluate_diag(self, X):
        return self.factor * self.kernel.gram_diag(X)

    def __repr__(self) -> str:
        infix = f"{self.factor:g} * " + (f"({self.kernel!r})" if isinstance(self.kernel, Sum) else repr(self.kernel))
        return infix if self.active_dims is None else super().__repr__()


# ------------------------------------------------------------------------------------------------------ helpers
ROUGH = 2**26  # in units of ε, an error of squared distances that takes a covariance its positive eigenvalues


@jax.custom_vjp
def squared_distance(X: Float[Array, "N D"], Z: Float[Array, "M D"]) -> Float[Array, "N M"]:
    """‖x − z‖² for all pairs of rows, without an (N, M, D) array in the forward or backward pass.

    Up to four inputs are subtracted one by one. For more, one matrix product of the centred inputs is faster, but its
    error is ε‖x‖² instead of ε²‖x‖². Where that is too much for a covariance to stay one, as with a length-scale that
    is tiny beside the range of its input, they are subtracted too. Values below the error are set to zero, so that
    equal rows are at distance exactly zero, which kernels that are not smooth at zero need. (Otherwise a fused
    multiply-add could leave ε‖x‖ even after x/ℓ − z/ℓ; and where x/ℓ − centre is rounded once for the norms and twice
    for the product, ε‖x‖‖centre‖.)
    """
    if X.shape[1] <= 4:
        return _zero_below(sum((X[:, i, None] - Z[None, :, i]) ** 2 for i in range(X.shape[1])), *_apart(X, Z))
    U, W = _centred(X, Z)
    u, w = _norms(U), _norms(W)
    rounded = [_rounded(size, X.shape[1], jnp.sum(jnp.mean(Z, axis=0) ** 2)) for size in (u, w)]
    rough = jnp.max(rounded[0]) + jnp.max(rounded[1]) > ROUGH * jnp.finfo(X.dtype).eps
    # All of it inside the branches: what follows, often an exponential, is then a loop of its own and vectorised.
    return jax.lax.cond(
        rough,
        lambda: _zero_below(_by_differences(X, Z), *_apart(X, Z)),
        lambda: _zero_below((-2.0 * U) @ W.T + (u[:, None] + w[None, :]), *rounded),
    )


def _norms(X):
    return jnp.sum(X * X, axis=1)


def _apart(*arrays):
    """Errors of differences, by row: no root of an N × M matrix."""
    return [4 * jnp.finfo(A.dtype).eps ** 2 * _norms(A) for A in arrays]


def _rounded(size, d, origin):
    """Errors of products, from the squared norms of d centred inputs and that of the centre."""
    eps = jnp.finfo(size.dtype).eps
    return (4 + d) * eps * size + 2 * eps * jnp.sqrt(size * origin)


def _zero_below(r2, of_X, of_Z):
    return jnp.where(r2 > of_X[:, None] + of_Z[None, :], r2, 0.0)


def _by_differences(X, Z):
    def add(i, total):
        x, z = (jax.lax.dynamic_index_in_dim(A, i, axis=1, keepdims=False) for A in (X, Z))
        return total + (x[:, None] - z[None, :]) ** 2

    return jax.lax.fori_loop(0, X.shape[1], add, jnp.zeros((len(X), len(Z)), X.dtype))


def _centred(X, Z):
    centre = jnp.mean(Z, axis=0)
    return X - centre, Z - centre


def _squared_distance_forward(X, Z):
    return squared_distance(X, Z), (X, Z)


def _squared_distance_backward(inputs, bar):
    X, Z = _centred(*inputs)
    X_bar = 2.0 * (jnp.sum(bar, axis=1)[:, None] * X - bar @ Z)
    Z_bar = 2.0 * (jnp.sum(bar, axis=0)[:, None] * Z - bar.T @ X)
    return X_bar, Z_bar


squared_distance.defvjp(_squared_distance_forward, _squared_distance_backward)


@jax.custom_vjp
def scaled_distance(X: Float[Array, "N D"], Z: Float[Array, "M D"], lengthscale: Float[Array, "D"]) -> Any:
    """Σ_d (x_d − z_d)²/ℓ_d² for all pairs of rows.

    With G the derivative in these numbers, those in Z and ℓ both follow from the sums of its rows and columns and from
    GᵀX, a small matrix: nothing else of the size of X is made for them.
    """
    return squared_distance(X / lengthscale, Z / lengthscale)


def _scaled_distance_forward(X, Z, lengthscale):
    return scaled_distance(X, Z, lengthscale), (X, Z, lengthscale)


def _scaled_distance_backward(inputs, bar):
    *points, lengthscale = inputs
    X, Z = (A / lengthscale for A in _centred(*points))
    of_X, of_Z, product = jnp.sum(bar, axis=1), jnp.sum(bar, axis=0)[:, None] * Z, bar.T @ X
    X_bar = 2.0 * (of_X[:, None] * X - bar @ Z) / lengthscale  # left out where nobody asks for it
    Z_bar = 2.0 * (of_Z - product) / lengthscale
    scale_bar = -2.0 * (of_X @ (X * X) + jnp.sum(Z * (of_Z - 2.0 * product), axis=0)) / lengthscale
    return X_bar, Z_bar, scale_bar


scaled_distance.defvjp(_scaled_distance_forward, _scaled_distance_backward)


def by_rows(pair: Callable[..., Any], X: Float[Array, "N D"], Z: Float[Array, "M D"]) -> Float[Array, "N M"]:
    """Matrix of ``pair(x, Z) -> (M,)`` over the rows of X, 64 rows at a time.

    For formulas that broadcast over (rows, M, D). The backward pass recomputes each block, so that memory is 64·M·D for
    any N.
    """
    return jax.lax.map(jax.checkpoint(functools.partial(pair, Z=Z)), X, batch_size=64)


def half_range(X: np.ndarray) -> np.ndarray:
    """Half the range of each input, 1 if it is constant: starting value of length-scales (Lázaro-Gredilla 2010)."""
    width = 0.5 * np.ptp(X, axis=0)
    return np.where(width > 0, width, 1.0)


def _as_inputs(X: Any) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"A kernel takes a 2-D array (rows, inputs), X[:, None] for one input; got shape {X.shape}.")
    return X


def _as_dims(dims: Any) -> tuple[int | str, ...]:
    dims = (dims,) if isinstance(dims, (str, int, np.integer)) else tuple(dims)
    if not dims:
        raise ValueError("active_dims is empty; name at least one input, or leave it out for all.")
    return tuple(d if isinstance(d, str) else int(d) for d in dims)


def _position(dim: int | str, names: Sequence[str] | None, n_features: int) -> int:
    if isinstance(dim, str):
        if names is None:
            raise ValueError(f"active_dims names the column {dim!r}, but X has no column names; pass a DataFrame.")
        if dim not in names:
            raise ValueError(f"active_dims names the column {dim!r}; X has {', '.join(map(repr, names))}.")
        return list(names).index(dim)
    if not -n_features <= dim < n_features:
        raise ValueError(f"active_dims asks for input {dim}, but X has {n_features} columns.")
    return dim % n_features


__all__ = ["Kernel", "Product", "Scaled", "Sum", "by_rows", "half_range", "squared_distance"]
