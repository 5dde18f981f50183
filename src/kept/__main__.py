"""``python -m kept``: the command line."""

from kept.cli.main import main

if __name__ == "__main__":
    main()
