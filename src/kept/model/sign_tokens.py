"""Tokens of what is written with signs: flags (``-a``, ``--no-ff``), operators (``->>``), names (``$HOME``, ``c++``).

Full text drops signs, so each of these gets a token of letters and digits, the same in the index and in a query. A
flag's case counts in its first letter: ``-A`` is not ``-a``.
"""

import re
from collections.abc import Iterator

SIGN_TOKEN_PREFIX = "zx"
MAX_SIGN_TOKENS = 400  # of one field of a section
_MAX_CHARACTERS = 40

# Each begins with a literal, which is found quickly; what must not stand before it is checked after it.
_NAMES = {
    "-": re.compile(r"-(?<![\w$&;./\\-]-)-?[A-Za-z](?:[\w-]*\w)?"),  # --no-ff
    "__": re.compile(r"__(?<!\w__)\w+?__(?!\w)"),  # __init__
    "++": re.compile(r"\+\+(?<=\b[A-Za-z]\+\+)(?!\w)"),  # c++: the letter is added
    "#": re.compile(r"#(?<=\b[A-Za-z]#)(?!\w)"),  # C#
    "$": re.compile(r"\$\{?[A-Za-z_]\w*"),  # $HOME, ${name
    "@": re.compile(r"@(?<![\w.@/]@)[A-Za-z_](?:[\w.]*\w)?"),  # @decorator
    ".": re.compile(r"\.(?<![\w./\\)\]*?}]\.)[A-Za-z][\w-]+"),  # .gitignore
    "%": re.compile(r"%(?<![\w%]%)[A-Za-z](?!\w)"),  # %s
    "\\": re.compile(r"\\(?<![\w\\]\\)[a-z]\w*"),  # \copy
}
_NEGATABLE_FLAG = re.compile(r"--\[no-\]([a-z][\w-]*)")
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|?:.]{2,}")
_MAX_OPERATOR = 4
_LONE_SIGNS = re.compile(r"(?<!`)`([^\w\s`]{1,4})`(?!`)")
_ESCAPE = re.compile(r"\\([^\w\s])")
_MARKUP = frozenset(
    {"://", "../", "--", "---", "----", "...", "..", "....", "**", "***", "****", "##", "###", "####", "::."}
)
_SIGNS = re.compile(r"[-+*/<>=~!@#%^&|?:.$`\\]|__")


def sign_token(text: str) -> str:
    """Return the token of a flag, an operator, or a name with signs."""
    kept_case = 2 if len(text) > 1 and text[0] == "-" and text[1].isupper() else 0
    spelled = text[:kept_case] + text[kept_case:].lower()
    # The 0 at the end keeps stemmers away.
    return f"{SIGN_TOKEN_PREFIX}{''.join(map(_encode, spelled))}0"


def _encode(char: str) -> str:
    is_plain = char.isascii() and (char.islower() or char.isdigit())
    return char if is_plain else f"q{ord(char):02x}"


def find_sign_tokens(text: str, *, is_code: bool = False) -> list[str]:
    """Return the distinct tokens of a text, at most as many as a field may have. Outside code, the text is Markdown."""
    if _SIGNS.search(text) is None:
        return []
    found = dict.fromkeys(sign_token(name) for name in find_signed(text, is_code=is_code))
    return list(found)[:MAX_SIGN_TOKENS]


def find_signed(text: str, *, is_code: bool = False) -> Iterator[str]:
    """Yield the flags, operators and names with signs in a text, as they are written."""
    if not is_code:
        for lone in _LONE_SIGNS.finditer(text):
            yield lone[1]
        text = _ESCAPE.sub(r"\1", text).replace("**", " ")
    if "--[no-]" in text:
        for negatable in _NEGATABLE_FLAG.finditer(text):
            yield f"--{negatable[1]}"
            yield f"--no-{negatable[1]}"
    for sign, pattern in _NAMES.items():
        if sign in text:
            for match in pattern.finditer(text):
                if len(match[0]) <= _MAX_CHARACTERS:
                    name = match[0].replace("{", "")
                    yield text[match.start() - 1] + name if sign in ("++", "#") else name
    for match in _OPERATOR.finditer(text):
        if len(match[0]) <= _MAX_OPERATOR and (is_code or match[0] not in _MARKUP):
            yield match[0]
