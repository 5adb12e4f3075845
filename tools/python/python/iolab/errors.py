"""What goes wrong, and a way out."""

from __future__ import annotations

import errno
from typing import Any


class Error(Exception):
    """Something that was given cannot be used, or a run did not come to its end.

    ``message`` names the offender, ``hint`` is a way out.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class PolicyError(Error):
    """A policy written in Python raised an exception (``__cause__``) or broke its discipline."""


class TraceError(Error, ValueError):
    """A file is no trace that can be read, or is damaged."""


class TraceNotFoundError(Error, FileNotFoundError):
    """There is no trace of that name."""

    def __init__(self, message: str, hint: str = "", path: str = "") -> None:
        FileNotFoundError.__init__(self, errno.ENOENT, message, path)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.hint, self.filename)
