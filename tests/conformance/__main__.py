"""Run the MCP conformance suite: python -m tests.conformance [FOLDER]

It runs twice: against ``kept serve`` as shipped, and with the tools, prompts and resources that the suite expects.
FOLDER is where ``npm install node@24 @modelcontextprotocol/conformance@0.2.0-alpha.12`` was run; without it, both are
looked for on the path. Succeeds when all relevant tests pass, except those that the lists beside this file name with
reasons.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENTS = "2026-07-28"
HERE = Path(__file__).parent
RUNS = {"kept": "not_passed.yaml", "tests.conformance.fixtures": "not_passed_with_fixtures.yaml"}


def main(*folders: str) -> int:
    path = os.pathsep.join([*(f"{folder}/node_modules/.bin" for folder in folders), os.environ.get("PATH", "")])
    suite, node = shutil.which("conformance", path=path), shutil.which("node", path=path)
    if not suite or not node:
        print("The suite is not here: npm install node@24 @modelcontextprotocol/conformance@0.2.0-alpha.12")
        return 2
    return max(_run([node, suite], module, HERE / known) for module, known in RUNS.items())


def _run(suite: list[str], module: str, known: Path) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        kept = subprocess.Popen(
            [sys.executable, "-m", module, "serve", "--port", "0", "--workers", "0"],
            env=os.environ | {"KEPT_DATABASE": f"sqlite:///{scratch}/kept.db", "HOME": scratch},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            target = ["--url", f"{_address(kept)}/mcp", "--requirements", REQUIREMENTS]
            options = ["--expected-failures", str(known), "--output-dir", f"{scratch}/results"]
            return subprocess.call([*suite, "server", *target, *options])
        finally:
            kept.terminate()
            kept.wait(20)


def _address(kept: subprocess.Popen[str]) -> str:
    assert kept.stderr is not None, "it is a pipe"
    for line in kept.stderr:
        if found := re.search(r"serves at (http://[^/]+)/", line):
            return found[1]
    raise RuntimeError("kept serve did not start")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
