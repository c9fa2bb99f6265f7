"""Model objects as plain dictionaries and JSON, a safe alternative to pickle.

An untrusted or damaged file must neither run code nor make an invalid model. So only
numbers, strings, lists and dictionaries are written, and every field is validated when
it is read, before the constructor validates how they fit together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from .validation import MOST_COLUMNS, shown

FORMAT = "sklearn_latent"
HEAD = ("format", "version", "type", "fields")
# Raised when names or meanings of stored fields change. Version 1, never released, had
# `n_hidden` and `measurement` for what is `n_latents` and `structure` now.
VERSION = 2

# Dimensions of a NumPy array. The product of many sizes would take for ever. Sizes have
# a limit too: besides a size of 0 no value pays for another of billions.
MOST_DIMENSIONS = 64

# Types of stored values; to Python, bool is an integer, but not here.
STORED: dict[str, set[type]] = {"float": {float, int}, "int": {int}, "bool": {bool}}
DTYPES: dict[str, type] = {"float": np.float64, "int": np.int64, "bool": np.bool_}


class Field(Protocol):
    """How one argument of a constructor becomes plain, and is read with its name."""

    def encode(self, value) -> Any: ...

    def decode(self, name: str, value) -> Any: ...


@dataclass(frozen=True)
class Array:
    """An array of finite numbers or truth values, stored as shape and flat list.

    kind: type of the values
    ndim: number of dimensions; None is any
    optional: whether the value may be None
    omitted: whether None is not written at all, so that simple models read simply
    """

    kind: str = "float"
    ndim: int | None = None
    optional: bool = False
    omitted: bool = False

    def encode(self, value):
        """Shape and flat list."""
        if value is None:
            return None
        array: np.ndarray = np.asarray(value, dtype=DTYPES[self.kind])
        return {"shape": list(array.shape), "values": array.ravel().tolist()}

    def decode(self, name, value):
        """Array of that shape."""
        if value is None and self.optional:
            return None
        stored = _mapping(name, value, {"shape", "values"})
        shape, values = stored["shape"], stored["values"]
        problem = self._problem(shape, values)
        if problem:
            raise ValueError(f"{name} must {problem}.")
        try:
            array: np.ndarray = np.array(values, dtype=DTYPES[self.kind]).reshape(shape)
        except (OverflowError, ValueError) as error:
            raise ValueError(f"{name} does not fit an array: {error}.") from None
        if self.kind == "float" and not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity.")
        return array

    def _problem(self, shape, values) -> str:
        """What shape and values must be and are not."""
        if (
            type(shape) is not list
            or len(shape) > MOST_DIMENSIONS
            or any(type(n) is not int or not 0 <= n <= MOST_COLUMNS for n in shape)
        ):
            return (
                f"have a list of sizes as shape, up to {MOST_DIMENSIONS} sizes of up "
                f"to {MOST_COLUMNS}"
            )
        if self.ndim is not None and len(shape) != self.ndim:
            return f"have {self.ndim} dimension(s), got {len(shape)}"
        if type(values) is not list or len(values) != prod(shape):
            return (
                f"have a flat list of {prod(shape)} values for its shape, got "
                f"{_described(values)}"
            )
        wrong = sorted(
            kind.__name__ for kind in set(map(type, values)) - STORED[self.kind]
        )
        return f"hold values of type {self.kind}, got {wrong}" if wrong else ""


@dataclass(frozen=True)
class Arrays:
    """A list of arrays of numbers."""

    kind: str = "float"

    def encode(self, value):
        """List of encoded arrays."""
        return [Array(self.kind).encode(array) for array in value]

    def decode(self, name, value):
        """List of arrays."""
        if type(value) is not list:
            raise ValueError(f"{name} must be a list, got {_described(value)}.")
        return [
            Array(self.kind).decode(f"{name}[{i}]", one) for i, one in enumerate(value)
        ]


@dataclass(frozen=True)
class Plain:
    """A value that JSON has.

    plain: makes it of a value; is_valid: whether it is one; expected: which it must be
    """

    plain: Callable[[Any], Any]
    is_valid: Callable[[Any], bool]
    expected: str

    def encode(self, value):
        """The value."""
        value = self.plain(value)
        if not self.is_valid(value):
            raise ValueError(
                f"A value that is not {self.expected} cannot be written, got {value!r}."
            )
        return value

    def decode(self, name, value):
        """The value."""
        if not self.is_valid(value):
            raise ValueError(
                f"{name} must be {self.expected}, got {_described(value)}."
            )
        return value


def Integer(low: int = 0) -> Plain:
    """A whole number of at least `low`."""
    return Plain(
        int,
        lambda value: type(value) is int and low <= value < 2**63,
        f"an integer of at least {low}",
    )


def Choice(choices: tuple[str, ...]) -> Plain:
    """One of a few strings."""
    return Plain(
        str,
        lambda value: type(value) is str and value in choices,
        f"one of {', '.join(choices)}",
    )


def Names() -> Plain:
    """A list of strings and whole numbers, or None."""
    return Plain(
        lambda value: None if value is None else list(map(_plain_name, value)),
        lambda value: (
            value is None
            or (type(value) is list and set(map(type, value)) <= {str, int})
        ),
        "a list of strings and whole numbers, or null",
    )


@dataclass(frozen=True)
class Model:
    """Another model object; omitted: None is not written at all."""

    type: type[Persistent]
    omitted: bool = False

    def encode(self, value):
        """Plain form of the model."""
        return value.to_dict()

    def decode(self, name, value):
        """The model."""
        return self.type.from_dict(value)


class Persistent:
    """Mixin of model objects: plain dictionaries and JSON, without pickle.

    A subclass lists the arguments of its constructor in ``_fields``. They are
    attributes too, unless ``_arguments`` says otherwise.
    """

    _fields: ClassVar[dict[str, Field]]

    def _arguments(self) -> dict[str, Any]:
        """Arguments that make an equal model."""
        return {name: getattr(self, name) for name in self._fields}

    # Other formats restore a model through its constructor too, which validates.
    def __getstate__(self) -> dict[str, Any]:
        return self._arguments()

    def __setstate__(self, state: Any) -> None:
        values = _mapping("state", state, set(self._fields))
        # mypy distrusts calls of __init__, because a subclass may have other arguments.
        # Here `_fields` names the arguments of each class.
        self.__init__(**values)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        theirs = other._arguments()
        return all(
            _equal(value, theirs[name]) for name, value in self._arguments().items()
        )

    def __hash__(self) -> int:
        return hash(tuple(map(_hashable, self._arguments().values())))

    def to_dict(self) -> dict[str, Any]:
        """Plain form of the model: numbers, strings, lists and dictionaries.

        Returns
        -------
        data : dict
            Can be written by `json.dump` and read by `from_dict`.
        """
        may_lack = self._may_lack()
        return {
            "format": FORMAT,
            "version": VERSION,
            "type": type(self).__name__,
            "fields": {
                name: self._fields[name].encode(value)
                for name, value in self._arguments().items()
                if not (value is None and name in may_lack)
            },
        }

    @classmethod
    def _may_lack(cls) -> set[str]:
        """Fields that are not written if they are None."""
        return {n for n, field in cls._fields.items() if getattr(field, "omitted", 0)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Model from its plain form.

        Parameters
        ----------
        data : dict
            As returned by `to_dict`. All fields are validated; no code is run.

        Returns
        -------
        model : object of this class
            Equal to the model that was written.
        """
        head = _mapping("data", data, set(HEAD))
        for key, wanted in (("format", FORMAT), ("type", cls.__name__)):
            if type(head[key]) is not str or head[key] != wanted:
                raise ValueError(
                    f"{key} must be {wanted!r}, got {_described(head[key])}."
                )
        version = head["version"]
        if type(version) is not int or version != VERSION:
            older = type(version) is int and version < VERSION
            raise ValueError(
                f"version must be {VERSION}, got {_described(version)}; "
                f"{'an older' if older else 'a newer'} sklearn_latent may read it."
            )
        may_lack = cls._may_lack()
        fields = _mapping(
            "fields", head["fields"], set(cls._fields) - may_lack, may_lack
        )
        values = {
            name: field.decode(name, fields[name])
            for name, field in cls._fields.items()
            if name in fields
        }
        return cls(**values)

    def to_json(self) -> str:
        """Model as JSON text.

        Returns
        -------
        text : str
            Can be read by `from_json`, which notices changes by a checksum.
        """
        data = self.to_dict()
        return json.dumps({**data, "checksum": _checksum(data)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Model from JSON text.

        Parameters
        ----------
        text : str or bytes
            As returned by `to_json`. All fields are validated; no code is run.

        Returns
        -------
        model : object of this class
            Equal to the model that was written.
        """
        if not isinstance(text, (str, bytes, bytearray)):
            raise TypeError(f"text must be a string, got {type(text).__name__}.")
        try:
            data = json.loads(
                text, parse_constant=_refuse, object_pairs_hook=_without_repeats
            )
        except (ValueError, RecursionError) as error:
            reason = str(error).split("\n")[0][:200]
            raise ValueError(f"text must be JSON of a model: {reason}.") from None
        if type(data) is dict and "checksum" in data:
            stored = data.pop("checksum")
            if stored != _checksum(data):
                raise ValueError(
                    "text must be as to_json wrote it, got another checksum than that "
                    "of its content: it was changed or damaged. Leave out the checksum "
                    "if that was on purpose."
                )
        return cls.from_dict(data)


def _plain_name(name):
    """A name as JSON has it, so that it comes back equal."""
    if isinstance(name, str):
        return str(name)
    if isinstance(name, Integral) and not isinstance(name, bool):
        return int(name)
    raise ValueError(
        "Only names that are strings or whole numbers can be written, got "
        f"{shown(name)}; rename it, for example to {shown(str(name))}."
    )


def _equal(one, two) -> bool:
    """Whether two values of a field are the same."""
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
        return len(one) == len(two) and all(map(_equal, one, two))
    return bool(one == two)


def _hashable(value):
    """The same for equal values of a field."""
    if isinstance(value, np.ndarray):
        # Equal numbers may differ in type and in the sign of zero.
        return value.shape, tuple(value.ravel().tolist())
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    return value


def _checksum(data: Mapping) -> str:
    """Digest of the content, whatever the order of its keys and its blanks."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_repeats(pairs):
    """The dictionary of an object of JSON; a key that comes twice is refused."""
    found: dict = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:40]!r} comes twice")
        found[key] = value
    return found


def _refuse(constant):
    raise ValueError(f"{constant} is no number of a model")


def _mapping(name, value, keys, optional=frozenset()) -> Mapping:
    """Check that a value is a dictionary with these keys and perhaps optional ones."""
    if type(value) is not dict:
        raise ValueError(f"{name} must be a dictionary, got {_described(value)}.")
    missing = sorted(keys - value.keys())
    if missing:
        raise ValueError(f"{name} must have {', '.join(missing)}, got no such entry.")
    known = keys | optional
    surplus = [key for key in value if key not in known]
    if surplus:
        raise ValueError(
            f"{name} must have no more than {', '.join(sorted(known))}, got also "
            f"{_described(surplus[0])}."
        )
    return value


def _described(value) -> str:
    """A few words on a value that may be huge or hostile."""
    if type(value) is str:
        return repr(value[:40])
    if value is None or type(value) in (bool, float):
        return repr(value)
    if type(value) is int:
        return str(value) if abs(value) < 10**18 else "a huge integer"
    if type(value) in (list, dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an object of type {type(value).__name__}"
