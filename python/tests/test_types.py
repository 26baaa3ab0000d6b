"""The stubs are what is there, and strict."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "arguments", [["mypy", "--strict", "-p", "iosched"], ["mypy.stubtest", "iosched._native"]], ids=["mypy", "stubtest"]
)
def test_types_hold(arguments, tmp_path):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
