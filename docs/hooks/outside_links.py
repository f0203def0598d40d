"""Hook of mkdocs: files outside docs/ that a page links to become pages of the site.

On a forge `../examples/payload.py` leads to the file. On the site the same link leads to
a page that shows it. A link to nothing stays as it is, and fails the build.
"""

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"\]\(((?:\.\./)+)([\w./-]+\.(py|toml|xml|ipynb|cpp))\)")
"""The way up, the file below the root of the repository, its language."""
SHOWN = "sources"
"""Folder of such pages."""
LATER = "---\nsearch:\n  boost: 0.1\n---\n"
"""Their place among what is searched for: after the guides."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file of the repository that a page links to."""
    root = Path(config.config_file_path).parent
    found = {
        (name, language)
        for page in files.documentation_pages()
        for up, name, language in LINK.findall(page.content_string)
        if _leaves_docs(page, up) and (root / name).is_file()
    }
    for name, language in sorted(found):
        code = (root / name).read_text("utf-8")
        shown = f"````{language}\n{code}````\n"
        if language == "ipynb":
            shown = show_notebook(code)
        text = f"{LATER}# {PurePosixPath(name).name}\n\n`{name}`\n\n{shown}"
        files.append(File.generated(config, f"{SHOWN}/{name}.md", content=text))
    return files


def show_notebook(text: str) -> str:
    """Return a notebook's cells as Markdown."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        is_code = cell["cell_type"] == "code"
        # The page has a heading of its own.
        parts.append(f"```python\n{source}\n```" if is_code else f"#{source}")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Let links lead to those pages."""

    def lead(link: re.Match[str]) -> str:
        shown = f"{SHOWN}/{link[2]}.md"
        if not _leaves_docs(page.file, link[1]) or shown not in files.src_uris:
            return link[0]
        return f"]({link[1].removeprefix('../')}{shown})"

    return LINK.sub(lead, markdown)


def _leaves_docs(page: File, up: str) -> bool:
    """Tell whether this many steps up lead from a page to the root of the repository."""
    return up.count("../") == page.src_uri.count("/") + 1
