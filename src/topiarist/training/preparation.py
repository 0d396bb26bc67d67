"""What is checked and found out before training: whether it is possible, what runs as one, how samples are weighted."""

from collections.abc import Hashable, Sequence

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from topiarist.data import Data, Part
from topiarist.devices import find_device
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.models.stacked import padded_signature, reads_flat, signature, stackable
from topiarist.training.config import TrainConfig
from topiarist.training.engines.batching import has_batch_norm
from topiarist.training.engines.steps import check_masks
from topiarist.training.inference import call, first_sample, part_logits, weights_of

Teacher = nn.Module | Tensor  # a network, or what is answered to each training sample (n_samples, n_outputs)


def check_trainable(model: nn.Module, data: Data, config: TrainConfig, *, scored: bool = False) -> None:
    """Raise a one-line error where a network cannot be trained; `scored` if the user's own score is watched."""
    _check_data(data, config, scored=scored)
    if has_batch_norm(model) and min(len(data.train), config.batch_size) < 2:
        raise SettingsError("batch norm cannot learn from batches of one sample: use a larger batch size")
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise ModelError(f"'{name}' of the network has no values yet: run the network on a batch first")
        if parameter.is_inference():
            raise ModelError(f"'{name}' of the network was created in inference mode: it cannot be trained")
    if config.device is not None:
        find_device(config.device)
    check_outputs(model, data)


def check_teacher(model: nn.Module, teacher: Teacher | None, data: Data, config: TrainConfig) -> None:
    """Raise an error for a teacher that nothing is learned from, that is missing, or that is the network itself."""
    if (teacher is None) != (config.distillation is None):
        missing = "a teacher, the larger network" if teacher is None else "distillation in the configuration"
        raise SettingsError(f"learning from a teacher needs both the teacher and the settings: give {missing}")
    if teacher is model:
        raise ModelError("a network cannot be its own teacher: give it a copy")
    if isinstance(teacher, Tensor):
        _check_answers(teacher, data, config)
    elif teacher is not None:
        check_outputs(teacher, data)


def _check_answers(answers: Tensor, data: Data, config: TrainConfig) -> None:
    """Raise an error for answers that are not one row of finite outputs per training sample as it is."""
    if not isinstance(data.train, Part) or config.augmentation is not None:
        raise SettingsError(
            "answers are known of samples in memory that stay as they are: give a network as the teacher"
        )
    wanted = (len(data.train), data.task.outputs)
    if tuple(answers.shape) != wanted or not answers.is_floating_point():
        found = f"{answers.dtype} of shape {tuple(answers.shape)}"
        raise ModelError(f"the answers to learn from must be real numbers {wanted}, a row per sample; found {found}")
    if not bool(answers.isfinite().all()):
        raise ModelError(f"the answers to learn from must be finite; {int((~answers.isfinite()).sum())} are not")


def _check_data(data: Data, config: TrainConfig, *, scored: bool) -> None:
    if not len(data.train):
        raise DataError(f"{data.name} has no training samples")
    if config.watcher and not scored and not len(data.validation):
        raise SettingsError(f"{config.watcher} needs a validation part: give it a fraction of the data above 0")
    task = data.task.with_loss(config.loss)
    if config.monitor != "loss":
        task.find_metric(config.monitor)
    if config.class_weights is not None and task.kind != "classes":
        raise SettingsError(f"class weights are for classes; what is predicted is {task}: leave them out")
    if isinstance(config.class_weights, tuple) and len(config.class_weights) != len(data.classes):
        raise SettingsError(f"{len(config.class_weights)} class weights for {len(data.classes)} classes")
    if config.distillation is not None and task.own_loss is not None:
        raise SettingsError("a loss of your own cannot be joined with distillation: leave one out")
    if isinstance(data.train, Part):
        task.check_targets(data.train.y)
    if config.augmentation is not None:
        check_masks(data.input_shape, config.augmentation)


def check_outputs(model: nn.Module, data: Data) -> None:
    """Raise ModelError for a network that returns more or fewer logits than there are classes."""
    with evaluating(model):
        outputs = call(model, placed(first_sample(data.train), numbers_of(model))).shape[1]
    check_width(outputs, data)


def check_width(outputs: int, data: Data) -> None:
    """Raise ModelError for a network with more or fewer outputs than the task needs."""
    task = data.task
    if outputs == task.outputs:
        return
    what = {
        "classes": f"{task.outputs} logits, one per class",
        "numbers": f"{task.outputs} number{'' if task.outputs == 1 else 's'}, one per target",
        "labels": f"{task.outputs} logits, one per label",
    }[task.kind]
    raise ModelError(f"the network must return {what} of {data.name}; it returns {outputs}")


def stacks(
    models: Sequence[nn.Module], datas: Sequence[Data], configs: Sequence[TrainConfig], *, padded: bool = False
) -> list[tuple[list[int], bool]]:
    """Return which trainings run as one computation, in the order of their first, and whether each is such a stack."""
    groups: dict[Hashable, list[int]] = {}
    for number, (model, data, config) in enumerate(zip(models, datas, configs, strict=True)):
        key = stack_key(model, data, config, padded=padded)
        groups.setdefault(number if key is None else key, []).append(number)
    return [(group, not isinstance(key, int)) for key, group in groups.items()]


def stack_key(model: nn.Module, data: Data, config: TrainConfig, *, padded: bool = False) -> Hashable | None:
    """Return what trainings that run as one have in common; None for one that cannot be in a stack.

    With `padded`, networks may differ in their widths. What prunes is alone: padding would count as zeros.
    """
    in_memory = isinstance(data.train, Part) and isinstance(data.validation, Part)
    alone = config.pruning is not None or config.augmentation is not None
    if alone or not in_memory or data.task.own_loss is not None:
        return None
    if not (stackable(model) and reads_flat(model, data.input_shape)):
        return None
    shape = (padded_signature(model) if padded else None) or signature(model)
    settings = config.model_dump_json(exclude={"seed", "learning_rate"})
    task = data.task.kind, data.task.outputs, data.task.loss, weights_of(data.train) is not None
    return shape, numbers_of(model).device, settings, data.input_shape, task, len(data.validation) > 0


def answers_beforehand(
    teachers: Sequence[Teacher], datas: Sequence[Data], configs: Sequence[TrainConfig]
) -> list[Tensor]:
    """Return what teachers answer to all samples, where these are in memory and stay as they are; else nothing."""
    parts = [data.train for data in datas if isinstance(data.train, Part)]
    if len(parts) < len(datas) or configs[0].augmentation is not None:
        return []
    return [
        teacher if isinstance(teacher, Tensor) else part_logits(teacher, part)[0]
        for teacher, part in zip(teachers, parts, strict=False)
    ]
