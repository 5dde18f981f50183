"""MCP, for agents. Each tool parses, calls the service and returns the answer twice: as text and as structured content.

server      builds the MCP server with all tools and resources
http        mounts it at /mcp
registry    registers tools; turns errors into text
documents   search_docs, read_doc, fetch_url, why_missing
sources     list_sources, find_version, what_changed, add_source, refresh_source, remove_source
jobs        list_jobs, get_job, cancel_job; waiting for a crawl
resources   docs://{source}/{path}
formatting  types of the structured content, and how answers read as text
untrusted   marks crawled text as data
"""
