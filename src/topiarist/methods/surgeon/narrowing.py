"""A network that is above its budget is cut to fit before its evolution begins."""

from dataclasses import replace

from topiarist.measurement import Budget
from topiarist.methods.jobs import Job
from topiarist.methods.shaping import Searching, Shaping, weigh
from topiarist.methods.task import Proposal, Task
from topiarist.surgery import RemoveUnits, allot_widths, choose_units


class Narrowing:
    """Removes the units that a refit can do without, within limits."""

    rounds = 1
    stops_itself = False

    def propose(self, task: Task) -> Proposal:
        """Allot widths, and choose units."""
        model, x, calibration = task.model, task.example_input, task.calibration
        parameters, macs = task.limits.get("parameters"), task.limits.get("macs")
        keep = allot_widths(model, x, calibration=calibration, parameters=parameters, macs=macs)
        units = choose_units(model, x, keep=keep, calibration=calibration)
        return Proposal((RemoveUnits(units=units, refit=True),) if units else ())


def fitted(job: Job, budget: Budget) -> Job:
    """Give a job whose network keeps within a budget's size; one that cannot is an error that names the nearest."""
    if not budget.limits_size or budget.excess(weigh(job, budget, job.whole)) is None:
        return job
    size = budget.model_copy(update={"max_drop": None})
    search = Searching(job, Shaping(method=Narrowing(), budget=size), job.task(job.whole, 1.0))
    return replace(job, whole=search.run().model)
