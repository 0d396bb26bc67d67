"""Detectors in the manner of YOLO: C2f blocks in two styles, pyramid pooling, and heads that decode boxes."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from benchmarks.zoo.catalogue import Made
from benchmarks.zoo.own.collected import CATALOGUE


class ConvBlock(nn.Module):
    """A convolution with batch norm and SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cv1, self.cv2 = ConvBlock(width, width, 3), ConvBlock(width, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.cv2(self.cv1(x))


class C2f(nn.Module):
    """Bottlenecks all of whose results are concatenated; the first layer's result is halved by `chunk`."""

    def __init__(self, inputs: int, outputs: int, blocks: int = 2) -> None:
        super().__init__()
        self.c = outputs // 2
        self.cv1 = ConvBlock(inputs, 2 * self.c)
        self.cv2 = ConvBlock((2 + blocks) * self.c, outputs)
        self.m = nn.ModuleList(Bottleneck(self.c) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        y = list(self.cv1(x).chunk(2, 1))
        y.extend(m(y[-1]) for m in self.m)
        return self.cv2(torch.cat(y, 1))


class C2fSplit(C2f):
    """The same; the first layer's result is split by an attribute."""

    def forward(self, x: Tensor) -> Tensor:
        y = list(self.cv1(x).split((self.c, self.c), 1))
        y.extend(m(y[-1]) for m in self.m)
        return self.cv2(torch.cat(y, 1))


def classifier_of(block: type[C2f]) -> nn.Module:
    """Return a classifier with one block."""
    return nn.Sequential(ConvBlock(3, 16, 3, 2), block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5))


@CATALOGUE.add
def c2f_chunk() -> Made:
    """Return a classifier with C2f by `chunk`."""
    return classifier_of(C2f), torch.randn(3, 3, 12, 12)


@CATALOGUE.add
def c2f_split() -> Made:
    """Return a classifier with C2f by `split`."""
    return classifier_of(C2fSplit), torch.randn(3, 3, 12, 12)


class PyramidPooling(nn.Module):
    """Repeated max pooling whose results are concatenated (SPPF)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.cv1 = ConvBlock(inputs, inputs // 2)
        self.cv2 = ConvBlock(inputs // 2 * 4, outputs)
        self.m = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.cv1(x)
        y1 = self.m(x)
        y2 = self.m(y1)
        return self.cv2(torch.cat((x, y1, y2, self.m(y2)), 1))


class AnchorHead(nn.Module):
    """A head with anchors, decoded with a grid made of `arange` (YOLOv5)."""

    anchors: Tensor

    def __init__(self, widths: Sequence[int], classes: int = 3, anchors: int = 2) -> None:
        super().__init__()
        self.no, self.na = classes + 5, anchors
        self.m = nn.ModuleList(nn.Conv2d(width, self.no * self.na, 1) for width in widths)
        self.register_buffer("anchors", torch.rand(len(widths), anchors, 2) + 0.5)
        self.stride = [4, 8]

    def grid(self, height: int, width: int) -> Tensor:
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        return torch.stack((x, y), 2).expand(1, self.na, height, width, 2).float() - 0.5

    def forward(self, levels: list[Tensor]) -> Tensor:
        found = []
        for i, (head, level) in enumerate(zip(self.m, levels, strict=True)):
            b, _, h, w = level.shape
            y = head(level).view(b, self.na, self.no, h, w).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
            xy, wh, rest = y.split((2, 2, self.no - 4), 4)
            xy = (xy * 2 + self.grid(h, w)) * self.stride[i]
            wh = (wh * 2) ** 2 * self.anchors[i].view(1, self.na, 1, 1, 2)
            found.append(torch.cat((xy, wh, rest), 4).view(b, self.na * h * w, self.no))
        return torch.cat(found, 1)


class Detector(nn.Module):
    """A backbone with two levels, a path back up, and a decoded head."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(ConvBlock(3, width, 3, 2), ConvBlock(width, width, 3, 2), C2f(width, width))
        self.deep = nn.Sequential(ConvBlock(width, 2 * width, 3, 2), PyramidPooling(2 * width, 2 * width))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.join = C2fSplit(3 * width, width, 1)
        self.detect = AnchorHead([width, 2 * width])

    def forward(self, x: Tensor) -> Tensor:
        shallow = self.stem(x)
        deep = self.deep(shallow)
        return self.detect([self.join(torch.cat([self.up(deep), shallow], 1)), deep])


@CATALOGUE.add
def yolo_anchors() -> Made:
    """Return a detector with anchors and decoded boxes."""
    return Detector(), torch.randn(2, 3, 32, 32)


class DistributionHead(nn.Module):
    """A head without anchors: distances as expectations of 8 bins (YOLOv8)."""

    def __init__(self, width: int, classes: int = 3, bins: int = 8) -> None:
        super().__init__()
        self.nc, self.reg_max = classes, bins
        self.box = nn.Sequential(ConvBlock(width, 16, 3), nn.Conv2d(16, 4 * bins, 1))
        self.cls = nn.Sequential(ConvBlock(width, 16, 3), nn.Conv2d(16, classes, 1))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        b, _, h, w = x.shape
        bins = self.box(x).view(b, 4, self.reg_max, h * w).transpose(2, 1).softmax(1)
        distances = (bins * torch.arange(self.reg_max, dtype=torch.float).view(1, -1, 1, 1)).sum(1)
        y, x_grid = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
        centres = torch.stack((x_grid, y)).view(1, 2, h * w)
        left_top, right_bottom = distances.chunk(2, 1)
        boxes = torch.cat((centres - left_top, centres + right_bottom), 1)
        return {"boxes": boxes, "scores": self.cls(x).flatten(2).sigmoid()}


@CATALOGUE.add
def yolo_distributions() -> Made:
    """Return a detector without anchors, which returns a dictionary."""
    return nn.Sequential(ConvBlock(3, 16, 3, 2), C2f(16, 32), DistributionHead(32)), torch.randn(2, 3, 16, 16)


class ObjectQueries(nn.Module):
    """A convolutional backbone and a transformer with a query per object (Carion et al., DETR, 2020)."""

    def __init__(self, width: int = 32, queries: int = 6, classes: int = 4) -> None:
        super().__init__()
        self.backbone = nn.Sequential(ConvBlock(3, 16, 3, 2), ConvBlock(16, 24, 3, 2))
        self.conv = nn.Conv2d(24, width, 1)
        self.transformer = nn.Transformer(width, 4, 1, 1, 48)
        self.linear_class, self.linear_bbox = nn.Linear(width, classes + 1), nn.Linear(width, 4)
        self.query_pos = nn.Parameter(torch.rand(queries, width))
        self.row_embed = nn.Parameter(torch.rand(20, width // 2))
        self.col_embed = nn.Parameter(torch.rand(20, width // 2))

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        h = self.conv(self.backbone(inputs))
        height, width = h.shape[-2:]
        columns = self.col_embed[:width].unsqueeze(0).repeat(height, 1, 1)
        rows = self.row_embed[:height].unsqueeze(1).repeat(1, width, 1)
        positions = torch.cat([columns, rows], dim=-1).flatten(0, 1).unsqueeze(1)
        queries = self.query_pos.unsqueeze(1).repeat(1, inputs.shape[0], 1)
        h = self.transformer(positions + 0.1 * h.flatten(2).permute(2, 0, 1), queries).transpose(0, 1)
        return {"pred_logits": self.linear_class(h), "pred_boxes": self.linear_bbox(h).sigmoid()}


@CATALOGUE.add
def object_queries() -> Made:
    """Return a detector with `nn.Transformer` in the manner of DETR's demonstration."""
    return ObjectQueries(), torch.randn(2, 3, 24, 24)
