"""Guessed languages of code."""

import time

import pytest

from kept.extract.code_language import guess_language, name_languages


@pytest.mark.parametrize(
    ("code", "language"),
    [
        (">>> 1 + 1\n2", "python"), ("def tide(port):\n    return 4", "python"), ("from a.b import c", "python"),
        ("class A(B):\n    x = 1", "python"), ("$ pip install tide", "bash"), ("npm install\nnpm test", "bash"),
        ("git clone x \\\n    --depth 1\n# done\ncd x", "bash"), ("#!/bin/sh\nx", "bash"), ('{"a": [1]}', "json"),
        ("SELECT a\nFROM b;", "sql"), ("CREATE TABLE a (b int);", "sql"), ("<?xml version='1.0'?>\n<a/>", "xml"),
        ("<project>\n  <a>1</a>\n</project>", "xml"), ("<div class='x'>\n</div>", "html"),
        ("#include <stdio.h>\nint main(void)\n{", "c"), ("std::vector<int> a;", "cpp"), ("fn main() {\n}", "rust"),

        ("package main\n\nfunc main() {", "go"), ("public class A {\n}", "java"),
        ("const a = require('b');", "javascript"),
        ("import a from 'b';", "javascript"), ("interface A {\n  b: string\n}", "typescript"),
        ("a:\n  b: 1\n  - c", "yaml"),
        ("[tool.x]\ny = \"z\"", "toml"), ("[section]\nkey: value", "ini"), ("a { color: red; }", "css"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@", "diff"),
        ("FROM alpine\nRUN x", "dockerfile"), ("<?php echo 1;", "php"),
        ("Port    Height\nOstend  4.2", ""), ("tide [--all] PORT...", ""), ("import the module", ""), ("", ""),
        ("x = 1", ""),
        ("ostend: 4.2 m at noon; 1 m at night", ""), ("[1] 4.2", ""),
    ],
)  # fmt: skip
def test_a_language_is_guessed_only_where_it_is_plain(code: str, language: str) -> None:
    assert guess_language(code) == language


def test_fences_of_markdown_are_given_a_language() -> None:
    text = (
        "```\n>>> 1\n```\n\n> ~~~\n> $ ls\n> ~~~\n\n```text\n>>> 1\n```\n\n````\n```\n$ ls\n```\n````\n\n```\n>>> open"
    )
    assert name_languages(text) == text.replace("```\n>>> 1", "```python\n>>> 1", 1).replace("~~~\n> $", "~~~bash\n> $")


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "{",
        "<a ",
        "def ",
        "with ",
        "SELECT ",
        "fn a(",
        "[a]\n",
        "#include ",
        "int a(",
        " \n",
        "/*",
        "--\n",
        "unsigned ",
    ],
)
def test_hostile_code_takes_bounded_time(piece: str) -> None:
    start = time.process_time()
    guess_language(piece * 5_000)
    name_languages(f"```\n{piece * 200}\n```\n" * 20)
    assert time.process_time() - start < 2
