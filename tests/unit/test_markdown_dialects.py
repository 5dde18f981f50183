"""Markdown as generators extend it: MDX, MyST, Material, VitePress, GitHub and others."""

import time

import pytest

from kept.extract.dialects.block_additions import to_plain_markdown
from kept.extract.markdown.reader import extract
from kept.extract.sections import Extraction


def read(text: str) -> Extraction:
    answer = extract(text.encode(), None)
    assert isinstance(answer, Extraction)
    return answer


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        ("import A from '@theme/A';\n"
         "import {\n  B,\n} from 'b'\n\nexport const c = {\n  d: 1,\n\n  e: 2,\n};\n\nText.", "Text."),
        ("Use import and export.\nimport the module", "Use import and export.\nimport the module"),
        (
            "<Tabs>\n  <TabItem value=\"mac\" label=\"macOS\">\n\n    Use brew:\n\n"
            "    ```bash title=\"a.sh\" {1}\n    b\n      c\n    ```\n"
            "  </TabItem>\n  <TabItem value='win'>Use choco.</TabItem>\n</Tabs>",
            "**macOS**\n\nUse brew:\n\n**a.sh**\n\n```bash\nb\n  c\n```\n\n**win**\n\nUse choco.",
        ),
        ("<Unknown\n  a={() => { return '</x>' }}\n  b\n>\n  Kept **text**\n</Unknown>", "Kept **text**"),
        ("<Table\n  rows={[\n    { name: 'a', type: 'int', description: 'One.' },\n  ]}\n/>", "**a** (`int`): One."),
        ("A <Kbd>x</Kbd> and `<Kbd>` {/* no */}{' '}b.", "A x and `<Kbd>`  b."),
        ("Types: List<String>, <YOUR_KEY>", "Types: List<String>, <YOUR_KEY>"),
        ("<Card title=\"Go\" href=\"/go\">\n  There\n</Card>", "[Go](/go)\n\nThere"),
        ("<ParamField path=\"id\" type=\"string\" required>\n  The id.\n</ParamField>",
         "**id** (string, required)\n\nThe id."),
        ("- one\n\n  <Note>\n  In a list\n  </Note>", "- one\n\n  > **Note**\n  >\n  > In a list"),
        (":::note[Own]\nBody\n:::\nAfter", "> **Own**\n>\n> Body\n\nAfter"),
        ("::: warning\nBody\n\n::::tip T\nIn\n::::\n:::", "> **Warning**\n>\n> Body\n>\n> > **T**\n> >\n> > In\n>"),
        ("!!! warning \"Care\"\n    Body\n\n    ```py\n    x\n    ```\n\nAfter",
         "> **Care**\n>\n> Body\n>\n> ```py\n> x\n> ```\n>\n\nAfter"),
        ("=== \"Linux\"\n    apt\n\n=== \"Mac\"\n    brew", "**Linux**\n\napt\n\n**Mac**\n\nbrew"),
        ("> [!TIP]\n> Body", "> **Tip**\n>\n> Body"),
        ("```{note} Title\nBody\n```\nAfter", "> **Title**\n>\n> Body\n\nAfter"),
        ("```{code-block} python\n:linenos:\nx\n```", "```python\nx\n```"),
        ("```{toctree}\n:maxdepth: 1\na/b\nTitle <c>\n```", "- [a/b](a/b.md)\n- [Title](c.md)"),
        ("```{.python .x}\nx\n```\n\n```{r, echo=FALSE}\ny\n```", "```python\nx\n```\n\n```r\ny\n```"),
        ("{ref}`text <l>`, {doc}`other`, {py:func}`~a.b`", "text, [other](other.md), `b`"),
        ("(label)=\n## Section", "<a id=\"label\"></a>\n## Section"),
        ("[[Page One|the page]] and [[Two]]", "[the page](Page%20One.md) and [Two](Two.md)"),
        ("{% hint style=\"info\" %}\nBody\n{% endhint %}", "> **Info**\n>\n> Body"),
        ("Words{: .x }\n{: .y}", "Words"),
        ("```mdx\n<Tabs>\n:::note\nimport x from 'y'\n```", "```mdx\n<Tabs>\n:::note\nimport x from 'y'\n```"),
    ],
)  # fmt: skip
def test_additions_become_plain_markdown(source: str, markdown: str) -> None:
    assert read(source).markdown == markdown


def test_plain_markdown_is_unchanged() -> None:
    text = "# Title\n\n\n* a < b\n\n    code\n\n| a | b |\n|---|---|\n\n[x](y) `{a}` {b} <div>"
    assert to_plain_markdown(text) == text


def test_headings_in_components_are_sections() -> None:
    answer = read("---\ntitle: Page\n---\n<Steps>\n  ### First {#one}\n\n  Do.\n</Steps>\n\n(here)=\n### Second")
    assert answer.title == "Page"
    assert [node.anchor for node in answer.tree.children] == ["one", "here"]


def test_front_matter_may_be_json() -> None:
    assert read('{\n  "title": "Tides",\n  "n": 1\n}\n\nText').title == "Tides"
    assert read('{"title": "Tides"').markdown == '{"title": "Tides"'


@pytest.mark.parametrize(
    "page",
    [
        "<Tabs>\n" * 4_000 + "</Tabs>\n" * 4_000,
        "<Tabs a={" * 4_000 + "</Tabs>",
        "<Tabs\n" * 4_000 + "</Tabs>",
        ":::note\n" * 4_000,
        "!!! note\n" * 4_000,
        "".join(" " * min(4 * level, 400) + "!!! note\n" for level in range(1_500)),
        "```{note}\n" * 4_000,
        "import a from '\n" * 4_000 + "export {" * 4_000,
        "[[" * 40_000,
        "{ref}`" * 20_000,
        "x <A " * 20_000 + "</A>",
        "{/*\n" * 4_000,
        "{% a " * 20_000,
        "<A" + " a='" * 20_000,
        "x `" * 20_000 + "{a}",
    ],
    ids=range(15),
)
def test_a_hostile_page_takes_bounded_time(page: str) -> None:
    start = time.process_time()
    assert len(read(page).markdown) < 100 * len(page)
    assert time.process_time() - start < 4
