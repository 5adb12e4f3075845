"""Runs: one, or the product of parameter lists."""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from . import _iolab
from .described import Platform, Scenario, Trace, Workload
from .errors import Error
from .policies import CacheMaker, CollectiveMaker
from .results import Result, result_of

__all__ = ["Point", "Sweep", "run", "simulate", "sweep"]

Program = Workload | Trace | str | Mapping[str, Any]
Order = Literal["documented", "published"]


def simulate(
    workload: Program,
    platform: Platform | str | Mapping[str, Any] = "classic-hdd",
    *,
    cache: str | CacheMaker | None = None,
    collective: Mapping[str, str | CollectiveMaker] | None = None,
    apply: str | Sequence[str] = (),
    order: Order = "documented",
    seeds: int | None = None,
    tie_seed: int | None = None,
    seed: int | None = None,
    faults: Scenario | str | Mapping[str, Any] | None = None,
) -> Result:
    """Runs a workload (or a trace) on a platform, in virtual time.

    ``cache`` is a name of :func:`iolab.caches_by_name` or a class (or function) that makes a layer from
    :class:`CacheSettings`; by itself each server has the platform's. ``collective`` says by command
    which algorithm of :func:`iolab.collectives_by_command` carries it out, or what makes one from a
    :class:`CollectiveCall`. ``apply`` puts in-situ strategies between the ranks and their files, as
    ``iolab run`` does (``"write-back:buffer=4m"``; of several, or in ``"A + B"``, the first is next to the program). The result is the median run over ``seeds`` orders of simultaneous events
    (9; in the published order 1), with ``low`` and ``high`` beside it; ``seeds=1`` or a ``tie_seed``
    make a single run. ``seed`` replaces that of the workload's random choices, ``faults`` lets things go wrong as a :class:`Scenario` says.

    >>> import iolab
    >>> text = '''
    ... [[files]]
    ... name = "f"
    ... [[applications]]
    ... name = "writer"
    ... ranks = 4
    ... [[applications.phases]]
    ... name = "write"
    ... commands = [{ open = "f" }, { write = "f", bytes = "1m", rank_step = "1m" }, { close = "f" }]
    ... '''
    >>> iolab.simulate(text, cache="aggregation").bytes
    4194304
    """
    program = workload._recording if isinstance(workload, Trace) else Workload.of(workload).text
    platform_text, choices = Platform.of(platform).text, dict(collective or {})
    scenario = None if faults is None else Scenario.of(faults).text
    strategies = [apply] if isinstance(apply, str) else list(apply)
    given = _iolab.simulate(program, platform_text, cache, choices, strategies, order, seeds, tie_seed, seed, scenario)
    return result_of(given)


run = simulate


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep."""

    parameters: dict[str, Any]
    """Those that were given as lists."""
    result: Result


class Sweep(list[Point]):
    """The runs of a sweep, in the order of the product."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Parameters and totals, one dictionary for each run."""
        for point in self:
            names = {key: _name(value) for key, value in point.parameters.items()}
            result = point.result
            yield {
                **names,
                "seconds": result.seconds,
                "low": result.low,
                "high": result.high,
                "bytes": result.bytes,
                "bandwidth": result.bandwidth,
            }

    def csv(self) -> str:
        """The rows as comma-separated values."""
        text = io.StringIO()
        rows = list(self.rows())
        if rows:
            writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return text.getvalue()

    def best(self) -> Point:
        """The fastest by its median; another whose ``low`` is below its ``high`` may be as fast."""
        return min(self, key=lambda point: point.result.seconds)


_PARAMETERS = ("workload", "platform", "cache", "collective", "apply", "order", "seeds", "tie_seed", "seed", "faults")


def sweep(
    workload: Program | list[Program],
    platform: Platform | str | Mapping[str, Any] | list[Any] = "classic-hdd",
    *,
    workers: int | None = None,
    **parameters: Any,
) -> Sweep:
    """Runs the product of all parameters that are given as lists (or ranges, tuples).

    The parameters are those of :func:`simulate`. ``workers`` runs go on at once, by themselves as
    many as there are processors; policies written in Python take turns.

    >>> iolab.sweep(text, cache=["none", "aggregation"], tie_seed=range(5)).csv()  # doctest: +SKIP
    """
    given: dict[str, Any] = {"workload": workload, "platform": platform, **parameters}
    for name in given:
        if name not in _PARAMETERS:
            raise Error(f"there is no parameter `{name}`", f"choose from {', '.join(_PARAMETERS)}")
    varied = {name: list(values) for name, values in given.items() if isinstance(values, (list, tuple, range))}
    fixed = {name: value for name, value in given.items() if name not in varied}
    points = [dict(zip(varied, values)) for values in itertools.product(*varied.values())]
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        results = pool.map(lambda point: _one(point, fixed), points)
        return Sweep(Point(point, result) for point, result in zip(points, results))


def _one(point: dict[str, Any], fixed: dict[str, Any]) -> Result:
    try:
        return simulate(**point, **fixed)
    except Error as error:
        at = ", ".join(f"{name} = {_name(value)}" for name, value in point.items())
        raise type(error)(f"at {at}: {error.message}", error.hint) from error


def _name(value: Any) -> Any:
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_name(one)}" for key, one in value.items())
    return getattr(value, "name", None) or getattr(value, "__name__", None) or type(value).__name__

