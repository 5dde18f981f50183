"""The manuals of bench/reading_unseen.py: where each comes from and which parts of its pages are content.

Each of them was written by another generator, or by another template of one. Debian packages and PyPI give the pages;
nothing else is contacted.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class UnseenManual:
    """A manual, and selectors that say what a reader of its pages would call content."""

    package: str  # of Debian, or of PyPI behind "pypi:", whose API reference is then built
    pages: str
    region: str
    outside: str = ""  # inside the region, but no content
    headings: str = "h1, h2, h3, h4, h5, h6"
    members: str = ""  # elements with the name or signature of a documented object, which are no headings
    code: str = "pre"
    layout: str = ""  # tables that only arrange the page
    marks: str = "a.headerlink, a.permalink, a.anchor, a.self-link, a.anchor-link, a.selflink, .tooltiptext"


DOC = "usr/share/doc"
TEXINFO_OUTSIDE = ".header, table.header, .nav-panel, .contents, .Contents_element, .shortcontents, table.menu, ul.menu"
DOXYGEN_OUTSIDE = (
    ".header > .summary, address.footer, .ttc, div.tabs, .navpath, .directory .levels, .dynheader, .dyncontent"
)
UNSEEN_MANUALS = {
    "haddock": UnseenManual(
        package="libghc-aeson-doc", pages=f"{DOC}/libghc-aeson-doc/html/[A-Z]*.html", region="body",
        outside="#package-header, #table-of-contents, #synopsis, #footer, .info, .src a.link, .selflink",
        headings="h1, h2, h3, h4, #module-header .caption",
        members="div.top > p.src > a.def[id]", layout=".info",
    ),
    "haddock base": UnseenManual(
        package="ghc-doc", pages=f"{DOC}/ghc-doc/html/libraries/containers-*/[A-Z]*.html", region="body",
        outside="#package-header, #table-of-contents, #synopsis, #footer, .info, .src a.link, .selflink",
        headings="h1, h2, h3, h4, #module-header .caption",
        members="div.top > p.src > a.def[id]", layout=".info",
    ),
    "pldoc": UnseenManual(
        package="swi-prolog-doc", pages="usr/share/swi-prolog/doc/Manual/*.html", region="body",
        outside=".navigate, .toc", members="dt.pubdef > a[id]",
    ),
    "scribble": UnseenManual(
        package="racket-doc", pages=f"{DOC}/racket/reference/*.html", region=".maincolumn .main",
        outside=".navsettop, .navsetbottom, .tocset, a.heading-anchor, a.heading-source, "
        ".RpackageSpec, .RBackgroundLabelInner",
        members="p.RForeground > a[name]",
        code=".SCodeFlow > table.RktBlk, .SCodeFlow > p, pre",
        layout=".boxed table, .RktBlk, .SCodeFlow table, .specgrammar, .prototype, .together",
    ),
    "racket guide": UnseenManual(
        package="racket-doc", pages=f"{DOC}/racket/guide/*.html", region=".maincolumn .main",
        outside=".navsettop, .navsetbottom, .tocset, a.heading-anchor, a.heading-source, .RBackgroundLabelInner",
        code=".SCodeFlow > table.RktBlk, .SCodeFlow > p, pre",
        layout=".boxed table, .RktBlk, .SCodeFlow table, .specgrammar",
    ),
    "nim": UnseenManual(
        package="nim-doc", pages=f"{DOC}/nim/html/[a-z]*.html", region="#documentId",
        outside=".three.columns, .footer, a.link-seesrc, .theme-switch-wrapper, #global-links",
        members="dl.item div[id] > dt", code="pre:not(dt pre)",
    ),
    "zsh": UnseenManual(
        package="zsh-doc", pages=f"{DOC}/zsh-common/html/*.html", region="body",
        outside=".header, table.header, p > small, table.menu, table.nav_table, table.index-cp",
        layout="table.header", members="dt > span[id]",
    ),
    "apache": UnseenManual(
        package="apache2-doc", pages=f"{DOC}/apache2-doc/manual/en/**/*.html", region="#page-content",
        outside=".toplang, .bottomlang, #quickview, .lang-toggle, .seealso, .top, #comments_section, script",
    ),
    "gtk-doc": UnseenManual(
        package="libgtk-3-doc", pages="usr/share/gtk-doc/html/gtk3/Gtk*.html", region="body",
        outside="table.navigation, .footer, .refnamediv td.gallery_image", layout=".refnamediv table",
    ),
    "glib": UnseenManual(
        package="libglib2.0-doc", pages="usr/share/gtk-doc/html/glib/*.html", region="body",
        outside="table.navigation, .footer, .toc", layout=".refnamediv table",
    ),
    "gi-docgen": UnseenManual(
        package="libgtk-4-doc", pages=f"{DOC}/libgtk-4-doc/gtk4/[a-z]*.html", region="#main",
        outside=".anchor, .srclink",
    ),
    "qdoc": UnseenManual(
        package="qtbase5-doc-html", pages="usr/share/qt5/doc/qtcore/q*.html", region="body",
        outside=".navigationbar, .sidebar, .toc, .footer, .naviNextPrevious, #sidebar-content, .main-rounded",
    ),
    "boostbook": UnseenManual(
        package="libboost1.81-doc", pages=f"{DOC}/libboost1.81-doc/doc/html/boost_*/**/*.html", region="body",
        outside=".spirit-nav, .toc, .copyright-footer, body > table, .navfooter", layout="body > table, .simplelist",
    ),
    "doxygen": UnseenManual(
        package="doxygen-doc", pages=f"{DOC}/doxygen/html/[a-z]*.html", region="div#doc-content",
        outside=DOXYGEN_OUTSIDE + ", .toc", code="pre, div.fragment", headings="h1, h2, h3, h4, .headertitle > .title",
    ),
    "eigen": UnseenManual(
        package="libeigen3-doc", pages=f"{DOC}/libeigen3-dev/html/group__*.html", region="div#doc-content",
        outside=DOXYGEN_OUTSIDE + ", .toc", code="pre, div.fragment", headings="h1, h2, h3, h4, .headertitle > .title",
        layout="table.memname, table.memberdecls, table.directory, table.mlabels",
        members=".memitem",
    ),
    "libstdc++": UnseenManual(
        package="libstdc++-12-doc", pages=f"{DOC}/gcc-12-base/libstdc++/manual/*.html", region="body",
        outside=".navheader, .navfooter, .toc", layout=".navheader table, .navfooter table, .simplelist",
    ),
    "node": UnseenManual(
        package="nodejs-doc", pages=f"{DOC}/nodejs/api/[a-z]*.html", region="#apicontent, #column1",
        outside="#toc, #gtoc, header, .mark, a.mark, .srclink, .js-flavor-selector, .api_stability > .module_stability",
    ),
    "groovydoc": UnseenManual(
        package="groovy-doc", pages=f"{DOC}/groovy/gapi/groovy/**/*.html", region="body",
        outside=".topNav, .bottomNav, .subNav, noscript, .legalCopy",
    ),
    "javadoc 8": UnseenManual(
        package="groovy-doc", pages=f"{DOC}/groovy/api/groovy/**/*.html", region="body",
        outside=".topNav, .bottomNav, .subNav, noscript, .legalCopy, nav, header[role=banner], footer",
    ),
    "javadoc 17": UnseenManual(
        package="libcommons-lang3-java-doc", pages=f"{DOC}/libcommons-lang3-java/api/org/**/*.html", region="main",
        outside="nav, .sub-title a, ol.toc-list", code="pre, div.member-signature",
    ),
    "erl_docgen": UnseenManual(
        package="erlang-doc", pages=f"{DOC}/erlang-doc/lib/stdlib-*/doc/html/*.html", region="#content",
        outside=".footer", members="a.func-head, h4.func-head", headings="h1, h2, h3, h4, h5, h6",
    ),
    "texi2any lilypond": UnseenManual(
        package="lilypond-doc-html", pages=f"{DOC}/lilypond/html/Documentation/notation/*.html", region="#main",
        outside=".nav_table, #footer, .footer, table.menu, ul.toc, .settitle, #tocframe, .toc_frame, #languages",
        layout="table.cartouche, table.menu",
    ),
    "texinfo maxima": UnseenManual(
        package="maxima-doc", pages=f"{DOC}/maxima-doc/html/maxima_*.html", region="body",
        outside=TEXINFO_OUTSIDE, members="dt[id^='index-']", layout="table.header, table.menu",
    ),
    "texinfo octave": UnseenManual(
        package="octave-doc", pages=f"{DOC}/octave/octave.html/*.html", region="body",
        outside=TEXINFO_OUTSIDE, members="dt[id^='index-']", layout="table.header, table.menu",
    ),
    "texinfo r": UnseenManual(
        package="r-doc-html", pages=f"{DOC}/r-doc-html/manual/*.html", region="body",
        outside=TEXINFO_OUTSIDE, layout="table.header, table.menu",
    ),
    "scaladoc": UnseenManual(
        package="scala-doc", pages=f"{DOC}/scala-2.11/api/library/scala/collection/*.html", region="body",
        outside="#search, #mbrsel, #footer, .permalink, #textfilter, #order, #visbl, #ancestors, #tooltip, .toggle",
        headings="h1, h2, h3, h4, h5, h6",
    ),
    "docbook wireshark": UnseenManual(
        package="wireshark-doc", pages=f"{DOC}/wireshark/wsug_html_chunked/*.html", region="body",
        outside=".navheader, .navfooter, .toc", layout=".navheader table, .navfooter table, .simplelist",
    ),
    "publican": UnseenManual(
        package="debian-handbook", pages=f"{DOC}/debian-handbook/html/en-US/*.html", region="body",
        outside="#banner, #title, .docnav, .toc, .indexdiv",
    ),
    "sphinx policy": UnseenManual(
        package="debian-policy", pages=f"{DOC}/debian-policy/policy.html/*.html", region="div.body[role=main]",
        outside=".contents, .toctree-wrapper, .linenos",
    ),
    "sphinx cmake": UnseenManual(
        package="cmake-doc", pages=f"{DOC}/cmake-data/html/manual/*.html", region="div.body[role=main]",
        outside=".contents, .linenos",
    ),
    "mdbook": UnseenManual(
        package="rust-doc", pages=f"{DOC}/rust-doc/html/book/ch*.html", region="main",
        outside=".buttons, .boring-button",
    ),
    "rustdoc": UnseenManual(
        package="rust-doc", pages=f"{DOC}/rust-doc/html/std/[a-h]*/*.html", region="#main-content",
        outside=".srclink, .src, .out-of-band, #copy-path, .sidebar, .rightside, a.anchor, .tooltip, "
        ".toggle-label, summary.hideme",
        headings="h1, h2, h3", members="section[id] > h4.code-header", code="pre",
    ),
    "mediawiki": UnseenManual(
        package="cppreference-doc-en-html", pages="usr/share/cppreference/doc/html/en/cpp/container/**/*.html",
        region="#content",
        outside=".t-navbar, .editsection, #toc, .toc, #contentSub, #siteSub, #jump-to-nav, .printfooter, .catlinks, "
        "#cpp-footer-base, .noprint, .mw-headline-number",
        code="pre, .t-example > div > div.source-cpp pre", layout="table.t-dcl-begin, .t-navbar table, .t-rev-begin",
    ),
    "libxml2": UnseenManual(
        package="libxml2-doc", pages=f"{DOC}/libxml2/html/*.html", region="body",
        outside="body > table > tbody > tr > td[width='120'], td.toc, td[width]", layout="table[width], table",
    ),
    "pdoc": UnseenManual(
        package="pypi:more-itertools", pages="pdoc/**/*.html", region="main.pdoc",
        outside="div.pdoc-code, .view-source-button, label, .headerlink, nav, .search-results",
        members=".attr[class], .attr.function",
    ),
}  # fmt: skip


def fetch_manual(manual: UnseenManual, cache: Path) -> Path:
    """Return the folder that the pages of a manual are below, downloaded and unpacked when it is not there."""
    folder = cache / manual.package.replace(":", "-")
    if folder.is_dir():
        return folder
    unfinished = folder.with_suffix(".unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    if manual.package.startswith("pypi:"):
        name = manual.package.removeprefix("pypi:")
        packages = unfinished / "packages"
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, "pdoc", name)
        code = f"import sys; sys.path.insert(0, {str(packages)!r}); from pdoc.__main__ import cli; cli()"
        run(sys.executable, "-c", code, "-o", unfinished / "pdoc", name.replace("-", "_"))
    else:
        run("apt-get", "download", manual.package, folder=unfinished)
        for archive in unfinished.glob("*.deb"):
            run("dpkg", "-x", archive, unfinished)
            archive.unlink()
    return unfinished.rename(folder)


def run(*command: str | Path, folder: Path | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
