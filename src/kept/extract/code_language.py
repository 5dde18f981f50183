"""Guess the language of a code block whose page does not name it.

    guess_language        the language, or "" where nothing speaks clearly for one
    name_languages        a Markdown text with the language after each fence that has none

A small table of signs, each of which hardly occurs in another language: on 6,800 blocks that name their language it is
right far more often than Pygments (docs/decisions/0038). A wrong language is worse than none.
"""

from __future__ import annotations

import json
import re
from typing import Final

SAMPLE_LENGTH: Final = 1_500

_NEEDED: Final = {
    "powershell": ("PS ", "PS> ", "-"),
    "rust": ("fn ", "let mut ", "::", "impl", "#["),
    "go": ("package ", "func ", ":= "),
    "cpp": ("#include <", "std::", "template", "namespace"),
    "c": ("include", "#define", "(void", "int ", "char", "long", "size_t", "double", "*"),
    "java": ("public ", "private ", "protected ", "import "),
    "python": ("def ", "class ", "import ", ":\n", "@", "__name__"),
    "typescript": (
        *("interface ", "type ", ": string", ": number", ": boolean", ": void", ": any", ": unknown", ": Promise<"),
        *("as const", "abstract ", "declare ", "private ", "public ", "readonly "),
    ),
    "javascript": (
        *("const ", "let ", "var ", "import ", "export ", "require(", "console.", "function", "=>", "module.exports"),
    ),
    "ruby": ("require", "module ", "gem ", "do |"),
}
# The language, the pattern that is its sign, and texts one of which the pattern needs: looking for them first spares
# most blocks most patterns. Patterns with \A are matched at the beginning only. In order: the clearer signs first.
_PATTERNS: Final = (
    ("python", r"\A\s*(?:>>> |In \[\d+\]: )"),
    ("bash", r"\A#!.*\b(?:ba|z|k|da)?sh\b"),
    ("python", r"\A#!.*\bpython"),
    ("perl", r"\A#!.*\bperl\b"),
    ("php", r"\A\s*<\?php\b"),
    ("xml", r"\A\s*<\?xml\b"),
    (
        "html",
        r"\A\s*<!DOCTYPE html|\A\s*<(?:html|head|body|div|script|style|form|p|ul|ol"
        r"|li|a|span|nav|section|h[1-6]|table|tr|td|link|meta|img|input|button|select"
        r"|textarea|label|iframe|video|svg|pre|template)[\s>]",
    ),
    ("diff", r"\A(?:diff --git |--- \S.*\n\+\+\+ \S|@@ -\d+)"),
    (
        "powershell",
        r"\A\s*(?:PS [A-Z]?:?[\\/>]|PS> )|^[ \t]*(?:\$\w+ = )?(?:Get|Set|New|Install"
        r"|Import|Write|Remove)-[A-Z]\w+\b",
    ),
    ("doscon", r"\A(?:\.\.\.\\>|[A-Z]:\\[^>\n]*>)"),
    ("bash", r"\A\s*(?:[\w.-]+@[\w.-]+:[^\n$#]*|\([\w.-]+\) ?)?[$%] \S"),
    ("dockerfile", r"\AFROM \S+(?: AS \w+)?\n(?:.*\n){0,40}?(?:RUN|COPY|CMD|ENV|WORKDIR|ENTRYPOINT) "),
    (
        "sql",
        r"\A\s*(?:--.*\n)*\s*(?:SELECT\b(?:.|\n)+?\bFROM\b|INSERT INTO\b|CREATE (?:OR REPLACE "
        r"|TEMP(?:ORARY)? |UNIQUE |VIRTUAL )*(?:TABLE|INDEX|VIEW|FUNCTION|TRIGGER"
        r"|DATABASE|EXTENSION|SCHEMA|ROLE|USER|POLICY|TYPE|SEQUENCE)\b|ALTER (?:TABLE"
        r"|DATABASE|ROLE)\b|DROP (?:TABLE|INDEX|VIEW)\b|UPDATE \w+\s+SET\b|DELETE FROM\b"
        r"|GRANT \w+|PRAGMA \w+|WITH (?:RECURSIVE )?\w+(?:\([^)]*\))? AS|EXPLAIN "
        r"|VACUUM|BEGIN;|COMMIT;)",
    ),
    (
        "rust",
        r"^[ \t]*(?:pub )?fn \w+(?:<[^>]*>)?\([^)]*\)(?: -> [^{]+)? \{|^[ \t]*let mut "
        r"|^use \w+(?:::\w+)+|^[ \t]*impl(?:<[^>]*>)? \w+|^#\[\w+",
    ),
    ("go", r"^package \w+$|^func (?:\([^)]*\) )?\w+\(.*\{$|^[ \t]*\w+(?:, \w+)* := "),
    (
        "cpp",
        r"^[ \t]*#include <(?:iostream|vector|string|memory|map|algorithm|Q\w+)>|\bstd::\w+"
        r"|^[ \t]*template ?<|^[ \t]*(?:using )?namespace \w+",
    ),
    (
        "c",
        r"^[ \t]*#\s*include [<\"]\w[\w/.]*\.h[>\"]|^[ \t]*#define \w+|^(?:static "
        r"|const |unsigned |struct |extern |inline )*(?:int|void|char|long|size_t"
        r"|double|[A-Z]\w*|struct \w+)(?: ?\*+ ?| )\w+\((?:void|[^()\n]*(?:\b(?:int"
        r"|char|void|long|double|size_t|const)\b|\*)[^()\n]*,?\s*)(?:\)|$)",
    ),
    (
        "java",
        r"^[ \t]*(?:public|private|protected) (?:static |final |abstract )*(?:class"
        r"|interface|enum|void|int|String)\b|^import (?:java|org|com)\.[\w.]+;",
    ),
    (
        "python",
        r"^[ \t]*(?:async )?def \w+\(.*(?:\)|,|\()(?: ?-> ?[^:]+)?:?\s*(?:#.*)?$|^[ \t]*class \w+(?:\([^)]"
        r"*\))?:\s*$|^from [\w.]+ import (?!.*['\"])|^import \w[\w.]*(?:, \w[\w.]*)*(?: as \w+)?$"
        r"|^[ \t]*if __name__ == |^[ \t]*(?:el)?if .*[^{;]:\s*$|^[ \t]*for .+ in .+:\s*$"
        r"|^[ \t]*with .+:\s*$|^[ \t]*(?:try|else|finally|except.*):\s*$|^@\w+(?:\.\w+)*(?:\(.*\))?$\n\s*("
        r"?:def|class|async)",
    ),
    (
        "typescript",
        r"^[ \t]*(?:export )?(?:interface|type) \w+(?:<[^>]*>)? ?(?:=|\{)|^[ \t]*(?:import"
        r"|export) type\b|[\w)] ?: (?:string|number|boolean|void|any|unknown|Promise<\w)"
        r"|\bas const\b|^[ \t]*(?:abstract |declare )|\b(?:private|public|readonly) \w+\b.*[;{]$",
    ),
    (
        "javascript",
        r"^[ \t]*(?:const|let|var) [\w{\[][^=\n]*=(?!=)|^[ \t]*import .*\bfrom ['\"]"
        r"|^import ['\"]|^[ \t]*export (?:default|const|function|async|class|\{)|\brequire\(['\"]"
        r"|\bconsole\.\w+\(|\bfunction ?\w*\([^)]*\) ?\{|=> ?[{(]|^module\.exports",
    ),
    ("ruby", r"^[ \t]*(?:require(?:_relative)? ['\"]|module [A-Z]\w*$|gem ['\"])|\bdo \|\w+(?:, ?\w+)*\|$"),
    (
        "css",
        r"\A\s*(?:/\*.*\*/\s*)?(?:@\w[^{;]*|[.#:*a-z][^{};()=\"'`\n]*)\{\s*(?:--)?[a-z][\w-]*\s*:[^{}\"'`="
        r"]*;\s*[^{}]*\}",
    ),
    (
        "toml",
        r"\A(?:#.*\n)*\s*\[{1,2}[\w.\"-]+\]{1,2}\n(?:.*\n){0,20}?[\w-]+ = (?:[\"\[{\d]"
        r"|true|false)",
    ),
    ("ini", r"\A(?:[;#].*\n)*\s*\[[^\]\n]+\]\n(?:[;#\s].*\n)*[\w. -]+ ?[=:]"),
)
_SIGNS: Final[tuple[tuple[str, re.Pattern[str], bool, tuple[str, ...]], ...]] = tuple(
    (
        language,
        re.compile(pattern, re.MULTILINE),
        language not in _NEEDED or pattern.startswith((r"\A#!", r"\A\s*(?:>>>")),  # is at the beginning only
        _NEEDED.get(language, ()),
    )
    for language, pattern in _PATTERNS
)
_COMMANDS: Final = frozenset({
    "npm", "npx", "pnpm", "yarn", "pip", "pip3", "pipx", "uv", "git", "cd", "sudo", "apt", "apt-get",
    "brew", "curl", "wget", "docker", "kubectl", "make", "cmake", "mkdir", "export", "source", "ls", "cp",
    "mv", "rm", "cargo", "go", "echo", "cat", "chmod", "tar", "python", "python3", "node", "deno", "bun",
    "ssh", "scp", "helm", "terraform", "gem", "bundle", "conda", "poetry", "dnf", "yum", "pacman",
    "systemctl", "./configure", "openssl", "psql", "createdb", "initdb", "sqlite3", "django-admin",
    "flask", "pytest", "tox", "sphinx-build", "touch", "unzip", "bash", "sh",
})  # fmt: skip
_FIRST_WORD = re.compile(r"[\w./-]+")
_YAML_LINE = re.compile(r"\s*(?:- )*(?:[\w./\"'-]+:(?: .*)?|- .+|#.*|---)$")
_YAML_KEY = re.compile(r"^[ \t]*(?:- )?[\w.-]+:(?: [^{;]*)?$", re.MULTILINE)
_TAG = re.compile(r"\A<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?/?>")


def guess_language(code: str) -> str:
    """Return the language of a block of code, or ""."""
    sample = code[:SAMPLE_LENGTH]
    for language, sign, is_first, needed in _SIGNS:
        if is_first:
            if sign.match(sample):
                return language
        elif any(text in sample for text in needed) and sign.search(sample):
            return language
    stripped = sample.lstrip()
    if stripped[:1] in ("{", "[") and '"' in stripped and _is_json(code):
        return "json"
    if stripped.startswith("<") and _TAG.match(stripped) and code.rstrip().endswith(">"):
        return "xml"
    lines = [line for line in sample.split("\n") if line.strip()]
    if lines and _are_commands(lines):
        return "bash"
    if len(lines) > 1 and all(map(_YAML_LINE.match, lines)) and len(_YAML_KEY.findall(sample)) * 2 > len(lines):
        return "yaml"
    return ""


def _is_json(code: str) -> bool:
    try:
        json.loads(code)
    except (ValueError, RecursionError):
        return False
    return True


def _are_commands(lines: list[str]) -> bool:
    """Return whether the first line is a command, and so is each other one that is no continuation or comment."""
    found = goes_on = False
    for line in lines[:20]:
        if not (goes_on or line.startswith("#") or line[0].isspace()):
            word = _FIRST_WORD.match(line)
            if not word or word[0] not in _COMMANDS or re.match(r"\S+\s*(?:=|\(|:)", line):
                return False
            found = True
        goes_on = line.endswith("\\")
    return found


def name_languages(markdown: str) -> str:
    """Return the text with a language after each fence that has none, as far as it can be guessed."""
    if "```\n" not in markdown and "~~~\n" not in markdown:
        return markdown
    lines = markdown.split("\n")
    mark, opened = "", -1
    for number, line in enumerate(lines):
        if "```" not in line and "~~~" not in line:
            continue
        text = line.lstrip(" \t>")
        if mark:
            if text.startswith(mark) and not text.rstrip().strip(mark[0]):
                if opened >= 0:
                    prefix = lines[opened][: lines[opened].find(mark)]
                    inside = [each.removeprefix(prefix) for each in lines[opened + 1 : number]]
                    lines[opened] = lines[opened].rstrip() + guess_language("\n".join(inside)[:SAMPLE_LENGTH])
                mark = ""
            continue
        if text.startswith(("```", "~~~")):
            mark = text[: len(text) - len(text.lstrip(text[0]))]
            opened = number if not text[len(mark) :].strip() else -1
    return "\n".join(lines)
