"""Number formats of the cells of a workbook: dates, percentages, decimals, currencies.

Dates are written in ISO 8601, whatever their format, so that they can be searched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias
from xml.etree.ElementTree import Element

# Built-in formats by id; the ids above 26 that are for other languages are dates, too.
_BUILT_IN_FORMATS = {
    "1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%", "37": "#,##0", "38": "#,##0",
    "39": "#,##0.00", "40": "#,##0.00", "49": "@",
    **dict.fromkeys(("14", "15", "16", "17", *map(str, range(27, 32)), *map(str, range(50, 59))), "yyyy-mm-dd"),
    **dict.fromkeys(("18", "20"), "hh:mm"), **dict.fromkeys(("19", "21", "45", "46", "47"), "hh:mm:ss"),
    "22": "yyyy-mm-dd hh:mm",
}  # fmt: skip

_CURRENCY_SYMBOL = re.compile(r"\[\$([^\]-]*)[^\]]*\]")
_LITERAL = re.compile(r'\[[^\]]*\]|"([^"]*)"|\\(.)|[_*].')  # colours and conditions, literal text, padding
_ELAPSED = re.compile(r"\[([hms]+)\]", re.IGNORECASE)
_NUMBER = re.compile(r"[#0?][#0?,]*(?:\.([#0?]*))?")
_MAX_LENGTH = 30


@dataclass(frozen=True, slots=True)
class GeneralFormat:
    def __call__(self, stored: str) -> str:
        number = _parse_number(stored)
        if number is None:
            return stored
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.11g}"


@dataclass(frozen=True, slots=True)
class DecimalFormat:
    places: int
    has_grouping: bool
    is_percent: bool
    prefix: str
    suffix: str

    def __call__(self, stored: str) -> str:
        number = _parse_number(stored)
        if number is None or abs(number) >= 1e20:
            return stored
        shown = f"{abs(number) * (100 if self.is_percent else 1):{',' if self.has_grouping else ''}.{self.places}f}"
        minus = "-" if number < 0 and shown.strip("0.,") else ""
        return f"{minus}{self.prefix}{shown}{'%' if self.is_percent else ''}{self.suffix}"


@dataclass(frozen=True, slots=True)
class DateTimeFormat:
    has_date: bool
    has_time: bool
    has_seconds: bool
    is_elapsed: bool  # hours may exceed 24
    since_1904: bool

    def __call__(self, stored: str) -> str:
        number = _parse_number(stored)
        if number is None or not 0 <= number < 2_958_466:  # the year 10000
            return stored
        days, seconds = divmod(round(number * 86_400), 86_400)
        hours = seconds // 3_600 + (24 * days if self.is_elapsed else 0)
        clock = f"{hours:02}:{seconds // 60 % 60:02}" + (f":{seconds % 60:02}" if self.has_seconds else "")
        if not self.has_date:
            return clock
        if not self.since_1904 and days < 60:
            days += 1  # Excel counts 29 February 1900, which did not exist
        day = (date(1904, 1, 1) if self.since_1904 else date(1899, 12, 30)) + timedelta(days=days)
        return f"{day.isoformat()} {clock}" if self.has_time else day.isoformat()


CellFormat: TypeAlias = GeneralFormat | DecimalFormat | DateTimeFormat


def parse_cell_formats(styles: Element | None, *, since_1904: bool) -> dict[str, CellFormat]:
    """Return the number format of each cell style, by its index."""
    if styles is None:
        return {}
    custom_formats = {
        element.get("numFmtId", ""): element.get("formatCode", "") for element in styles.findall("numFmts/numFmt")
    }
    formats: dict[str, CellFormat] = {}
    for style, element in enumerate(styles.findall("cellXfs/xf")):
        name = element.get("numFmtId", "0")
        formats[str(style)] = parse_number_format(
            custom_formats.get(name) or _BUILT_IN_FORMATS.get(name, ""), since_1904=since_1904
        )
    return formats


def parse_number_format(code: str, *, since_1904: bool = False) -> CellFormat:
    """Return the formatter for a format code. Of its parts for positive, negative and zero, only the first counts."""
    code = _CURRENCY_SYMBOL.sub(lambda symbol: f'"{symbol[1]}"', code).partition(";")[0]
    elapsed = _ELAPSED.search(code) is not None
    bare = _LITERAL.sub("", _ELAPSED.sub(r"\1", code)).lower()
    if re.search("[ymdhs]", bare):
        has_time = "h" in bare or "s" in bare
        has_date = "y" in bare or "d" in bare or ("m" in bare and not has_time)
        return DateTimeFormat(has_date, has_time, "s" in bare, elapsed, since_1904)
    number = _NUMBER.search(bare)
    if number is None or "e+" in bare or "/" in bare:  # no exponents and fractions
        return GeneralFormat()
    words = _LITERAL.sub(lambda aside: aside[1] or aside[2] or "", code)
    at = _NUMBER.search(words)
    before, after = (words[: at.start()], words[at.end() :]) if at else ("", "")
    return DecimalFormat(
        places=min(len(number[1] or ""), _MAX_LENGTH),
        has_grouping="," in number[0],
        is_percent="%" in bare,
        prefix=before.replace("%", "")[:_MAX_LENGTH].lstrip(),
        suffix=after.replace("%", "")[:_MAX_LENGTH].rstrip(),
    )


def _parse_number(stored: str) -> float | None:
    try:
        number = float(stored)
    except ValueError:
        return None
    return number if number == number and abs(number) != float("inf") else None
