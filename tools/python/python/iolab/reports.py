"""What traces say: reports of one, comparisons of two."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from . import _iolab
from .errors import Error
from .optional import needed
from .tables import html_table, plain, text_table

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

    from .traces import Trace

__all__ = ["Comparison", "Difference", "Finding", "Report", "compare"]

_SHOWN = 10
"""Rows of a table that a notebook shows."""


class _Said:
    """What is said of traces: plain data, tables of it, and the text for people."""

    data: dict[str, Any]
    """All of it, as the command prints it with ``--json``."""

    _tables: tuple[str, ...]

    def _rows(self, of: str) -> list[dict[str, Any]]:
        if of not in self._tables:
            kind = type(self).__name__.lower()
            raise Error(f"a {kind} has no `{of}`", f"choose from {', '.join(self._tables)}")
        rows: list[dict[str, Any]] = self.data.get(of, [])
        return rows

    def frame(self, of: str) -> pandas.DataFrame:
        """One of its tables as a table of pandas."""
        frame: pandas.DataFrame = needed("pandas").DataFrame(plain(self._rows(of)))
        return frame

    def table(self, of: str) -> str:
        """One of its tables as text, one line each."""
        return text_table(self._rows(of))


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong."""

    rule: str
    """Which rule found it."""
    severity: str
    """``low``, ``medium`` or ``high``."""
    confidence: str
    message: str
    """What happens, in one sentence."""
    share: float
    """The largest share of one process's run it takes, 0 to 1."""
    share_of: str
    """Of what that is a share."""
    calls: int
    bytes: int
    seconds: float
    """Over all processes."""
    remedy: str | None
    """What would help."""
    strategy: str | None
    """For ``iolab run --apply``, where a strategy does it without changing the program."""
    files: list[str]
    """All it is about, worst first."""
    rows: list[int]
    """Examples in the trace."""


class Report(_Said):
    """What a trace says about a run."""

    _tables = ("findings", "files", "layers", "processes", "datasets")

    def __init__(self, report: _iolab.LoadedReport, trace: _iolab.LoadedTrace) -> None:
        self._report = report
        self._trace = trace
        self.data = json.loads(report.json())
        self.findings = [_finding(one) for one in self.data["findings"]]
        """What is wrong, worst first."""

    @property
    def summary(self) -> dict[str, Any]:
        """The run in one line: counts, bytes, nanoseconds."""
        summary: dict[str, Any] = self.data["summary"]
        return summary

    def _rows(self, of: str) -> list[dict[str, Any]]:
        return [asdict(one) for one in self.findings] if of == "findings" else super()._rows(of)

    def frame(self, of: str = "files") -> pandas.DataFrame:
        """Findings, files, layers, processes or datasets (of HDF5, with variables of NetCDF) as a table of pandas."""
        return super().frame(of)

    def table(self, of: str = "files") -> str:
        """The same as text, one line each."""
        return super().table(of)

    def plot(self, *, axes: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws the bytes read and written per second over the time of the run. Draws into ``axes`` where some are
        given; returns them."""
        if axes is None:
            axes = needed("matplotlib.pyplot").subplots()[1]
        width = self.data["timeline"]["slice_ns"] / 1e9
        slices = self.data["timeline"]["slices"]
        edges = [index * width for index in range(len(slices) + 1)]
        for name, key in (("read", "read_bytes"), ("written", "written_bytes")):
            axes.stairs([one[key] / width for one in slices], edges, label=name)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("bandwidth (B/s)")
        axes.legend()
        return axes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with findings, charts and timeline: one file that opens on double click."""
        self._report.save(self._trace, os.fspath(path))

    def __str__(self) -> str:
        return self._report.text()

    def __repr__(self) -> str:
        summary, findings = self.summary, len(self.findings)
        moved = f"{summary['read_bytes']} bytes read, {summary['written_bytes']} written"
        return f"<iolab.Report: {summary['call_count']} calls, {moved}; {findings} finding{'s' * (findings != 1)}>"

    def _repr_html_(self) -> str:
        """In notebooks: what is wrong, and the files that took longest."""
        items = [
            f"<li><b>{escape(one.rule)}</b> ({escape(one.severity)}): {escape(one.message)}"
            f"; {100 * one.share:.0f} % of {escape(one.share_of)}."
            + (f" {escape(one.remedy)}" if one.remedy else "")
            + "</li>"
            for one in self.findings
        ]
        found = f"<ul>{''.join(items)}</ul>" if items else "<p>No findings.</p>"
        return f"<p>{escape(repr(self)[1:-1])}</p>{found}{html_table(self.data['files'][:_SHOWN])}"


def _finding(one: dict[str, Any]) -> Finding:
    evidence, remedy = one["evidence"], one["remedy"] or {}
    return Finding(
        rule=one["rule"],
        severity=one["severity"],
        confidence=one["confidence"],
        message=one["message"],
        share=evidence["share_of_run"],
        share_of=evidence["share_of"],
        calls=evidence["calls"],
        bytes=evidence["bytes"],
        seconds=evidence["time_ns"] / 1e9,
        remedy=remedy.get("sentence"),
        strategy=remedy.get("strategy"),
        files=one["files"],
        rows=evidence["rows"],
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that differs between two runs."""

    kind: str
    """``vanished``, ``came``, ``merged``, ``split``, ``fewer-calls``, ``more-calls``, ``slower`` or ``faster``."""
    sentence: str
    """The same for people."""
    seconds: float
    """B less A."""
    share: float
    """Of all differences, 0 to 1."""
    time: str
    """How sure the time is: ``tested``, ``seen`` or ``calls-only``."""
    file: str
    """Empty for none or for several together."""
    data: dict[str, Any]
    """All that is known of it (docs/format/compare.md)."""


class Comparison(_Said):
    """What differs between two runs, or several of each."""

    _tables = ("differences", "waiting", "shares", "functions", "processes", "renamed")

    def __init__(self, comparison: _iolab.LoadedComparison, a: list[Trace], b: list[Trace]) -> None:
        self._comparison = comparison
        self._a, self._b = a, b
        self.data = json.loads(comparison.json())
        self.differences = [_difference(one) for one in self.data["differences"]]
        """Those that are named, the one of most time first."""
        self.notes: list[str] = self.data["notes"]
        """What else to know, a sentence each."""

    @property
    def slower_by(self) -> float:
        """By how much longer B takes than A, as a share of A; below 0 when it is faster."""
        return self._comparison.slower_by()

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs: no call, and no time of any."""
        return self._comparison.is_equal()

    def frame(self, of: str = "differences") -> pandas.DataFrame:
        """Differences, waiting, shares, functions, processes or renamed files as a table of pandas."""
        return super().frame(of)

    def table(self, of: str = "differences") -> str:
        """The same as text, one line each."""
        return super().table(of)

    def plot(self, *, axes: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws the seconds of each difference that is named, the one of most time on top: B less A. Draws into ``axes``
        where some are given; returns them."""
        if axes is None:
            axes = needed("matplotlib.pyplot").subplots()[1]
        named = self.differences[::-1]
        axes.barh(range(len(named)), [one.seconds for one in named])
        axes.set_yticks(range(len(named)), [f"{one.kind} {os.path.basename(one.file)}".strip() for one in named])
        axes.set_xlabel("B less A (s)")
        return axes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a page: the differences and both timelines, also with B stretched onto A."""
        self._comparison.save(_named(self._a[0]), _named(self._b[0]), os.fspath(path))

    def __str__(self) -> str:
        return self._comparison.text()

    def __repr__(self) -> str:
        count = len(self.differences)
        return f"<iolab.Comparison: B takes {1 + self.slower_by:.3g} times as long as A; {count} difference{'s' * (count != 1)}>"

    def _repr_html_(self) -> str:
        """In notebooks: the differences, and where the time went."""
        items = [f"<li>{escape(one.sentence)}</li>" for one in self.differences]
        found = f"<ul>{''.join(items)}</ul>" if items else "<p>No difference is named.</p>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(repr(self)[1:-1])}</p>{found}{html_table(self.data['shares'][:_SHOWN])}{notes}"


def _difference(one: dict[str, Any]) -> Difference:
    seconds = one["difference_ns"] / 1e9
    return Difference(one["kind"], one["sentence"], seconds, one["share"], one["time"], one["file"], one)


def compare(a: Trace | str | os.PathLike[str] | list[Any], b: Trace | str | os.PathLike[str] | list[Any]) -> Comparison:
    """Holds run B against run A, or several runs of each (lists): calls are matched by what they do, not by when.

    Runs are traces or paths of traces. With two runs or more on both sides a difference in time is named only where
    chance does not explain it.
    """
    of_a, of_b = _side("A", a), _side("B", b)
    compared = _iolab.LoadedComparison.of([_named(one) for one in of_a], [_named(one) for one in of_b])
    return Comparison(compared, of_a, of_b)


def _side(name: str, given: Any) -> list[Trace]:
    from .traces import Trace

    runs = given if isinstance(given, (list, tuple)) else [given]
    if not runs:
        raise Error(f"there is no run of {name}", "give a trace, a path, or a list of them")
    return [run if isinstance(run, Trace) else Trace.load(run) for run in runs]


def _named(trace: Trace) -> tuple[str, _iolab.LoadedTrace]:
    return trace.path, trace._loaded
