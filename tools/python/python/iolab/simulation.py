"""Runs: one, or the product of parameter lists."""

from __future__ import annotations

import csv
import io
import itertools
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _iolab
from .described import Platform, Scenario, Workload
from .errors import Error
from .optional import needed
from .policies import CacheMaker, CollectiveMaker
from .results import Result, result_of
from .traces import Trace

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

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

    def frame(self) -> pandas.DataFrame:
        """The rows as a table of pandas: each run with the range of its orders in ``low`` and ``high``."""
        frame: pandas.DataFrame = needed("pandas").DataFrame(list(self.rows()))
        return frame

    def plot(
        self, x: str, y: Literal["seconds", "bandwidth"] = "seconds", *, axes: matplotlib.axes.Axes | None = None
    ) -> matplotlib.axes.Axes:
        """Draws ``y`` over the parameter ``x``, a line for each combination of the other ones, with the range
        of each run's orders as a bar. Draws into ``axes`` where some are given; returns them.
        """
        if any(x not in point.parameters for point in self):
            names = ", ".join(dict.fromkeys(name for point in self for name in point.parameters))
            raise Error(f"`{x}` was not varied in this sweep", f"choose from {names}" if names else "give it as a list")
        if y not in ("seconds", "bandwidth"):
            raise Error(f"there is no column `{y}` with a range", "choose from seconds, bandwidth")
        if axes is None:
            axes = needed("matplotlib.pyplot").subplots()[1]
        lines: dict[str, list[tuple[Any, float, float, float]]] = {}
        for point in self:
            others = [f"{name} = {_name(value)}" for name, value in point.parameters.items() if name != x]
            lines.setdefault(", ".join(others), []).append((_name(point.parameters[x]), *_range(point.result, y)))
        for label, points in lines.items():
            places, low, middle, high = zip(*points)
            if not all(isinstance(place, (int, float)) for place in places):
                places = tuple(str(place) for place in places)
            below, above = [m - l for m, l in zip(middle, low)], [h - m for m, h in zip(middle, high)]
            axes.errorbar(places, middle, yerr=[below, above], label=label or None, marker="o", capsize=3)
        axes.set_xlabel(x)
        axes.set_ylabel("run time (s)" if y == "seconds" else "bandwidth (B/s)")
        axes.set_ylim(bottom=0)
        if any(lines):
            axes.legend()
        return axes

    def __repr__(self) -> str:
        names = ", ".join(self[0].parameters) if self else ""
        return f"<iolab.Sweep: {len(self)} runs{' over ' + names if names else ''}>"

    def _repr_html_(self) -> str | None:
        """In notebooks: the table, where pandas is there."""
        try:
            html: str = self.frame().to_html()
        except Error:
            return None
        return html

    def best(self) -> Point:
        """The fastest by its median; another whose ``low`` is below its ``high`` may be as fast."""
        return min(self, key=lambda point: point.result.seconds)


def _range(result: Result, column: str) -> tuple[float, float, float]:
    """Least, median and greatest value."""
    if column == "seconds":
        return result.low, result.seconds, result.high
    return tuple(result.bytes / seconds if seconds > 0 else 0.0 for seconds in (result.high, result.seconds, result.low))  # type: ignore[return-value]


_PARAMETERS = ("workload", "platform", "cache", "collective", "apply", "order", "seeds", "tie_seed", "seed", "faults")


def sweep(
    workload: Program | list[Program],
    platform: Platform | str | Mapping[str, Any] | list[Any] = "classic-hdd",
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **parameters: Any,
) -> Sweep:
    """Runs the product of all parameters that are given as lists (or ranges, tuples).

    The parameters are those of :func:`simulate`. ``workers`` runs go on at once, by themselves as
    many as there are processors; policies written in Python take turns. ``executor`` has them run elsewhere: any
    of ``concurrent.futures``, so a ``ProcessPoolExecutor``, an ``MPIPoolExecutor`` of mpi4py, ``client.get_executor()`` of
    Dask. It stays open; the results are the same. ``progress`` shows a bar (of tqdm).

    >>> iolab.sweep(text, cache=["none", "aggregation"], tie_seed=range(5)).csv()  # doctest: +SKIP
    """
    given: dict[str, Any] = {"workload": workload, "platform": platform, **parameters}
    for name in given:
        if name not in _PARAMETERS:
            raise Error(f"there is no parameter `{name}`", f"choose from {', '.join(_PARAMETERS)}")
    if executor is not None and workers is not None:
        raise Error("`workers` and `executor` were both given", "an executor has workers of its own")
    varied = {name: list(values) for name, values in given.items() if isinstance(values, (list, tuple, range))}
    fixed = {name: value for name, value in given.items() if name not in varied}
    points = [dict(zip(varied, values)) for values in itertools.product(*varied.values())]
    pool = nullcontext(executor) if executor is not None else ThreadPoolExecutor(workers or os.cpu_count())
    bar = closing(needed("tqdm.auto").tqdm(total=len(points), unit="run")) if progress else nullcontext()
    with pool as runs, bar as shown:
        futures: list[Future[Result]] = []
        try:
            for point in points:
                futures.append(runs.submit(_one, point, fixed))
                if shown is not None:
                    futures[-1].add_done_callback(lambda _: shown.update())
            return Sweep(Point(point, _result(future)) for point, future in zip(points, futures))
        finally:
            # What has ended does not mind; after a failure nobody waits for the others.
            for future in futures:
                future.cancel()


def _result(future: Future[Result]) -> Result:
    try:
        return future.result()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error):
            raise
        hint = "define policies in a module of their own, not in a function, or leave the executor out"
        raise Error(f"a run cannot be sent to another process: {error}", hint) from error


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

