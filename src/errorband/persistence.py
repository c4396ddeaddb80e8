"""Models as files: a zip of one JSON document and plain arrays, with nothing in it that could run.

    model.eb
      model.json      {"format": "errorband", "version": 2, "estimator": …, "checksums": …}
      model.sha256    checksum of model.json, which holds those of the arrays
      arrays/0.npy …  float64 arrays, read with allow_pickle=False
      table.json      optional: how a table becomes inputs (errorband.table_model); model.json has its checksum

Objects are written as the name of a class and its fields, and only classes of the tables below are ever made when
reading. Register a kernel of your own (``KERNELS["Mine"] = Mine``) before saving or loading a model that uses it.
"""

import dataclasses
import hashlib
import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from errorband import __version__, parameters
from errorband.approximations import APPROXIMATIONS
from errorband.data import TrainingData
from errorband.estimators import ESTIMATORS
from errorband.estimators.bands import Bands
from errorband.estimators.candidates import Candidates
from errorband.estimators.scaling import ScaledRows, Scaling
from errorband.estimators.spread import Spread
from errorband.features import FEATURES
from errorband.files import atomic_write
from errorband.inference import INFERENCES, Status
from errorband.kernels import KERNELS
from errorband.latents import Latent
from errorband.likelihoods import LIKELIHOODS
from errorband.means import MEANS
from errorband.model import Model
from errorband.parameters import Parameter
from errorband.posterior import POSTERIORS
from errorband.priors import PRIORS
from errorband.samplers import Chains
from errorband.structures import PREDICTORS, SimplexSites, Sites
from errorband.structures.signed_root import SignedRoot
from errorband.training import LBFGS, FitResult, FullBayes
from errorband.training.certificate import InducingSweep
from errorband.training.greedy import GreedyCertificate
from errorband.transforms import TRANSFORMS

FORMAT, VERSION = "errorband", 2
TRIAL = 16  # training rows that a model predicts when it is loaded, to see that it can: the least that is compiled for


class ModelFileError(ValueError):
    """A file that is not a model this version can read."""


REMEDY = "name a file that 'errorband fit' or save wrote, or fit again"


def _damaged(path: Path, why: str) -> ModelFileError:
    return ModelFileError(f"{path} is damaged or was altered: {why}, so {REMEDY}.")


def _tables() -> dict[str, dict[str, type]]:
    """Every class that may stand in a file, by table and name. Looked up late: users may register their own."""
    kept = (
        *(
            Parameter,
            Scaling,
            TrainingData,
            FitResult,
            InducingSweep,
            GreedyCertificate,
            LBFGS,
            FullBayes,
            Chains,
            Status,
            Sites,
            SimplexSites,
        ),
        *(Latent, Model, SignedRoot, Candidates, Bands, Spread),
    )
    parts = {cls.__name__: cls for cls in kept}
    return {
        "kernel": KERNELS,
        "likelihood": LIKELIHOODS,
        "mean": {cls.__name__: cls for cls in MEANS.values()},
        "features": FEATURES,
        "approximation": APPROXIMATIONS,
        "inference": INFERENCES,
        "posterior": POSTERIORS,
        "predictor": PREDICTORS,
        "prior": PRIORS,
        "transform": TRANSFORMS,
        "part": parts,
    }


# ------------------------------------------------------------------------------------------------------- writing
def save(estimator: Any, path: str | os.PathLike, *, table: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file; an interrupted write leaves what was there before.

    Parameters
    ----------
    estimator : GPRegressor or GPClassifier
        Fitted; ``estimator.save(path)`` says the same.
    path : str or path
        Where to; what is there is replaced, once the new file is complete.
    table : dict, optional
        A JSON document that goes with it, for :func:`load_with_table`.

    Raises
    ------
    ModelFileError
        If the estimator is not fitted, or holds something that is in no registry.

    Examples
    --------
    >>> import tempfile, zipfile
    >>> from errorband import GPRegressor
    >>> model = GPRegressor(optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.eb")
    ...     zipfile.ZipFile(f"{folder}/model.eb").namelist()[:2]
    ['model.json', 'model.sha256']
    """
    if not hasattr(estimator, "n_features_in_"):
        raise ModelFileError(f"Fit the {type(estimator).__name__} before saving it.")
    arrays: list[np.ndarray] = []
    encoded = _encode_estimator(estimator, arrays)
    blobs = [_array_bytes(a) for a in arrays]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "errorband": __version__,
        **encoded,
        "checksums": [hashlib.sha256(b).hexdigest() for b in blobs],
    }
    table_text = b"" if table is None else json.dumps(table).encode()
    if table is not None:
        document["table"] = hashlib.sha256(table_text).hexdigest()
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(document).encode()
        archive.writestr("model.json", text)
        archive.writestr("model.sha256", hashlib.sha256(text).hexdigest())
        for i, blob in enumerate(blobs):
            archive.writestr(f"arrays/{i}.npy", blob)
        if table is not None:
            archive.writestr("table.json", table_text)


def _array_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _encode_estimator(estimator: Any, arrays: list[np.ndarray]) -> dict[str, Any]:
    params = {name: _encode(value, arrays, name) for name, value in estimator.get_params(deep=False).items()}
    fitted = {
        name: _encode(_kept(value), arrays, name) for name, value in vars(estimator).items() if name not in params
    }
    return {"estimator": type(estimator).__name__, "params": params, "fitted": fitted}


def _kept(value: Any) -> Any:
    """Training rows in a memory-mapped file stay there."""
    return None if isinstance(value, TrainingData) and isinstance(value.X, ScaledRows) else value


def _encode(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """JSON of a value; arrays go to the list and leave their position."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return {"float": float(value).hex()}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [_encode(v, arrays, where) for v in value]}
    if isinstance(value, dict):
        return {"dict": {str(name): _encode(v, arrays, where) for name, v in value.items()}}
    if isinstance(value, np.ndarray) and value.dtype == object and all(isinstance(v, str) for v in value.flat):
        return {"strings": value.tolist()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return {"words": value.tolist()}
    if isinstance(value, np.ndarray) or hasattr(value, "__jax_array__") or type(value).__module__.startswith("jax"):
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise ModelFileError(
                f"{where} holds an array of {array.dtype}, which cannot be saved; convert it to numbers."
            )
        known = next((i for i, other in enumerate(arrays) if other is array), None)  # as in members of a mixture
        if known is None:
            arrays.append(array)
        return {"array": len(arrays) - 1 if known is None else known}
    if ESTIMATORS.get(type(value).__name__) is type(value):  # one of several, as for one class against the rest
        return _encode_estimator(value, arrays)
    for table, classes in _tables().items():
        if classes.get(type(value).__name__) is type(value):
            fields = {
                f.name: _encode(getattr(value, f.name), arrays, f"{where}.{f.name}")
                for f in dataclasses.fields(value)
                if hasattr(value, f.name)
            }
            return {"table": table, "class": type(value).__name__, "fields": fields}
    raise ModelFileError(
        f"{where} is a {type(value).__name__}, which errorband does not know how to save. Register a class of your "
        f"own, e.g. errorband.kernels.KERNELS['{type(value).__name__}'] = {type(value).__name__}; use pickle otherwise."
    )


# ------------------------------------------------------------------------------------------------------- reading
def load(path: str | os.PathLike) -> Any:
    """Read a fitted estimator from a file written by ``save``. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator : GPRegressor or GPClassifier
        As it was when saved: its predictions are the same, to the last bit.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is truncated, altered, of another kind or of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> import errorband
    >>> model = errorband.GPRegressor(optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.eb")
    ...     again = errorband.load(f"{folder}/model.eb")
    >>> bool(again.predict([[0.5]]) == model.predict([[0.5]]))
    True
    """
    return load_with_table(path)[0]


def load_with_table(path: str | os.PathLike) -> tuple[Any, dict[str, Any] | None]:
    """Read a fitted estimator and the JSON document saved with it, None if there is none."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model file at {path}; check the path.")
    if not path.is_file():  # a pipe would wait for ever
        raise ModelFileError(f"{path} is not a file, so {REMEDY}.")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, path)
            text = archive.read("model.json")
            document = json.loads(text)
            _check_header(document, path)
            if hashlib.sha256(text).hexdigest().encode() != archive.read("model.sha256"):
                raise _damaged(path, "model.json does not match its checksum")
            arrays = [_read_array(archive, i, digest, path) for i, digest in enumerate(document["checksums"])]
            table = _read_table(archive, document, path)
        estimator = _decode_estimator(document, arrays)
        _check_built(estimator, path)
        return estimator, table
    except ModelFileError:
        raise
    except zipfile.BadZipFile as error:
        raise ModelFileError(f"{path} is not an errorband model, or it was cut short: {error}, so {REMEDY}.") from error
    except Exception as error:  # whatever a strange file provokes is the file's fault: say so
        told = f"{type(error).__name__}: {error}".rstrip(".")
        raise _damaged(path, told) from error


def _check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Entries are stored as they are: what claims to unpack to more than the file holds was not written by ``save``."""
    entries = archive.infolist()
    if any(e.compress_type != zipfile.ZIP_STORED for e in entries):
        raise _damaged(path, "it holds compressed entries, which no model file does")
    claimed = sum(e.file_size for e in entries)
    if claimed > path.stat().st_size:
        raise _damaged(path, f"its entries claim {claimed} bytes, more than the file holds")


def _check_header(document: Any, path: Path) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a zip file but not an errorband model, so {REMEDY}.")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise _damaged(path, f"its version is {version!r}, not a whole number")
    if version != VERSION:
        older = version < VERSION
        raise ModelFileError(
            f"{path} was written in version {version} of the format by errorband {document.get('errorband')}; this is "
            f"errorband {__version__}, which reads version {VERSION}"
            + (
                ", so fit the model again, or read it with the version that wrote it."
                if older
                else ". Upgrade errorband."
            )
        )
    if document.get("estimator") not in ESTIMATORS:
        raise ModelFileError(
            f"{path} holds a {document.get('estimator')!r}, which is not an estimator of errorband, so {REMEDY}."
        )


def _read_array(archive: zipfile.ZipFile, i: int, digest: str, path: Path) -> np.ndarray:
    blob = archive.read(f"arrays/{i}.npy")
    if hashlib.sha256(blob).hexdigest() != digest:
        raise _damaged(path, f"array {i} does not match its checksum")
    stream = io.BytesIO(blob)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, columns_first, dtype = read(stream)
    values = memoryview(blob)[stream.tell() :]
    if dtype.kind not in "fiub" or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(values):
        raise _damaged(path, f"array {i} does not hold the numbers that its header promises")
    return np.frombuffer(bytearray(values), dtype).reshape(shape, order="F" if columns_first else "C")


def _read_table(archive: zipfile.ZipFile, document: dict[str, Any], path: Path) -> dict[str, Any] | None:
    if "table" not in document:
        return None
    text = archive.read("table.json")
    if hashlib.sha256(text).hexdigest() != document["table"]:
        raise _damaged(path, "table.json does not match its checksum")
    return json.loads(text)


def _decode_dict(encoded: dict[str, Any], arrays: list[np.ndarray]) -> dict[str, Any]:
    return {name: _decode(value, arrays) for name, value in encoded.items()}


def _decode_estimator(encoded: dict[str, Any], arrays: list[np.ndarray]) -> Any:
    estimator = ESTIMATORS[encoded["estimator"]](**_decode_dict(encoded["params"], arrays))
    fitted = _decode_dict(encoded["fitted"], arrays)
    taken = [name for name in fitted if hasattr(type(estimator), name)]
    if taken:  # nothing in a file takes the place of a method
        raise ModelFileError(
            f"The file sets {taken[0]} of a {type(estimator).__name__}, which no fit does, so {REMEDY}."
        )
    vars(estimator).update(fitted)
    return estimator


def _check_built(estimator: Any, path: Path) -> None:
    """Refuse an estimator that fits together badly: a checksum says that bytes are as written, not who wrote them.

    Numbers are finite and within their constraints, and some rows can be predicted: what that needs has the shapes and
    types that it needs. Values that are wrong but plausible cannot be told from right ones.
    """
    process = getattr(estimator, "process_", None)
    for member in () if process is None else process.members_:  # estimators of another kind have none of these parts
        data, scaling, D = member._training_data, member.scaling_, member.n_features_in_
        for part in (member._model, member.likelihood_):
            parameters.check(part)
        kept = jax.tree.leaves((member._model, member.likelihood_, member.posterior_, vars(scaling)))
        if not all(np.all(np.isfinite(a)) for a in kept if isinstance(a, (float, np.ndarray))):
            raise _damaged(path, "it holds numbers that are not finite")
        if not np.shape(scaling.x_shift) == np.shape(scaling.x_scale) == (D,):
            raise _damaged(path, f"its scaling is not that of {D} inputs")
        if data is not None and not (np.shape(data.X) == (len(data.y), D) and len(data.y) > 0):
            raise _damaged(path, f"its rows are not rows of {D} inputs with a target each")
        rows = np.zeros((1, D)) if data is None else data.X[:TRIAL]
        member._check_inputs(rows)
        mean, cov = member.posterior_.marginals(rows)
        n, L = len(rows), member.likelihood_.n_latents
        if np.shape(mean) != (n, L) or np.shape(cov) != (n, L, L) or not np.isfinite(mean.sum() + cov.sum()):
            raise _damaged(path, "what it predicts is not a distribution")


def _decode(encoded: Any, arrays: list[np.ndarray]) -> Any:
    if not isinstance(encoded, dict):
        return encoded
    if "float" in encoded:
        return float.fromhex(encoded["float"])
    if "array" in encoded:
        return arrays[encoded["array"]]
    if "strings" in encoded:
        return np.asarray(encoded["strings"], dtype=object)
    if "words" in encoded:
        return np.asarray(encoded["words"], dtype=str)
    if "estimator" in encoded:
        return _decode_estimator(encoded, arrays)
    if "tuple" in encoded:
        return tuple(_decode(v, arrays) for v in encoded["tuple"])
    if "dict" in encoded:
        return _decode_dict(encoded["dict"], arrays)
    if "list" in encoded:
        return [_decode(v, arrays) for v in encoded["list"]]
    cls = _tables()[encoded["table"]].get(encoded["class"])
    if cls is None:
        raise ModelFileError(
            f"The file uses {encoded['class']!r}, which is not a registered {encoded['table']}, so register it before "
            "loading if it is yours, or fit again."
        )
    known = {f.name for f in dataclasses.fields(cls)}
    if not set(encoded["fields"]) <= known:
        strange = ", ".join(sorted(set(encoded["fields"]) - known))
        raise ModelFileError(
            f"The file gives {encoded['class']} fields it does not have ({strange}), so upgrade errorband or fit again."
        )
    fields = _decode_dict(encoded["fields"], arrays)
    if not issubclass(cls, eqx.Module):
        return cls(**fields)
    module = object.__new__(cls)  # frozen modules: set the fields and check them; run no constructor
    for name, value in fields.items():
        object.__setattr__(module, name, value)
    for base in cls.__mro__:
        if "__check_init__" in vars(base):
            vars(base)["__check_init__"](module)
    return module
