"""A saved network, and data seen through what the network's card says."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from topiarist.errors import DataError, ModelError, SettingsError, TopiaristWarning

MOST_BANDS = 1024  # of `LogMel`; a network for larger images reads no sound

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data, Part, Preprocessing, Samples, Source


def load_network(path: Path, into: str | None, device: str | None = None) -> "nn.Module":
    """Load a model file that can be used, into the user's own module where its code is named, and onto a device."""
    network = on_device(open_network(path, into), device)
    check_usable(path, network)
    return network


def on_device(network: "nn.Module", device: str | None) -> "nn.Module":
    """Return a network on a device; without one, where it is."""
    from topiarist.devices import find_device

    return network if device is None else network.to(find_device(device))


def open_network(path: Path, into: str | None) -> "nn.Module":
    """Load a model file as it is."""
    from topiarist.models.building import build_by_code
    from topiarist.storage import load

    return load(path) if into is None else load(path, into=build_by_code(into))


def check_usable(path: Path, network: "nn.Module") -> None:
    """Raise ModelError for weights that are not finite, or where network, classes and preprocessing do not agree."""
    from torch import zeros

    from topiarist.models import card_of
    from topiarist.models.evaluation import evaluating, numbers_of, placed
    from topiarist.training.inference import call

    for name, parameter in network.named_parameters():
        if parameter.is_floating_point() and not parameter.isfinite().all():
            raise ModelError(f"cannot use {path}: '{name}' holds numbers that are not finite: train it again")
    card = card_of(network)
    if card.classes is None or card.preprocessing is None:
        return
    with evaluating(network):
        sample = placed(zeros(1, *card.preprocessing.input_shape), numbers_of(network))
        found = call(network, sample).shape[1]
    if found != len(card.classes):
        said = f"the network returns {found} logits, its file names {len(card.classes)} classes"
        raise ModelError(f"cannot use {path}: {said}: save it again with its own data")


def find_network(reference: str, into: str | None) -> "nn.Module":
    """Return the network that a word of a call names: code, a Hugging Face folder, or a model file."""
    from topiarist.models.building import build_by_code
    from topiarist.storage.hub import load_folder

    place = Path(reference)
    by_code = ":" in reference and place.suffix != ".safetensors" and not place.exists()
    if into is not None and (by_code or place.is_dir()):
        raise SettingsError("--into is what a model file is loaded into: name a .safetensors file with it")
    if by_code:
        return build_by_code(reference)
    if place.is_dir():
        return load_folder(place)
    if not place.exists():
        raise ModelError(f"there is no file or folder {place}; code is named as module:function, nothing is downloaded")
    return open_network(place, into)


def load_for(
    network: "nn.Module",
    location: str,
    *,
    target: str | None,
    group: str | None,
    part: Literal["train", "validation", "test", "all"],
    seed: int | None,
    weight: str | None = None,
) -> "Part":
    """Read a part of the data, split as in training, with the network's own preprocessing and task."""
    import numpy

    from topiarist.data import make_part
    from topiarist.data.targets import targets_of
    from topiarist.models import card_of

    if part != "all":
        whole = task_for(network, location, target=target, group=group, seed=seed, weight=weight)
        parts = {"train": whole.train, "validation": whole.validation, "test": whole.test}
        return cast("Part", parts[part])
    source = read_labelled(network, location, target=target, group=group, whole=True, weight=weight)
    source = without_lone_classes(source, card_of(network).classes)
    targets, rows = targets_of(source), numpy.arange(len(source))
    task = card_of(network).task or targets.task(rows, name=source.name, scaled=False)
    return make_part(source, targets.as_learned(task), rows, preprocessing_of(network))


def task_for(
    network: "nn.Module",
    location: str,
    *,
    target: str | None,
    group: str | None,
    seed: int | None = None,
    weight: str | None = None,
) -> "Data":
    """Read all parts of the data, split as in training, with the network's own preprocessing and task."""
    from topiarist.data import Data, SplitRule, split_source
    from topiarist.data.targets import targets_of
    from topiarist.models import card_of

    card, preprocessing = card_of(network), preprocessing_of(network)
    source = read_labelled(network, location, target=target, group=group, whole=False, weight=weight)
    source = replace(source, classes=card.classes)
    targets = targets_of(source)
    if card.rule is None and seed is None and source.parts is None:
        note = "the network does not say how its samples were split: some of the test part may have trained it"
        warnings.warn(note, TopiaristWarning, stacklevel=2)
    rule = card.rule or SplitRule()
    rule = rule if seed is None else replace(rule, seed=seed)
    split = split_source(source, targets.strata, rule)
    task = None if card.task is None else card.task.uncalibrated()
    return Data.of_parts(source, split, preprocessing, notes=source.notes, rule=rule, task=task, targets=targets)


def without_lone_classes(source: "Source", classes: tuple[str, ...] | None) -> "Source":
    """Return samples of the network's classes; of others, those alone in their class are put aside, as in training."""
    import numpy

    from topiarist.data.source import take_rows

    names = None if source.labels is None else source.labels.astype(str)
    if classes is None or names is None or source.originals is not None:
        return replace(source, classes=classes)
    found, numbers, counts = numpy.unique(names, return_inverse=True, return_counts=True)
    alone = (counts == 1) & ~numpy.isin(found, classes)
    if not alone.any():
        return replace(source, classes=classes)
    said = ", ".join(f"'{name}'" for name in found[alone])
    note = f"put aside, {alone.sum()} class(es) with one row each that the network does not know: {said}"
    warnings.warn(note, TopiaristWarning, stacklevel=2)
    rows = numpy.flatnonzero(~alone[numbers])
    kept = {
        name: values[rows]
        for name in ("labels", "groups", "parts", "finer", "weights")
        if (values := getattr(source, name)) is not None
    }
    return replace(source, features=take_rows(source.features, rows), classes=classes, **kept)


def read_labelled(
    network: "nn.Module",
    location: str,
    *,
    target: str | None,
    group: str | None,
    whole: bool,
    weight: str | None = None,
) -> "Source":
    """Read samples with labels, as training did where they are to be split.

    The whole of a file need not be fit for training: it may be of one class, or hold one value in a column.
    """
    how: dict[str, Any] = {"target": target, "group": group, "weight": weight}
    source = read_for(network, location, **how, labelled=not whole)
    source = read_for(network, location, **how) if source.labels is None else source
    return as_network_reads(network, source)


def as_network_reads(network: "nn.Module", source: "Source") -> "Source":
    """Return images of another shape than the network was trained on in its shape, and say so; all else as it is."""
    import math

    from topiarist.data.resizing import resized

    shape = preprocessing_of(network).input_shape
    found = tuple(getattr(source.features, "shape", ()))[1:]
    if len(shape) != 3 or len(found) != 3 or math.prod(found) == math.prod(shape):
        return source
    made = resized(source, shape)
    warnings.warn(made.notes[-1], TopiaristWarning, stacklevel=2)
    return made


def targets_for(network: "nn.Module", location: str, target: str | None) -> "str | tuple[str, ...] | None":
    """Return the columns of a table that a network predicts, in its order; raise where others are asked for.

    A classifier does not know what its column is called.
    """
    from topiarist.models import card_of

    task = card_of(network).task
    is_table = any(ending in Path(location).suffixes for ending in (".csv", ".tsv", ".parquet", ".xlsx"))
    if task is None or task.kind == "classes" or not is_table:
        return target
    if target is not None and target not in task.names and {*map(str.strip, target.split(","))} != {*task.names}:
        raise DataError(f"the network predicts {', '.join(task.names)}; found --target {target}")
    return task.names


def read_for(
    network: "nn.Module",
    location: str,
    *,
    target: str | None,
    group: str | None = None,
    weight: str | None = None,
    labelled: bool = True,
) -> "Source":
    """Read raw samples; sounds as those that the network was trained on, or as the wave forms it reads."""
    from topiarist.data import find_source
    from topiarist.data.columns.deciding import read_as_trained
    from topiarist.data.source import is_table
    from topiarist.features.described import find_described
    from topiarist.features.log_mel import LogMel
    from topiarist.models import card_of

    known = preprocessing_of(network)
    shape, cells = known.input_shape, known.cells
    task = card_of(network).task
    named: dict[str, Any] = {"target": targets_for(network, location, target), "group": group, "weight": weight}
    named |= {"task": None if task is None or task.kind == "classes" else task.kind, "labelled": labelled}
    if len(shape) != 3:
        source = find_source(location, **named, cells=cells)
        if not is_table(source.features) or not known.columns:
            return source
        read = read_as_trained(source, known.columns, known.ignored)
        note_unknown_columns(known, source, target, weight)
        return read
    settings = LogMel(bands=min(shape[1], MOST_BANDS)) if known.sound is None else LogMel.like(known.sound)
    return find_described(location, **named, settings=settings)


def note_unknown_columns(known: "Preprocessing", source: "Source", *named: str | None) -> None:
    """Warn of columns that the network was not trained with: they are not used."""
    from topiarist.data.columns.names import listed

    names = [str(name) for name in getattr(source.features, "columns", ())]
    unknown = [name for name in known.unknown_columns(names) if name not in named]
    if unknown:
        note = f"{source.name} has columns that the network was not trained with, which are not used: {listed(unknown)}"
        warnings.warn(note, TopiaristWarning, stacklevel=2)


def features_for(network: "nn.Module", location: str, *, target: str | None) -> "Samples":
    """Read raw samples, labelled or not, and turn them into what the network reads; many, batch by batch."""
    import numpy

    from topiarist.data.samples import prepared

    source = as_network_reads(network, read_for(network, location, target=target, labelled=False))
    if source.sound is not None:
        for note in source.notes[1:]:  # of clips resampled, filled up or cut; the first says how sounds are read
            warnings.warn(note, TopiaristWarning, stacklevel=2)
    return prepared(source.features, numpy.arange(len(source)), preprocessing_of(network), of_all=len(source))


def files_of(location: str, *, target: str | None) -> list[str]:
    """Return the names of the images or sounds of a folder, in the order in which they are read; none of other data."""
    from topiarist.data.readers.folders import find_media, is_media

    place = Path(location)
    try:
        paths = find_media(place, labelled=False, target=target).paths if place.is_dir() else ()
    except DataError:  # a folder of another kind, which was read already
        return []
    return [path.relative_to(place).as_posix() for path in paths if is_media(path)]


def preprocessing_of(network: "nn.Module") -> "Preprocessing":
    """Return the preprocessing that was saved with a network."""
    from topiarist.models import card_of

    found = card_of(network).preprocessing
    if found is None:
        raise DataError(
            "the model file does not say how to read raw samples: save it with save(model, path, data=data)"
        )
    return found


def as_base_reads(network: "nn.Module", task: "Data", **how: Any) -> "Data":
    """Return the data as the base reads them: images of another size or number of channels are resized.

    `how` is as in `Data.from_source`. Where the base reads the samples as they are, so are the data.
    """
    import math

    from topiarist.data import Data
    from topiarist.data.resizing import resized
    from topiarist.errors import TopiaristWarning
    from topiarist.training.transfer import shape_to_read

    shape = shape_to_read(network, task.input_shape)
    if shape == task.input_shape or task.source is None:
        return task
    if math.prod(shape) == math.prod(task.input_shape):
        source, how = task.source, {**how, "input_shape": shape}
    else:
        source, how = resized(task.source, shape), {**how, "input_shape": None}
        warnings.warn(source.notes[-1], TopiaristWarning, stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # all else was said when the data were read
        return Data.from_source(source, **how)
