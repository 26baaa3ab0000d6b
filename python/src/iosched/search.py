"""Searches for settings: advice for a device, and an objective for Optuna."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast, overload

from ._native import Advice, Device, Goal, Search, Setting, Workload, advise_on, simulate, space, tune
from .errors import UsageError

if TYPE_CHECKING:
    import optuna

    from ._native import _AnyDevice, _AnySetting, _AnyWorkload, _Path

TODAY = ("none", "mq-deadline", "kyber", "bfq")
"""The schedulers of today's kernels."""


@overload
def advise(
    workload: _AnyWorkload | None = None,
    device: _AnyDevice | None = None,
    goal: str | Goal | Iterable[str | Goal] = "p99(sync)",
    *,
    scheduler: _AnySetting | Iterable[_AnySetting] | None = None,
    present: _AnySetting | None = None,
    on: None = None,
    **options: Any,
) -> Search: ...
@overload
def advise(
    workload: _AnyWorkload | None = None,
    device: _AnyDevice | None = None,
    goal: str | Goal | Iterable[str | Goal] = "p99(sync)",
    *,
    scheduler: _AnySetting | Iterable[_AnySetting] | None = None,
    present: _AnySetting | None = None,
    on: _Path,
    **options: Any,
) -> Advice: ...
def advise(
    workload: _AnyWorkload | None = None,
    device: _AnyDevice | None = None,
    goal: str | Goal | Iterable[str | Goal] = "p99(sync)",
    *,
    scheduler: _AnySetting | Iterable[_AnySetting] | None = None,
    present: _AnySetting | None = None,
    on: _Path | None = None,
    **options: Any,
) -> Search | Advice:
    """Recommend a setting for a workload, in simulation or with runs on a real device.

    Without `on`, `advise` searches today's schedulers on the modelled `device`, and compares them with the setting
    `present`. Linux sets mq-deadline for a device with one hardware queue. For a device with several hardware queues,
    such as NVMe, Linux sets none. `options` are those of `tune`.

    With `on`, a block device or a directory, `advise` does the same as `iosched advise`. It measures the device, or
    uses the profile `device`. Then it searches on the model, and runs the best settings on the device. It compares them
    with the present setting of the device. `advise` needs root, and restores the old settings at the end. `options` are
    those of `iosched advise`.
    """
    if on is None:
        schedulers = TODAY if scheduler is None else scheduler
        return tune(workload, device, schedulers, goal, baseline=present or "mq-deadline", **options)
    if present is not None:
        raise UsageError(
            "present is only for a modelled device; with on, iosched reads the present setting from the device"
        )
    names = cast("str | Iterable[str] | None", scheduler)
    return advise_on(on, workload, goal, profile=device, scheduler=names, **options)


def objective(
    workload: _AnyWorkload | None,
    device: _AnyDevice | None,
    scheduler: _AnySetting | Iterable[_AnySetting],
    goal: str | Goal | Iterable[str | Goal],
    *,
    runs: int = 10,
    seed: int = 1,
    vary: str | Iterable[str] | None = None,
    also: str | Iterable[str] | None = None,
    fix: Mapping[str, object] | None = None,
    **options: Any,
) -> Callable[[optuna.Trial], float | tuple[float, ...]]:
    """An objective for `optuna.create_study().optimize(...)`: the mean of a goal over `runs` seeds.

    Each trial chooses a scheduler, if you name several, and a value worth trying for each tunable of the scheduler.
    `vary`, `also` and `fix` are as for `tune`. All trials have the same seeds. After each run, the trial reports the
    mean, so a pruner can end the trial. With several goals, the objective returns one value for each goal, and no
    pruner ends a trial. If the study minimizes, the objective negates the values of metrics for which higher is better.
    `trial.user_attrs["setting"]` is the setting as a text. `options` are those of `simulate`. The best trial is partly
    luck. To check it, compare its setting with new seeds.
    """
    if runs < 1:
        raise UsageError(f"runs {runs}: must be 1 or more", argument="runs")
    done, on = Workload.of(workload), Device.of(device)
    goals = [one if isinstance(one, Goal) else Goal(one) for one in ([goal] if isinstance(goal, (str, Goal)) else goal)]
    spaces = {own["setting"]: own["dimensions"] for own in space(scheduler, on, vary=vary, also=also, fix=fix)}

    def of_trial(trial: optuna.Trial) -> float | tuple[float, ...]:
        names = list(spaces)
        chosen = names[0] if len(names) == 1 else cast(str, trial.suggest_categorical("scheduler", names))
        values = {}
        for dimension in spaces[chosen]:
            # Tunables of different schedulers are different parameters, even with the same name.
            name = dimension["name"]
            value = trial.suggest_categorical(f"{chosen}.{name}" if len(names) > 1 else name, dimension["values"])
            if value != dimension["default"]:
                values[name] = value
        setting = Setting(chosen, **values)
        trial.set_user_attr("setting", str(setting))
        sums = [0.0] * len(goals)
        means: tuple[float, ...] = ()
        for run in range(runs):
            made = simulate(done, on, setting, seed + run, requests=False, **options)
            for number, one in enumerate(goals):
                sums[number] += signed(trial, number, one, one.of(made), one.direction(made))
            means = tuple(total / (run + 1) for total in sums)
            if len(goals) == 1:
                trial.report(means[0], run)
                if run + 1 < runs and trial.should_prune():
                    import optuna

                    raise optuna.TrialPruned
        return means[0] if len(goals) == 1 else means

    return of_trial


def signed(trial: optuna.Trial, number: int, goal: Goal, value: float, better: str) -> float:
    """Returns the value with the sign for the direction of the study."""
    wanted = trial.study.directions[number].name.lower()
    if wanted == better:
        return value
    if wanted == "minimize":
        return -value
    raise UsageError(
        f"goal {goal}: lower is better, but the study maximizes; create the study with direction='minimize'",
        argument="goal",
    )
