"""The characters and fonts that roff writes as escape sequences.

split_runs    a line of roff -> pieces of text, each with its font
plain         the same as text alone
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

ROMAN, BOLD, ITALIC = "R", "B", "I"

_FONTS: Final = {
    "R": ROMAN, "1": ROMAN, "B": BOLD, "2": ITALIC, "I": ITALIC, "3": BOLD, "4": BOLD, "BI": BOLD, "CW": BOLD,
    "C": BOLD, "CR": BOLD, "CB": BOLD, "CI": ITALIC, "V": BOLD, "L": BOLD, "VB": BOLD,
}  # fmt: skip

SPECIAL_CHARACTERS: Final = {
    "aq": "'", "dq": '"', "lq": "“", "rq": "”", "oq": "‘", "cq": "’", "bu": "•", "em": "—", "en": "–", "hy": "-",
    "mi": "−", "pl": "+", "eq": "=", "sl": "/", "ul": "_", "ru": "_", "rs": "\\", "ti": "~", "ha": "^", "ga": "`",
    "at": "@", "sh": "#", "Do": "$", "ba": "|", "bv": "|", "br": "|", "or": "|", "lB": "[", "rB": "]", "lC": "{",
    "rC": "}", "la": "⟨", "ra": "⟩", "co": "©", "rg": "®", "tm": "™", "de": "°", "sc": "§", "ps": "¶", "dg": "†",
    "dd": "‡", "mu": "×", "di": "÷", "+-": "±", "**": "*", "<=": "≤", ">=": "≥", "!=": "≠", "==": "≡", "~~": "≈",
    "->": "→", "<-": "←", "<>": "↔", "ua": "↑", "da": "↓", "rA": "⇒", "lA": "⇐", "fm": "′", "sd": "″", "12": "½",
    "14": "¼", "34": "¾", "S1": "¹", "S2": "²", "S3": "³", "mc": "µ", "Eu": "€", "eu": "€", "Po": "£", "Ye": "¥",
    "ct": "¢", "if": "∞", "is": "∫", "sr": "√", "*a": "α", "*b": "β", "*g": "γ", "*d": "δ", "*e": "ε", "*l": "λ",
    "*m": "μ", "*p": "π", "*s": "σ", "*W": "Ω", "*D": "Δ", "*S": "Σ", "*w": "ω", "*t": "τ", "*h": "θ", "ss": "ß",
    "AE": "Æ", "ae": "æ", "OE": "Œ", "oe": "œ", "/O": "Ø", "/o": "ø", "/L": "Ł", "/l": "ł", "oA": "Å", "oa": "å",
    "'e": "é", "'a": "á", "'i": "í", "'o": "ó", "'u": "ú", "`e": "è", "`a": "à", ":a": "ä", ":o": "ö", ":u": "ü",
    ":A": "Ä", ":O": "Ö", ":U": "Ü", ":e": "ë", ":i": "ï", "^o": "ô", "^e": "ê", "^a": "â", "^i": "î", "~n": "ñ",
    "~a": "ã", "~o": "õ", ",c": "ç", ",C": "Ç", "aa": "´", "a^": "^", "a~": "~", "ad": "¨", "ci": "○", "sq": "□",
    "OK": "✓", "lh": "☜", "rh": "☞", "CR": "↵", "Fo": "«", "Fc": "»", "fo": "‹", "fc": "›", "r!": "¡", "r?": "¿",
    "tmu": "×", "nb": "⊄", "mo": "∈", "es": "∅", "no": "¬", "AN": "∧", "OR": "∨", "fa": "∀", "te": "∃", "Bq": "„",
    "bq": "‚", "f/": "⁄", "lf": "⌊", "rf": "⌋", "lc": "⌈", "rc": "⌉", "pc": "·", "md": "⋅", "sp": " ", "u2026": "…",
}  # fmt: skip

_SINGLE: Final = {
    "-": "-", "e": "\\", "\\": "\\", "~": " ", " ": " ", "0": " ", "'": "´", "`": "`", "t": "\t", ".": ".",
    "_": "_", '"': "",
}  # fmt: skip
_NOTHING: Final = frozenset("&|^/,%:)!?crduzpEa{}\n")

_ESCAPE: Final = re.compile(
    r"\\(?:"
    r"f(?:\((?P<font2>..)|\[(?P<fontn>[^\]]{0,200})\]|(?P<font1>.))"
    r"|\((?P<two>..)|\[(?P<name>[^\]]{0,200})\]|C'(?P<named>[^']{0,200})'"
    r"|s(?:[-+]?\(..|[-+]?\[[^\]]{0,200}\]|[-+]?'[^']{0,200}'|[-+]?[123][0-9]|[-+]?[0-9])"
    r"|(?P<number>N)'(?P<code>[0-9]{1,6})'"
    r"|o'(?P<over>[^']{0,200})'"
    r"|[hvwxXDlLbBAZSHR](?P<q>['\"]).{0,200}?(?P=q)"
    r"|[kmMFYVgn](?:\((?:..)|\[[^\]]{0,200}\]|.)"
    r"|\*(?:\((?:..)|\[[^\]]{0,200}\]|.)"
    r"|(?P<one>.)|$)",
    re.DOTALL,
)


class FontRun(NamedTuple):
    text: str
    font: str


def split_runs(line: str, font: str = ROMAN, previous: str = ROMAN) -> tuple[list[FontRun], str]:
    """Return the text in pieces, each in one font, and the font at its end."""
    runs: list[FontRun] = []
    pieces: list[str] = []
    at = 0
    find = line.find
    while (backslash := find("\\", at)) >= 0:
        if backslash > at:
            pieces.append(line[at:backslash])
        match = _ESCAPE.match(line, backslash)
        assert match is not None, "the pattern matches any escape"
        at = max(match.end(), backslash + 1)
        name = match["font1"] or match["font2"] or match["fontn"]
        if name is not None or match["fontn"] == "":
            wanted = previous if name in ("P", "", None) else _FONTS.get(name.strip(), ROMAN)
            if wanted != font:
                if pieces:
                    runs.append(FontRun("".join(pieces), font))
                    pieces = []
                font, previous = wanted, font
            else:
                previous = font
            continue
        pieces.append(_character(match))
    pieces.append(line[at:])
    if text := "".join(pieces):
        runs.append(FontRun(text, font))
    return runs, font


def plain(line: str) -> str:
    """Return a line of roff as text without fonts."""
    return "".join([run.text for run in split_runs(line)[0]]) if "\\" in line else line


def _character(match: re.Match[str]) -> str:
    name = match["two"] or match["name"] or match["named"]
    if name:
        return SPECIAL_CHARACTERS.get(name) or _unicode_name(name)
    if match["number"]:
        return _from_code(int(match["code"]))
    if match["over"]:
        return plain(match["over"][:1] if not match["over"].startswith("\\") else match["over"][:5])
    one = match["one"]
    if not one or one in _NOTHING:
        return ""
    return _SINGLE.get(one, one)


def _unicode_name(name: str) -> str:
    if name[:1] == "u" and len(name) > 4:
        try:
            return "".join([_from_code(int(part.removeprefix("u"), 16)) for part in name.split("_")])
        except ValueError:
            return ""
    if name[:4] == "char" and name[4:].isdigit() and len(name) < 12:
        return _from_code(int(name[4:]))
    return ""


def _from_code(code: int) -> str:
    return chr(code) if 31 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
