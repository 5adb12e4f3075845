"""Rows of plain values as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

Row = Mapping[str, Any]


def plain(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows without what is not a single value."""
    several = {key for row in rows for key, value in row.items() if isinstance(value, (list, tuple, dict))}
    return [{key: value for key, value in row.items() if key not in several} for row in rows]


def text_table(rows: Sequence[Row]) -> str:
    """One line each, below a line of names."""
    cells = _cells(plain(rows))
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))] if cells else []
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in cells)


def html_table(rows: Sequence[Row]) -> str:
    """A table, without style of its own."""
    cells = _cells(plain(rows))
    if not cells:
        return ""
    head, *body = [[escape(cell) for cell in line] for line in cells]
    lines = [_line("th", head), *(_line("td", line) for line in body)]
    return f"<table>{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    if not rows:
        return []
    keys = list(rows[0])
    return [keys] + [[_cell(row.get(key)) for key in keys] for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6f}" if isinstance(value, float) else str(value)
