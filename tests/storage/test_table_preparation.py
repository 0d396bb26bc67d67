"""What an exported file computes of a table is what preprocessing does."""

import numpy
import pandas
import torch

from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.decisions import forms_of
from topiarist.data.preprocessing import fit_preprocessing
from topiarist.storage.deployable import Preparation, as_inputs, form_of


def test_gaps_dates_and_many_categories_are_prepared_alike() -> None:
    random = numpy.random.default_rng(0)
    written = pandas.DataFrame(
        {
            "price": [f"{number % 37},5" if number % 5 else "?" for number in range(200)],
            "day": [f"{n % 28 + 1}.{n % 12 + 1}.{2020 + n % 3}" if n % 7 else "" for n in range(200)],
            "town": [f"town {number}" for number in random.integers(0, 120, 200)],
            "kind": [("a", "b", None)[number % 3] for number in range(200)],
        }
    )
    read = read_columns("t", written)
    prepared = fit_preprocessing(read.frame, numpy.arange(150), scaling="zscore", forms=forms_of(read.decisions))
    inputs = as_inputs(written, prepared)
    expected = prepared(written)
    assert torch.allclose(Preparation(prepared)(torch.from_numpy(inputs)), expected, atol=1e-6)
    form = form_of(inputs, prepared)
    assert (form.kind, len(form.columns)) == ("encoded", inputs.shape[1])
    assert expected.shape[1] == inputs.shape[1] + 2  # where price and day are missing
    named = [column.get("part") or column.get("place") for column in form.columns if "equals" not in column]
    dates = ["elapsed days", "year", "month sine", "month cosine", "weekday sine", "weekday cosine"]
    assert named == [None, *dates, "other texts, 1 of 1", "log frequency", "missing"]
