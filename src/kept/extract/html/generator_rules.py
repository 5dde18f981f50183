"""Names that documentation generators give to the parts of their pages.

    REGIONS              selectors of a page's content
    role_from_classes    class attribute -> role: navigation, admonition, title, code …
    code_language        class attribute -> language of a code block

When a generator changes its names, only this module changes.
"""

import re
from enum import Enum, auto
from typing import Final

# The first selector that matches is the content; "body" is all of it, minus what the roles below drop. The bytes before
# a selector occur in every such page, so that most selectors need not be tried; b"" where trying is as fast.
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
    (b"contentContainer", "body"),  # javadoc before 16: its title stands beside its content
    (b"footer-text", "body"),  # asciidoc: likewise
    (b"main", "main, [role=main]"),
    (b"<article", "body > article, body > div > article"),
    (b"content", "#content"),
)

# The same for pages with bytes of their generator at their start.
GENERATOR_REGIONS: Final = (
    (b"Doxygen", "div#doc-content"),
    (b"Doxygen", "body"),  # without its tree of pages, the title stands beside the content
    (b"apidoc", "#apicontent"),  # Node.js
    (b"nimdoc", "#documentId"),
    (b"page-content", "#page-content"),  # Apache HTTP Server
    (b"scribble", ".maincolumn > .main"),
)

# Bytes that only pages of highlighted source code have, which generators add to the documentation of that code.
SOURCE_CODE_PAGES: Final = (
    b'class="rustdoc source"',
    b'class="rustdoc src"',
    b"<h1>Source code for ",  # Sphinx
    b"Source File</title>",  # Doxygen
    b'<div class="source-container">',  # javadoc
    b'src="highlight.js"></script></head><body><pre>',  # Haddock
)

# Prefixes of links to other pages of a single-page application.
ROUTE_PREFIXES: Final = ("#/", "#!/")

_TEXINFO_BOILERPLATE: Final = (
    "div.header, table.header, .nav-panel, .nav_table, .contents, .shortcontents, .Contents_element"
)

# Boilerplate under names that other generators use for content: bytes at the start of a page that tell the generator
# (see GENERATOR_SEARCH_LENGTH), and selectors to drop.
GENERATOR_BOILERPLATE: Final = (
    (b"Doxygen", "div.header > div.summary, address.footer, .ttc"),
    (b"_static/pygments.css", "div.related"),  # Sphinx
    (b"page-content", "#page-content .toplang, #page-content .bottomlang, #quickview, #page-content > .top"),  # Apache
    (b"apidoc", "#column1 #toc, #column1 #gtoc, a.srclink"),  # Node.js
    (b"addock", "#package-header, #module-header > .info, #table-of-contents, #synopsis, #footer"),  # Haddock
    (b"addock", "a.selflink, .src a.link"),
    (b"scribble", ".navsettop, .navsetbottom, .tocset, a.heading-anchor, a.heading-source, .RBackgroundLabel"),
    (b"nimdoc", ".three.columns, div.footer, .link-seesrc, .theme-switch-wrapper, #global-links"),
    (b"GTK-Doc", "table.navigation, div.footer"),
    (b"navigationbar", "div.navigationbar, div.main-rounded, .naviNextPrevious, div.sidebar, body > div.footer"),
    (b"spirit-nav", ".spirit-nav, .copyright-footer, body > table:first-child"),  # BoostBook
    (b"exi2", _TEXINFO_BOILERPLATE),  # texi2any, texi2html
    (b"akeinfo", _TEXINFO_BOILERPLATE),
    (b"lilypond", ".nav_table, #languages, .toc_frame, #tocframe"),
    (b"lib/template.css", "#mbrsel, #search, #tooltip, .permalink, #ancestors"),  # Scaladoc
    (b"navigate", "body > div.navigate"),  # SWI-Prolog
    (b"docnav", ".docnav, #banner, p#title"),  # Publican
    (b"otp_doc", "#content > div.footer"),  # Erlang's own
    (b"ediaWiki", "#content .t-navbar, .editsection, .printfooter, .catlinks, #contentSub, #siteSub"),
    (b"ediaWiki", "#jump-to-nav, .mw-editsection"),
    (b"rustdoc", ".rightside, .out-of-band, #copy-path, .toggle-label"),
    (b"pdoc", "div.pdoc-code, .view-source-button, input.view-source-toggle-state"),
    (b"rdoc", ".method-source-code, .method-click-advice, .method-controls"),
    (b"documenter", ".docs-sourcelink, .docs-footer, .docs-navbar, .docstring-article-toggle-button"),  # Julia
    (b"gitbook", ".book-summary, .book-header, .page-footer, .navigation"),  # GitBook before 2018
    (b"toc-wrapper", ".toc-wrapper, .tocify-wrapper, .lang-selector, .dark-box"),  # Slate
    (b"pathToRoot", ".copy-popup-wrapper, .popup-content, .anchor-wrapper, div.footer"),  # Dokka
    (b"sqlite", "p[align=center] > small, div.nosearch > a[href='intro.html']"),  # date of the last change, home
)

# Elements that only the generator and their place tell from others: bytes at the start of a page that identify it, a
# selector, the class that gives them their role. Signatures of documented objects are headings: they are searched for.
GENERATOR_ROLES: Final = (
    (b"addock", "#module-header > .caption", "kept-heading"),
    (b"addock", "div.top > p.src", "kept-object"),
    (b"addock", ".subs.methods > p.src", "kept-object kept-inner"),
    (b"SWI-Prolog", "dt.pubdef", "kept-object"),
    (b"SWI-Prolog", ".pred-tag", "sep"),
    (b"apidoc", "a.mark", "permalink"),  # Node.js
    (b"nimdoc", "dl.item dt", "kept-object"),
    (b"scribble", ".SVInsetFlow p.RForeground, .SVInsetFlow table.RForeground", "kept-object"),
    (b"scribble", "table.RktBlk, .SCodeFlow > p", "kept-code"),
    (b"pdoc", "main.pdoc section > div.attr", "kept-object"),
    (b"pdoc", "main.pdoc .classattr > div.attr", "kept-object kept-inner"),
    (b"rdoc", ".method-detail .method-heading", "kept-object"),
    (b"documenter", "article.docstring > header", "kept-object"),  # Documenter.jl
)

GENERATOR_SEARCH_LENGTH: Final = 8_192
"""Bytes of a page that are searched for those that identify its generator: its head, mostly."""

# Elements whose text is not markup; removed before the conversion.
RAW_TEXT_TAGS: Final = ["script", "style", "iframe", "noscript", "noembed", "noframes", "xmp", "plaintext", "template"]

# Elements without readable text.
IGNORED_TAGS: Final = (
    "head", "nav", "footer", "button", "select", "textarea", "dialog", "svg", "object", "audio", "video", "canvas",
    "map",
)  # fmt: skip


class ElementRole(Enum):
    """The meaning of an element where its tag does not tell."""

    DROP = auto()
    PERMALINK = auto()  # the link mark behind a heading
    ADMONITION = auto()
    TITLE = auto()  # of an admonition, a listing, a figure, a tab: a line of its own
    HEADING = auto()  # the title of the page
    CODE = auto()  # code that is no <pre>
    SIGNATURE = auto()  # the same, on one line
    GRID = auto()  # a table made of <div>
    LAYOUT = auto()  # a table or list that only arranges its content
    MATH = auto()
    TABS = auto()  # the labels of the panels that follow
    PANEL = auto()
    CODE_GROUP = auto()  # code blocks behind tabs
    MEMBER = auto()  # Doxygen: the row of a member
    MEMBER_DESCRIPTION = auto()  # Doxygen: the row that describes the member before
    OBJECT = auto()  # the signature of a documented object: a heading below the one it stands under
    SEPARATOR = auto()  # an element that a style sheet sets apart from the name behind it; if empty, by a dot


_ROLES_BY_CLASS: Final[dict[str, ElementRole]] = {}
for _role, _names in {
    ElementRole.DROP: """
        breadcrumb breadcrumbs theme-doc-breadcrumbs toc toctitle table-of-contents contents-local
        tocCollapsible theme-doc-toc-mobile theme-doc-version-badge theme-doc-version-banner sphinxsidebar
        sidebar-nav navheader navfooter sub-nav flex-header top-nav topNav bottomNav subNav navList
        skipNav legalCopy pagination-nav prev-next-area prev-next-bottom theme-doc-footer theme-edit-this-page
        edit-this-page md-source-file md-content__button md-feedback md-typeset__scrollwrap-none copybtn
        copy-button clipboard linenos lineno lineNo line-numbers line-numbers-wrapper linenodiv visually-hidden
        sr-only screen-reader-text VPDocFooter skip-nav skip-link logo tagline mainmenu submenu searchmenu
        fancy_toc fancy-toc tsd-breadcrumb tsd-navigation tsd-sources out-of-band katex-html viewcode-link
        viewcode-back rst-footer-buttons related-pages bottom-of-page content-icon-container view-this-page
        hideme sidebar-toggle srclink source-link rustdoc-breadcrumbs dyncontent navpath
        tsd-filter-visibility tsd-index-heading-hidden table-tabs lang buttonGroup MJX_Assistive_MathML
        tooltiptext tippy-box
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
    ElementRole.HEADING: "headertitle fancy_title kept-heading",
    ElementRole.CODE: "fragment listing-text kept-code",
    ElementRole.OBJECT: "kept-object",
    ElementRole.SEPARATOR: "sep",
    ElementRole.SIGNATURE: "memproto member-signature type-signature package-signature module-signature tsd-signature",
    ElementRole.GRID: "summary-table",
    ElementRole.LAYOUT: """
        boxed together highlighttable hlist rouge-table blockList blockListLast block-list summary-list details-list
        member-list inner-list tsd-signatures memberdecls
    """,
    ElementRole.MATH: "math arithmatex",
    ElementRole.TABS: "tabbed-labels",
    ElementRole.CODE_GROUP: "vp-code-group",
    ElementRole.PANEL: "tabbed-block",
}.items():
    _ROLES_BY_CLASS.update(dict.fromkeys(_names.split(), _role))

# Prefixes of class names with a hash of the build ("admonitionHeading_Gvgb") or an id in them.
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

# Ids of containers, which are no anchors of headings.
CONTAINER_IDS: Final = frozenset({
    "content", "main", "main-content", "header", "preamble", "body", "doc-content", "docContent", "wrapper",
    "documentId", "page-content", "apicontent", "body-wrapper", "interface", "manual-page", "documenter-page",
    "column1", "page", "root", "furo-main-content", "article", "app", "__docusaurus",
})  # fmt: skip

# ARIA roles of elements to drop.
NAVIGATION_ROLES: Final = (
    'role="tooltip"',
    'role="navigation"',
    'role="search"',
    'role="banner"',
    'role="contentinfo"',
)

_role_cache: Final[dict[str, ElementRole | None]] = {}


def role_from_classes(classes: str) -> ElementRole | None:
    """Return the role that a class attribute stands for, or None."""
    try:
        return _role_cache[classes]
    except KeyError:
        pass
    found = None
    for name in classes.split():
        role = _ROLES_BY_CLASS.get(name) or next(
            (role for start, role in _ROLES_BY_CLASS_PREFIX if name.startswith(start)), None
        )
        # The first role wins ("admonition note"), except that DROP wins over all ("toc admonition").
        found = role if found is None or role is ElementRole.DROP else found
    if len(_role_cache) > 5_000:  # bounded: pages may have any number of class names
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


# Languages whose name alone is used as the class of a <code>.
_LANGUAGE_CLASSES: Final = frozenset({
    "ts", "tsx", "js", "jsx", "json", "yaml", "toml", "html", "css", "sh", "bash", "console", "python", "rust",
    "go", "java", "kotlin", "c", "cpp", "sql", "xml",
})  # fmt: skip


def code_language(classes: str, attributes: str) -> str:
    """Return the language that an element around code declares; "" if none."""
    if classes in _LANGUAGE_CLASSES:
        return classes
    in_data = _DATA_LANGUAGE.search(attributes)
    in_class = _LANGUAGE.search(classes)
    name = (in_data[1] if in_data else in_class[1] if in_class else "rust" if _RUST.search(classes) else "").lower()
    return "" if name in _NO_LANGUAGE else _LANGUAGE_ALIASES.get(name, name)
