"""Lists of records that read well in a terminal and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any


class Record(dict[str, Any]):
    """A dict whose keys are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no {name!r} here; there is: {', '.join(map(str, self))}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


def record(value: Any) -> Any:
    """JSON's objects as records, at every depth."""
    if isinstance(value, dict):
        return Record((key, record(item)) for key, item in value.items())
    return [record(item) for item in value] if isinstance(value, list) else value


def _cell(value: Any) -> str:
    """A number that is given as code, decimal and hexadecimal shows as decimal, with 8 digits where it has more than 20."""
    text = "" if value is None else str(value["decimal"] if isinstance(value, dict) and "decimal" in value else value)
    is_long = len(text) > 20 and text.translate(str.maketrans("", "", "+-.e")).isdigit()
    return f"{float(text):.8g}" if is_long else text


class Table(list[Record]):
    """A list of records; `columns` are those that it shows."""

    def __init__(self, rows: Any, columns: tuple[str, ...]):
        super().__init__(rows)
        self.columns = columns

    def where(self, **values: Any) -> Table:
        """The records that have these values: `instructions().where(arch="sm_90")`."""
        unknown = [key for key in values if self and key not in self[0]]
        if unknown:
            raise ValueError(f"where: no column {unknown[0]!r} (valid: {', '.join(self[0])})")
        return Table([row for row in self if all(row.get(key) == value for key, value in values.items())], self.columns)

    def _cells(self, most: int) -> list[list[str]]:
        return [[_cell(row.get(c)) for c in self.columns] for row in self[:most]]

    def __repr__(self) -> str:
        most = 40
        rows = [list(self.columns), *self._cells(most)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        if len(self) > most:
            lines.append(f"... {len(self) - most} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        most = 200
        head = "".join(f"<th>{escape(c)}</th>" for c in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells(most))
        more = f"<p>... {len(self) - most} more</p>" if len(self) > most else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
