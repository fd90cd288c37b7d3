"""Arguments that are words and numbers, checked before anything is computed."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar

import numpy as np

_INT32 = (-(2**31), 2**31 - 1)
# Of whole numbers, by the argument's name; others have 32 bits.
_RANGES = {
    "threads": (0, 2**31 - 1), "max_plans": (1, 1000), "max_report": (0, 2**31 - 1), "most": (0, 2**31 - 1), "seed": (0, 2**64 - 1),
    "m": (1, 2**31 - 1), "n": (1, 2**31 - 1), "groups": (1, 2**31 - 1), "growth_interval": (-(2**63), 2**63 - 1),
}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: is a word, not {type(value).__name__}")
    return value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: is a whole number, not {type(value).__name__}")
    low, high = _RANGES.get(name, _INT32)
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is out of range (valid: {low} to {high})")
    return int(value)


def _real(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}: is a number, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}: {value:.3g} is out of range" if isinstance(value, float) else f"{name}: is out of range") from None


def _real_or_text(name: str, value: Any) -> float | str:
    return value if isinstance(value, str) else _real(name, value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: is True or False, not {type(value).__name__}")
    return bool(value)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {"str": _text, "int": _whole, "float": _real, "bool": _flag, "float | str": _real_or_text}

Function = TypeVar("Function", bound=Callable[..., Any])


def checked(function: Function) -> Function:
    """Checks words, numbers and flags by the function's annotations: TypeError or ValueError that begins with the name."""
    signature = inspect.signature(function)
    names = list(signature.parameters)
    named_only = [parameter.kind is parameter.KEYWORD_ONLY for parameter in signature.parameters.values()]
    if any(named_only):
        names.insert(named_only.index(True), "*")
    checks = {}
    for name, parameter in signature.parameters.items():
        kind = str(parameter.annotation)
        check = _CHECKS.get(kind.removesuffix(" | None"))
        if check is not None:
            checks[name] = check, kind.endswith(" | None")

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **options)
        except TypeError as error:
            raise TypeError(f"{function.__name__}: {error}; it takes {', '.join(names)}") from None
        for name, value in bound.arguments.items():
            if name in checks:
                check, may_be_none = checks[name]
                if not (value is None and may_be_none):
                    bound.arguments[name] = check(name, value)
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]
