"""A laboratory for parallel I/O, from Python: platforms, workloads, policies of one's own.

>>> import iolab
>>> "classic-hdd" in iolab.presets()
True

``docs/howto/python.md`` begins at the beginning.
"""

from __future__ import annotations

from importlib.metadata import version

from . import _iolab
from .described import Platform, Scenario, Trace, Workload
from .errors import Error, PolicyError
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
from .results import Application, Link, Phase, Result, Server
from .simulation import Point, Sweep, run, simulate, sweep

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
    "Error",
    "FileCall",
    "Link",
    "Phase",
    "Platform",
    "Point",
    "PolicyError",
    "Result",
    "Scenario",
    "Server",
    "Sweep",
    "Trace",
    "Workload",
    "caches_by_name",
    "collectives_by_command",
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
