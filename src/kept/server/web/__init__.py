"""Web pages for people. Every page works without scripts; htmx and kept.js make it faster.

search          the first page: search, or a welcome while there is no source
sources         the list of sources, and the page of one
add             adding a source, and the fields of a source's settings
document        one document, its versions, and what changed between two
jobs            crawls in progress, and the ledger of URLs
login           logging in with a key
errors          error pages
page            shared by all pages: templates, headers, error handling
charts, diff, filters, markdown_html, tree   how parts of a page are prepared
assets          style sheet, scripts, icon
"""

from fastapi import APIRouter

from kept.server.web import add, assets, document, errors, jobs, login, search, sources

router = APIRouter(include_in_schema=False)
for page in (assets, login, search, sources, add, document, jobs, errors):  # errors last: it matches every other path
    router.include_router(page.router)
