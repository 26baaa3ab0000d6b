import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "docs" / "examples"


@pytest.fixture(scope="session")
def samples() -> Path:
    return ROOT / "crates" / "trace" / "samples"


@pytest.fixture(scope="session")
def command() -> str:
    """The command iosched, built from the same sources."""
    named = os.environ.get("IOSCHED_COMMAND")
    found = (
        named
        or shutil.which("iosched")
        or next(
            (str(p) for p in (ROOT / "target" / kind / "iosched" for kind in ("release", "debug")) if p.exists()), None
        )
    )
    if found is None:
        assert "CI" not in os.environ, "the command iosched is needed"
        pytest.skip("the command iosched is not built here")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("iosched"), version
    return found
