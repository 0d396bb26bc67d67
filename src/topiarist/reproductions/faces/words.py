"""What the page of the faces says in words; every sentence follows from the record."""

from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.claims import RULE, counted
from topiarist.reproductions.faces.found import Found
from topiarist.reproductions.faces.study import DEFAULT


def summary_of(found: Found) -> str:
    """Say in a few sentences what came out."""
    ours = found.tables["ours"]
    size = int(ours["units"].max())
    largest = ours[ours["units"] == size].set_index("variant")
    if largest["accuracy"].isna().any():
        return "Some networks could not be made: their rows are empty. The rest is below."
    start, paper_row, our_row = largest.loc["unpruned"], largest.loc["paper, 45°"], largest.loc["ours"]
    return (
        f"{counts_of(found)} From {size} units, unpruned {start['accuracy']:.1f} %: the paper's method at 45° leaves"
        f" {paper_row['units left']:.0f} units and {paper_row['accuracy']:.1f} %, ours {our_row['units left']:.0f}"
        f" units and {our_row['accuracy']:.1f} %, both without any training after the cut."
    )


def counts_of(found: Found) -> str:
    """Say how many claims came out, or why none can be tested."""
    match = found.matching
    if match is None:
        what = "a synthetic stand-in" if found.data["form"] == "stand-in" else f"a {found.data['form']}"
        return f"These figures are from {what}, not from the paper's data: none of its claims can be tested here."
    counts = counted(found.verdicts)
    total = sum(counts.values())
    return (
        f"Of {total} claims of the paper, {counts['reproduced']} are reproduced and {counts['not reproduced']} are not,"
        f" trained for {DEFAULT.name}. Of six readings of length and scaling, {match.reading.name} matches best:"
        f" {match.reproduced} of {len(match.verdicts)} claims on the pruned networks."
    )


def verdicts_text(found: Found) -> str:
    """Say what the verdicts rest on."""
    data = f"Which data these are is decided by the record: {found.data['why']}."
    if found.testable:
        return f"{RULE}\n\n{data} So these count as the paper's data."
    return (
        f"{RULE}\n\n{data} So the paper's numbers say nothing about these figures: each claim is listed with the"
        " paper's number on the paper's own data, and no verdict is given."
    )


def readings_text(found: Found) -> str:
    """Say what the readings are, and which matches."""
    text = (
        f"The paper says once that {paper.LENGTH} steps are enough, and once that networks are trained for"
        f" {paper.LENGTH} epochs; and it does not say how it scales its features. Read as optimizer steps, training is"
        f" about 16 epochs of its data. All other parts of this page use {DEFAULT.name}."
    )
    match = found.matching
    if match is None:
        return text
    others = "; ".join(
        f"{one.reading.name}: {one.reproduced}, mean distance {one.distance:.2f}" for one in found.matches
    )
    return (
        f"{text}\n\nClaims reproduced, of {len(match.verdicts)}, and the mean distance from the paper in units of"
        f" tolerance + cap: {others}. {match.reading.name} matches best. The choice is made after the fact."
    )


def absolute_text(found: Found) -> str:
    """Say where the claim on equation 6 holds, and where it ends."""
    table = found.tables["equation6"]
    shown = [f"{penalty:g}" for penalty in table["λ"]]
    text = (
        f"By equation 6, λ from {shown[0]} to {shown[-1]}: from {table['removed, %'].iloc[0]:.0f} % to"
        f" {table['removed, %'].iloc[-1]:.0f} % of the units are removed, in the mean over all starts."
    )
    if not found.testable:
        return text
    held = [penalty for penalty, holds in zip(shown, table["55 % removed"], strict=True) if holds]
    other = [penalty for penalty, holds in zip(shown, table["55 % left"], strict=True) if holds]
    return (
        f"{text} About 55 % removed, as the paper claims for every λ, holds at λ = {', '.join(held) or 'none'}; read as"
        f" 55 % left, it holds at λ = {', '.join(other) or 'none'}."
    )


def open_text(found: Found) -> str:
    """Say what other readings of the methods give at 45° and by equation 6."""
    orders, searched = found.tables["pair-orders"], found.tables["search-readings"]
    at_45 = orders[orders["variant"] == "45°"]
    sizes = "; ".join(
        f"{order}: " + ", ".join(f"{row['units']} → {row['units left']:.0f}" for row in rows.to_dict("records"))
        for order, rows in at_45.groupby("order", sort=False)
    )
    some = searched[(searched["search"] == "equation 6, λ = 10") & (searched["units"] == 100)]
    left = "; ".join(f"{row['reading']}: {row['units left']:.0f}" for row in some.to_dict("records"))
    return (
        "The paper does not say in which order pairs are visited, whether a unit that is gone still counts for the next"
        " pair, whether the hall of fame is a part of the population, or with how many units the search starts. Each is"
        f" an option.\n\nUnits left at 45° — {sizes}.\n\nUnits left of 100 by equation 6 with λ = 10 — {left}."
    )
