"""Executes the notebooks of this folder, in a copy of it: fails if a cell raises, and says how long each took.

    python docs/notebooks/build.py            # needs nbclient, ipykernel, and what the notebooks say they need
    python docs/notebooks/build.py --write    # also stores their output, the same bytes each time

Cells that now say something else than is stored are named, and `--same` makes that a failure. It may come of another
version of pandas or Optuna; the text around them may then be wrong.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets import default

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What the notebooks read, where they see it from.
READ = ["docs/examples", "crates/trace/samples"]
CELL_SECONDS_MAX = 300
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class Kernel(AsyncKernelManager):
    """This Python, whatever kernels the machine has."""

    @default("kernel_spec_manager")
    def _this_python(self):
        return KernelSpecManager(kernel_dirs=[])


def executed(source, place):
    """The notebook with its output, executed where nothing that it writes stays."""
    notebook = nbformat.read(source, as_version=4)
    NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=Kernel,
        resources={"metadata": {"path": str(place / "docs/notebooks")}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        timeout=CELL_SECONDS_MAX,
        record_timing=False,
    ).execute()
    return notebook


def normalised(notebook):
    """What does not change when it is executed again."""
    notebook.metadata = METADATA
    notebook.nbformat_minor = 5
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        outputs = []
        for output in cell.outputs:
            # Ray and Optuna tell that they would rather have widgets, which no notebook here needs.
            if output.get("name") == "stderr" and "ipywidgets" in output.text:
                continue
            if output.output_type == "stream" and outputs and outputs[-1].get("name") == output.name:
                outputs[-1].text += output.text
                continue
            if "metadata" in output:
                output.metadata = {}
            outputs.append(output)
        cell.outputs = outputs
    return notebook


def unfit(notebook, place):
    """What must not be stored."""
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            shown = json.dumps(output)
            if output.get("name") == "stderr":
                yield f"cell {number} warns: {output.text.strip()}"
            paths = [own for own in (str(ROOT), str(place), sys.prefix, str(Path.home()) + "/") if own in shown]
            if paths:
                yield f"cell {number} shows a path of this machine: {paths[0]}"
            if re.search(r" at 0x[0-9a-f]{6,}", shown):
                yield f"cell {number} shows an address"


def told(cell):
    """What a cell says in text: pictures differ between versions of matplotlib."""
    texts = (output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", []))
    return "".join(texts)


def changed(stored, notebook):
    """Cells that say something else than is stored."""
    pairs = zip(stored.cells, notebook.cells, strict=True)
    return [number for number, (before, now) in enumerate(pairs) if told(before) != told(now)]


def copy(place):
    """A root of the repository that has only what notebooks read."""
    for read in READ:
        (place / read).parent.mkdir(parents=True, exist_ok=True)
        (place / read).symlink_to(ROOT / read)
    (place / "docs/notebooks").mkdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, help="only these")
    parser.add_argument("--write", action="store_true", help="store the output")
    parser.add_argument("--same", action="store_true", help="fail if a cell says something else than is stored")
    given = parser.parse_args()
    # The debugger of the kernel would warn of frozen modules.
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    failed = False
    for source in given.notebooks or sorted(HERE.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            copy(place)
            began = time.monotonic()
            try:
                notebook = normalised(executed(source, place))
            except CellExecutionError as error:
                failed = True
                print(f"{source.name}: FAILED\n{COLOURS.sub('', str(error))}", flush=True)
                continue
            seconds = time.monotonic() - began
            problems = list(unfit(notebook, place)) if given.write else []
        differ = changed(nbformat.read(source, as_version=4), notebook)
        note = f"; says something else than is stored in cells {', '.join(map(str, differ))}" if differ else ""
        print(f"{source.name}: {seconds:.1f} s{note}", *problems, sep="\n  ", flush=True)
        failed |= bool(problems) or (given.same and bool(differ))
        if given.write and not problems:
            text = nbformat.writes(notebook).rstrip("\n") + "\n"
            source.write_text(text, encoding="utf-8")
            print(f"  stored, {len(text.encode()) / 1e3:.0f} KB", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
