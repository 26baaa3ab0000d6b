"""Searches: the same results as the command, and searches with Optuna."""

import json
import pickle
import subprocess

import optuna
import pytest

import iosched

TASKS = {
    "tasks": [
        {"pid": 1, "name": "reader", "pattern": "random", "range": [0, 1 << 30], "total": 100, "think_ns": 1_000_000},
        {"pid": 2, "name": "writer", "op": "write", "sync": False, "nr_sectors": 512, "iodepth": 8, "total": 200},
    ]
}
optuna.logging.set_verbosity(optuna.logging.WARNING)


def runs(text):
    return [json.loads(line) for line in text.splitlines()][1:]


def test_search_equals_that_of_the_command(command, tmp_path):
    records = tmp_path / "r.jsonl"
    options = ["--scheduler", "cfq", "--scheduler", "deadline", "--goal", "p99(sync)", "--fix", "quantum=16"]
    options += ["--subject-to", "throughput >= 90%", "--vary", "slice_idle,read_expire", "--budget", "60"]
    subprocess.run(
        [command, "tune", *options, "--records", str(records)],
        check=True,
        capture_output=True,
    )
    found = iosched.tune(
        None,
        None,
        ["cfq", "deadline"],
        iosched.Goal("p99(sync)"),
        subject_to="throughput >= 90%",
        vary=["slice_idle", "read_expire"],
        fix={"quantum": 16},
        budget=60,
    )
    assert runs(found.records().decode()) == runs(records.read_text())
    assert str(found.baseline) == "cfq:quantum=16"
    standings = found.standings.to_dict()
    assert standings["scheduler"][0] == "cfq:quantum=16"
    assert standings["verdict"][0] is None
    trials = found.trials.to_dict()
    assert set(trials["phase"]) == {"search", "confirm"}
    assert set(trials["scheduler"]) >= {"cfq:quantum=16", "deadline"}


def test_search_results_are_shown_and_saved(tmp_path, command):
    found = iosched.tune(TASKS, "sata-7200", ["noop", "cfq"], "mean(reader)", budget=60, vary="slice_idle")
    assert found.finding in ("better", "nothing_better", "cannot_tell")
    assert str(found.recommended) in found.answer
    # Current kernels have neither noop nor CFQ.
    assert found.commands[0].startswith("iosched serve ")
    assert "<html" in found._repr_html_() or "&lt;html" in found._repr_html_() or "<iframe" in found._repr_html_()
    found.save(tmp_path / "s.jsonl")
    found.report(tmp_path / "python.html")
    subprocess.run([command, "report", str(tmp_path / "s.jsonl"), "-o", str(tmp_path / "command.html")], check=True)
    assert (tmp_path / "python.html").read_text() == (tmp_path / "command.html").read_text()


def test_advice_compares_with_the_present_setting():
    default = iosched.advise(TASKS, "sata-7200", "p99(reader)", budget=60, vary=["slice_idle", "low_latency"])
    assert str(default.baseline) == "mq-deadline"
    assert default.commands[0].startswith("echo ")
    present = iosched.advise(TASKS, "nvme", budget=40, scheduler="none", also="nr_requests", present="bfq")
    assert str(present.baseline) == "bfq"


def test_goals_are_comparable_and_evaluate_runs():
    goal = iosched.Goal("p99( sync )")
    assert goal == iosched.Goal("p99(sync)")
    assert hash(goal) == hash(iosched.Goal("p99(sync)"))
    assert pickle.loads(pickle.dumps(goal)) == goal
    run = iosched.simulate(TASKS, "sata-7200", "cfq")
    assert goal.of(run) == pytest.approx(run.metrics["sync_p99"])
    assert goal.direction(run) == "minimize"
    assert iosched.Goal("throughput").direction(run) == "maximize"
    assert iosched.Goal("iops(reader)").of(run) > 0
    with pytest.raises(iosched.UsageError, match="reader"):
        iosched.Goal("mean(nobody)").of(run)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"goal": "p99(sync"}, "goal "),
        ({"goal": []}, "no goal"),
        ({"budget": 2}, "budget of 2 runs"),
        ({"subject_to": "throughput"}, "subject_to .*>= or <="),
        ({"vary": "slice_idel"}, "slice_idel"),
        ({"fix": {"quantum": "x"}}, "quantum"),
        ({"device": ["nvme", "sata-ssd"]}, "one device"),
        ({"scheduler": "cqf"}, "did you mean cfq"),
    ],
)
def test_searches_refuse_wrong_arguments(arguments, text):
    keywords = {"workload": TASKS, "device": "sata-7200", "scheduler": "cfq", "goal": "p99(sync)", **arguments}
    with pytest.raises(iosched.UsageError, match=text):
        iosched.tune(**keywords)


def test_space_lists_the_tunables_to_vary():
    (cfq, none) = iosched.space(["cfq:quantum=4", "none"], "sata-7200", also="nr_requests")
    by_name = {dimension["name"]: dimension for dimension in cfq["dimensions"]}
    assert cfq["setting"] == "cfq:quantum=4"
    assert by_name["slice_idle"]["default"] == 8
    assert "quantum" not in by_name
    assert [dimension["name"] for dimension in none["dimensions"]] == ["nr_requests"]


def study(**options):
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), **options)


def test_optuna_objective_is_the_mean_of_the_runs():
    found = study()
    found.optimize(iosched.objective(TASKS, "sata-7200", ["cfq", "deadline"], "mean(reader)", runs=3), n_trials=12)
    assert {trial.params["scheduler"] for trial in found.trials} == {"cfq", "deadline"}
    best = found.best_trial
    values = [
        iosched.Goal("mean(reader)").of(iosched.simulate(TASKS, "sata-7200", best.user_attrs["setting"], s))
        for s in (1, 2, 3)
    ]
    assert best.value == pytest.approx(sum(values) / 3)


def test_optuna_prunes_trials():
    pruner = optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=0)
    found = study(pruner=pruner)
    found.optimize(iosched.objective(None, "sata-7200", "cfq", "p99(sync)", runs=4), n_trials=15)
    states = {trial.state.name for trial in found.trials}
    assert states == {"COMPLETE", "PRUNED"}
    pruned = next(trial for trial in found.trials if trial.state.name == "PRUNED")
    assert 1 <= len(pruned.intermediate_values) < 4


def test_objective_follows_the_direction_of_the_study():
    objective = iosched.objective(TASKS, "sata-7200", "none", "throughput", runs=1, also="nr_requests")
    minimizing, maximizing = study(), study(direction="maximize")
    minimizing.optimize(objective, n_trials=2)
    maximizing.optimize(objective, n_trials=2)
    assert minimizing.trials[0].value == -maximizing.trials[0].value < 0
    wrong = study(direction="maximize")
    with pytest.raises(iosched.UsageError, match="the study maximizes"):
        wrong.optimize(iosched.objective(TASKS, "sata-7200", "cfq", "p99(sync)", runs=1), n_trials=1)


def test_optuna_searches_with_several_goals():
    found = optuna.create_study(directions=["minimize", "maximize"])
    found.optimize(iosched.objective(TASKS, "sata-7200", "cfq", ["mean(reader)", "throughput"], runs=2), n_trials=6)
    assert len(found.best_trials) >= 1
    assert all(value > 0 for trial in found.best_trials for value in trial.values)
