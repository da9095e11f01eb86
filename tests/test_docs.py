"""Every code block of README.md and docs/ runs as it stands, page by page, and links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if path.exists()
]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path, language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(page.read_text()) if found == language]


def ids(pages):
    return [str(page.relative_to(ROOT)) for page in pages]


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=ids(WITH_PYTHON))
def test_python_blocks_run(page, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def makefile() -> dict[str, str]:
    """The variables of the Makefile, with one another put in."""
    values = dict(re.findall(r"^(\w+) [:?]= (.*)$", (ROOT / "Makefile").read_text(), re.M))
    for name in values:
        while "$(" in values[name]:
            values[name] = re.sub(r"\$\((\w+)\)", lambda m: values[m[1]], values[name])
    return values


def test_readme_says_how_the_command_is_reached_before_it_uses_it():
    environment = makefile()["BIN"]
    for page in ("README.md", "docs/archived_models.md"):
        text = (ROOT / page).read_text()
        first = min(m.start() for m in re.finditer(r"^roiops ", text, re.M))
        assert f". {environment}/activate" in text[:first], page


def test_the_command_that_make_demo_proposes_runs(tmp_path):
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)[1]
    proposed = re.search(r"echo \"  \$\(BIN\)/roiops (.*)\"$", recipe.strip().splitlines()[-1])[1]
    proposed = proposed.replace("$(ARCHIVED)", str(ROOT / makefile()["ARCHIVED"]))
    command = [sys.executable, "-m", "roiops", *proposed.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_contrib_ROIAlign" in done.stdout


def test_no_page_or_message_installs_roiops_from_an_index():
    """There is no release: what can be installed is a checkout or a wheel."""
    sources = [*PAGES, ROOT / "Makefile", *(ROOT / "roiops").rglob("*.py"), *(ROOT / "examples").rglob("*.*")]
    wrong = [p for p in sources if p.suffix in (".md", ".py", "") and re.search(r"roiops\[\w", p.read_text())]
    assert not wrong


def test_messages_of_the_troubleshooting_page_are_those_of_the_source():
    paths = [ROOT / "Makefile", *sorted((ROOT / "roiops").rglob("*.py"))]
    # A message may be a literal in several parts, on lines of their own.
    source = re.sub(r"[\"']\s*\n\s*f?[\"']", "", "\n".join(path.read_text() for path in paths))
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "docs/troubleshooting.md").read_text(), re.M)
    messages = [each for row in rows for each in re.findall(r"`([^`]+ [^`]+)`", row)]
    assert len(messages) > 20
    unknown = []
    for message in messages:
        # What stands for something else: X, Y, N, what is in quotes or brackets, dtypes, an input's name.
        parts = re.split(r"\.\.\.|\b[XYN]\b|'.*?'|[(\[].*?[)\]]|\d+|float\d+|rois|[:;]|\bgpu\b", message)
        if max((part.strip() for part in parts), key=len) not in source:
            unknown.append(message)
    assert unknown == ["roiops: command not found"]  # the shell's


def anchors(page: Path) -> set[str]:
    text = BLOCK.sub("", page.read_text())
    found = re.findall(r"^#+ +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_links_lead_somewhere(page):
    broken = []
    for target in LINK.findall(BLOCK.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other)):
            broken.append(target)
    assert not broken, f"{page.name}: {broken}"


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_code_fits_its_column(page):
    columns = 98 if page.parent == ROOT else 110  # as hosted repositories show a README; docs/site.css
    wide = [
        line
        for _, body in BLOCK.findall(page.read_text())
        for line in body.splitlines()
        if len(line) > columns
    ]
    assert not wide, f"wider than {columns} columns"
