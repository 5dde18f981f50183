"""What the generators of documentation call the parts of their pages.

    REGIONS     where the content of a page is
    role_of     what a class says an element is: navigation, an admonition, its title, code …
    language    the language of a code block, as its classes have it

Everything here is a table of names: a generator that changes its names is mended here and nowhere else.
"""

import re
from enum import Enum, auto
from typing import Final

# The first selector that matches is the content. "body" means: all of it, without what the roles below drop. The word
# before it stands in every such page; where the selector is a name that is looked up as quickly, there is none.
REGIONS: Final = (
    (b"", "#docContent"),  # DocBook, as PostgreSQL's site has it
    (b"", "article.md-content__inner"),  # Material for MkDocs
    (b"theme-doc-markdown", "div.theme-doc-markdown"),  # Docusaurus
    (b"", ".vp-doc"),  # VitePress
    (b"articleBody", "[itemprop=articleBody]"),  # Sphinx: Read the Docs
    (b"", "#furo-main-content"),  # Sphinx: Furo
    (b"", "article.bd-article"),  # Sphinx: PyData
    (b"sphinxsidebar", "div.body[role=main], div.document div.body"),  # Sphinx: the themes it comes with
    (b"", "#yui-main .yui-g"),  # Sphinx: Django's own
    (b"rustdoc", "#main-content"),
    (b"col-content", "div.col-content"),  # TypeDoc
    (b"Doxygen", "div#doc-content, body"),
    (b"contentContainer", "body"),  # javadoc before 16: its title stands beside its content
    (b"footer-text", "body"),  # asciidoc: likewise
    (b"main", "main, [role=main]"),
    (b"<article", "body > article, body > div > article"),
    (b"content", "#content"),
)

# How links begin that lead to another page of a site whose scripts make all pages out of one.
ROUTE_PREFIXES: Final = ("#/", "#!/")

# What only one generator calls so, and others call their content: the word that tells it, and what to drop.
GENERATOR_BOILERPLATE: Final = (
    (b"Doxygen", "div.header > div.summary, address.footer, .ttc"),
    (b"mtimelink", "p[align=center] > small"),  # SQLite: when the page was changed, and what it is a page of
    (b"SQLite C Interface", "div.nosearch > a[href='intro.html']"),
)

# Elements whose text is no markup: they are gone before the content is walked through.
RAW_TEXT_TAGS: Final = ["script", "style", "iframe", "noscript", "noembed", "noframes", "xmp", "plaintext", "template"]

# Elements that say nothing, or nothing that can be read.
IGNORED_TAGS: Final = (
    "head", "nav", "footer", "button", "select", "textarea", "dialog", "svg", "object", "audio", "video", "canvas",
    "map",
)  # fmt: skip


class ElementRole(Enum):
    """What an element is, where its tag does not say so."""

    DROP = auto()
    PERMALINK = auto()  # the mark behind a heading that links to it
    ADMONITION = auto()  # an admonition
    TITLE = auto()  # of an admonition, a listing, a figure, a tab: a line of its own
    HEADING = auto()  # the title of the page
    CODE = auto()  # looks like code, and is no <pre>
    SIGNATURE = auto()  # the same, on one line
    GRID = auto()  # a table made of boxes
    LAYOUT = auto()  # a table or list that only arranges
    MATH = auto()
    TABS = auto()  # the labels of the panels that follow
    PANEL = auto()
    CODE_GROUP = auto()  # code blocks behind tabs
    MEMBER = auto()  # Doxygen: the row of a member, and the row that describes the one before
    MEMBER_DESCRIPTION = auto()


_ROLES_BY_CLASS: Final[dict[str, ElementRole]] = {}
for _role, _names in {
    ElementRole.DROP: """
        breadcrumb breadcrumbs theme-doc-breadcrumbs toc toctitle table-of-contents contents-local
        tocCollapsible theme-doc-toc-mobile theme-doc-version-badge theme-doc-version-banner sphinxsidebar
        sidebar-nav related navheader navfooter sub-nav flex-header top-nav topNav bottomNav subNav navList
        skipNav legalCopy pagination-nav prev-next-area prev-next-bottom theme-doc-footer theme-edit-this-page
        edit-this-page md-source-file md-content__button md-feedback md-typeset__scrollwrap-none copybtn
        copy-button clipboard linenos lineno lineNo line-numbers line-numbers-wrapper linenodiv visually-hidden
        sr-only screen-reader-text VPDocFooter skip-nav skip-link logo tagline mainmenu submenu searchmenu
        fancy_toc fancy-toc tsd-breadcrumb tsd-navigation tsd-sources out-of-band katex-html viewcode-link
        viewcode-back rst-footer-buttons related-pages bottom-of-page content-icon-container view-this-page
        hideme sidebar-toggle srclink source-link rustdoc-breadcrumbs dyncontent navpath
        tsd-filter-visibility tsd-index-heading-hidden table-tabs lang buttonGroup MJX_Assistive_MathML
    """,
    ElementRole.PERMALINK: """
        headerlink hash-link header-anchor anchor-link permalink anchorjs-link doc-anchor tsd-anchor-icon anchor
        heading-anchor direct-link
    """,
    ElementRole.ADMONITION: """
        admonition admonitionblock theme-admonition custom-block hint callout note warning tip important caution
    """,
    ElementRole.TITLE: """
        admonition-title sidebar-title custom-block-title sd-tab-label tabbed-label caption code-block-caption
        filename title code-block-title codeBlockTitle figure-caption
    """,
    ElementRole.HEADING: "headertitle fancy_title",
    ElementRole.CODE: "fragment listing-text",
    ElementRole.SIGNATURE: "memproto member-signature type-signature package-signature module-signature tsd-signature",
    ElementRole.GRID: "summary-table",
    ElementRole.LAYOUT: """
        highlighttable hlist rouge-table blockList blockListLast block-list summary-list details-list member-list
        inner-list tsd-signatures memberdecls
    """,
    ElementRole.MATH: "math arithmatex",
    ElementRole.TABS: "tabbed-labels",
    ElementRole.CODE_GROUP: "vp-code-group",
    ElementRole.PANEL: "tabbed-block",
}.items():
    _ROLES_BY_CLASS.update(dict.fromkeys(_names.split(), _role))

# Class names that a build makes up anew each time ("admonitionHeading_Gvgb") begin with one of these.
_ROLES_BY_CLASS_PREFIX: Final = (
    ("admonitionHeading_", ElementRole.TITLE),
    ("codeBlockTitle_", ElementRole.TITLE),
    ("tocCollapsible_", ElementRole.DROP),
    ("buttonGroup_", ElementRole.DROP),
    ("lineNumber_", ElementRole.DROP),
    ("memitem:", ElementRole.MEMBER),
    ("memdesc:", ElementRole.MEMBER_DESCRIPTION),
    ("separator:", ElementRole.DROP),
)

DROPPED_IDS: Final = frozenset({
    "toc", "footer", "sidebar", "nav-path", "side-nav", "top", "titlearea", "MSearchSelectWindow",
    "MSearchResultsWindow", "navbar.top", "navbar.bottom", "navbar-top", "navbar-bottom", "breadcrumbs",
    "docNav", "footer-text", "rustdoc-toc", "mtimelink",
})  # fmt: skip

# Where a page begins, not a heading of it.
CONTAINER_IDS: Final = frozenset({
    "content", "main", "main-content", "header", "preamble", "body", "doc-content", "docContent", "wrapper",
    "page", "root", "furo-main-content", "article", "app", "__docusaurus",
})  # fmt: skip

# The roles of aria that matter.
NAVIGATION_ROLES: Final = ('role="navigation"', 'role="search"', 'role="banner"', 'role="contentinfo"')

_role_cache: Final[dict[str, ElementRole | None]] = {}


def role_from_classes(classes: str) -> ElementRole | None:
    """What an element with this class attribute is, if that says anything."""
    try:
        return _role_cache[classes]
    except KeyError:
        pass
    found = None
    for name in classes.split():
        role = _ROLES_BY_CLASS.get(name) or next(
            (role for start, role in _ROLES_BY_CLASS_PREFIX if name.startswith(start)), None
        )
        # "admonition note" is one thing, and "toc admonition" is dropped all the same.
        found = role if found is None or role is ElementRole.DROP else found
    if len(_role_cache) > 5_000:  # pages may invent class names; what is remembered of them has an end
        _role_cache.clear()
    _role_cache[classes] = found
    return found


_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:|sourceCode)[-\s]([A-Za-z0-9_+#.-]+)"
)
_DATA_LANGUAGE: Final = re.compile(r' data-(?:lang|language)="([A-Za-z0-9_+#.-]+)"')
_NO_LANGUAGE: Final = frozenset({
    "default", "none", "text", "txt", "notranslate", "plaintext", "plain", "source", "output", "unknown",
    "nohighlight", "no-highlight",
})  # fmt: skip
_LANGUAGE_ALIASES: Final = {
    "python3": "python", "py": "python", "py3": "python", "ipython3": "python", "pycon3": "pycon", "c++": "cpp",
    "postgresql": "sql", "shell": "sh",
}  # fmt: skip
_RUST: Final = re.compile(r"(?:^|\s)rust(?:\s|$)")


# Names that stand for a language on their own, as the class of a <code>.
_LANGUAGE_CLASSES: Final = frozenset({
    "ts", "tsx", "js", "jsx", "json", "yaml", "toml", "html", "css", "sh", "bash", "console", "python", "rust",
    "go", "java", "kotlin", "c", "cpp", "sql", "xml",
})  # fmt: skip


def code_language(classes: str, attributes: str) -> str:
    """The language that an element around code names; "" if it names none."""
    if classes in _LANGUAGE_CLASSES:
        return classes
    said = _DATA_LANGUAGE.search(attributes)
    match = _LANGUAGE.search(classes)
    name = (said[1] if said else match[1] if match else "rust" if _RUST.search(classes) else "").lower()
    return "" if name in _NO_LANGUAGE else _LANGUAGE_ALIASES.get(name, name)
