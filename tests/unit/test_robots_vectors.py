"""robots.txt by RFC 9309: a file, an agent, a path, and whether the agent may visit it.

The facts are those of RFC 9309 and of the test cases of Google's parser (their names in parentheses).
"""

import pytest

from kept.origins.web.robots import RobotsRules

FOO_BAR_BAZ = """user-agent: FooBot
disallow: /
allow: /x/
user-agent: BarBot
disallow: /
allow: /y/


allow: /w/
user-agent: BazBot

user-agent: FooBot
allow: /z/
disallow: /
"""


VECTORS: list[tuple[str, str, str, bool]] = [
    # An unknown line is no part of a group and does not end one.
    ("user-agent: foo\nunknown: line\nuser-agent: bar\ndisallow: /", "foo", "/a", False),
    ("user-agent: foo\nunknown: line\nuser-agent: bar\ndisallow: /", "bar", "/a", False),
    ("user-agent: foo\nunknown: line\nuser-agent: bar\ndisallow: /", "baz", "/a", True),
    ("user-agent: foo\nsitemap: https://x.test/s.xml\nuser-agent: bar\ndisallow: /", "foo", "/a", False),
    ("user-agent: foo\nhost: x.test\nuser-agent: bar\ndisallow: /", "foo", "/a", False),
    ("user-agent: foo\ncrawl-delay: 5\nuser-agent: bar\ndisallow: /", "foo", "/a", False),
    ("user-agent: foo\nnoindex: /b\nuser-agent: bar\ndisallow: /", "foo", "/a", False),
    ("user-agent: foo\ndisallow: /a\nunknown: x\ndisallow: /b", "foo", "/b", False),
    ("user-agent: foo\ndisallow: /a\nunknown: x\nuser-agent: bar\ndisallow: /b", "foo", "/b", True),
    ("user-agent: foo\n\n\nuser-agent: bar\n\ndisallow: /", "foo", "/a", False),
    # An empty file, and rules without an agent (SystemTest)
    ("", "foo", "/a", True),
    ("disallow: /", "foo", "/a", True),
    ("foo: FooBot\nbar: /\n", "foo", "/a", True),
    ("user-agent: foo\ndisallow: /", "foo", "/a", False),
    # Lines (LineSyntax_Line)
    ("user-agent: FooBot\ndisallow: /", "FooBot", "/x/y", False),
    ("user-agent FooBot\ndisallow /", "FooBot", "/x/y", False),
    ("  user-agent : FooBot\n\tdisallow : /", "FooBot", "/x/y", False),
    ("user-agent: FooBot # a bot\ndisallow: / # everything", "FooBot", "/x/y", False),
    ("user-agent: FooBot\r\ndisallow: /\r\n", "FooBot", "/x/y", False),
    ("user-agent: FooBot\rdisallow: /\r", "FooBot", "/x/y", False),
    # Groups (LineSyntax_Groups)
    (FOO_BAR_BAZ, "FooBot", "/x/b", True),
    (FOO_BAR_BAZ, "FooBot", "/z/d", True),
    (FOO_BAR_BAZ, "FooBot", "/y/c", False),
    (FOO_BAR_BAZ, "BarBot", "/y/c", True),
    (FOO_BAR_BAZ, "BarBot", "/w/a", True),
    (FOO_BAR_BAZ, "BarBot", "/z/d", False),
    (FOO_BAR_BAZ, "BazBot", "/z/d", True),
    ("user-agent: BarBot\nfoo: /\nuser-agent: FooBot\ndisallow: /", "BarBot", "/x", False),
    # Names are compared without case (REPLineNamesCaseInsensitive, UserAgentValueCaseInsensitive)
    ("USER-AGENT: FooBot\nALLOW: /x/\nDISALLOW: /", "FooBot", "/x/y", True),
    ("uSeR-aGeNt: FOO BAR\naLlOw: /x/\ndIsAlLoW: /", "foo", "/a/b", False),
    ("user-agent: foobot\ndisallow: /", "FOOBOT", "/a/b", False),
    # The group of everyone is for those without their own (GlobalGroups_Secondary)
    ("user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /", "FooBot", "/x/y", False),
    ("user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /", "BarBot", "/x/y", True),
    ("user-agent: *\ndisallow: /\nuser-agent: FooBot\nallow: /", "FooBot", "/x/y", True),
    (
        "user-agent: FooBot\nallow: /\nuser-agent: BarBot\ndisallow: /\nuser-agent: BazBot\ndisallow: /",
        "QuxBot",
        "/x/y",
        True,
    ),
    # Values are compared with case (AllowDisallow_Value_CaseSensitive)
    ("user-agent: FooBot\ndisallow: /x/", "FooBot", "/x/y", False),
    ("user-agent: FooBot\ndisallow: /X/", "FooBot", "/x/y", True),
    # The longest match decides, and of equal ones Allow (LongestMatch)
    ("user-agent: FooBot\ndisallow: /x/page.html\nallow: /x/", "FooBot", "/x/page.html", False),
    ("user-agent: FooBot\nallow: /x/page.html\ndisallow: /x/", "FooBot", "/x/page.html", True),
    ("user-agent: FooBot\nallow: /x/page.html\ndisallow: /x/", "FooBot", "/x/", False),
    ("user-agent: FooBot\ndisallow: \nallow: ", "FooBot", "/x/page.html", True),
    ("user-agent: FooBot\ndisallow: /\nallow: /", "FooBot", "/x/page.html", True),
    ("user-agent: FooBot\ndisallow: /x\nallow: /x/", "FooBot", "/x", False),
    ("user-agent: FooBot\ndisallow: /x\nallow: /x/", "FooBot", "/x/", True),
    ("user-agent: FooBot\ndisallow: /*.html\nallow: /x", "FooBot", "/x/page.html", False),
    ("user-agent: FooBot\nallow: /x/page.\ndisallow: /*.html", "FooBot", "/x/page.html", True),
    ("user-agent: FooBot\nallow: /x/page.\ndisallow: /*.html", "FooBot", "/x/y.html", False),
    # Characters (Encoding)
    (
        "user-agent: FooBot\ndisallow: /\nallow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par",
        "FooBot",
        "/foo/bar?qux=taz&baz=http://foo.bar?tar&par",
        True,
    ),
    ("user-agent: FooBot\ndisallow: /\nallow: /foo/bar/\u30c4", "FooBot", "/foo/bar/%E3%83%84", True),
    ("user-agent: FooBot\ndisallow: /\nallow: /foo/bar/%E3%83%84", "FooBot", "/foo/bar/%E3%83%84", True),
    # Wildcards (SpecialCharacters)
    ("user-agent: FooBot\ndisallow: /foo/bar/quz\nallow: /foo/*/qux", "FooBot", "/foo/bar/quz", False),
    ("user-agent: FooBot\ndisallow: /foo/bar/quz\nallow: /foo/*/qux", "FooBot", "/foo/quz", True),
    ("user-agent: FooBot\ndisallow: /foo/bar$\nallow: /foo/bar/qux", "FooBot", "/foo/bar", False),
    ("user-agent: FooBot\ndisallow: /foo/bar$\nallow: /foo/bar/qux", "FooBot", "/foo/bar/", True),
    ("user-agent: FooBot\n# disallow: /\ndisallow: /foo/quz#qux\nallow: /", "FooBot", "/foo/bar", True),
    ("user-agent: FooBot\n# disallow: /\ndisallow: /foo/quz#qux\nallow: /", "FooBot", "/foo/quz", False),
    ("user-agent: a\ndisallow: /fish*.php", "a", "/fishheads/catfish.php?x", False),
    ("user-agent: a\ndisallow: /fish*.php", "a", "/Fish.PHP", True),
    ("user-agent: a\ndisallow: /*.php$", "a", "/filename.php?parameters", True),
    ("user-agent: a\ndisallow: /*.php$", "a", "/folder/filename.php", False),
    # Misspelled names (KeyTypos)
    ("useragent: FooBot\ndisallow: /", "FooBot", "/a", False),
    ("user agent: FooBot\ndisallow: /", "FooBot", "/a", False),
    ("user-agent: FooBot\ndissallow: /", "FooBot", "/a", False),
    ("user-agent: FooBot\ndissalow: /", "FooBot", "/a", False),
    ("user-agent: FooBot\ndisalow: /", "FooBot", "/a", False),
    ("user-agent: FooBot\ndiasllow: /", "FooBot", "/a", False),
    ("user-agent: FooBot\ndisallaw: /", "FooBot", "/a", False),
    # Not in the standard, but harmless: an index page stands for its folder (GoogleOnly_IndexHTMLisDirectory), and
    # words after the name of an agent are ignored (GoogleOnly_AcceptUserAgentFollowingSpace).
    ("user-agent: FooBot\nallow: /allowed/index.html\ndisallow: /", "FooBot", "/allowed/", True),
    ("user-agent: * baz\ndisallow: /", "FooBot", "/x", False),
    ("user-agent: Foo Bar\ndisallow: /", "Foo", "/x", False),
    ("user-agent: Foo Bar\ndisallow: /", "Bar", "/x", True),
]


@pytest.mark.parametrize(("text", "agent", "path", "allowed"), VECTORS)
def test_robots_groups_and_rules_are_those_of_the_standard(text: str, agent: str, path: str, allowed: bool) -> None:
    assert RobotsRules(text, agent).allows(f"https://foo.test{path}") is allowed


def test_a_crawl_delay_between_two_agents_is_for_both() -> None:
    text = "user-agent: foo\ncrawl-delay: 5\nuser-agent: bar\ndisallow: /x\nuser-agent: *\ncrawl-delay: 9"
    assert [RobotsRules(text, agent).crawl_delay for agent in ("foo", "bar", "baz")] == [5, 5, 9]
