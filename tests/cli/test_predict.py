import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pandas
import pytest

from topiarist import load, load_data
from topiarist.data import Part
from topiarist.training.inference import predict_logits

Run = Callable[..., tuple[int, str, str]]


def printed(ran: tuple[int, str, str]) -> pandas.DataFrame:
    """Read the CSV on standard output."""
    code, out, err = ran
    assert (code, err) == (0, "")
    return pandas.read_csv(io.StringIO(out), dtype={"prediction": str})


def test_every_sample_gets_a_class_in_the_order_of_the_data(command: Run, flowers: Path, flowers_model: Path) -> None:
    table = printed(command("predict", flowers_model, flowers))
    assert list(table.columns) == ["prediction", "probability"]
    kinds = pandas.read_csv(flowers)["kind"]
    assert len(table) == len(kinds) == 150
    assert (table["prediction"] == kinds).mean() > 0.9
    assert table["probability"].between(1 / 3, 1).all()


def test_no_labels_are_needed(command: Run, flowers: Path, flowers_model: Path, tmp_path: Path) -> None:
    without = pandas.read_csv(flowers).drop(columns="kind")[["height", "colour", "length"]]
    without.to_csv(tmp_path / "new.csv", index=False)
    without.assign(more="x").to_csv(tmp_path / "wider.csv", index=False)
    expected = command("predict", flowers_model, flowers)
    assert command("predict", flowers_model, tmp_path / "new.csv") == expected
    note = "wider.csv has columns that the network was not trained with, which are not used: more"
    wider = command("predict", flowers_model, tmp_path / "wider.csv")
    assert wider == (0, expected[1], f"topiarist: note: {note}\n")
    assert command("predict", flowers_model, flowers, "--target", "kind") == expected


def test_one_row_is_read_as_among_many(command: Run, flowers: Path, flowers_model: Path, tmp_path: Path) -> None:
    whole = printed(command("predict", flowers_model, flowers))
    header, *lines = flowers.read_text().splitlines()
    for row in (0, 1, 19):  # without length and colour, with both, without colour
        (tmp_path / "one.csv").write_text(f"{header}\n{lines[row]}\n")
        one = printed(command("predict", flowers_model, tmp_path / "one.csv"))
        assert one["prediction"][0] == whole["prediction"][row]
        assert one["probability"][0] == pytest.approx(whole["probability"][row], rel=1e-5)


def test_a_colour_that_training_never_saw_is_no_error(command: Run, flowers_model: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("length,colour,height\n5,violet,0\n5,mauve,0\n5,,0\n")
    unseen, other, missing = printed(command("predict", flowers_model, tmp_path / "new.csv"))["probability"]
    assert unseen == pytest.approx(other, rel=1e-6)
    assert unseen != pytest.approx(missing, rel=1e-6)


def test_a_word_among_numbers_is_a_gap_and_named(command: Run, flowers_model: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("length,colour,height\n5,red,0\nbent,red,0\n,red,0\n")
    code, out, err = command("predict", flowers_model, tmp_path / "new.csv")
    taken = "1 cell(s) taken as missing in column 'length', which holds numbers: the first is 'bent'"
    assert (code, err) == (0, f"topiarist: note: {taken} in row 2 below the header\n")
    assert out.splitlines()[2] == out.splitlines()[3] != out.splitlines()[1]


def test_predictions_go_to_a_file(command: Run, flowers: Path, flowers_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    code, said, err = command("predict", flowers_model, flowers, "--out", out)
    assert (code, said, err) == (0, f"150 predictions written to {out}\n", "")
    assert out.read_text() == command("predict", flowers_model, flowers)[1]
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_probabilities_of_every_class(command: Run, digits_model: Path) -> None:
    table = printed(command("predict", digits_model, "digits", "--probabilities"))
    classes = [f"p({digit})" for digit in range(10)]
    assert list(table.columns) == ["prediction", "probability", *classes]
    probabilities = table[classes].to_numpy()
    numpy.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert [str(number) for number in probabilities.argmax(axis=1)] == table["prediction"].tolist()
    numpy.testing.assert_array_equal(probabilities.max(axis=1), table["probability"])


def test_predictions_are_those_of_the_network(command: Run, digits_model: Path) -> None:
    data = load_data("digits")
    assert isinstance(data.test, Part) and data.split is not None
    expected = predict_logits(load(digits_model), data.test.x).argmax(dim=1)
    table = printed(command("predict", digits_model, "digits"))
    assert table["prediction"].iloc[data.split.test].tolist() == [str(number) for number in expected.tolist()]


def test_monte_carlo_gives_a_spread_that_follows_from_the_seed(command: Run, digits_model: Path) -> None:
    words = ("predict", digits_model, "digits", "--monte-carlo", 5)
    first, again, other = command(*words, "--seed", 1), command(*words, "--seed", 1), command(*words, "--seed", 2)
    assert first == again != other
    table = printed(first)
    assert list(table.columns) == ["prediction", "probability", "spread"]
    assert (table["spread"] > 0).mean() > 0.9


def test_programs_get_one_object(command: Run, flowers: Path, flowers_model: Path, tmp_path: Path) -> None:
    for words in ((), ("--out", tmp_path / "p.csv")):
        code, out, err = command("predict", flowers_model, flowers, "--probabilities", *words, "--json")
        assert (code, err, out.count("\n")) == (0, "", 1)
        result = json.loads(out)
        assert result["samples"] == len(result["predictions"]) == 150
        assert set(result["columns"]) == {"probability", "p(lily)", "p(rose)", "p(tulip)"}
        assert result["out"] == (str(words[1]) if words else None)


GOLDEN = Path(__file__).parent.parent / "golden" / "table-read-by-pandas"


def test_a_network_of_before_reads_its_table_as_it_did(command: Run) -> None:
    """The model, its table with a decimal comma, gaps and truth values, and its answers are of an earlier version."""
    code, out, err = command("predict", GOLDEN.with_suffix(".safetensors"), GOLDEN.with_suffix(".csv"))
    assert (code, err) == (0, "")
    found = pandas.read_csv(io.StringIO(out))
    expected = pandas.read_csv(GOLDEN.with_name(f"{GOLDEN.name}-predictions.csv"))
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    numpy.testing.assert_allclose(found["probability"], expected["probability"], rtol=1e-5)


@pytest.fixture(scope="module")
def invoices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with ids, euros, dates, yes and no, gaps and a class with one row."""
    random = numpy.random.default_rng(1)
    lines = ["row;price;day;paid;city;kind"]
    for number in range(90):
        price = "-" if number % 19 == 0 else f"1.{random.integers(100, 999)},{number % 90 + 10} €"
        day = f"{number % 28 + 1:02}.{number % 12 + 1:02}.{2020 + number % 3}"
        kind = "lone" if number == 7 else ("old", "mid", "new")[number % 3]
        lines.append(f"{number + 1};{price};{day};{('ja', 'nein')[number % 2]};{'ABCD'[number % 4]};{kind}")
    path = tmp_path_factory.mktemp("invoices") / "invoices.csv"
    path.write_bytes("\n".join(lines).encode("cp1252"))
    return path


def test_a_table_as_it_comes_is_trained_measured_and_predicted(command: Run, invoices: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    words = ("--target", "kind", "--hidden", 8, "--epochs", 30, "--lr", 0.02, "--category", "city", "--out", model)
    code, _, err = command("train", invoices, *words)
    assert code == 0
    assert "note: put aside, 1 class(es) with one row each: 'lone'\n" in err
    assert "note: left out, its name and its numbers, all different, are those of an id: row\n" in err
    code, out, _ = command("measure", model, invoices, "--target", "kind", "--json")
    assert (code, json.loads(out)["accuracy"]) == (0, pytest.approx(1.0, abs=0.35))
    expected = command("predict", model, invoices)
    rows = [line.split(";") for line in invoices.read_bytes().decode("cp1252").splitlines()]
    (tmp_path / "other.csv").write_text("\n".join("\t".join([*row[3:0:-1], row[4], "0"]) for row in rows))
    code, out, err = command("predict", model, tmp_path / "other.csv")
    assert (code, out) == (0, expected[1])  # in another order, with tabs, in UTF-8
    (tmp_path / "less.csv").write_text("\n".join(";".join(row[2:]) for row in rows))
    code, _, err = command("predict", model, tmp_path / "less.csv")
    assert (code, err) == (2, "topiarist: columns that the network was trained on are missing: price\n")


def test_names_of_classes_are_no_formulas_and_no_control_characters(command: Run, tmp_path: Path) -> None:
    names = ("=cmd|' /C calc'!A0", "-1", "@x\x1b[2J", "plain")
    lines = [f'{number % 4}.{number},"{names[number % 4]}"' for number in range(80)]
    table, model = tmp_path / "t.csv", tmp_path / "m.safetensors"
    table.write_text("\n".join(["a,y", *lines]))
    code, _, err = command("train", table, "--target", "y", "--epochs", 60, "--lr", 0.05, "--out", model)
    assert code == 0, err
    code, _, err = command("predict", model, table, "--out", tmp_path / "p.csv")
    found = printed((code, (tmp_path / "p.csv").read_text(), err))
    assert set(found["prediction"]) == {f"'{names[0]}", "-1", f"'{names[2]}", "plain"}
    code, out, _ = command("predict", model, table, "--json")
    assert set(json.loads(out)["predictions"]) == set(names)
    code, out, err = command("data", "show", table, "--target", "y")
    assert code == 0 and "\x1b" not in out and "@x\\x1b[2J" in out
    other = tmp_path / "o.csv"
    other.write_text("\n".join(["a,y", *lines, "1,\x1b]0;title\x07", "2,\x1b]0;title\x07"]))
    code, _, err = command("measure", model, other, "--target", "y")
    assert code == 2 and "\x1b" not in err and "title" in err
