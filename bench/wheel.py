"""Install Kept from its wheel, compiled, as users do."""

import compileall
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parent.parent
COMPILED = PROJECT / ".kept" / "compiled"


def install_wheel() -> Path:
    """Return the folder to import Kept from; it is rebuilt when the sources have changed."""
    mark, sources = COMPILED / "made-of", _digest()
    if not mark.exists() or mark.read_text() != sources:
        print("Compiling Kept.", flush=True)
        shutil.rmtree(COMPILED, ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
                cwd=PROJECT,
                env=os.environ | {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "true"},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                sys.exit(f"Kept could not be compiled:\n{done.stdout}{done.stderr}")
            [wheel] = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(COMPILED)
        compileall.compile_dir(COMPILED, quiet=2)
        mark.write_text(sources)
    return COMPILED


def _digest() -> str:
    files = [PROJECT / "pyproject.toml", PROJECT / "tools" / "compile_hook.py", *(PROJECT / "src").rglob("*.*")]
    found = hashlib.sha256(sys.version.encode())
    for file in sorted(file for file in files if file.is_file() and file.suffix != ".pyc"):
        found.update(f"{file.relative_to(PROJECT)}\n".encode() + file.read_bytes())
    return found.hexdigest()
