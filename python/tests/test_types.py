"""The stubs equal the native module, and the package passes strict type checks."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "arguments", [["mypy", "--strict", "-p", "iosched"], ["mypy.stubtest", "iosched._native"]], ids=["mypy", "stubtest"]
)
def test_types_and_stubs_are_correct(arguments, tmp_path):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
