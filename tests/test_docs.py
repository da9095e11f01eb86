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
