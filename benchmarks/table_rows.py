"""What more rows to learn from are worth to a network for a table: why rightsizing sets less aside where rows are few.

Four splits, 300 to 303, of five tables on which a network that learns from fewer rows may be behind gradient boosting.
One network is distilled from one setting of members and boosting, as in `rightsize`, from 65 %, 80 % and all of the
rows that are not tested on: the parts of the defaults, of a tenth set aside twice, and nothing set aside.

    python -m benchmarks.table_rows [--splits 4]

takes about 2 minutes of one core. It needs what `benchmarks.tables` needs.
"""

import argparse
import sys
from dataclasses import replace

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import stamp, write_results
from benchmarks.tabulating.contenders import score_of, tested
from benchmarks.tabulating.sources import load_split
from topiarist import Data
from topiarist.data import Part
from topiarist.randomness import generator
from topiarist.rightsizing.lessons import MOST_SAMPLES
from topiarist.rightsizing.teaching import REPEATED
from topiarist.threads import torch_threads
from topiarist.training import train_tabular
from topiarist.training.inference import predict_logits

FIRST = 300
TABLES = ("Sonar", "Vowel", "Ionosphere", "Glass", "Servo")
SHARES = {0.65: "65 % of the rows", 0.8: "80 %", 1.0: "all"}
SHOWN = 100_000  # samples to the network, as in rightsize


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=4)
    splits = range(FIRST, FIRST + parser.parse_args().splits)
    figures = []
    with torch_threads(1):
        for name in TABLES:
            for share, word in SHARES.items():
                values = tuple(100 * _score(load_split(name, split), share, split) for split in splits)
                role = "ours" if word == "80 %" else "variant"
                figures.append(Figure(case=name, contender=word, measure="score", values=values, role=role))
            print(f"{name} is measured", file=sys.stderr, flush=True)
    sheet = Sheet(**stamp("python -m benchmarks.table_rows", ["scikit-learn"]), figures=tuple(figures))
    print(write_results("table_rows", sheet))


def _score(data: Data, share: float, split: int) -> float:
    """Return what a network scores on the test part that learned from a share of the other rows."""
    part = data.train
    assert isinstance(part, Part)
    fewer = part if share == 1 else part.draw(round(share * len(part)), generator(split, "rows to learn from"))
    config = REPEATED.model_copy(update={"filled_to": MOST_SAMPLES, "network_samples": SHOWN, "seed": split})
    found = train_tabular(replace(data, train=fewer), config)
    return score_of(data, predict_logits(found.network, tested(data).x))


if __name__ == "__main__":
    main()
