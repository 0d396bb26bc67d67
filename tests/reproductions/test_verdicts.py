"""The claims of the scenes paper that hang on no data: counts of parameters."""

import pytest

from topiarist.reproductions.scenes import paper
from topiarist.reproductions.scenes.counts import numbers_of, pruned_numbers_of, rounded_numbers_of
from topiarist.reproductions.scenes.scope import INCEPTION, VGG
from topiarist.reproductions.scenes.verdicts import count_verdicts


def test_the_counts_of_the_paper_come_out_on_its_input() -> None:
    assert [numbers_of("vgg", VGG), numbers_of("inception", INCEPTION)] == [80_839, 167_571]
    assert [pruned_numbers_of("vgg", VGG), pruned_numbers_of("inception", INCEPTION)] == [17_114, 34_185]
    assert 5 * rounded_numbers_of("vgg", VGG) + rounded_numbers_of("inception", INCEPTION) == 119_758
    verdicts = {row.claim: row for row in count_verdicts()}
    assert {row.verdict for row in verdicts.values()} == {"reproduced"}
    assert verdicts["size of V(2,2,3,3)"].note.startswith("equal")
    assert verdicts["size of V(2,2,3,3), pruned"].note.startswith("differs by -1")
    assert verdicts["size of I(3,2,3)"].ours == "267,043 (1,043.1 KB)"


def test_a_wrong_count_is_not_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    for nonzero, size in ((81_000, 315.8), (80_839, 316.4)):
        monkeypatch.setitem(paper.TABLE_3, (1, False), paper.Model(0.9, 0.0, 0.9, 0.0, nonzero, size))
        verdicts = {row.claim: row.verdict for row in count_verdicts()}
        assert verdicts["size of V(2,2,3,3)"] == "not reproduced"
