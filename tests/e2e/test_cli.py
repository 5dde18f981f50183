"""The command line, as a person or a script calls it: a process with arguments, an exit code and two streams."""

import ctypes
import json
import os
import pty
import re
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from kept.cli.main import RootGroup as Commands
from kept.model.url import file_url

POOL = "# Pools\n\nA connection pool keeps connections open.\n\n## Timeouts\n\nIt waits for some seconds.\n"
INSTALL = "# Install\n\nUnpack it, then run make.\n"
NOTES = "# Notes\n\nWhat was said about the pool on Monday, and by whom, at some length.\n"

COUNTS = {"new", "changed", "unchanged", "moved", "gone", "failed", "skipped", "dead_links"}
HIT = {
    *("source", "version", "generation", "document", "section", "url", "title", "headings", "anchor"),
    *("snippet", "text", "score", "fetched_at", "verified_at", "partial", "also"),
}


@dataclass(frozen=True)
class Run:
    """The result of a call."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """Return the message of a failed call: one line on standard error, and no other output."""
        assert self.out == ""
        assert len(self.err.splitlines()) == 1, self.err
        assert "Traceback" not in self.err
        return self.err.strip()


class Kept:
    """Runs ``kept`` in a folder and on a database of its own."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.docs = folder / "docs"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("KEPT_", "XDG_"))},
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "HOME": str(folder),
            "KEPT_DATABASE": database,
            "TERM": "xterm-256color",
        }

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "kept", *arguments],
            **{
                "cwd": self.folder,
                "env": self.environment,
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "encoding": "utf-8",
            }
            | options,
        )

    def __call__(self, *arguments: str, **options: Any) -> Run:
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=120)
        return Run(process.returncode, out or "", err or "")

    def json(self, *arguments: str, code: int = 0) -> Any:
        run = self(*arguments, "--json")
        assert run.code == code, run
        return json.loads(run.out)

    def on_a_terminal(self, *arguments: str, typed: str = "", columns: int = 0, **variables: str) -> str:
        """Return the output on a terminal, of so many columns; ``typed`` is what a person types there."""
        ours, theirs = pty.openpty()
        os.write(ours, typed.encode())
        variables |= {"COLUMNS": str(columns)} if columns else {}
        with self.start(
            *arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=self.environment | variables
        ) as process:
            os.close(theirs)
            seen = b""
            while part := _read(ours):
                seen += part
            assert process.wait(60) == 0, seen
        os.close(ours)
        return seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the terminal was closed
        return b""


def write(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    write(tmp_path / "docs", pool=POOL, install=INSTALL, notes=NOTES)
    return Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")


@pytest.fixture
def kept_somewhere(tmp_path: Path, database_url: str) -> Kept:
    """Return the same on each kind of database."""
    write(tmp_path / "docs", pool=POOL, install=INSTALL, notes=NOTES)
    return Kept(tmp_path, database_url)


# Scenario ------------------------------------------------------------------------------------------------------------


def test_a_folder_is_kept_found_read_refreshed_compared_and_gone_back_to(kept_somewhere: Kept) -> None:
    kept, docs = kept_somewhere, kept_somewhere.docs
    added = kept("add", "docs")
    assert (added.code, added.out) == (0, "")
    assert re.search(r"^docs: generation 1 is active: 3 new in [\d.]+ s\.$", added.err, re.MULTILINE)

    found = kept("search", "connection", "pool")
    assert found.code == 0
    assert f"Pools  docs, just now\n  {file_url(docs)}/pool.md#pools\n" in found.out
    assert "*" not in found.out, "marks are for terminals"
    assert "## Timeouts" in kept("read", "docs/pool.md").out
    assert kept("read", "docs/pool.md#timeouts").out == "## Timeouts\n\nIt waits for some seconds.\n"

    write(docs, pool=POOL.replace("some seconds", "a minute"), new="# New\n\nSomething that was not here before.\n")
    (docs / "install.md").unlink()
    (docs / "notes.md").rename(docs / "minutes.md")
    refreshed = kept.json("refresh", "docs")
    assert refreshed["counts"] == dict.fromkeys(COUNTS, 0) | {"changed": 1, "new": 1, "moved": 1, "gone": 1}

    output = kept("diff", "docs", "1", "2").out.splitlines()
    assert output[0] == "docs, from generation 1 to 2: 1 added, 1 removed, 1 changed, 1 moved"
    assert output[1:-1] == [
        f"+ {file_url(docs)}/new.md",
        f"- {file_url(docs)}/install.md",
        f"~ {file_url(docs)}/pool.md",
        f"> {file_url(docs)}/notes.md -> {file_url(docs)}/minutes.md",
    ]
    assert f"moved to {file_url(docs)}/minutes.md" in kept("history", "docs/minutes.md").out
    assert re.search(r" 1 .* added: .*\n +2 .* changed: ", kept("history", "docs/pool.md").out)
    story = kept("history", "docs/install.md").out
    assert re.search(
        r"now missing, since [-0-9: ]+: no longer there\n\n +1 .* added: .*\n +2 +[-0-9: ]+ removed: no longer there\n",
        story,
    )

    lines = kept("diff", "docs", "1", "2", "docs/pool.md").out.splitlines()
    assert [line.split("\t")[0] for line in lines[:2]] == [
        f"{sign} {file_url(docs)}/pool.md" for sign in ("---", "+++")
    ]
    assert lines[2] == "@@ -4,4 +4,4 @@"
    assert lines[-2:] == ["-It waits for some seconds.", "+It waits for a minute."]
    assert "moved; what it says is the same" in kept("diff", "docs", "1", "2", "docs/minutes.md").out
    latest, *earlier = kept("changes", "docs", "--since", "1h").out.split("\n\n")
    assert re.match(r"docs, generation 2, [-0-9: ]+: 1 added, 1 removed, 1 changed, 1 moved\n", latest)
    assert f"\n> {file_url(docs)}/notes.md -> {file_url(docs)}/minutes.md\n" in latest
    assert earlier[0].endswith(f"\n+ {file_url(docs)}/pool.md\n")
    assert "some seconds" in kept("read", "docs/pool.md", "--generation", "1").out
    assert kept("read", "docs/install.md").code == 3
    assert "Install" in kept("search", "unpack", "--source", "docs", "--generation", "1").out

    assert "generation 3 is active: it shows what generation 1 showed" in kept("rollback", "docs", "1").out
    assert "Unpack it" in kept("read", "docs/install.md").out
    states = {one["number"]: one["state"] for one in kept.json("generations", "docs")["generations"]}
    assert states == {1: "retired", 2: "retired", 3: "active"}

    assert kept("remove", "docs").out == "docs is removed.\n"
    assert kept.json("list") == {"sources": []}
    assert kept("search", "pool").out == "Nothing was found for: pool\n"


def test_a_generation_that_loses_much_is_held_until_a_person_decides(kept: Kept) -> None:
    write(kept.docs, **{f"page{number}": f"# Page {number}\n\nThe text of page {number}.\n" for number in range(10)})
    kept("add", "docs")
    for page in kept.docs.glob("page*"):
        page.unlink()
    run = kept("refresh", "docs", "--json")
    assert run.code == 4
    answer = json.loads(run.out)
    assert (answer["status"], answer["held"], answer["generation"]) == ("completed", True, 2)
    assert "10 of 13 documents would be lost. Generation 1 stays active" in run.err
    assert "kept activate docs" in run.err
    assert "kept discard docs" in run.err
    assert "generation 2 is held: 10 of 13 documents would be lost" in kept("show", "docs").out
    assert kept.json("show", "docs")["state"] == "held"

    assert kept.json("discard", "docs") == {"source": "docs", "generation": 2, "state": "abandoned"}
    assert kept("discard", "docs").code == 3
    assert kept("refresh", "docs").code == 4
    assert kept.json("activate", "docs") == {"source": "docs", "generation": 3, "state": "active"}
    assert kept.json("show", "docs")["documents"] == 3


# JSON ----------------------------------------------------------------------------------------------------------------


def test_every_answer_has_the_shape_that_scripts_rely_on(kept_somewhere: Kept) -> None:
    kept = kept_somewhere
    added = kept.json("add", "docs", "--version", "5")
    assert added.keys() >= {"source", "job", "status", "generation", "held", "partial", "counts", "seconds"}
    assert added["source"] == "docs@5"
    assert (added["status"], added["generation"], added["held"], added["partial"]) == ("completed", 1, False, False)
    assert added["counts"] == dict.fromkeys(COUNTS, 0) | {"new": 3}

    found = kept.json("search", "waits", "--limit", "1")
    assert found["query"] == "waits"
    [hit] = found["hits"]
    assert hit.keys() >= HIT
    assert hit["url"] == f"{file_url(kept.docs)}/pool.md#timeouts"
    assert (hit["source"], hit["version"], hit["headings"]) == ("docs", "5", ["Pools", "Timeouts"])
    assert hit["fetched_at"].endswith("+00:00")

    page = kept.json("read", hit["document"])
    assert (page["url"], page["title"], page["generation"]) == (f"{file_url(kept.docs)}/pool.md", "Pools", 1)

    generations = kept.json("generations", "docs@5")
    assert (generations["source"], generations["active"]) == ("docs@5", 1)
    shape = {"number", "state", "born", "documents", "counts", "partial", "job"}
    assert generations["generations"][0].keys() >= shape
    assert generations["generations"][0]["job"] == added["job"]

    write(kept.docs, more="# More\n\nAnd more.")
    kept("refresh", "docs@5")
    difference = kept.json("diff", "docs@5", "1", "2")
    assert difference == {
        "source": "docs@5",
        "from": 1,
        "to": 2,
        "added": [f"{file_url(kept.docs)}/more.md"],
        "removed": [],
        "changed": [],
        "moved": [],
    }
    [source] = kept.json("list")["sources"]
    learned = {"changes_every_seconds", "suggested_schedule", "validators", "sitemap", "webhook_given_up"}
    shown = kept.json("show", "docs@5")
    assert learned <= shown.keys()
    assert source == {name: value for name, value in shown.items() if name not in learned}
    assert (source["state"], source["documents"], source["sections"]) == ("ready", 4, 5)
    [version] = kept.json("history", "docs/pool.md")["versions"]
    assert (version["generation"], version["until"]) == (1, None)
    [one] = kept.json("changes", "docs@5", "--limit", "1")["changes"]
    assert " ".join(one) == "source generation at change document url from title edited reason"
    assert (one["source"], one["generation"], one["change"]) == ("docs@5", 2, "added")
    both = kept.json("diff", "docs@5", "1", "2", "docs/more.md")
    assert (both["change"], both["before"], both["after"]["markdown"]) == ("added", None, "# More\n\nAnd more.")
    assert [hunk["lines"] for hunk in both["hunks"]] == [["+# More", "+", "+And more."]]
    assert kept.json("rollback", "docs@5", "1") == {"source": "docs@5", "generation": 3, "rolled_back_to": 1}
    assert kept.json("remove", "docs@5") == {"source": "docs@5", "removed": True}


def test_common_options_stand_before_the_command_or_after_it(kept: Kept) -> None:
    database = f"sqlite:///{kept.folder}/other.db"
    kept("--database", database, "add", "docs")
    before, after = kept("--json", "--database", database, "list"), kept("list", "--json", "--database", database)
    assert before.out == after.out
    assert [source["name"] for source in json.loads(after.out)["sources"]] == ["docs"]
    assert kept("list").code == 3, "the database of the environment is another one"


def test_an_error_leaves_standard_output_empty_for_programs_too(kept: Kept) -> None:
    assert "no database" in kept("list", "--json").sentence
    kept("add", "docs")
    assert "no document" in kept("read", "nothing.md", "--json").sentence


# Sources -------------------------------------------------------------------------------------------------------------


def test_a_name_is_made_from_the_root_and_counted_on_when_another_root_has_it(kept: Kept) -> None:
    write(kept.folder / "other", pool=POOL)
    write(kept.folder / "other" / "docs", pool=POOL)
    assert kept.json("add", "docs")["source"] == "docs"
    assert kept.json("add", "other/docs")["source"] == "docs-2"
    assert kept.json("add", "./docs/")["source"] == "docs", "the same root again is the same source"
    refused = kept("add", "other", "--name", "docs")
    assert refused.code == 2
    assert refused.sentence.startswith("There is already a source named 'docs'. It keeps file://")
    assert {one["name"]: one["generation"] for one in kept.json("list")["sources"]} == {"docs": 2, "docs-2": 1}


def test_one_file_is_a_source_too(kept: Kept) -> None:
    assert kept.json("add", "docs/pool.md")["source"] == "pool"
    assert kept.json("list")["sources"][0]["documents"] == 1


def test_settings_that_are_given_again_are_changed_and_the_others_stay(kept: Kept) -> None:
    assert kept.json("add", "docs", "--exclude", "notes*", "--max-time", "1h30m")["counts"]["new"] == 2
    assert kept.json("add", "docs", "--include", "p*")["counts"]["skipped"] == 1
    settings = kept.json("show", "docs")["settings"]
    assert (settings["scope"]["include"], settings["scope"]["exclude"]) == (["p*"], ["notes*"])
    assert settings["limits"]["max_seconds"] == 5400
    assert "only p*; without notes*" in kept("show", "docs").out


def test_a_limit_makes_a_partial_generation(kept: Kept) -> None:
    run = kept("add", "docs", "--max-pages", "2", "--json")
    assert json.loads(run.out)["partial"] is True
    assert "It is partial: a limit was reached." in run.err
    assert kept.json("show", "docs")["documents"] == 2


def test_a_crawl_that_is_only_asked_for_is_run_by_the_next_refresh(kept: Kept) -> None:
    added = kept.json("add", "docs", "--no-wait", "--priority", "7")
    assert (added["status"], added["generation"]) == ("pending", None)
    assert kept("search", "pool").code == 0
    assert kept.json("show", "docs")["state"] == "pending"
    done = kept.json("refresh", "docs")
    assert (done["job"], done["status"], done["generation"]) == (added["job"], "completed", 1)


def test_a_source_whose_first_crawl_failed_says_what_to_do_next(kept: Kept) -> None:
    kept("add", "docs", "--no-wait")
    kept.docs.rename(kept.folder / "elsewhere")
    failed = kept("refresh", "docs")
    assert failed.code == 1
    for said in (failed.err, kept("list").out, kept("show", "docs").out):
        assert "kept refresh docs" in said
        assert "kept remove docs" in said
    (kept.folder / "elsewhere").rename(kept.docs)
    assert kept("refresh", "docs").code == 0
    assert "kept remove" not in kept("list").out + kept("show", "docs").out


def test_a_source_is_renamed(kept: Kept) -> None:
    kept("add", "docs")
    assert kept("add", "docs", "--name", "manual").code == 2
    assert "kept rename docs manual" in kept("add", "docs", "--name", "manual").err
    assert kept.json("rename", "docs", "manual@5") == {"source": "manual@5", "renamed_from": "docs"}
    assert kept.json("search", "pool")["hits"][0]["source"] == "manual"
    assert kept("show", "docs").code == 3
    assert kept("rename", "manual@5", "no/name").code == 2


def test_gc_says_what_keeps_generations_that_are_old_enough_to_go(kept: Kept) -> None:
    kept("add", "docs")
    for number in range(2):
        write(kept.docs, pool=POOL + f"\n{number} more words.\n")
        kept("refresh", "docs")
    old = kept("gc", "--dry-run", "--older-than", "0d")
    assert "The last 10 generations with changes stay, however old; --keep sets how many." in old.err
    told = kept("gc", "--dry-run", "--older-than", "0d", "--keep", "1")
    assert "stay" not in told.err
    assert "docs: 2 generations" in told.out


def test_a_full_refresh_reads_everything_and_finds_nothing_new(kept: Kept) -> None:
    kept("add", "docs")
    assert kept.json("refresh", "docs", "--full")["counts"]["unchanged"] == 3
    repaired = kept.json("refresh", "docs", "--failed-only")
    assert (repaired["status"], repaired["generation"]) == ("completed", None)
    assert repaired["counts"] == dict.fromkeys(COUNTS, 0)
    assert "nothing had failed" in kept("refresh", "docs", "--failed-only").err
    assert kept.json("list")["sources"][0]["generation"] == 2
    assert kept("refresh", "docs", "--full", "--failed-only").code == 2


# Wrong calls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["show", "dosc"], 3, "There is no source named 'dosc'. Did you mean 'docs'?"),
        (["refresh", "zebra"], 3, "There is no source named 'zebra'. 'kept list' shows what there is."),
        (["search", "pool", "--source", "dosc"], 3, "Did you mean 'docs'?"),
        (["remove", "docs@5"], 3, "There is no source named 'docs@5'."),
        (["add", "nowhere"], 3, "There is no file or folder "),
        (["add", "docs/pool.md/below"], 3, "There is no file or folder "),
        (["add", "loop"], 1, "loop cannot be read: "),
        (["add", ""], 2, "The root is empty."),
        (["add", "ftp://owner/repo"], 2, "ftp://owner/repo cannot be kept: "),
        (["add", "docs", "--name", "a b"], 2, "'a b' cannot be the name of a source"),
        (["add", "docs", "--max-time", "soon"], 2, "'soon' is not a length of time."),
        (["add", "docs", "--max-pages", "0"], 2, "'--max-pages'"),
        (["search", ""], 2, "The query is empty."),
        (["search", '"AND OR ( * NEAR" -', "--limit", "none"], 2, "'--limit'"),
        (["search", "pool", "--generation", "1"], 2, "name it with --source"),
        (["search", "pool", "--source", "docs", "--generation", "9"], 3, "docs has no generation 9 to show."),
        (["read", "docs/nothing.md"], 3, "There is no document docs/nothing.md."),
        (["read", "docs/pool.md", "--section", "nothing"], 3, "It has: pools, timeouts."),
        (["read", "docs/pool.md", "--generation", "9"], 3, "docs has no generation 9 to show."),
        (["history", "0"], 3, "There is no document 0."),
        (["diff", "docs", "1", "99999999999999999999"], 3, "docs has no generation 99999999999999999999 to show."),
        (["diff", "docs", "1"], 2, "Missing argument 'B'. See 'kept diff --help'."),
        (["rollback", "docs", "9"], 3, "docs has no generation 9 to go back to."),
        (["activate", "docs"], 3, "there is nothing to decide"),
        (["serch", "pool"], 2, "Did you mean 'search'"),
        (["list", "--nothing"], 2, "--nothing"),
        (["show", "d\udcffcs"], 3, "There is no source named 'd?cs'. Did you mean 'docs'?"),
        (["--database", "mysql://host/db", "list"], 2, "'mysql://host/db' names no database"),
        (["--database", "mysql://me:secret@host/db", "list"], 2, "'mysql://***@host/db' names no database"),
    ],
)
def test_a_wrong_call_is_answered_with_one_sentence(
    kept_docs: Kept, arguments: list[str], code: int, sentence: str
) -> None:
    run = kept_docs(*arguments)
    assert sentence in run.sentence
    assert run.code == code


@pytest.fixture(scope="module")
def kept_docs(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Return a kept folder, for calls that change nothing."""
    folder = tmp_path_factory.mktemp("kept")
    write(folder / "docs", pool=POOL, install=INSTALL, notes=NOTES)
    (folder / "loop").symlink_to("loop")
    kept = Kept(folder, f"sqlite:///{folder}/kept.db")
    kept("add", "docs")
    return kept


@pytest.mark.parametrize(
    "query", ['"AND OR ( * NEAR" -', "pool AND", "col:umn", "a* OR (", "'; --", '"', "\\", "%", "NOT pool", "-pool x"]
)
def test_no_query_is_a_syntax_error(kept_docs: Kept, query: str) -> None:
    run = kept_docs("search", "--", query)
    assert run.code in (0, 2)
    assert run.code == 0 or "query is empty" in run.sentence


def test_a_slip_at_add_leaves_nothing_behind(kept: Kept) -> None:
    kept("add", "docs")
    kept("add", "nowhere")
    assert len(kept.json("list")["sources"]) == 1


# Databases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["show", "docs"],
        ["search", "pool"],
        ["read", "x"],
        ["history", "x"],
        ["refresh", "x"],
        ["remove", "x"],
    ],
)
def test_a_database_that_is_not_there_is_not_made_by_reading(kept: Kept, arguments: list[str]) -> None:
    run = kept(*arguments)
    assert run.code == 3
    assert run.sentence == f"There is no database at {kept.folder}/kept.db yet. 'kept add ROOT' makes it."
    assert not (kept.folder / "kept.db").exists()


def write_text_file(path: Path) -> None:
    path.write_text("This is not a database. " * 100)


def somebody_elses(path: Path) -> None:
    apsw.Connection(str(path)).execute("CREATE TABLE theirs (x)")


def write_newer_schema(path: Path) -> None:
    database = apsw.Connection(str(path))
    database.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at TEXT)")
    database.execute("INSERT INTO migrations VALUES (9999, 'tomorrow', '')")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (write_text_file, "is not a sound database"),
        (somebody_elses, "not one of Kept's"),
        (write_newer_schema, "was written by a newer Kept"),
    ],
)
@pytest.mark.parametrize("arguments", [["list"], ["search", "pool"], ["add", "docs"]])
def test_a_file_that_is_no_database_of_ours_is_left_alone(
    kept: Kept, make: Callable[[Path], None], sentence: str, arguments: list[str]
) -> None:
    file = kept.folder / "kept.db"
    make(file)
    before = file.read_bytes()
    run = kept(*arguments)
    assert run.code == 1
    assert sentence in run.sentence
    assert file.read_bytes() == before


def test_a_server_that_does_not_answer_is_one_sentence(kept: Kept) -> None:
    run = kept("list", "--database", "postgresql://somebody:secret@127.0.0.1:1/nowhere")
    assert run.code == 1
    assert "does not answer" in run.sentence
    assert "secret" not in run.err


# Files that cannot be read -------------------------------------------------------------------------------------------


def obey_permissions() -> None:
    """Drop the two capabilities with which root reads everything, so that permissions apply."""
    if os.geteuid() == 0:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP


def test_a_folder_that_may_not_be_read_is_not_added(kept: Kept) -> None:
    kept.docs.chmod(0)
    run = kept("add", "docs", preexec_fn=obey_permissions)
    kept.docs.chmod(0o755)
    assert run.code == 1
    assert run.sentence == f"{kept.docs} cannot be read: Permission denied."


def test_a_folder_that_cannot_be_read_any_more_fails_and_loses_nothing(kept: Kept) -> None:
    kept("add", "docs")
    kept.docs.chmod(0)
    run = kept("refresh", "docs", "--json", preexec_fn=obey_permissions)
    kept.docs.chmod(0o755)
    assert run.code == 1
    assert "docs: the crawl failed: " in run.err
    assert "Permission denied" in json.loads(run.out)["error"]
    assert json.loads(run.out)["generation"] is None
    shown = kept.json("show", "docs")
    assert (shown["state"], shown["generation"], shown["documents"]) == ("failed", 1, 3)


def test_a_file_that_cannot_be_read_stays_as_it_was(kept: Kept) -> None:
    kept("add", "docs")
    write(kept.docs, pool="# Pools\n\nSomething else.\n")
    (kept.docs / "pool.md").chmod(0)
    run = kept("refresh", "docs", "--json", preexec_fn=obey_permissions)
    answer = json.loads(run.out)
    assert (run.code, answer["partial"], answer["counts"]["failed"]) == (0, True, 1)
    assert "keeps connections open" in kept("read", "docs/pool.md").out
    (kept.docs / "pool.md").chmod(0o644)
    assert kept.json("refresh", "docs", "--failed-only")["counts"]["changed"] == 1
    assert "Something else" in kept("read", "docs/pool.md").out


# Ends ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_crawl_that_was_stopped_goes_on_with_the_next_call(kept: Kept, sent: signal.Signals) -> None:
    many = {f"page{number}": f"# Page {number}\n\nThe text of page {number}.\n" for number in range(1500)}
    write(kept.docs, **many)
    with kept.start("add", "docs") as crawl:
        assert crawl.stderr
        assert "docs: reading" in crawl.stderr.readline()
        crawl.send_signal(sent)
        output = crawl.stderr.read()
    if sent is signal.SIGINT:
        assert output == "docs: stopped. 'kept refresh docs' goes on where it was.\n"
        assert crawl.returncode == 130
    done = kept.json("refresh", "docs")
    assert (done["status"], done["generation"], done["counts"]["new"]) == ("completed", 1, 1503)


def test_a_reader_that_goes_away_is_no_trouble(kept_docs: Kept) -> None:
    for arguments in (["search", "pool"], ["list", "--json"], ["--help"]):
        ours, theirs = os.pipe()
        os.close(ours)
        run = kept_docs(*arguments, stdout=theirs)
        os.close(theirs)
        assert run.err == ""


def test_a_bug_says_that_it_is_one_and_shows_where_only_if_asked(kept_docs: Kept) -> None:
    broken = (
        "from kept.cli.main import main\n"
        "from kept.service import sources\n"
        "sources.list_sources = lambda db: 1 / 0\n"
        "main()"
    )
    quiet, verbose = (
        subprocess.run(
            [sys.executable, "-c", broken, "list", *more],
            env=kept_docs.environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        for more in ([], ["--verbose"])
    )
    assert (quiet.returncode, quiet.stdout) == (1, "")
    assert quiet.stderr == "This is a bug in Kept: ZeroDivisionError: division by zero (--verbose shows where).\n"
    assert "Traceback" in verbose.stderr


# For people ----------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_bold_words_and_a_bar_and_a_pipe_does_not(kept: Kept) -> None:
    seen = kept.on_a_terminal("add", "docs")
    assert "━" in seen
    assert "100%" in seen
    assert "docs: generation 1 is active: 3 new" in seen
    assert "\x1b[1mwaits\x1b[0m" in kept.on_a_terminal("search", "waits")
    assert "\x1b[3" not in kept.on_a_terminal("list", NO_COLOR="1")
    assert "\x1b" not in kept("search", "waits").out
    page = kept.on_a_terminal("read", "docs/pool.md")
    assert "docs, generation 1; fetched just now" in page
    assert "It waits" in page


def test_what_was_crawled_cannot_command_the_terminal(kept: Kept) -> None:
    write(kept.docs, evil="# Evil \x1b]0;owned\x07 title\n\nwicked \x1b[2J\x9b31m \u202etext\n")
    kept("add", "docs")
    for arguments in (["search", "wicked"], ["read", "docs/evil.md"], ["history", "docs/evil.md"]):
        seen = kept.on_a_terminal(*arguments)
        assert not re.search("\x1b[^\\[]|\x1b\\[2J|\x07|\x9b|\u202e", seen), repr(seen)
        seen = kept.on_a_terminal(*arguments, "--json")
        assert not re.search("\x1b[^\\[]|\x1b\\[2J|\x07|\x9b|\u202e", seen), repr(seen)
    assert "\x9b31m \u202etext" in kept.json("read", "docs/evil.md")["markdown"], "the value is the page's"


def test_help_names_every_command_and_every_command_has_help(kept: Kept) -> None:
    output = kept("--help").out
    assert kept().out == output
    assert all(re.search(rf"^  {name} +[A-Z]", output, re.MULTILINE) for name in Commands.modules)
    for name in ("add", "search", "diff"):
        run = kept(name, "--help")
        assert run.code == 0
        assert f"\n  kept {name} " in run.out, "it teaches by example"
        assert "--json" in run.out
    assert re.fullmatch(r"kept \d+\.\d+\.\d+\n", kept("--version").out)


def test_config_says_what_is_in_force_and_where_it_came_from(kept: Kept) -> None:
    (kept.folder / "kept.toml").write_text("[crawl]\ngrace_days = 3\n")
    kept("config", "--trust")
    kept.environment |= {
        "KEPT_DATABASE": "postgresql://me:hidden@host/db?password=hidden",
        "KEPT_WORK__SILENT_SECONDS": "60",
    }
    settings = kept.json("config")
    assert settings["database"] == {"value": "postgresql://me:***@host/db?password=***", "from": "KEPT_DATABASE"}
    assert settings["crawl.grace_days"] == {"value": 3.0, "from": str(kept.folder / "kept.toml")}
    assert settings["work.silent_seconds"] == {"value": 60.0, "from": "KEPT_WORK__SILENT_SECONDS"}
    assert settings["crawl.grace_crawls"]["from"] == "default"
    assert "hidden" not in kept("config").out
    kept.environment["KEPT_WORK__SILENT_SECONDS"] = "often"
    assert "work.silent_seconds should be a number" in kept("config").sentence
    kept.environment["KEPT_WORK__SILENT_SECONDS"] = "9"
    assert kept("config").sentence == (
        "KEPT_WORK__SILENT_SECONDS: work.silent_seconds (9) should be at least twice work.heartbeat_seconds (10):"
        " workers would be taken for dead between two heartbeats."
    )
    kept.environment["KEPT_WORK__HEARTBEAT_SECONDS"] = "0"
    assert "work.heartbeat_seconds should be more than 0" in kept("config").sentence


# Speed ---------------------------------------------------------------------------------------------------------------


def test_a_search_loads_nothing_that_it_can_do_without(kept_docs: Kept) -> None:
    look = (
        "import sys\nfrom kept.cli.main import main\ntry:\n    main()\nexcept SystemExit:\n"
        "    print(*{name.partition('.')[0] for name in sys.modules} - {'kept'}, file=sys.stderr)\n"
        "    print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", look, "search", "pool", "--limit", "3"],
        env=kept_docs.environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert "Pools" in run.stdout
    heavy = {"rich", "pydantic", "psycopg", "httptools", "html_to_markdown", "selectolax", "markdown_it"}
    assert not heavy & set(run.stderr.split())
    assert not {"kept.crawl.engine", "kept.extract.reader", "kept.jobs.worker"} & set(run.stderr.split())


def test_a_cold_search_takes_at_most_twice_the_time_of_importing_what_it_stands_on(
    kept_docs: Kept, tmp_path: Path
) -> None:
    """Both are measured in CPU seconds, alternately, and the median of some rounds counts, because of noise."""
    environment = kept_docs.environment | {"PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    search = [sys.executable, "-m", "kept", "search", "pool"]
    imports = [sys.executable, "-c", "import typer, rich, apsw"]
    assert b"Pools" in subprocess.run(search, env=environment, capture_output=True, check=True).stdout
    subprocess.run(imports, env=environment, check=True)
    rounds = [_processor_seconds(search, environment) / _processor_seconds(imports, environment) for _ in range(15)]
    ratio = statistics.median(rounds)
    assert ratio <= 2, f"{ratio:.2f} times"


def _processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
