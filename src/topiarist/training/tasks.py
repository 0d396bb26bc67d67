"""What a network, data and a configuration have to do with one another, before training begins."""

import hashlib
import json
from collections.abc import Hashable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from topiarist.data import AnyPart, Data, Part
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.models.stacked import reads_flat, signature, stackable
from topiarist.training.augmentation import check_masks
from topiarist.training.batching import Batches, MemoryBatches, StreamBatches, check_labels
from topiarist.training.config import TrainConfig
from topiarist.training.inference import BATCH_SIZE, call, first_sample, part_batches, part_logits


def check_task(model: nn.Module, data: Data, config: TrainConfig, *, scored: bool = False) -> None:
    """Refuse, in one line, what cannot be trained; `scored` says that the user's own score is watched."""
    if not len(data.train):
        raise DataError(f"{data.name} has no training samples")
    watching = config.early_stopping is not None or config.schedule.name == "performance"
    if watching and not scored and not len(data.validation):
        what = "performance scheduling" if config.early_stopping is None else "early stopping"
        raise SettingsError(f"{what} needs a validation part: give it a fraction of the data above 0")
    if isinstance(config.class_weights, tuple) and len(config.class_weights) != len(data.classes):
        raise SettingsError(f"{len(config.class_weights)} class weights for {len(data.classes)} classes")
    if has_batch_norm(model) and min(len(data.train), config.batch_size) < 2:
        raise SettingsError("batch norm cannot learn from batches of one sample: use a larger batch size")
    if isinstance(data.train, Part):
        check_labels(data.train.y, len(data.classes))
    if config.augmentation is not None:
        check_masks(data.input_shape, config.augmentation)
    check_network(model)
    try:
        torch.zeros(1, device=config.device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SettingsError(f"the device '{config.device}' cannot be used: {str(error).splitlines()[0]}") from error
    check_shapes(model, data)


def check_teacher(model: nn.Module, teacher: nn.Module | None, data: Data, config: TrainConfig) -> None:
    """Refuse a teacher that nothing is learned from, that is missing, or that is the network itself."""
    if (teacher is None) != (config.distillation is None):
        missing = "a teacher, the larger network" if teacher is None else "distillation in the configuration"
        raise SettingsError(f"learning from a teacher needs both the teacher and the settings: give {missing}")
    if teacher is model:
        raise ModelError("a network cannot be its own teacher: give it a copy")
    if teacher is not None:
        check_shapes(teacher, data)


def check_network(model: nn.Module) -> None:
    """Refuse parameters that cannot be trained at all."""
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise ModelError(f"'{name}' of the network has no values yet: run the network on a batch first")
        if parameter.is_inference():
            raise ModelError(f"'{name}' of the network was made in inference mode: it cannot be trained")


def check_shapes(model: nn.Module, data: Data) -> None:
    """Run one sample, to see that the network reads this data and tells its classes apart."""
    with evaluating(model):
        outputs = call(model, placed(first_sample(data.train), numbers_of(model))).shape[1]
    if outputs != len(data.classes):
        raise ModelError(
            f"the network must give {len(data.classes)} logits, one a class of {data.name}; it gives {outputs}"
        )


def stacks(
    models: Sequence[nn.Module], datas: Sequence[Data], configs: Sequence[TrainConfig]
) -> list[tuple[list[int], bool]]:
    """Say which trainings run as one computation, in the order of their first, and whether each is such a stack."""
    groups: dict[Hashable, list[int]] = {}
    for number, (model, data, config) in enumerate(zip(models, datas, configs, strict=True)):
        key = stack_key(model, data, config)
        groups.setdefault(number if key is None else key, []).append(number)
    return [(group, not isinstance(key, int)) for key, group in groups.items()]


def stack_key(model: nn.Module, data: Data, config: TrainConfig) -> Hashable | None:
    """Give what trainings that run as one have in common; None for one that cannot be in a stack."""
    common = common_key(data, config)
    if common is None or not (stackable(model) and reads_flat(model, data.input_shape)):
        return None
    return signature(model), common


def common_key(data: Data, config: TrainConfig) -> Hashable | None:
    """Give what trainings of networks that can be stacked must have in common beside these; None for one alone."""
    in_memory = isinstance(data.train, Part) and isinstance(data.validation, Part)
    alone = config.pruning is not None or config.augmentation is not None
    if config.device != "cpu" or alone or not in_memory:
        return None
    settings = config.model_dump_json(exclude={"seed", "learning_rate"})
    return settings, data.input_shape, len(data.classes), len(data.validation) > 0


def answers_beforehand(
    teachers: Sequence[nn.Module], datas: Sequence[Data], configs: Sequence[TrainConfig]
) -> list[Tensor]:
    """Ask teachers once about all samples, where these are in memory and stay as they are; give none otherwise."""
    parts = [data.train for data in datas if isinstance(data.train, Part)]
    if len(parts) < len(datas) or configs[0].augmentation is not None:
        return []
    return [part_logits(teacher, part)[0] for teacher, part in zip(teachers, parts, strict=False)]


def make_batches(
    model: nn.Module,
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    like: Tensor,
    answers: Sequence[Tensor] = (),
) -> Batches:
    """Give the batches of the training parts, with what teachers answer where that is known."""
    batch_size, smallest = configs[0].batch_size, 2 if has_batch_norm(model) else 1
    parts = [data.train for data in datas if isinstance(data.train, Part)]
    if len(parts) == len(datas):
        seeds = [config.seed for config in configs]
        return MemoryBatches(parts, seeds, batch_size=batch_size, smallest=smallest, like=like, answers=answers)
    stream = datas[0].train
    if isinstance(stream, Part):
        raise DataError("networks that are trained together must all have their samples in memory")
    classes = len(datas[0].classes)
    return StreamBatches(stream, configs[0].seed, classes=classes, batch_size=batch_size, smallest=smallest, like=like)


def validations(datas: Sequence[Data]) -> list[AnyPart]:
    """Give the validation parts; none where they are empty."""
    return [data.validation for data in datas if len(data.validation)]


def class_weights(datas: Sequence[Data], configs: Sequence[TrainConfig], like: Tensor) -> list[Tensor] | None:
    """Give one weight a class for each training, or None where all samples count the same.

    Balanced: n_samples / (n_classes · samples of the class), as scikit-learn does it.
    """
    wanted = configs[0].class_weights
    if wanted is None:
        return None
    if isinstance(wanted, tuple):
        return [torch.tensor(wanted, dtype=like.dtype, device=like.device)] * len(datas)
    found = []
    for data in datas:
        labels = torch.cat([torch.as_tensor(y) for _, y in part_batches(data.train, BATCH_SIZE)])
        counts = torch.bincount(labels, minlength=len(data.classes)).clamp(min=1)
        found.append((len(labels) / (len(data.classes) * counts)).to(like))
    return found


def has_batch_norm(model: nn.Module) -> bool:
    """Say whether a layer learns from the spread within a batch."""
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def fingerprint(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[nn.Module],
    *,
    stacked: bool,
) -> str:
    """Name a training by its configurations, its networks with their initial weights, its teachers and its data."""
    described = hashlib.sha256(b"stack" if stacked else b"single")
    for teacher in teachers:
        add_tensors(described, teacher.state_dict().values())
    for model, data, config in zip(models, datas, configs, strict=True):
        trained = [parameter.requires_grad for parameter in model.parameters()]
        described.update(json.dumps([config.model_dump(mode="json"), str(model), trained]).encode())
        tensors: list[object] = list(model.state_dict().values())
        for part in (data.train, data.validation):
            described.update(str(len(part)).encode())
            tensors += [part.x, part.y] if isinstance(part, Part) else []
        add_tensors(described, tensors)
    return described.hexdigest()


def add_tensors(described: "hashlib._Hash", tensors: Iterable[object]) -> None:
    """Let a hash depend on the values of tensors."""
    for tensor in tensors:
        if isinstance(tensor, Tensor):
            described.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            described.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
