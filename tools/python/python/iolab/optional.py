"""Packages that only some functions need: plots, tables of pandas, progress bars."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import Error


def needed(module: str) -> Any:
    """The module, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise Error(f"this needs {package}: {error}", f"pip install {package}") from error
