"""Stores of datasets and workloads: directories of this machine, and everything that fsspec opens."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from .._native import SweepUnit, Trace, read_trace
from .._whole import write_whole

FAILED = "failed.json"
"""Units that failed."""
FILES_AT_ONCE = 64
"""Number of files that are downloaded from an object store at the same time."""


def is_url(place: str) -> bool:
    return "://" in place


def needed(module: str, told: str) -> Any:
    """Imports an optional library."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(told) from error


def _fsspec() -> Any:
    return needed("fsspec", "URLs need fsspec: pip install fsspec, and the package of fsspec for this kind of URL")


class Store:
    """The files of one dataset. Each file is written completely or not at all."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.fspath(root)
        self._files: Any = None
        if is_url(self.root):
            self._files, self._base = _fsspec().core.url_to_fs(self.root)
            self._base = self._base.rstrip("/")

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.root,)

    def put(self, place: str, content: bytes) -> None:
        if self._files is not None:
            target = f"{self._base}/{place}"
            # An object store shows only complete objects. A file system needs the directory, and a
            # temporary file that gets its name when it is complete.
            if _has_directories(self._files):
                self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
                beside = f"{target.rpartition('/')[0]}/.{os.getpid()}-{target.rpartition('/')[2]}"
                self._files.pipe_file(beside, content)
                self._files.mv(beside, target)
            else:
                self._files.pipe_file(target, content)
            return
        path = Path(self.root, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)

    def files(self, table: str) -> list[str]:
        """Returns the paths of a table's files, in order."""
        if self._files is not None:
            self._files.invalidate_cache()
            found = self._files.glob(f"{self._base}/{table}/device=*/*.parquet")
            return sorted(path[len(self._base) + 1 :] for path in found)
        return sorted(
            path.relative_to(self.root).as_posix() for path in Path(self.root, table).glob("device=*/*.parquet")
        )

    def done(self) -> set[str]:
        """Returns the ids of finished units."""
        return {place.rpartition("/")[2].removesuffix(".parquet") for place in self.files("runs")}

    def table(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Returns the files of a table with their content."""
        places = self.files(name)
        if self._files is None:
            for place in places:
                yield place, Path(self.root, place).read_bytes()
            return
        for first in range(0, len(places), FILES_AT_ONCE):
            some = places[first : first + FILES_AT_ONCE]
            content = self._files.cat([f"{self._base}/{place}" for place in some])
            for place in some:
                yield place, content[f"{self._base}/{place}"]

    def put_unit(self, unit: SweepUnit, runs: bytes, verdicts: bytes) -> None:
        """Writes the verdicts first. A unit is finished when its runs are in the dataset."""
        of_runs, of_verdicts = unit.paths
        self.put(of_verdicts, verdicts)
        self.put(of_runs, runs)

    def put_failed(self, failed: Iterable[dict[str, str | None]]) -> None:
        self.put(FAILED, (json.dumps(list(failed), indent=2, ensure_ascii=False) + "\n").encode())


def _has_directories(files: Any) -> bool:
    protocol = files.protocol if isinstance(files.protocol, str) else files.protocol[0]
    return protocol in ("file", "local", "sftp", "ssh", "smb", "hdfs", "memory")


def remote(pattern: str) -> list[tuple[str, str, int]]:
    """Returns the objects that match a pattern of URLs, each with its size and an identifier of its
    content. The identifier comes from the store (ETag, version, time of change), so nothing is
    downloaded.
    """
    files, path = _fsspec().core.url_to_fs(pattern)
    found = sorted(files.glob(path)) if any(sign in path for sign in "*?[") else [path]
    listed = []
    for one in found:
        info = files.info(one)
        if info["type"] == "directory":
            continue
        known_by = {
            name: str(info[name])
            for name in ("ETag", "etag", "md5Hash", "contentHash", "mtime", "size")
            if name in info
        }
        # A checksum identifies the content. The time would differ for a copy of the file.
        if any(name in known_by for name in ("ETag", "etag", "md5Hash", "contentHash")):
            known_by.pop("mtime", None)
        listed.append((files.unstrip_protocol(one), json.dumps(known_by, sort_keys=True), int(info["size"] or 0)))
    return listed


def reader(unit: SweepUnit) -> Callable[[], IO[bytes] | Trace] | None:
    """Returns the function that opens the workload of a unit, or None if the native part opens the
    file itself.
    """
    place = unit.place
    if place.endswith(".parquet"):
        return lambda: read_trace(place)
    if not is_url(place):
        return None
    return lambda: _fsspec().open(place, "rb").open()
