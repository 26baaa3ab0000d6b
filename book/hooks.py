"""What mkdocs leaves to the book: pages at the root of the repository, and links out of docs/.

A link to a file of the repository that is no page becomes its path as text, or a link into the repository if mkdocs.yml has a repo_url.
A link to nothing is a warning, which --strict makes an error.
"""

import logging
import os
import posixpath
import re

from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.book")

# Pages that stand at the root, and what they are called in the book.
AT_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
# Where else a link to a page of the root may lead.
INSTEAD = {"README.md": "index.md"}

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
BLOCK = re.compile(r"(^```.*?^```)", re.S | re.M)


def root_of(config):
    return os.path.dirname(config.config_file_path)


def on_files(files, config):
    for source, page in AT_ROOT.items():
        path = os.path.join(root_of(config), source)
        with open(path, encoding="utf-8") as text:
            files.append(File.generated(config, page, content=text.read()))
    return files


def on_page_markdown(markdown, page, config, files):
    own = page.file.src_uri
    sources = {page_uri: source for source, page_uri in AT_ROOT.items()}
    # From the root of the repository.
    here = sources.get(own) or posixpath.join("docs", own)

    def link(found):
        image, label, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return found.group(0)
        there = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
        if there in AT_ROOT or there in INSTEAD:
            there = "docs/" + (AT_ROOT.get(there) or INSTEAD[there])
        inside = there.removeprefix("docs/")
        if there.startswith("docs/") and files.get_file_from_path(inside):
            relative = posixpath.relpath(inside, posixpath.dirname(own) or ".")
            return f"{image}[{label}]({relative}{hash_}{anchor})"
        if not os.path.exists(os.path.join(root_of(config), there)):
            log.warning("%s: there is no %s", here, target)
            return found.group(0)
        if config.repo_url:
            return f"[{label}]({config.repo_url.rstrip('/')}/blob/main/{there})"
        return label if there in label else f"{label} (`{there}`)"

    # What stands in a block is no link.
    parts = BLOCK.split(markdown)
    return "".join(part if number % 2 else LINK.sub(link, part) for number, part in enumerate(parts))
