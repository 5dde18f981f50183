"""Decoding of text."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.extract import text as module
from kept.extract.sections import Extraction, Unreadable
from kept.extract.text import decode_text, decode_to_utf8, extract

# Words as people write them, in several alphabets, without the controls that no text has.
WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1).map(str.strip).filter(bool)


def test_the_default_charset_is_utf_8() -> None:
    assert decode_text("Grüße, мир, 世界".encode(), None) == "Grüße, мир, 世界"


def test_text_that_is_not_utf_8_is_decoded_as_in_browsers() -> None:
    assert decode_text("naïve “quotes” – €5".encode("cp1252"), None) == "naïve “quotes” – €5"
    assert decode_text(b"caf\xe9 \x81", None) == "café \x81"


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@given(words=WORDS)
def test_a_byte_order_mark_wins_over_everything(mark: bytes, codec: str, words: str) -> None:
    words = words.removeprefix("\ufeff").replace("\r", "")
    assert decode_text(mark + words.encode(codec), "koi8-r") == words.rstrip()


@pytest.mark.parametrize("codec", ["koi8-r", "windows-1251", "shift_jis", "gb18030", "utf-16-le", "iso-8859-5"])
def test_a_declared_charset_is_used(codec: str) -> None:
    assert decode_text("Привет".encode(codec), codec.upper()) == "Привет"


def test_valid_utf_8_wins_over_a_declared_latin_1() -> None:
    assert decode_text("Grüße".encode(), "ISO-8859-1") == "Grüße"
    assert decode_text("Grüße".encode("latin-1"), "ISO-8859-1") == "Grüße"


@pytest.mark.parametrize("charset", ["no-such-charset", "unicode_escape", "idna", "punycode", "utf-7", "hex", "\0", ""])
def test_a_charset_that_browsers_do_not_support_is_ignored(charset: str) -> None:
    assert decode_text(rb"xn--a \u0041 +AEE-", charset) == r"xn--a \u0041 +AEE-"


def test_a_declared_charset_that_does_not_decode_is_ignored() -> None:
    assert decode_text("Grüße ☃".encode(), "shift_jis") == "Grüße ☃"


@pytest.mark.parametrize(
    ("charset", "codec", "words"),
    [
        ("gb2312", "gbk", "朱镕基"),
        ("Shift_JIS", "cp932", "①から⑳まで"),
        ("euc-kr", "cp949", "똠방각하"),
        ("big5", "big5hkscs", "深水埗"),
        ("iso-8859-9", "cp1254", "İstanbul’da €5"),
        ("TIS-620", "cp874", "นกนางนวล"),
        ("ISO-8859-8-I", "iso8859-8", "שחפית"),
        ("x-sjis", "cp932", "アジサシ"),
        ("windows-949", "cp949", "제비갈매기"),
    ],
)
def test_a_charset_is_decoded_as_its_superset(charset: str, codec: str, words: str) -> None:
    assert decode_text(words.encode(codec), charset) == words


@pytest.mark.parametrize(("charset", "codec"), [(None, "utf-8"), ("utf-8", "utf-8"), ("windows-1251", "cp1251")])
def test_an_invalid_byte_does_not_change_the_other_characters(charset: str | None, codec: str) -> None:
    words = "Крачка летит от полюса к полюсу. "
    damaged = words.encode(codec) + b"\x98" + words.encode(codec)
    assert decode_text(damaged, charset) == f"{words}\ufffd{words}".rstrip()


def test_invalid_utf_16_and_utf_32_are_unreadable() -> None:
    answer = decode_text(b"\x00\xd8\x00\x00\x01", "utf-16-le")
    assert isinstance(answer, Unreadable)
    assert "utf-16-le" in answer.reason


@pytest.mark.parametrize(
    "body",
    [
        b"\x7fELF\x02\x01\x01\x00\x00",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"words, and then a \x00 among them",
        bytes(range(1, 256)) * 40,
        codecs.BOM_UTF16_LE + "a\0b".encode("utf-16-le"),
    ],
)
def test_binary_data_is_unreadable(body: bytes) -> None:
    answer = decode_text(body, None)
    assert isinstance(answer, Unreadable)
    assert "binary" in answer.reason


def test_coloured_terminal_output_is_text() -> None:
    assert decode_text(b"\x1b[32mok\x1b[0m  all tests passed\x0c", None) == "\x1b[32mok\x1b[0m  all tests passed"


def test_newlines_are_unified_and_trailing_whitespace_is_dropped() -> None:
    assert decode_text(b"one\r\ntwo\rthree\n\n  four \t\r\n\r\n", None) == "one\ntwo\nthree\n\n  four"


def test_only_newlines_end_lines() -> None:
    assert decode_text("a\u2028b\x0bc\x85d".encode(), None) == "a\u2028b\x0bc\x85d"


@given(body=st.binary(), charset=st.none() | st.sampled_from(sorted(module._CODECS)) | st.text(max_size=20))
def test_any_bytes_are_text_or_unreadable(body: bytes, charset: str | None) -> None:
    answer = decode_text(body, charset)
    if isinstance(answer, str):
        assert "\0" not in answer
        assert "\r" not in answer
        assert answer == answer.rstrip()
        answer.encode()


def test_plain_text_is_kept_unchanged_without_headings_and_links() -> None:
    body = b"Title\n=====\n\n# not a heading\n  indented, [not a link](x)\n"
    extraction = extract(body, None)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown == "Title\n=====\n\n# not a heading\n  indented, [not a link](x)"
    assert (extraction.title, extraction.hrefs, extraction.tree.children) == ("", [], [])
    assert extraction.tree.content == extraction.markdown


@given(
    WORDS,
    st.sampled_from(["", "\n", " \r\n", "\r", "\xa0", "\x1f\n", "\x85", "\u3000\n", "\0"]),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1251", "utf-16", "utf-16-le", "shift_jis"]),
    st.sampled_from([None, "utf-8", "latin-1", "windows-1251", "utf-16", "nonsense"]),
)
def test_decoding_to_utf_8_gives_the_same_text_as_decoding(
    words: str, end: str, codec: str, charset: str | None
) -> None:
    body = f"{words}{end}".encode(codec, "replace")
    decoded = decode_text(body, charset)
    assert decode_to_utf8(body, charset) == (decoded if isinstance(decoded, Unreadable) else decoded.encode())
