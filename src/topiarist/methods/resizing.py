"""Resizes networks as a method decides: in rounds, to a budget, with training after each cut; several at once.

Networks of one shape, such as those of folds, are searched and retrained as one computation.
"""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from topiarist.measurement import Budget
from topiarist.methods.budget_search import BudgetSearch, check_drop, weigh
from topiarist.methods.job import Job, Request
from topiarist.methods.method import Method, Proposal, Resizing, TrainingMethod
from topiarist.methods.outcome import Outcome, new_edits
from topiarist.methods.retraining import Rewinding, retrain
from topiarist.methods.speed import not_faster
from topiarist.models import attach, card_for
from topiarist.surgery import Plan, SettleNetwork, apply
from topiarist.surgery.applying import copied_with_plan
from topiarist.surgery.calibration import batches_for
from topiarist.surgery.edits.kinds import MOST_SETTLING_STEPS
from topiarist.surgery.edits.plan import attach_plan, plan_of
from topiarist.surgery.settling.settler import is_refitted, settle_edits
from topiarist.training import History

MANY_EDITS = 9_999  # no plan is that long


def resize_all(jobs: Sequence[Job], resizing: Resizing) -> list[Outcome]:
    """Resize networks in as many rounds as the method has; a method that trains does all of the work itself."""
    method = resizing.method
    resizing.on_progress(0.0)
    if isinstance(method, TrainingMethod):
        outcomes = [method.run(job, resizing) for job in jobs]
    else:
        outcomes = [Outcome(job=job, model=job.whole) for job in jobs]
        for rounds_left in range(method.round_count, 0, -1):
            outcomes = _next_round(outcomes, resizing, share=1 / rounds_left)
            resizing.on_progress(1 - (rounds_left - 1) / method.round_count)
        for outcome in outcomes:
            _finish(outcome, resizing)
    resizing.on_progress(1.0)
    return outcomes


def _next_round(outcomes: Sequence[Outcome], resizing: Resizing, share: float) -> list[Outcome]:
    requests = [outcome.job.request(outcome.model, share=share) for outcome in outcomes]
    made = [_search(each, resizing) for each in requests] if resizing.searches else _make(requests, resizing)
    return [
        replace(new, reasons=(*old.reasons, *new.reasons), histories=(*old.histories, *new.histories))
        for old, new in zip(outcomes, made, strict=True)
    ]


def _search(request: Request, resizing: Resizing) -> Outcome:
    search = _settling_last if resizing.settles_last else _settling_each
    found = search(request, resizing)
    if found is not None:
        return found
    reasons = ("nothing can be removed within the loss allowed",)
    return Outcome(job=request.job, model=copied_with_plan(request.model), reasons=reasons)


def _settling_each(request: Request, resizing: Resizing) -> Outcome | None:
    return BudgetSearch(request, resizing.budget, lambda asked: _make([asked], resizing)[0]).run()


def _settling_last(request: Request, resizing: Resizing) -> Outcome | None:
    """Search among networks that are not settled, and settle the one that is found.

    The plans of those that are tried say that they are settled, in the longest text that this can take: a budget may be
    of the file, which holds the plan.
    """
    announced = SettleNetwork(steps=MOST_SETTLING_STEPS, seed=request.job.seed, edits=MANY_EDITS)
    tried = replace(resizing, settling=0)

    def make(asked: Request) -> Outcome:
        outcome = _make([asked], tried)[0]
        if _is_settled(outcome.model, request, resizing):
            attach_plan(outcome.model, plan_of(outcome.model).then(announced))
        return outcome

    found = BudgetSearch(request, resizing.budget, make).run()
    if found is not None and announced in (plan := plan_of(found.model)):
        attach_plan(found.model, replace(plan, edits=plan.edits[:-1], numbers=plan.numbers[:-1]))
        _settle(found.model, request, resizing)
        of_file = Budget(file_kb=resizing.budget.file_kb)
        if of_file.limits_size and of_file.excess(weigh(request.job, of_file, found.model)) is not None:
            return _settling_each(request, resizing)  # a packed file can grow with other weights
    return found


def _make(requests: Sequence[Request], resizing: Resizing) -> list[Outcome]:
    """Make what the method proposes for each request, and train it again."""
    proposals = _propose(resizing.method, requests)
    jobs = [request.job for request in requests]
    proposals = [_noted(proposal, request) for proposal, request in zip(proposals, requests, strict=True)]
    networks = [_cut(proposal, request) for proposal, request in zip(proposals, requests, strict=True)]
    for network, request in zip(networks, requests, strict=True):
        _settle(network, request, resizing)
    histories: list[tuple[History, ...]] = [()] * len(jobs)
    if resizing.retraining is not None:
        trained = retrain(jobs, networks, resizing.retraining)
        networks, histories = [network for network, _ in trained], [(history,) for _, history in trained]
    elif resizing.finetune is not None:
        for network in networks:
            resizing.finetune(network)
    return [
        Outcome(job=job, model=network, reasons=proposal.reasons, histories=history)
        for job, network, proposal, history in zip(jobs, networks, proposals, histories, strict=True)
    ]


def _propose(method: Method, requests: Sequence[Request]) -> list[Proposal]:
    """Ask a method about several networks: together where their spaces are alike."""
    if len(requests) > 1 and len({tuple(request.job.widths.items()) for request in requests}) > 1:
        return [method.propose(request) for request in requests]
    return method.propose_many(requests)


def _noted(proposal: Proposal, request: Request) -> Proposal:
    """Add a line to a proposal that would not make the network faster, where it is not made yet."""
    if proposal.model is not None or not proposal.edits or not request.job.times_latency:
        return proposal
    sizes = {name: space.size for name, space in request.anatomy.spaces.items()}
    widths = Plan(proposal.edits).widths_after(sizes)
    notes = () if widths is None else not_faster(request, widths)
    return replace(proposal, reasons=(*proposal.reasons, *notes))


def _cut(proposal: Proposal, request: Request) -> nn.Module:
    if proposal.model is not None:
        return proposal.model
    job = request.job
    return apply(
        Plan(proposal.edits),
        request.model,
        job.example_input,
        calibration=job.calibration,
        anatomy=request.anatomy,
        settling=0,
    )


def _settle(network: nn.Module, request: Request, resizing: Resizing) -> None:
    """Settle a cut network in place."""
    if not _is_settled(network, request, resizing):
        return
    job, edits = request.job, len(new_edits(request.model, network))
    batches = batches_for(job.calibration, network, job.example_input)
    task = None if job.data is None else job.data.task
    settle_edits(request.model, network, batches, steps=resizing.settling, edits=edits, seed=job.seed, task=task)


def _is_settled(network: nn.Module, request: Request, resizing: Resizing) -> bool:
    """Return whether a cut network is to be settled: its method has refitted it, and no rewinding follows."""
    wanted = resizing.settling != 0 and not isinstance(resizing.retraining, Rewinding)
    return wanted and any(map(is_refitted, new_edits(request.model, network)))


def _finish(outcome: Outcome, resizing: Resizing) -> None:
    """Write the card of a network, and check that it keeps to the loss allowed."""
    if outcome.job.data is not None:
        attach(outcome.model, card_for(outcome.model, outcome.job.data))
    budget = resizing.budget
    if budget.max_drop is not None and budget.limits_size:
        freer = replace(resizing, budget=Budget(max_drop=budget.max_drop))
        check_drop(outcome, budget, lambda: _search(outcome.job.request(), freer).model)
