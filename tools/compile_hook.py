"""Hatchling build hook: compile the modules in which readers spend their time, for a wheel (`make wheel`).

mypyc translates typed Python to C; the compiled modules go into the wheel beside the sources. Nothing is compiled in
the checkout. Without compiled modules everything works the same from the sources, more slowly.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = (
    "kept/extract/html/[a-z]*.py",
    "kept/extract/markdown/blocks.py",
    "kept/extract/office/office_markdown.py",
    "kept/extract/located_nodes.py",
    "kept/extract/named_entries.py",
    "kept/extract/page_kind.py",
    "kept/extract/reader.py",
    "kept/extract/section_nodes.py",
    "kept/extract/sections.py",
    "kept/extract/section_splitter.py",
    "kept/extract/text.py",
    "kept/model/tokens.py",
    "kept/model/index_fields.py",
)

_BUILD = """
import sys
from mypyc.build import mypycify
from setuptools import setup

target, *modules = sys.argv[1:]
setup(
    name="kept",
    packages=[],
    ext_modules=mypycify(
        ["--config-file=", f"--cache-dir={target}/cache", "--strict", *modules],
        group_name="kept",
        debug_level="0",
        target_dir=f"{target}/c",
    ),
    script_args=["--quiet", "build_ext", "--build-lib", f"{target}/lib", "--build-temp", f"{target}/build"],
)
"""


class CompileHook(BuildHookInterface[Any]):
    _build_directory: tempfile.TemporaryDirectory[str] | None = None  # removed after the wheel is written

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if shutil.which(os.environ.get("CC", "cc").split()[0]) is None:
            self.app.display_warning(
                "No C compiler was found: the wheel is built without compiled modules and reads pages more slowly."
            )
            return
        source = Path(self.root) / "src"
        modules = sorted(str(path.relative_to(source)) for glob in COMPILED for path in source.glob(glob))
        self._build_directory = tempfile.TemporaryDirectory(prefix="kept-wheel-")
        subprocess.run([sys.executable, "-c", _BUILD, self._build_directory.name, *modules], cwd=source, check=True)
        library = Path(self._build_directory.name, "lib")
        build_data["force_include"] |= {str(file): str(file.relative_to(library)) for file in library.rglob("*.so")}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._build_directory is not None:
            self._build_directory.cleanup()
