"""The HTTP server: an API for programs, pages for people, MCP for agents. Each handler parses, calls the service
and shows the answer.

    app           builds the application and its middleware
    server        binds the socket and runs uvicorn
    api, web, mcp the three interfaces
    auth          middleware: Host and Origin checks, keys, rate limits
    limits        middleware: concurrent requests, body size, time
    db_check      middleware: answers 503 at once while the database is away
    metrics       middleware and /metrics
    problems      errors as problem details (RFC 9457)
    error_text    error messages without command-line hints
    responses     dependencies of handlers; JSON with ETags
    sse           server-sent events
"""
