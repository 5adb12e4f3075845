"""The cache layers of the catalogue by name: ``from iolab.caches import Aggregation``.

Each is a function that gives the layer's name, so that ``cache=Aggregation()`` reads like a policy
of one's own. The names are those of the catalogue, ``none`` being ``NoCache``.
"""

from __future__ import annotations

from collections.abc import Callable

from . import _iolab


def _class_name(name: str) -> str:
    return "NoCache" if name == "none" else name.title().replace("-", "")


_LAYERS = {_class_name(name): name for name, _ in _iolab.caches()}

__all__ = list(_LAYERS)


def __getattr__(name: str) -> Callable[[], str]:
    if name not in _LAYERS:
        raise AttributeError(f"there is no cache layer {name}; choose from {', '.join(_LAYERS)}")
    layer = _LAYERS[name]
    return lambda: layer


def __dir__() -> list[str]:
    return __all__
