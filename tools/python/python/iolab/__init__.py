"""A laboratory for parallel I/O, from Python: traces, platforms, workloads, policies of one's own.

>>> import iolab
>>> "classic-hdd" in iolab.presets()
True

``docs/howto/python.md`` begins at the beginning.
"""

from __future__ import annotations

from importlib.metadata import version

from . import _iolab
from .described import Platform, Scenario, Workload
from .errors import Error, PolicyError, TraceError, TraceNotFoundError
from .policies import (
    CacheAction,
    CacheEvent,
    CacheMaker,
    CachePolicy,
    CacheSettings,
    CollectiveAction,
    CollectiveCall,
    CollectiveMaker,
    CollectivePolicy,
    FileCall,
)
from .reports import Comparison, Difference, Finding, Report, compare
from .results import Application, Link, Phase, Result, Server
from .simulation import Point, Sweep, run, simulate, sweep
from .traces import Trace

__version__ = version("iolab")

__all__ = [
    "Application",
    "CacheAction",
    "CacheEvent",
    "CacheMaker",
    "CachePolicy",
    "CacheSettings",
    "CollectiveAction",
    "CollectiveCall",
    "CollectiveMaker",
    "CollectivePolicy",
    "Comparison",
    "Difference",
    "Error",
    "FileCall",
    "Finding",
    "Link",
    "Phase",
    "Platform",
    "Point",
    "PolicyError",
    "Report",
    "Result",
    "Scenario",
    "Server",
    "Sweep",
    "Trace",
    "TraceError",
    "TraceNotFoundError",
    "Workload",
    "caches_by_name",
    "collectives_by_command",
    "compare",
    "presets",
    "run",
    "simulate",
    "sweep",
]


def presets() -> list[str]:
    """Names of the platforms that come along."""
    return [name for name, _ in _iolab.presets()]


def caches_by_name() -> dict[str, str]:
    """The cache layers of the catalogue: what each does, by name."""
    return dict(_iolab.caches())


def collectives_by_command() -> dict[str, dict[str, str]]:
    """The collective algorithms by command: what each does, by name; the default comes first."""
    commands: dict[str, dict[str, str]] = {}
    for command, name, summary in _iolab.collectives():
        commands.setdefault(command, {})[name] = summary
    return commands
