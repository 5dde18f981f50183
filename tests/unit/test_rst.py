"""reStructuredText: what docutils parses, what Sphinx's directives and roles mean, and what a hostile page can do."""

import asyncio
from pathlib import Path
from time import process_time

import pytest

from kept.crawl.companions import CompanionFinder
from kept.extract.reader import guess_content_type, parse_page
from kept.extract.rst.reader import extract
from kept.extract.rst.recognition import looks_like_rst
from kept.extract.sections import Extraction
from kept.model.document import ParsedPage
from kept.model.frontier import Fetched
from kept.model.source import Limits, Scope
from kept.model.url import file_url
from kept.origins.folder import FolderOrigin

URL = "https://docs.test/guide/index.rst"


def read(text: str) -> Extraction:
    extraction = extract(text.encode(), "utf-8", URL)
    assert isinstance(extraction, Extraction)
    return extraction


def read_page(text: str, url: str = URL, content_type: str = "text/x-rst") -> ParsedPage:
    page = parse_page(text.encode(), content_type=content_type, url=url)
    assert isinstance(page, ParsedPage)
    return page


def test_titles_are_headings_with_the_ids_of_the_rendered_page() -> None:
    later = "Later --- on\n------------\n\nMore.\n\n"
    text = f"Guide\n=====\n\nFirst.\n\n.. _Label 1:\n\n{later}{later}"
    sections = read_page(text).content.sections

    assert [(section.level, section.heading, section.anchor) for section in sections] == [
        (1, "Guide", "guide"),
        (2, "Later — on", "later-on"),
        (2, "Later — on", "id1"),
    ]


def test_objects_are_headings_with_the_ids_of_sphinx() -> None:
    text = """
Models
======

.. module:: shop.models

.. class:: Order(lines, *, paid=False)

   An order.

   .. method:: save(force=False)
               save_all()

      :param bool force: even if nothing changed
      :raises OrderError: when it is empty
      :rtype: bool

.. function:: ship(order)
   :async:

.. c:function:: int open_shop(const char *name)

.. program:: shop

.. option:: -v, --verbose

.. envvar:: SHOP_HOME
"""
    page = read_page(text)
    sections = {section.anchor: section.heading for section in page.content.sections}

    assert sections["module-shop.models"] == "Models"
    assert sections["shop.models.Order"] == "class shop.models.Order(lines, *, paid=False)"
    assert sections["shop.models.Order.save"] == "save(force=False)"
    assert sections["shop.models.ship"] == "async shop.models.ship(order)"
    assert sections["c.open_shop"] == "int open_shop(const char *name)"
    assert sections["cmdoption-shop-v"] == "-v, --verbose"
    assert sections["envvar-SHOP_HOME"] == "SHOP_HOME"
    assert "**force** (*bool*) – even if nothing changed" in page.content.markdown
    assert "save_all()" in page.content.markdown


def test_code_blocks_have_their_language() -> None:
    text = """
.. highlight:: c

Plain::

   int a;

.. code-block:: python
   :caption: one.py
   :linenos:

   def f():
       pass

>>> 1 + 1
2
"""
    assert read(text).markdown == (
        "Plain:\n\n```c\nint a;\n```\n\n**one.py**\n\n```python\ndef f():\n    pass\n```\n\n"
        "```python\n>>> 1 + 1\n2\n```"
    )


def test_admonitions_versions_and_tables() -> None:
    text = """
.. note:: Mind the *gap*.

.. versionadded:: 3.2
   The `gap`.

.. deprecated:: 3.4

.. list-table:: Tides
   :header-rows: 1

   * - Day
     - High
   * - Monday
     - 4 m

.. glossary::

   ebb
   low water
      The sea is out.
"""
    assert read(text).markdown.split("\n\n") == [
        "> **Note**\n>\n> Mind the *gap*.",
        "New in version 3.2: The *gap*.",
        "Deprecated since version 3.4.",
        "**Tides**",
        "| Day | High |\n| --- | --- |\n| Monday | 4 m |",
        "# ebb",
        "# low water",
        "The sea is out.",
    ]


def test_references_lead_to_places_of_the_page_and_to_other_pages() -> None:
    text = """
.. _top:

Start
=====

.. py:function:: shop.run()

See :ref:`top`, :ref:`here <top>`, :func:`~shop.run`, :func:`gone`, :doc:`../install`, :doc:`tour <tour>`,
:term:`ebb`, :file:`/etc/{name}`, :pep:`8`, :menuselection:`File --> Open` and :unheard-of:`of`.

.. toctree::

   Install it <install>
   tour
"""
    page = read_page(text)

    assert (
        "See [Start](#top), [here](#top), [`run()`](#shop.run), `gone()`, [../install](../install.rst), "
        "[tour](tour.rst), ebb, `/etc/name`, PEP 8, **File ‣ Open** and `of`."
    ) in page.content.markdown
    assert "- [Install it](install.rst)\n- [tour](tour.rst)" in page.content.markdown
    assert "https://docs.test/install.rst" in page.links
    assert "https://docs.test/guide/install.rst" in page.links


def test_unknown_directives_and_wrong_markup_are_kept_as_text() -> None:
    text = """
.. carousel:: Three pictures
   :speed: 3

   Of *the* sea.

.. list-table::
   not a list

Odd |thing| and `broken <.
"""
    markdown = read(text).markdown

    assert "Three pictures\n\nOf *the* sea." in markdown
    assert "not a list" in markdown
    assert "|thing|" in markdown
    assert "broken" in markdown


def test_files_are_not_read_and_raw_markup_is_only_text(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hush")
    text = f"""
.. include:: {secret}

.. literalinclude:: {secret}

.. csv-table:: numbers
   :file: {secret}

.. raw:: html

   <script>alert(1)</script><p>Shown</p><div><plaintext>

.. raw:: html
   :file: {secret}

.. figure:: {secret}
   :figwidth: image

After.
"""
    markdown = read(text).markdown

    assert "hush" not in markdown
    assert "alert" not in markdown
    assert "Shown" in markdown
    assert markdown.endswith("After.")
    assert f"(The file {secret} belongs here.)" in markdown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "laughs",
            "".join(f".. |a{n}| replace:: {f'|a{n - 1}| ' * 10}\n" for n in range(1, 8)) + ".. |a0| image:: x\n\n|a7|",
        ),
        ("circle", ".. |a| replace:: |b|\n.. |b| replace:: |a|\n\n|a|"),
        ("long line", "`a " * 3_000_000),
        ("deep list", "- " * 20_000 + "end"),
        ("deep quotation", "".join(" " * n + "x\n\n" for n in range(200))),
        ("open marks", "\n".join("`a *b **c ``d |e :f:`g _`h [i" for _ in range(2_000))),
        ("roles", ".. role:: a(b)\n.. role:: b(a)\n\n:a:`x`"),
    ],
    ids=lambda value: value if len(value) < 20 else "",
)
def test_hostile_pages_are_read_in_bounded_time(name: str, text: str) -> None:
    started = process_time()
    read(text)

    assert process_time() - started < 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=====\nGuide\n=====\n\nSee :doc:`/ref/models`.", True),
        ("Guide\n=====\n\n``code`` here.", True),
        (".. note::\n\n   x\n\n.. warning:: y\n", True),
        ("Just some words.\n\nAnd more of them.", False),
        ("MIT License\n===========\n\nPermission is hereby granted", False),
        ("# Guide\n\n```python\nx\n```\n\n[a](https://b.test)", False),
        ("numpy>=1.0\nrequests\n# a comment\n", False),
    ],
)
def test_text_files_are_recognised_by_their_marks(text: str, expected: bool) -> None:
    assert looks_like_rst(text) is expected


def test_the_types_of_files() -> None:
    assert guess_content_type("README.rst") == guess_content_type("a.rest") == "text/x-rst"
    assert guess_content_type("models.txt") == "text/plain"
    django = "Models\n======\n\n.. setting:: DEBUG\n\n``DEBUG``\n---------\n\nSee :setting:`DEBUG`.\n"
    sections = read_page(django, "file:///django/docs/models.txt", "text/plain").content.sections
    assert [section.heading for section in sections] == ["Models", "DEBUG"]
    assert "[`DEBUG`](#std-setting-DEBUG)" in sections[1].text


# ── What other files of the source give ───────────────────────────────────────────────────────────────────────────────


def read_in(root: Path, name: str, **files: str) -> ParsedPage:
    """Read a page of a folder as a crawl does, with its companions."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    origin = FolderOrigin(file_url(str(root)), scope=Scope(), limits=Limits(), type_of=guess_content_type)
    url = file_url(str(root / name))
    fetched = Fetched(body=(root / name).read_bytes(), content_type="text/plain")
    companions = asyncio.run(CompanionFinder(origin).find(fetched, url))
    assert companions is not None
    page = parse_page(fetched.body, content_type="text/plain", url=url, companions=companions)
    assert isinstance(page, ParsedPage)
    return page


def test_included_files_are_read_inside_the_source_only(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("hush")
    source = tmp_path / "source"
    page = read_in(
        source,
        "docs/index.rst",
        **{
            "docs/conf.py": "highlight_language = 'c'\nraise SystemExit\n",
            "docs/index.rst": (
                "Guide\n=====\n\n.. include:: ../README.rst\n\n.. include:: /parts/note.txt\n\n"
                ".. literalinclude:: ../tide.py\n   :pyobject: high\n\n.. include:: ../../outside.txt\n\n"
                ".. include:: ../.secret\n\n.. include:: ../ignored.txt\n\n.. csv-table::\n   :file: tides.csv\n\n"
                "C::\n\n   int a;\n"
            ),
            "README.rst": "Read me\n-------\n\nFirst.\n",
            "docs/parts/note.txt": "A *note*.\n\n.. include:: /parts/note.txt\n",  # includes itself
            "tide.py": "def low():\n    return 1\n\n\ndef high():\n    return 4\n",
            ".secret": "hush",
            ".gitignore": "ignored.txt\n",
            "ignored.txt": "hush",
            "docs/tides.csv": "Monday,4 m\nTuesday,5 m\n",
        },
    )
    markdown = page.content.markdown

    assert "## Read me\n\nFirst." in markdown
    assert "A *note*." in markdown
    assert "```python\ndef high():\n    return 4\n```" in markdown
    assert "| Monday | 4 m |\n| Tuesday | 5 m |" in markdown
    assert "```c\nint a;\n```" in markdown
    assert "hush" not in markdown
    for name in ("../../outside.txt", "../.secret", "../ignored.txt"):
        assert f"(The file {name} belongs here.)" in markdown


def test_references_between_pages_are_relative_links(tmp_path: Path) -> None:
    page = read_in(
        tmp_path,
        "intro/start.txt",
        **{
            "intro/start.txt": (
                "Start\n=====\n\n.. currentmodule:: shop.models\n\nSee :ref:`the-label`, :doc:`/ref/models`, "
                ":class:`Order`, :meth:`.Order.save`, :setting:`SHOP` and :term:`ebb`.\n\n"
                ".. toctree::\n\n   /ref/models\n"
            ),
            "conf.py": "",
            "ref/models.txt": (
                "======\nModels\n======\n\n.. module:: shop.models\n\n.. _the-label:\n\n.. index:: orders\n\n"
                "All ``orders``\n==============\n\n.. class:: Order(lines)\n\n   .. method:: save()\n\n"
                ".. setting:: SHOP\n\n``SHOP``\n--------\n\n.. glossary::\n\n   ebb\n      Low water.\n"
            ),
        },
    )

    assert (
        "See [All orders](../ref/models.txt#the-label), [Models](../ref/models.txt), "
        "[`Order`](../ref/models.txt#shop.models.Order), [`Order.save()`](../ref/models.txt#shop.models.Order.save), "
        "[`SHOP`](../ref/models.txt#std-setting-SHOP) and [ebb](../ref/models.txt#term-ebb)."
    ) in page.content.markdown
    assert "- [Models](../ref/models.txt)" in page.content.markdown
    target = read_page((tmp_path / "ref/models.txt").read_text(), "file:///ref/models.txt", "text/plain").content
    anchors = {place.anchor for place in target.places} | {section.anchor for section in target.sections}
    assert {"the-label", "shop.models.Order", "shop.models.Order.save", "std-setting-SHOP", "term-ebb"} <= anchors
