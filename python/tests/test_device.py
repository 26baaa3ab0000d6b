"""Real disks: the same results as the command, and errors for wrong arguments."""

import json
import subprocess

import pytest

import iosched


def document(command, *words):
    done = subprocess.run([command, *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_doctor_returns_the_document_of_the_command(command):
    printed = document(command, "doctor", "--json")
    found = iosched.doctor()
    # The priorities of processes can change between the two calls.
    assert found.keys() == printed.keys()
    assert found["disks"] == printed["disks"]
    assert found["schema"] == printed["schema"]


def test_doctor_refuses_unknown_disks_and_files_without_rates(tmp_path):
    with pytest.raises(iosched.UsageError) as error:
        iosched.doctor("no-such-disk")
    assert error.value.argument == "disk"
    assert "no-such-disk" in str(error.value)
    wrong = tmp_path / "rates"
    wrong.write_text("not rates\n")
    with pytest.raises(iosched.UsageError, match="iostat -x or sar -d"):
        iosched.doctor(rates=wrong)
    with pytest.raises(iosched.MissingFileError) as error:
        iosched.doctor(rates=tmp_path / "absent")
    assert error.value.argument == "rates"


def test_validation_equals_that_of_the_command(command, tmp_path):
    options = ["--runs", "2", "--run-for", "0.02", "--scheduler", "none,bfq", "--seed", "7"]
    records = tmp_path / "v.jsonl"
    printed = document(command, "validate", "nvme", "-p", "sata-ssd", "--json", "--records", str(records), *options)
    found = iosched.validate("nvme", "sata-ssd", scheduler=["none", "bfq"], runs=2, run_for=0.02, seed=7)
    assert found.to_dict() == printed
    assert found.answer == printed["decision"]
    assert found.warnings == []
    runs = [line for line in found.records().decode().splitlines() if '"command"' not in line]
    assert runs == [line for line in records.read_text().splitlines() if '"command"' not in line]
    # The validated profile contains its trust.
    assert f"trust_percent = {printed['battery']['validated']['trust_percent']}" in found.device.to_toml()


def test_validation_refuses_wrong_arguments():
    for arguments, argument in [
        ({"runs": 1}, "runs"),
        ({"run_for": 0.0}, "run_for"),
        ({"file_size": 0}, "file_size"),
        ({"scheduler": "noop"}, None),
        ({"destroy_data": "/dev/sda"}, None),
    ]:
        with pytest.raises(iosched.UsageError) as error:
            iosched.validate("nvme", "sata-ssd", **arguments)
        assert error.value.argument == argument, arguments
    with pytest.raises(iosched.IoschedError) as error:
        iosched.validate("/no/such/place", "sata-ssd")
    assert error.value.argument == "target"


def test_advice_on_a_device_refuses_wrong_arguments(tmp_path):
    with pytest.raises(iosched.IoschedError) as error:
        iosched.advise(None, on="/no/such/place")
    assert error.value.argument == "on"
    with pytest.raises(iosched.UsageError, match="fairness"):
        iosched.advise(None, goal="fairness", on=tmp_path)
    with pytest.raises(iosched.UsageError, match="present"):
        iosched.advise(None, present="bfq", on=tmp_path)
    with pytest.raises(iosched.UsageError) as error:
        iosched.advise(None, on=tmp_path, confirm=0)
    assert error.value.argument == "confirm"


def test_advice_on_a_model_is_a_search():
    found = iosched.advise(None, "sata-7200", scheduler=["mq-deadline", "none"], budget=40)
    assert isinstance(found, iosched.Search)
    assert str(found.baseline) == "mq-deadline"
