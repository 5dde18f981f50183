"""Colours and texts that several views share."""

STATE_COLOURS = {
    "ready": "green",
    "active": "green",
    "held": "yellow",
    "paused": "yellow",
    "failed": "red",
    "processing": "cyan",
    "retired": "dim",
    "abandoned": "dim",
}
PARTIAL_REASONS = {
    "limit": "a limit was reached",
    "trap": "traps were not followed",
    "errors": "some pages could not be read",
}
