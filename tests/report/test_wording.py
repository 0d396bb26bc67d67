from topiarist.report import from_paper


def test_a_figure_of_a_paper_says_on_which_data_it_is() -> None:
    assert from_paper("macro", same_data=True) == "macro (paper, same data)"
    assert from_paper("0.8890", same_data=False) == "0.8890 (paper, its own data)"
