"""The doors of the server: parse, call one verb, show the answer.

app     one application of all doors
api     HTTP, for programs
web     pages, for people
mcp     tools, for agents
"""
