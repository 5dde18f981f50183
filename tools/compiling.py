"""Compiles the modules that reading pages spends its time in, for a wheel (`make wheel`).

mypyc makes C of Python whose types are known; what the compiler makes of that lies in the wheel beside the sources.
Nothing is compiled in the checkout: there, what is edited is what runs. Where nothing was compiled, everything works
the same from the sources, and slower.
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
    "kept/extract/reader.py",
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


class Compiling(BuildHookInterface[Any]):
    _made: tempfile.TemporaryDirectory[str] | None = None  # until the wheel is written

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if shutil.which(os.environ.get("CC", "cc").split()[0]) is None:
            self.app.display_warning("There is no C compiler: this wheel reads pages in plain Python, which is slower.")
            return
        source = Path(self.root) / "src"
        modules = sorted(str(path.relative_to(source)) for glob in COMPILED for path in source.glob(glob))
        self._made = tempfile.TemporaryDirectory(prefix="kept-wheel-")
        subprocess.run([sys.executable, "-c", _BUILD, self._made.name, *modules], cwd=source, check=True)
        built = Path(self._made.name, "lib")
        build_data["force_include"] |= {str(one): str(one.relative_to(built)) for one in built.rglob("*.so")}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._made is not None:
            self._made.cleanup()
