import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled once, not at every start
