"""Traces: what a program did, recorded, simulated, or imported from what another tool wrote."""

from __future__ import annotations

import json
import os
import warnings
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from . import _iolab
from .errors import TraceError, TraceNotFoundError
from .optional import needed
from .reports import Report

if TYPE_CHECKING:
    import pandas

__all__ = ["Trace"]

Format = Literal["strace", "hdtrace", "darshan", "dftracer", "otf2", "recorder"]


class Trace:
    """A trace in memory, about 100 bytes for each row."""

    def __init__(self, loaded: _iolab.LoadedTrace, path: str, format: Format | None = None) -> None:
        self._loaded = loaded
        self._path = path
        self._format = format
        self._program: _iolab.Recording | None = None
        self._header: dict[str, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Traces are large and lie where every node sees them: another process reads it again.
        return _again, (type(self), self._path, self._format)

    def __repr__(self) -> str:
        ranks = f", {self.rank_count} ranks" if self.rank_count else ""
        return f"<iolab.Trace: {self.name}{ranks}, {len(self)} rows>"

    def __len__(self) -> int:
        """Rows of the trace."""
        return len(self._loaded)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, format: Format | None = None, progress: bool = False) -> Trace:
        """Reads a trace: of iolab (``.iot``, also a directory of parts), or what Darshan, DFTracer, HDTrace, Score-P or Recorder wrote.

        Who wrote it is told by its content; only that of strace must be said by ``format``. ``progress`` shows a bar
        (of tqdm) while one of iolab's own is read; foreign ones come in one piece.

        Raises :class:`iolab.TraceNotFoundError` (a ``FileNotFoundError``) when nothing lies there, and
        :class:`iolab.TraceError` (a ``ValueError``) when it is no trace, or damaged; both have a ``hint``.
        """
        path = os.path.abspath(os.fspath(path))
        bar = closing(needed("tqdm.auto").tqdm(unit=" rows", unit_scale=True)) if progress else nullcontext()
        with bar as shown:

            def tell(rows: int, total: int) -> None:
                if shown is not None:
                    shown.total = total
                    shown.update(rows)

            try:
                loaded = _iolab.LoadedTrace.load(path, format, tell if progress else None)
            except TraceError as error:
                if os.path.lexists(path):
                    raise
                raise TraceNotFoundError(error.message, error.hint, path) from None
        note = _iolab.unfinished(path)
        if note is not None:
            warnings.warn(note, stacklevel=2)
        return cls(loaded, path, format)

    @property
    def path(self) -> str:
        """Where it was read from."""
        return self._path

    @property
    def header(self) -> dict[str, Any]:
        """What it says about itself: command, host, files, processes, what is missing (docs/format/trace.md)."""
        if self._header is None:
            self._header = json.loads(self._loaded.header())
        return self._header

    @property
    def name(self) -> str:
        """What was run."""
        return " ".join(self.header["command"]) or os.path.splitext(os.path.basename(self._path))[0]

    @property
    def rank_count(self) -> int:
        """Processes of the parallel program; 0 for a program without MPI."""
        return sum(process["rank"] >= 0 for process in self.header["processes"])

    @property
    def _recording(self) -> _iolab.Recording:
        """The program in it."""
        if self._program is None:
            self._program = self._loaded.recording()
        return self._program

    def frame(self) -> pandas.DataFrame:
        """A row for each call, as a table of pandas: the columns of docs/format/trace.md, and the path of the file."""
        numpy, tables = needed("numpy"), needed("pandas")
        columns = {}
        for name, (first, second) in self._loaded.columns().items():
            if isinstance(first, bytes):
                columns[name] = numpy.frombuffer(first, dtype=second)
                continue
            codes = numpy.frombuffer(first[0], dtype=first[1])
            # Two files may have one path; a row without one has no value.
            places, names = tables.factorize(numpy.asarray(second, dtype=object))
            codes = numpy.where(codes < 0, -1, places[codes]) if len(second) else codes
            columns[name] = tables.Categorical.from_codes(codes, names)
        frame: pandas.DataFrame = tables.DataFrame(columns)
        return frame

    def report(self) -> Report:
        """Totals, access patterns, and what is wrong: what ``iolab report`` says."""
        return Report(self._loaded.report(), self._loaded)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as a trace of iolab (``.iot``, a Parquet file); what lies there is replaced when all is written."""
        self._loaded.save(os.fspath(path))


def _again(kind: type[Trace], path: str, format: Format | None) -> Trace:
    return kind.load(path, format=format)
