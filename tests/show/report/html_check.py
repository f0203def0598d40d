"""Is it HTML that needs nothing else? What a strict reader would complain about."""

import re
from html.parser import HTMLParser

VOID = {"br", "link", "meta"}


class Strict(HTMLParser):
    """Keeps the open elements, all ids, and what leads elsewhere."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.complaints: list[str] = []

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        if len(given) < len(attrs):
            self.complaints.append(f"<{tag}> has an attribute twice")
        if "id" in given:
            self.ids.append(given["id"])
        if "style" in given or any(name.startswith("on") for name in given):
            self.complaints.append(f"<{tag}> has a style or a script of its own")
        self.links += [given[n] for n in ("href", "src") if n in given]
        for value in given.values():
            self.links += re.findall(r"url\((#[^)]+)\)", value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.complaints.append(f"</{tag}> closes nothing")


def complaints(page: str) -> list[str]:
    """List what is wrong with a page."""
    reader = Strict()
    reader.feed(page)
    reader.close()
    found = reader.complaints + [f"<{tag}> stays open" for tag in reader.open]
    found += [f"id {i} twice" for i in set(reader.ids) if reader.ids.count(i) > 1]
    for link in reader.links:
        if link.startswith("#") and link[1:] not in reader.ids:
            found.append(f"{link} leads nowhere")
        if re.match(r"\w+:", link) and not link.startswith("data:image/svg+xml,"):
            found.append(f"{link} needs the network")
    named = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    if re.search(r"@import|https?://", re.sub(r'"data:image/svg[^"]*"', "", named)):
        found.append("something comes from elsewhere")
    return found
