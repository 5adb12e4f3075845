"""The book is made, its search finds what newcomers look for, and what it quotes is what iolab says."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/docs"
IOLAB = ROOT / "target/debug/iolab"


def build(output, *more):
    return subprocess.run([HERE / "build", "--iolab", IOLAB, "--output", output, *more], capture_output=True, text=True)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    output = tmp_path_factory.mktemp("book") / "html"
    made = build(output)
    assert made.returncode == 0, made.stderr
    return output


def test_the_book_has_every_page_and_every_command(book):
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 50
    missing = [page for page in pages if not (book / page).with_suffix(".html").exists()]
    assert missing == []
    commands = (book / "reference/commands/index.html").read_text()
    for command in ["iolab record", "iolab fs up", "iolab bench report"]:
        assert command in commands
        assert (book / f"reference/commands/{command.replace(' ', '-')}.html").exists()
    assert "write-back" in (book / "reference/strategies.html").read_text()


def test_the_book_loads_nothing_from_elsewhere(book):
    loading = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"(?:https?:)?//[^\"]*\"")
    pages = list(book.rglob("*.html"))
    assert len(pages) > 100
    found = {str(page.relative_to(book)): loading.findall(page.read_text()) for page in pages}
    assert {page: links for page, links in found.items() if links} == {}


def test_the_search_finds_what_newcomers_look_for(book):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "the search runs in a browser: install chromium"
    tasks = tomllib.loads((HERE / "tasks.toml").read_text())["task"]
    assert len(tasks) >= 15
    words = [query for task in tasks for query in task["words"]]
    run = subprocess.run(["node", HERE / "search.mjs", book, chromium], input=json.dumps(words),
                         capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    missed = {query: [Path(page).stem for page in found[query][:3]] for task in tasks for query in task["words"]
              if not any(page.endswith(f"/{task['page']}.html") for page in found[query][:3])}
    assert missed == {}


def test_messages_that_troubleshooting_names_are_messages_of_iolab():
    page = (ROOT / "docs/start/troubleshooting.md").read_text()
    named = re.findall(r"^\*\*`([^`]+)`\*\*", page, re.MULTILINE)
    assert len(named) >= 8
    sources = [path for folder in ("pure", "real", "tools") for path in (ROOT / folder).rglob("src/**/*.rs")]
    # A text that goes over the end of a line, as rustfmt leaves it.
    text = re.sub(r"\\\n\s*", "", "\n".join(path.read_text() for path in sources))
    assert [message for message in named if message.removeprefix("warning: ") not in text] == []


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    copy = tmp_path / "clone"
    for name in ["docs", "benchmarks", "tools/docs"]:
        shutil.copytree(ROOT / name, copy / name)
    for page in [*ROOT.glob("*.md"), ROOT / "Cargo.toml"]:
        shutil.copy(page, copy)
    (copy / "build").mkdir()
    # The tools are there already.
    (copy / "build/docs").symlink_to(ROOT / "build/docs", target_is_directory=True)
    (copy / "docs/howto/sweep.md").write_text("# Sweep\n\n[away](nowhere.md) and [`code`](../../benchmarks)\n")
    made = subprocess.run([copy / "tools/docs/build", "--iolab", IOLAB, "--output", tmp_path / "html"],
                          capture_output=True, text=True)
    assert made.returncode == 1
    assert "docs/howto/sweep.md: nowhere.md" in made.stderr and "hint:" in made.stderr
    assert not (tmp_path / "html").exists()


def test_a_directory_of_somebody_else_is_not_replaced(tmp_path):
    (tmp_path / "letter").write_text("dear")
    made = build(tmp_path)
    assert made.returncode == 1 and "holds something else" in made.stderr
    assert (tmp_path / "letter").read_text() == "dear"
