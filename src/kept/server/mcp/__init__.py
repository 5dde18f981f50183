"""MCP: what agents are given. Each tool parses, calls one verb and shows the answer, twice: as text and as a shape.

server      one server of everything below
door        where tools are offered; errors become sentences here
envelope    other people's text, so that it is read as data
answers     what the shapes promise, and how they read
finding     search_docs, read_doc, fetch_url, why_missing
keeping     list_sources, find_version, what_changed; add_source, refresh_source, remove_source
crawling    list_jobs, get_job, cancel_job; asking for a crawl and following it
versions    which version fits, what changed
resources   docs://{source}/{path}
http        at /mcp of the server
"""
