"""Platforms, workloads and scenarios: what a run is made from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _iolab
from .errors import Error

__all__ = ["Platform", "Scenario", "Workload"]


def _text_of(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise Error(str(error), "name a TOML file, or give its text or a dictionary") from error


def _repr(kind: str, text: str) -> str:
    """By the name the text gives itself."""
    name = re.search(r"""^name\s*=\s*["']([^"'\n]*)["']""", text.partition("\n[")[0], re.MULTILINE)
    return f"<iolab.{kind}: {name[1]}>" if name else f"<iolab.{kind}>"


def _text(kind: str, described: str | Mapping[str, Any]) -> str:
    """The TOML of what was given as text or as a dictionary; a path given in its place is told."""
    if not isinstance(described, str):
        return _toml(described)
    if described.endswith(".toml") and not {"\n", "="} & set(described):
        raise Error(f"`{described}` is a path, not the text of a {kind.lower()}", f"iolab.{kind}.load(path) reads a file")
    return described


def _toml(values: Mapping[str, Any]) -> str:
    try:
        return _iolab.toml_of_json(json.dumps(values))
    except (TypeError, ValueError) as error:
        raise Error(f"this cannot be written as TOML: {error}", "use text, numbers, lists and dictionaries") from error


class Platform:
    """What a cluster is made of: nodes, servers, switches, links. Checked when it is made."""

    def __init__(self, described: str | Mapping[str, Any]) -> None:
        """From the text of a platform file, or the same as a dictionary."""
        self.text = _text("Platform", described)
        _iolab.check_platform(self.text)

    def __repr__(self) -> str:
        return _repr("Platform", self.text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Platform:
        """Reads a platform file."""
        return cls(_text_of(path))

    @classmethod
    def preset(cls, name: str) -> Platform:
        """One of :func:`iolab.presets`."""
        texts = dict(_iolab.presets())
        if name not in texts:
            raise Error(f"there is no platform preset `{name}`", f"choose from {', '.join(texts)}")
        return cls(texts[name])

    @classmethod
    def of(cls, given: Platform | str | Mapping[str, Any]) -> Platform:
        """A platform as it is, the name of a preset, TOML text, or a dictionary."""
        if isinstance(given, Platform):
            return given
        if isinstance(given, str) and given.replace("-", "").replace("_", "").isalnum():
            return cls.preset(given)
        return cls(given)


class Scenario:
    """Faults: slow devices, stalled servers, lossy and cut links, crashed clients."""

    def __init__(self, described: str | Mapping[str, Any]) -> None:
        """From the text of a scenario file, or the same as a dictionary."""
        self.text = _text("Scenario", described)

    def __repr__(self) -> str:
        return _repr("Scenario", self.text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file."""
        return cls(_text_of(path))

    @classmethod
    def of(cls, given: Scenario | str | Mapping[str, Any]) -> Scenario:
        """A scenario as it is, TOML text, or a dictionary."""
        return given if isinstance(given, Scenario) else cls(given)


class Workload:
    """What runs: files, applications, phases, commands. Checked when it is made."""

    def __init__(self, described: str | Mapping[str, Any]) -> None:
        """From the text of a workload file, or the same as a dictionary."""
        self.text = _text("Workload", described)
        _iolab.check_workload(self.text)

    def __repr__(self) -> str:
        return _repr("Workload", self.text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Workload:
        """Reads a workload file."""
        return cls(_text_of(path))

    @classmethod
    def of(cls, given: Workload | str | Mapping[str, Any]) -> Workload:
        """A workload as it is, TOML text, or a dictionary."""
        return given if isinstance(given, Workload) else cls(given)
