"""Pages, for people. Every page is whole without a script; htmx and a little of our own make it quick.

search     what is found, as it is typed; an empty Kept explains itself
sources    what is kept, and adding to it
source     one source: its past, what waits for a decision, its documents, its settings
document   one document: readable, its past, what changed
jobs       crawls as they go, and what became of every URL
entering   with a key, where keys are needed
page       what all pages share: templates, headers, errors in words
refusals   what is refused before a page is reached, as a page
"""

from fastapi import APIRouter

from kept.server.web import add, assets, document, jobs, login, not_found, search, source, sources

router = APIRouter(include_in_schema=False)
for page in (
    assets,
    login,
    search,
    sources,
    add,
    source,
    document,
    jobs,
    not_found,
):  # the last one takes what is left
    router.include_router(page.router)
