"""What `make docs` does to the pages on their way into the site."""

import re
from pathlib import Path

from mkdocs.structure.files import File

#: Links that leave the folder of the pages: in the site they are names of files in the checkout.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")

#: The search finds operators first, then their dialects; last the pages for those who change roiops.
_BOOST = {
    "reference/roi.md": 4,
    "dialects.md": 2,
    "gpu_kernels.md": 0.3,
    "design.md": 0.3,
    "mxnet_unittests.md": 0.3,
    "model_zoo.md": 0.3,
    "benchmarks.md": 0.5,
}


def on_files(files, config):
    """The page of the detectors lies beside them; in the site it is a page like the others."""
    text = (Path(config.config_file_path).parent / "examples" / "rcnn" / "README.md").read_text("utf-8")
    files.append(File.generated(config, "detectors.md", content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Weigh the page in the search; links to the rest of the checkout become the names of the files."""
    page.meta["search"] = {"boost": _BOOST.get(page.file.src_uri, 1)}
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return _OUTSIDE.sub(lambda m: m[1] if m[1].strip("`") == m[2] else f"{m[1]} (`{m[2]}`)", markdown)
