"""The doors of the server: parse, call one verb, show the answer.

app        one application of all doors, and what stands before them:
             measures   counts requests
             gate       Host and Origin; keys, scopes and rates
             bounds     how much at once, how large, how long
             pulse      whether the database answers
listening  one socket, one server
api        HTTP, for programs
web        pages, for people
mcp        tools, for agents
problems   errors in the language of HTTP
wording    what an error says, without commands and options
answers    JSON with ETags; streams of events
"""
