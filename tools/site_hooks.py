"""What `make docs` does to the pages on their way into the site."""

import re

#: Links that leave the folder of the pages: in the site they are names of files in the checkout.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")


def on_page_markdown(markdown, page, config, files):
    """Turn links to the rest of the checkout, which the site does not have, into the names of the files."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return _OUTSIDE.sub(lambda m: m[1] if m[1].strip("`") == m[2] else f"{m[1]} (`{m[2]}`)", markdown)
