"""Comfort of the command line: examples, completion, progress, and the doctor."""

import asyncio
import io
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from kept.cli import progress
from kept.cli.command import _load_command
from kept.cli.main import RootGroup as Commands
from kept.cli.screen import Screen
from tests.e2e.test_cli import POOL, Kept, write
from tests.postgres import PostgresServer


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    write(tmp_path / "docs", pool=POOL)
    return Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")


@pytest.mark.parametrize("name", Commands.modules)
def test_every_command_teaches_by_example(name: str) -> None:
    command = _load_command(name, Commands.modules[name])
    examples = [line.strip() for line in command.help.splitlines() if " kept " in f" {line.strip()} "]
    assert any(f" {name}" in example for example in examples), command.help


def test_a_shell_completes_commands_options_and_sources(kept: Kept) -> None:
    assert kept("add", "docs", "--name", "terns").code == 0

    def completed(*words: str) -> list[str]:
        variables = {"COMP_WORDS": " ".join(("kept", *words)), "COMP_CWORD": str(len(words))}
        run = kept(env=kept.environment | variables | {"_KEPT_COMPLETE": "complete_bash"})
        assert run.code == 0, run
        return run.out.split()

    assert completed("sea") == ["search"]
    assert completed("add", "--max") == ["--max-pages", "--max-depth", "--max-time"]
    assert completed("show", "te") == ["terns"]
    kept.environment["KEPT_DATABASE"] = "sqlite:///nowhere/kept.db"
    assert completed("show", "te") == []
    script = kept("completion", "bash").out
    assert "_KEPT_COMPLETE=complete_bash" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert kept("completion", "dos").sentence == "There is no completion for 'dos'. There is for bash, zsh, fish."


class Seen(io.StringIO):
    """The output of a terminal; another thread writes to it."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if "reading" in text:
            self.drawn.set()
        return written


def test_what_takes_long_is_named_on_a_terminal_until_something_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SPINNER_DELAY_SECONDS", 0.0)
    seen = Seen()

    async def scenario(is_terminal: bool) -> str:
        screen = Screen(seen)
        screen.is_terminal = is_terminal
        with progress.DelayedSpinner(screen, "reading [x] …") as waiting:
            screen.before_write = waiting.stop
            if is_terminal:
                assert await asyncio.to_thread(seen.drawn.wait, 20)
            during = seen.getvalue()
            screen.line("done")
        return during

    monkeypatch.setenv("FORCE_COLOR", "1")
    assert asyncio.run(scenario(False)) == ""
    assert "reading [x] …" in asyncio.run(scenario(True))
    assert seen.getvalue().endswith("done\n")


def checks(kept: Kept, code: int) -> dict[str, Any]:
    answer = kept.json("doctor", code=code)
    assert answer["ok"] is (code == 0)
    return {check["name"]: check for check in answer["checks"]}


def test_a_doctor_finds_what_is_wrong_and_says_what_to_do(kept: Kept) -> None:
    kept.environment["PATH"] = ""
    found = checks(kept, 0)
    notes = {name for name, check in found.items() if check["state"] == "note"}
    assert notes == {"database", "Chromium", "git", "npm", "pip"}
    assert "Install git" in found["git"]["advice"]
    assert "'kept add ROOT' makes it" in found["database"]["advice"]
    assert not (kept.folder / "kept.db").exists()

    assert kept("add", "docs").code == 0
    secrets = kept.folder / ".local/share/kept/secrets.json"
    secrets.parent.mkdir(parents=True, exist_ok=True)
    secrets.write_text("{}")
    secrets.chmod(0o644)
    found = checks(kept, 1)
    assert (found["database"]["state"], found["secrets"]["state"]) == ("ok", "broken")
    assert found["secrets"]["advice"] == f"chmod 600 '{secrets}'"
    secrets.chmod(0o600)
    people = kept("doctor")
    assert people.code == 0
    assert "ok     database" in people.out

    (kept.folder / "kept.db").write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    assert checks(kept, 1)["database"]["state"] == "broken"
    (kept.folder / "kept.toml").write_text("[crawl]\ngrace_dys = 3\n")
    kept("config", "--trust")
    found = checks(kept, 1)
    assert "there is no setting 'crawl.grace_dys'" in found["settings"]["found"]


def test_a_doctor_asks_postgresql_for_what_searches_vectors(tmp_path: Path, postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()
    kept = Kept(tmp_path, url)
    found = checks(kept, 0)
    postgres_server.drop_database(url)
    assert found["database"]["state"] == "ok"
    assert "PostgreSQL" in found["database"]["found"]
    assert "pgvector" in found
    assert found["git"]["state"] == "ok"


def test_a_table_fits_the_terminal_without_breaking_a_word(kept: Kept) -> None:
    label = "a-source-with-a-long-name@10.2.1"
    assert kept("add", "docs", "--name", label.partition("@")[0], "--version", "10.2.1", "--tag", "team").code == 0
    for arguments in (["list"], ["jobs"], ["show", label], ["generations", label], ["history", "docs/pool.md"]):
        lines = strip_styles(kept.on_a_terminal(*arguments, columns=80)).splitlines()
        # A path that is longer than a line stays whole, so that it can be copied.
        too_long = [line for line in lines if len(line.rstrip()) > 80 and len(line.split()[-1]) < 40]
        assert not too_long, too_long
    narrow = strip_styles(kept.on_a_terminal("list", columns=80))
    assert label in narrow
    assert "ROOT" in narrow
    assert "#team" not in narrow
    assert "#team" in strip_styles(kept.on_a_terminal("list", columns=240))
    assert "#team" in kept("list").out, "a pipe gets everything"


def test_a_source_is_removed_after_a_question_on_a_terminal(kept: Kept) -> None:
    assert kept("add", "docs", "--name", "terns").code == 0
    seen = strip_styles(kept.on_a_terminal("remove", "terns", typed="n\n"))
    assert "Remove terns (1 document of file://" in seen
    assert "Nothing was removed." in seen
    assert "terns is removed." in strip_styles(kept.on_a_terminal("remove", "terns", typed="y\n"))
    assert kept("add", "docs", "--name", "terns").code == 0
    assert "?" not in kept.on_a_terminal("remove", "terns", "--yes")


def test_a_schedule_that_nothing_obeys_is_set_and_said(kept: Kept) -> None:
    assert kept("add", "docs", "--name", "terns").code == 0
    set_ = kept("set", "terns", "--schedule", "1d")
    assert (set_.code, set_.out) == (0, "terns is set; it holds from the next crawl on.\n")
    assert "Nothing runs now that would obey its schedule" in set_.err
    assert kept("set", "terns", "--tag", "birds").err == ""
    wrong = kept("set", "terns", "--schedule", "0 25 * * *")
    assert wrong.code == 2
    assert wrong.sentence.startswith("'0 25 * * *': bad hour. The five fields are minute, hour, ")


def strip_styles(seen: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).replace("\r", "")
