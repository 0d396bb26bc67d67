"""Reads the claims of a page against the figures of its record, without the functions that worded them."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

Json = Any
NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)"
KNOWN = ("proven", "not proven", "rejected", "no better than guessing")
AS_FAST, LEAST_MS = 1.05, 0.01


def header_of(page: str) -> str:
    """Return the text of the top of a page, as it is read."""
    top = page[page.index("<header>") : page.index("</header>")]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", top)).split())


def verdict_of_figures(rung: Json, margin: float) -> str:
    """Return the word for a size by its figures."""
    if rung["difference"] < -margin:
        return "rejected"
    if not rung["beats_guess"]:
        return "no better than guessing"
    return "proven" if rung["tested"] and rung["p"] <= rung["level"] else "not proven"


def agreement_of_figures(record: Json) -> str | None:
    """Return what the test part says by its figures."""
    test, margin = record["test"], record["settings"]["max_drop"]
    if test is None or record["verdict"]["chosen"] == "baseline":
        return None
    if test["proven"] and test["low"] >= -margin:
        return "confirms"
    return "contradicts" if test["high"] < -margin else "does not contradict"


def untrue(record: Json, page: str) -> list[str]:
    """Return the claims of a page that do not follow from a record."""
    top = header_of(page)
    return [*_of_status(record, top), *_of_sentence(record), *_of_sizes(record, page), *_of_test(record, page, top)]


def _of_status(record: Json, top: str) -> Iterator[str]:
    status, chosen = record["verdict"]["status"], record["verdict"]["chosen"]
    rungs = {rung["network"]: rung for rung in record["decision"]["rungs"]}
    margin, beaten = record["settings"]["max_drop"], record["decision"]["guess"]["beaten"]
    words = {name: verdict_of_figures(rung, margin) for name, rung in rungs.items()}
    follows = {
        "proven": words.get(chosen) == "proven",
        "unproven": words.get(chosen) == "not proven",
        "unchanged": chosen == "baseline" and beaten and "proven" not in words.values(),
        "no better than guessing": chosen == "baseline" and not beaten,
        "unreachable": chosen == "baseline",
    }
    if not follows[status]:
        yield f"status {status}"
    if record["verdict"]["sentence"] not in top or record["verdict"]["sentence"] + " " + status not in top:
        yield "the sentence and the badge are not those of the record"
    all_lost = bool(words) and set(words.values()) == {"rejected"}
    if ("no smaller network is good enough" in top) != (status == "unchanged" and all_lost):
        yield "no smaller network is good enough"
    if ("made in the same way without the samples of the fold" in top) != (
        bool(rungs) and record["plan"]["design"] == "refitted"
    ):
        yield "how samples were judged"
    offered = [name for name, word in words.items() if f"it is offered as {name}.safetensors" in top]
    if any(words[name] != "not proven" for name in offered):
        yield "offered"


def _of_sentence(record: Json) -> Iterator[str]:
    sentence, status = record["verdict"]["sentence"], record["verdict"]["status"]
    metric, margin = record["task"]["metrics"][0], record["settings"]["max_drop"]
    networks = {network["id"]: network for network in record["networks"]}
    before, after = networks["baseline"], networks[record["verdict"]["chosen"]]
    if status not in ("proven", "unproven"):
        if any(word in sentence for word in ("faster", "slower", "as fast", "confirms", "not worse within")):
            yield "a claim on a network that was not chosen"
        return
    rung = next(each for each in record["decision"]["rungs"] if each["network"] == after["id"])
    form = rf"From {NUMBER} KB to {NUMBER} KB: (?:{NUMBER} × smaller|hardly smaller)(?:, ([^;]*))?; "
    form += rf"{re.escape(metric['title'])} {NUMBER} → {NUMBER}(?: %)? over {NUMBER} samples, (.*)\."
    found = re.fullmatch(form, sentence)
    if found is None:
        yield "the form of the sentence"
        return
    scale, size = (100 if metric["share"] else 1), record["gains"]["size"] or 1.0
    for number, value in (
        (found[1], before["file_kb"]),
        (found[2], after["file_kb"]),
        (found[3] or "1.0", size if found[3] else 1.0),
        (found[5], scale * rung["baseline_score"]),
        (found[6], scale * rung["score"]),
        (found[7], rung["samples"]),
    ):
        if not says(number, value):
            yield f"{number} for {value}"
    yield from _of_speed(found[4] or "", before, after)
    yield from _of_certainty(found[8], record, rung, margin)


def says(text: str, value: float) -> bool:
    """Return whether a text is a number, rounded to the digits that it shows."""
    plain = text.replace(",", "")
    digits = plain.split("e")[0].split(".")[1] if "." in plain else ""
    most = 0.5000001 * 10.0 ** -len(digits)
    return abs(float(plain) - value) <= max(most, 6e-4 * abs(value) if "." in plain and "e" not in plain else most)


def _of_speed(words: str, before: Json, after: Json) -> Iterator[str]:
    claims: dict[str, tuple[str, str | None]] = {}
    for claim in words.split(" and ") if words else []:
        known = re.fullmatch(rf"(?:(as fast)|{NUMBER} × (faster|slower))? ?in (torch|ONNX Runtime)", claim)
        if known is None:
            yield f"speed: {claim}"
            return
        last = next(reversed(claims.values())) if claims and not (known[1] or known[2]) else None
        claims[known[4]] = last or (known[1] or known[3], known[2])
    for where, field in (("torch", "latency_ms"), ("ONNX Runtime", "onnx_latency_ms")):
        if not before[field] or not after[field]:
            if where in claims:
                yield f"speed in {where} is not known"
            continue
        gain, apart = before[field] / after[field], abs(before[field] - after[field])
        same = 1 / 1.0526316 <= gain <= AS_FAST or apart < LEAST_MS
        word, number = claims.get(where, (None, None))
        if word != ("as fast" if same else "faster" if gain > 1 else "slower"):
            yield f"{word} in {where}"
        elif number is not None and not says(number, max(gain, 1 / gain)):
            yield f"{number} × in {where}"


def _of_certainty(words: str, record: Json, rung: Json, margin: float) -> Iterator[str]:
    proven = verdict_of_figures(rung, margin) == "proven"
    if words.startswith("not worse within") != proven or words.startswith("not proven within") == proven:
        yield f"certainty: {words}"
    shown = re.search(r"\(p (=|<) " + NUMBER, words)
    if shown is None or not (rung["p"] < 0.001 if shown[1] == "<" else abs(float(shown[2]) / rung["p"] - 1) < 0.051):
        yield f"p in: {words}"
    power = re.search(r"the power was (\d+) %", words)
    if power is not None and abs(int(power[1]) / 100 - rung["power"]) > 0.0051:
        yield f"power in: {words}"
    needed = re.search(rf"{NUMBER} samples would make it", words)
    if needed is not None and int(needed[1].replace(",", "")) != rung["samples_needed"]:
        yield f"samples in: {words}"
    said = {
        "confirms": "the test part confirms it" in words or "the test part by itself shows it" in words,
        "contradicts": "the test part contradicts it" in words or "the test part shows that it loses more" in words,
    }
    for word, claimed in said.items():
        if claimed != (agreement_of_figures(record) == word):
            yield f"{word} in: {words}"
    if "does not contradict" in words and agreement_of_figures(record) != "does not contradict":
        yield f"does not contradict in: {words}"


def _of_sizes(record: Json, page: str) -> Iterator[str]:
    margin = record["settings"]["max_drop"]
    for place, rung in enumerate(record["decision"]["rungs"]):
        told = re.search(rf'data-path="decision\.rungs\.{place}\.verdict">([^<]*)<', page)
        if told is None or unescape(told[1]) != verdict_of_figures(rung, margin):
            yield f"the verdict on size {place}"
    by_size = {f"{rung['ratio']:.3g}": rung for rung in record["decision"]["rungs"]}
    for line in record["verdict"]["why"]:
        found = re.match(rf"{NUMBER} × smaller is ({'|'.join(KNOWN)})", line)
        if found is None:
            continue
        rung = by_size[found[1]]
        samples = re.search(rf"over {NUMBER} samples", line)
        if verdict_of_figures(rung, margin) != found[2]:
            yield line
        if samples is not None and int(samples[1].replace(",", "")) != rung["samples"]:
            yield line
        if ("that it loses more is shown" in line) != (found[2] == "rejected" and rung["high"] < -margin):
            yield line


def _of_test(record: Json, page: str, top: str) -> Iterator[str]:
    test, agreement = record["test"], agreement_of_figures(record)
    if record["verdict"]["agreement"] != agreement:
        yield f"agreement {record['verdict']['agreement']}"
    if agreement is not None and f": that {agreement} that" not in top:
        yield "what the test part says"
    if test is None:
        return
    for estimate in (each[side] for each in (test["score"], *test["each"]) for side in ("before", "after")):
        if estimate["low"] is not None and not estimate["low"] <= estimate["value"] <= estimate["high"]:
            yield "an interval without its value"
    alone = re.findall(r'data-path="test\.(?:before|after)\.(\w+)"', page)
    if alone and test["samples"] < 30:
        yield f"{alone[0]} of {test['samples']} samples without an interval"
