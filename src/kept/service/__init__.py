"""The product's verbs, by noun. Every interface (command line, API, web, MCP) parses, calls one, shows the result.

    sources         add, refresh, change, list, show, remove
    source_request  what a caller asks to add, resolved
    source_options  the table of a source's settings
    access          principals, permissions and quotas
    jobs            request, list and control crawls; hooks that request them; events.py: their events
    documents       read and list documents; their history and outline
    document_diff   one document in two generations
    generations     list and compare generations, roll back, decide about a held one
    changes         the change feed
    search          search, and the versions of a source
    ledger          the result of every URL in the last crawls
    keys, uploads, export, health
    lookup          sources and documents by what people type
    serializers     the JSON of all interfaces; formatting: numbers and times for people

An interface imports the modules it needs: a search has to answer quickly.
"""
