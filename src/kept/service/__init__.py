"""The product's verbs, by noun. Every door (command line, API, web pages, MCP) parses, calls one, shows the answer.

    sources       what is kept: add, set, list, show, remove
    crawls        ask for a crawl; how one stands
    generations   a source's past, and what waits for a person
    changes       the change feed
    comparing     one document in two generations
    reviewing     a held generation, as it would be
    finding       search
    reading       a document as a generation shows it, and its history
    browsing      the documents of a source, the outline of one, which of some links are kept
    ledger        what the last crawl made of a URL, and why
    mirror        what is kept, as files
    listing       the documents of a source, page by page
    events        what happens, as it happens
    keys          who may ask over the network, and how much each may have
    hooks         other programs ask for a refresh
    uploads       files that become a source
    health        whether the database can be used
    naming        what people call things: labels, URLs, paths, ids
    words         numbers, times and counts the way people say them

A door imports the nouns it needs: a search has to answer at once.
"""
