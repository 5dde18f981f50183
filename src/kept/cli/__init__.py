"""The command line: parses options, calls a service function, prints the result."""

import gc

# Imports allocate a lot and leave hardly any garbage: collecting it meanwhile takes a tenth of a search.
gc.set_threshold(100_000)
