from typing import Any

import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.metrics import log_loss as reference_log_loss
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from topiarist.data import AnyPart, Part, Stream
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.models import mlp
from topiarist.models.evaluation import evaluating
from topiarist.randomness import generator
from topiarist.training.inference import BATCH_SIZE, first_sample, part_logits, predict_logits, suited_batch
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy


def samples(count: int = 57, features: int = 4, classes: int = 3) -> Part:
    random = generator(3, "samples")
    x = torch.randn(count, features, generator=random)
    return Part(x, torch.randint(classes, (count,), generator=random))


def stream(part: Part, workers: int = 0) -> Stream:
    return Stream(TensorDataset(part.x, part.y), workers)


class Viewing(nn.Module):
    """Flattens by `view`, which cannot read what lies with the channels last."""

    def forward(self, x: Tensor) -> Tensor:
        return x.view(len(x), -1)


@pytest.mark.parametrize("batch_size", [1, 10, 57, 1024])
def test_batches_do_not_change_the_logits(batch_size: int) -> None:
    part, model = samples(), mlp([4, 8, 3], "tanh", True, 0.5).double()
    with torch.no_grad():
        expected = model.eval()(part.x.double())
    for given in (part, stream(part)):
        logits, labels = part_logits(model, given, batch_size=batch_size)
        torch.testing.assert_close(logits, expected)
        assert logits.dtype == torch.float64 and torch.equal(labels, part.y)
    torch.testing.assert_close(predict_logits(model, part.x, batch_size=batch_size), expected)


def test_pictures_run_in_small_batches() -> None:
    assert suited_batch(torch.zeros(1, 64)) == BATCH_SIZE
    assert suited_batch(torch.zeros(1, 1, 28, 28)) == 83
    assert suited_batch(torch.zeros(1, 3, 224, 224)) == 16
    assert suited_batch(torch.zeros(1, 1, 2, 2)) == BATCH_SIZE


@pytest.mark.parametrize("flatten", [nn.Flatten(), Viewing()])
@pytest.mark.parametrize("channels", [1, 3])
def test_where_channels_lie_does_not_change_the_logits(flatten: nn.Module, channels: int) -> None:
    model = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), flatten, nn.Linear(4 * 6 * 6, 3)).double()
    x = torch.randn(30, channels, 8, 8, dtype=torch.float64, generator=generator(0, "pictures"))
    with torch.no_grad():
        expected = model.eval()(x)
    kernel = model.get_parameter("0.weight")
    before = kernel.detach().clone()
    torch.testing.assert_close(predict_logits(model, x, batch_size=7), expected)
    assert torch.equal(kernel, before) and kernel.is_contiguous()


def test_metrics_agree_with_scikit_learn() -> None:
    logits, labels = part_logits(mlp([4, 8, 3]), samples(200))
    said, probabilities = logits.argmax(dim=1), logits.double().softmax(dim=1)
    assert accuracy(logits, labels) == pytest.approx(accuracy_score(labels, said))
    assert macro_accuracy(logits, labels) == pytest.approx(balanced_accuracy_score(labels, said))
    assert log_loss(logits, labels) == pytest.approx(reference_log_loss(labels, probabilities))


def test_a_class_without_samples_does_not_count() -> None:
    part = Part(torch.eye(3)[[0, 0, 1, 2]], torch.tensor([0, 0, 0, 2]))
    logits, labels = part_logits(nn.Identity(), part)
    assert accuracy(logits, labels) == 3 / 4
    assert macro_accuracy(logits, labels) == pytest.approx((2 / 3 + 1) / 2)


def test_every_mode_comes_back() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Sequential(nn.Dropout(), nn.Linear(4, 3)))
    model[1].eval()
    before = [module.training for module in model.modules()]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    part_logits(model, samples())
    with pytest.raises(KeyError), evaluating(model):
        assert not any(module.training for module in model.modules())
        raise KeyError
    assert [module.training for module in model.modules()] == before
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_nothing_is_drawn_from_the_global_generator() -> None:
    before = torch.random.get_rng_state()
    part_logits(mlp([4, 3], dropout=0.5), stream(samples()))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_samples_follow_the_type_of_the_network(dtype: torch.dtype) -> None:
    assert predict_logits(mlp([4, 3]).to(dtype), samples().x).dtype == dtype


def test_whole_numbers_are_left_alone() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 2))
    assert predict_logits(model, torch.tensor([[0, 4], [1, 2]])).shape == (2, 2)


def test_a_network_without_tensors_is_fine() -> None:
    part = samples()
    assert torch.equal(predict_logits(nn.Identity(), part.x), part.x)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_gives_its_first_sample(workers: int) -> None:
    part = samples()
    for given in (part, stream(part, workers)):
        assert torch.equal(first_sample(given), part.x[:1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 on a fork beside threads
def test_workers_give_the_same_logits() -> None:
    part, model = samples(), mlp([4, 3])
    logits, labels = part_logits(model, stream(part, workers=1), batch_size=20)
    assert torch.equal(labels, part.y) and logits.shape == (57, 3)


class Numbered(Dataset[Any]):
    """Return plain whole numbers as labels, as many datasets do."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.full((4,), float(index)), index % 3


def test_labels_may_be_plain_numbers() -> None:
    _, labels = part_logits(mlp([4, 3]), Stream(Numbered()), batch_size=2)
    assert labels.tolist() == [0, 1, 2, 0, 1]


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mlp([5, 3]), r"the network cannot read samples of shape \(4,\)"),
        (nn.BatchNorm2d(4), r"the network cannot read samples of shape \(4,\)"),
        (nn.Flatten(0), r"must return logits \(57, n_classes\) for 57 samples; found shape \(228,\)"),
        (Pair(), r"must return logits .* found tuple"),
    ],
)
def test_a_network_that_does_not_classify_is_one_line(model: nn.Module, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        part_logits(model, samples())


@pytest.mark.parametrize("part", [samples(0), stream(samples(0))])
def test_an_empty_part_is_refused(part: AnyPart) -> None:
    with pytest.raises(DataError, match="the part is empty"):
        part_logits(mlp([4, 3]), part)


def test_a_batch_has_samples() -> None:
    with pytest.raises(SettingsError, match="batch_size must be at least 1; found 0"):
        part_logits(mlp([4, 3]), samples(), batch_size=0)
