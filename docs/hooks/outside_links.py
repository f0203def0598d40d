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

LINK = re.compile(r"\]\(\.\./([\w./-]+\.(py|toml|xml|ipynb|cpp))\)")
SHOWN = "sources"
"""Folder of such pages."""
LATER = "---\nsearch:\n  boost: 0.1\n---\n"
"""Their place among what is searched for: after the guides."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file of the repository that a page links to."""
    root = Path(config.config_file_path).parent
    found = {
        target
        for page in files.documentation_pages()
        for target in LINK.findall(page.content_string)
        if (root / target[0]).is_file()
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


def on_page_markdown(markdown: str, files: Files, **_: Any) -> str:
    """Let links lead to those pages."""

    def lead(link: re.Match[str]) -> str:
        page = f"{SHOWN}/{link[1]}.md"
        return f"]({page})" if page in files.src_uris else link[0]

    return LINK.sub(lead, markdown)
