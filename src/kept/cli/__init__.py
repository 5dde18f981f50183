"""The command line: starts a runtime, calls the product's verbs, shows what they answer."""

import gc

# Starting makes a great many things and hardly any garbage. Looking for it all the while takes a tenth of a search.
gc.set_threshold(50_000)
