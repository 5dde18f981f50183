"""The wheel works without the checkout, installed into an environment of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from pathlib import Path

import apsw
import pytest

from kept.store.migrations import list_migrations

CHECKOUT = Path(__file__).parent.parent
PACKAGE = CHECKOUT / "src" / "kept"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the backend that is pinned with the tests: nothing is downloaded."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_wheel(wheel, tmp_path_factory.mktemp("elsewhere"))


def build_wheel(folder: Path, **settings: str) -> Path:
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=CHECKOUT, **settings)
    [file] = folder.glob("*.whl")
    return file


def install_wheel(wheel: Path, folder: Path) -> Path:
    """Install the wheel into an empty environment with the dependencies of the tests. Returns its programs."""
    home = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    programs = home / "bin"
    _run(sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet", "--no-deps",
         "--no-index", "--disable-pip-version-check", str(wheel))  # fmt: skip
    packages = next(home.glob("lib/python*/site-packages"))
    # A folder that a .pth file names is searched last, and .pth files in it do not count: the checkout stays out.
    borrowed = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return programs


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    ours = (file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    assert names == {f"kept/{file.relative_to(PACKAGE).as_posix()}" for file in ours}
    assert {"kept/py.typed", "kept/store/sql/shared/jobs.sql"} < names
    for backend in ("sqlite", "postgres"):
        assert f"kept/store/sql/schema/{backend}.sql" in names
        assert sum(name.startswith(f"kept/store/sql/migrations/{backend}/") for name in names) == len(
            list_migrations(backend)
        )


def test_the_distribution_is_kept_docs_and_nothing_says_to_install_another(wheel: Path, programs: Path) -> None:
    """The name `kept` on the package index belongs to somebody else."""
    assert wheel.name.startswith("kept_docs-")
    extras = "from importlib.metadata import metadata; print(*metadata('kept-docs').get_all('Provides-Extra'))"
    assert _run(str(programs / "python"), "-c", extras, cwd=wheel.parent).split() == ["browser", "meaning", "office"]
    texts = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "Makefile"]
    texts += [*(CHECKOUT / "docs").rglob("*.md"), *PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html")]
    other = re.compile(
        r"(?:\b(?:install|uvx|uv add|pipx run) (?:-\S+ )*['\"]?|dist/)kept(?![\w-])|\bkept\[[a-z]+\]['\"`]"
    )
    assert [str(text) for text in texts if other.search(text.read_text("utf-8"))] == []


def test_the_environment_has_the_pinned_pip_and_setuptools_and_not_those_that_python_brought() -> None:
    pins = dict(re.findall(r"^(pip|setuptools)==(\S+)", (CHECKOUT / "requirements/test.txt").read_text(), re.MULTILINE))
    assert {name: version(name) for name in ("pip", "setuptools")} == pins


def test_the_installed_program_adds_a_folder_and_finds_it_again(programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "pool.md").write_text("# Pool\n\nA pool of connections.\n\n## Pelican\n\nA bird that likes pools.\n")
    where = _run(str(programs / "python"), "-c", "import kept; print(kept.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(programs.parent)

    added = kept(programs, tmp_path, "add", "docs")
    assert (added["status"], added["generation"], added["counts"]["new"]) == ("completed", 1, 1)
    [hit] = kept(programs, tmp_path, "search", "bird")["hits"]
    assert (hit["title"], hit["headings"], hit["anchor"]) == ("Pool", ["Pool", "Pelican"], "pelican")

    (folder / "pool.md").write_text("# Pool\n\nA pool of herons.\n")
    assert kept(programs, tmp_path, "refresh", added["source"])["counts"]["changed"] == 1
    assert kept(programs, tmp_path, "search", "bird")["hits"] == []
    assert len(kept(programs, tmp_path, "search", "heron")["hits"]) == 1


def test_what_is_installed_brings_an_older_database_to_todays_schema(programs: Path, tmp_path: Path) -> None:
    old = apsw.Connection(str(tmp_path / "kept.db"))
    old.execute(Path(__file__).with_name("crash").joinpath("schema_16_sqlite.sql").read_text("utf-8")).fetchall()
    old.close()
    kept(programs, tmp_path, "list")
    new = apsw.Connection(str(tmp_path / "kept.db"), flags=apsw.SQLITE_OPEN_READONLY)
    applied = [number for (number,) in new.execute("SELECT number FROM migrations ORDER BY number")]
    new.close()
    assert applied == [*range(1, 17), *(one.number for one in list_migrations("sqlite"))]


def test_a_compiled_wheel_reads_as_the_sources_do(tmp_path: Path) -> None:
    if not (shutil.which("cc") and Path(sysconfig.get_path("include"), "Python.h").exists()):
        pytest.skip("no C compiler, or no headers of Python")
    programs = install_wheel(build_wheel(tmp_path, HATCH_BUILD_HOOK_ENABLE_CUSTOM="true"), tmp_path)
    python = str(programs / "python")
    compiled = [
        _run(python, "-c", f"import {module}; print({module}.__file__)", cwd=tmp_path).strip()
        for module in ("kept.extract.html.reader", "kept.extract.section_splitter", "kept.model.index_fields")
    ]
    assert [Path(file).suffix for file in compiled] == [".so"] * 3
    assert not list(PACKAGE.rglob("*.so")), "nothing is compiled in the checkout"

    names = ("epub", "html", "markdown", "reader", "reader_pool", "sections", "tokens", "zip_container")
    tests = [f"tests/unit/test_{name}.py" for name in names]
    options = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-o", "pythonpath=.")
    output = _run(python, "-m", "pytest", *options, *tests, cwd=CHECKOUT)
    assert " passed" in output

    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "pool.html").write_text("<h1>Pool</h1><p>A pool of <b>connections</b>.<h2 id=bird>Pelican</h2><p>A bird.")
    (folder / "broken.docx").write_bytes(b"words")
    counts = kept(programs, tmp_path, "add", "docs")["counts"]
    assert (counts["new"], counts["skipped"]) == (1, 1)
    [hit] = kept(programs, tmp_path, "search", "bird")["hits"]
    assert (hit["headings"], hit["anchor"]) == (["Pool", "Pelican"], "bird")


def kept(programs: Path, home: Path, *arguments: str) -> dict:
    """Return the JSON output of the installed program, run outside of the checkout without settings."""
    database = f"sqlite:///{home}/kept.db"
    return json.loads(_run(str(programs / "kept"), "--database", database, "--json", *arguments, cwd=home))


def _run(*command: str, cwd: Path | None = None, **settings: str) -> str:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("KEPT_", "PYTEST_", "PYTHON"))}
    done = subprocess.run(command, cwd=cwd, env=bare | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
