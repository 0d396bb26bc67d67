"""The lineage: it survives JSON, and its nodes and decisions say what really happened."""

import json

import pytest

from tests.methods.surgeon.evolutions import as_ours, as_published, best_of, digits, line_of, lineage_of, network
from tests.methods.tasks import percentage, widths_of
from topiarist.evolution.lineage import Decision, Lineage, Node
from topiarist.methods import Outcome, resize
from topiarist.methods.surgeon.surgeon import SurgeonMethod
from topiarist.models.evaluation import count_parameters

SURGEONS: dict[str, SurgeonMethod] = {
    "published": as_published(4),
    "ours": as_ours(20, search=2.0, aim="better"),
    "ours, smaller": as_ours(20, search=2.0, aim="smaller", kinds=("remove", "fold", "factorise")),
}


@pytest.fixture(scope="module", params=SURGEONS)
def outcome(request: pytest.FixtureRequest) -> Outcome:
    return resize(network(12, 8), digits(), SURGEONS[request.param], seed=1, latency=False)


@pytest.fixture
def lineage(outcome: Outcome) -> Lineage:
    return lineage_of(outcome)


def node(number: int, parent: int | None) -> Node:
    return Node(
        number=number,
        parent=parent,
        kind="widen",
        edit="widen 'a' by 2",
        decision=1,
        begins=1.0,
        ends=1.0,
        parameters=10,
        widths=(("a", 3), ("b", 4)),
    )


def family(*parents: int | None) -> Lineage:
    return Lineage(9, [node(number, parent) for number, parent in enumerate(parents)])


def test_a_line_goes_back_to_the_start() -> None:
    found = family(None, 0, 0, 1, 3, 2)
    assert [each.number for each in line_of(found, 4)] == [0, 1, 3, 4]
    assert [each.number for each in line_of(found, 5)] == [0, 2, 5]
    assert [each.number for each in line_of(found, 0)] == [0]


def test_networks_are_numbered_as_they_come() -> None:
    found = family(None)
    known = {name: value for name, value in vars(node(0, 0)).items() if name != "number"}
    assert found.add(**known).number == 1
    found.update(1, fate="dropped", reason="worse")
    assert (found.nodes[1].fate, found.nodes[1].reason, found.nodes[1].parent) == ("dropped", "worse", 0)


def test_a_node_grows_with_its_training() -> None:
    grown = node(0, None).grown(epoch=2.0, accuracy=0.5, score=0.6).grown(epoch=3.0, accuracy=0.75, score=0.7)
    assert (grown.begins, grown.ends, grown.accuracy, grown.score) == (1.0, 3.0, 0.75, 0.7)
    assert grown.points == ((2.0, 0.5), (3.0, 0.75))


def test_a_record_goes_through_json_and_back() -> None:
    found = family(None, 0)
    found.nodes[1] = found.nodes[1].grown(epoch=2.5, accuracy=1 / 3, score=2 / 3)
    found.decisions.append(Decision(number=1, epoch=1.0, draw=2, candidates=(0, 1), kept=(1,), reason="the best"))
    again = Lineage.from_record(json.loads(json.dumps(found.to_record(), allow_nan=False)))
    assert again == found
    assert again.to_record() == found.to_record()


@pytest.mark.slow
def test_the_record_of_an_evolution_goes_through_json_and_back(outcome: Outcome) -> None:
    record = json.loads(json.dumps(outcome.to_json()["lineage"], allow_nan=False))
    found = Lineage.from_record(record)
    assert found == lineage_of(outcome)
    assert json.loads(json.dumps(found.to_record())) == record


@pytest.mark.slow
def test_there_is_one_start_and_one_best(lineage: Lineage) -> None:
    assert [each.number for each in lineage.nodes] == list(range(len(lineage.nodes)))
    assert [each.number for each in lineage.nodes if each.parent is None] == [0]
    assert lineage.nodes[0].kind == "start"
    assert best_of(lineage).ends == lineage.epochs
    assert all(each.fate in ("kept", "dropped", "best") for each in lineage.nodes), "nothing is left running"


@pytest.mark.slow
def test_children_begin_where_their_parents_end(lineage: Lineage) -> None:
    for each in lineage.nodes[1:]:
        assert each.parent is not None and each.parent < each.number
        parent = lineage.nodes[each.parent]
        assert parent.fate == "kept"
        assert each.begins == parent.ends


@pytest.mark.slow
def test_points_are_the_training_in_order(lineage: Lineage) -> None:
    for each in lineage.nodes:
        epochs = [epoch for epoch, _ in each.points]
        assert epochs == sorted(epochs)
        assert each.begins <= epochs[0] and epochs[-1] == each.ends
        assert each.points[-1][1] == each.accuracy
        assert all(0 <= accuracy <= 1 for _, accuracy in each.points)


@pytest.mark.slow
def test_decisions_name_their_candidates(lineage: Lineage) -> None:
    named = [number for decision in lineage.decisions for number in decision.candidates]
    assert sorted(named) == list(range(1, len(lineage.nodes))), "each network but the first is decided on once"
    for decision in lineage.decisions:
        assert decision.kept and set(decision.kept) <= set(decision.candidates)
        for number in decision.candidates:
            assert lineage.nodes[number].decision == decision.number
            assert lineage.nodes[number].begins == decision.epoch
            assert number in decision.kept or lineage.nodes[number].fate == "dropped"
        assert decision.reason


def test_the_best_node_is_the_network_that_comes_out(outcome: Outcome, lineage: Lineage) -> None:
    best = best_of(lineage)
    assert best.parameters == count_parameters(outcome.model)
    assert best.accuracy == outcome.score[1]
    data = digits()
    assert best.accuracy == pytest.approx(percentage(outcome.model, data.validation) / 100)  # type: ignore[arg-type]
    real = widths_of(outcome.model)
    assert dict(best.widths) == {name: real[name] for name in dict(best.widths)}


def test_the_edits_of_the_line_are_the_plan(outcome: Outcome, lineage: Lineage) -> None:
    made = [each.edit for each in line_of(lineage, best_of(lineage).number) if each.kind not in ("start", "identity")]
    assert "; ".join(made) == "; ".join(str(edit) for edit in outcome.plan)


def test_identities_are_their_parents(lineage: Lineage) -> None:
    same = [each for each in lineage.nodes if each.kind == "identity"]
    assert same
    for each in same:
        assert each.parent is not None
        parent = lineage.nodes[each.parent]
        assert (each.parameters, each.widths, each.edit) == (parent.parameters, parent.widths, "leave as it is")
