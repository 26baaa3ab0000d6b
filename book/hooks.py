"""Additions to mkdocs: pages at the root of the repository, the page of commands, and links out of docs/.

The page of commands holds the help of every command. It needs a built command: target/debug/iosched,
target/release/iosched, one on PATH, or the one that IOSCHED_COMMAND names.

A link to a file of the repository that is not a page becomes the file's path as text. If mkdocs.yml has a repo_url, it
becomes a link into the repository. A link to a missing file is a warning, and an error with --strict.
"""

import logging
import os
import posixpath
import re
import shutil
import subprocess

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.book")

# Pages at the root of the repository, and their names in the book.
AT_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
# Pages of the book that replace a file of the repository in links.
INSTEAD = {"README.md": "index.md"}

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
BLOCK = re.compile(r"(^```.*?^```)", re.S | re.M)


def root_of(config):
    return os.path.dirname(config.config_file_path)


COMMANDS = "commands.md"


def command_of(root):
    """The path of the command whose help the book shows."""
    built = [os.path.join(root, "target", profile, "iosched") for profile in ("debug", "release")]
    named = os.environ.get("IOSCHED_COMMAND")
    found = named or next((path for path in built if os.path.exists(path)), None) or shutil.which("iosched")
    if not found:
        raise PluginError("the page of commands needs the command: run cargo build, or set IOSCHED_COMMAND to its path")
    return found


def subcommands(help_text):
    """The names in the list of commands of a help text. A continued description is indented further."""
    listed = help_text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    names = re.findall(r"^  (\S+)", listed, re.M)
    return [name for name in names if name != "help"]


def commands_page(command):
    """The help of every command as a page of Markdown."""
    parts = ["# Commands\n\nThis page shows the output of `iosched COMMAND --help` for every command.\n"]

    def add(words):
        shown = subprocess.run([command, *words, "--help"], capture_output=True, text=True, check=True).stdout
        lines = [line.rstrip() for line in shown.rstrip().splitlines()]
        parts.append("\n".join(["", f"## {' '.join(['iosched', *words])}", "", "```text", *lines, "```", ""]))
        for name in subcommands("\n".join(lines)):
            add([*words, name])

    add([])
    return "".join(parts)


def on_files(files, config):
    page = commands_page(command_of(root_of(config)))
    files.append(File.generated(config, COMMANDS, content=page))
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

    # Text in a block of code is never a link.
    parts = BLOCK.split(markdown)
    return "".join(part if number % 2 else LINK.sub(link, part) for number, part in enumerate(parts))
