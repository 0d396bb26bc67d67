"""Images in, images out: U-Nets, super-resolution, style transfer, pyramids, autoencoders."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo.catalogue import Made
from benchmarks.zoo.own.collected import CATALOGUE


def double(inputs: int, outputs: int) -> nn.Sequential:
    """Return two convolutions with batch norm."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """A U-Net with transposed convolutions, padded where sizes differ."""

    def __init__(self, widths: Sequence[int] = (8, 16, 32), classes: int = 3) -> None:
        super().__init__()
        pairs = list(pairwise(widths))
        self.inc = double(3, widths[0])
        self.downs = nn.ModuleList(double(above, below) for above, below in pairs)
        self.ups = nn.ModuleList(nn.ConvTranspose2d(below, above, 2, stride=2) for above, below in reversed(pairs))
        self.joins = nn.ModuleList(double(2 * above, above) for above, _ in reversed(pairs))
        self.outc = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inc(x)
        skips = []
        for down in self.downs:
            skips.append(x)
            x = down(functional.max_pool2d(x, 2))
        for up, join in zip(self.ups, self.joins, strict=True):
            x, skip = up(x), skips.pop()
            missing_y, missing_x = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
            x = functional.pad(
                x, [missing_x // 2, missing_x - missing_x // 2, missing_y // 2, missing_y - missing_y // 2]
            )
            x = join(torch.cat([skip, x], dim=1))
        return self.outc(x)


@CATALOGUE.add
def unet() -> Made:
    """Return a U-Net with transposed convolutions, for images of an odd size."""
    return UNet(), torch.randn(2, 3, 18, 22)


class BilinearUNet(nn.Module):
    """A U-Net that interpolates, with sums instead of concatenations."""

    def __init__(self) -> None:
        super().__init__()
        self.enc1, self.enc2, self.enc3 = double(1, 12), double(12, 24), double(24, 24)
        self.dec2, self.dec1 = double(24, 12), double(12, 12)
        self.final = nn.Conv2d(12, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        e1 = self.enc1(x)
        e2 = self.enc2(functional.avg_pool2d(e1, 2))
        e3 = self.enc3(functional.avg_pool2d(e2, 2))
        up = functional.interpolate(e3, scale_factor=2, mode="bilinear", align_corners=False)
        d2 = self.dec2(up + e2)
        d1 = self.dec1(functional.interpolate(d2, size=e1.shape[-2:], mode="nearest") + e1)
        return torch.sigmoid(self.final(d1))


@CATALOGUE.add
def unet_bilinear() -> Made:
    """Return a U-Net that interpolates and adds."""
    return BilinearUNet(), torch.randn(2, 1, 16, 16)


class VolumeUNet(nn.Module):
    """A U-Net for volumes: Conv3d, InstanceNorm3d, ConvTranspose3d."""

    def __init__(self, width: int = 8, classes: int = 2) -> None:
        super().__init__()
        self.first = self.block(1, width)
        self.down = nn.Conv3d(width, 2 * width, 3, stride=2, padding=1)
        self.bottom = self.block(2 * width, 2 * width)
        self.up = nn.ConvTranspose3d(2 * width, width, 2, 2)
        self.last = self.block(2 * width, width)
        self.out = nn.Conv3d(width, classes, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Module:
        norm = nn.InstanceNorm3d(outputs, affine=True)
        return nn.Sequential(nn.Conv3d(inputs, outputs, 3, padding=1), norm, nn.LeakyReLU(0.01))

    def forward(self, x: Tensor) -> Tensor:
        skip = self.first(x)
        x = self.up(self.bottom(self.down(skip)))
        return self.out(self.last(torch.cat((skip, x), dim=1)))


@CATALOGUE.add
def unet_3d() -> Made:
    """Return a U-Net for volumes."""
    return VolumeUNet(), torch.randn(2, 1, 6, 6, 6)


class SuperResolution(nn.Module):
    """Residual blocks without norms, then PixelShuffle (Lim et al., EDSR, 2017)."""

    def __init__(self, width: int = 24, blocks: int = 2, scale: int = 2) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(True), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(blocks)
        )
        self.before = nn.Conv2d(width, width * scale**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(scale)
        self.tail = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = start = self.head(x)
        for block in self.body:
            x = x + 0.1 * block(x)
        return self.tail(self.shuffle(self.before(x + start)))


@CATALOGUE.add
def super_resolution() -> Made:
    """Return super-resolution with PixelShuffle."""
    return SuperResolution(), torch.randn(2, 3, 8, 8)


class StyleBlock(nn.Module):
    """Two reflected convolutions with instance norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3))
        self.conv2 = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3))
        self.in1, self.in2 = nn.InstanceNorm2d(width, affine=True), nn.InstanceNorm2d(width, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.in2(self.conv2(torch.relu(self.in1(self.conv1(x)))))


@CATALOGUE.add
def style_transfer() -> Made:
    """Return style transfer with instance and group norms (Johnson et al., 2016)."""
    down = [nn.Conv2d(3, 12, 5, padding=2), nn.GroupNorm(3, 12), nn.PReLU(12)]
    middle = [nn.Conv2d(12, 24, 3, 2, 1), nn.InstanceNorm2d(24, affine=True), nn.ReLU(), StyleBlock(24), StyleBlock(24)]
    up = [nn.Upsample(scale_factor=2), nn.Conv2d(24, 12, 3, padding=1), nn.GroupNorm(1, 12), nn.ReLU()]
    return nn.Sequential(*down, *middle, *up, nn.Conv2d(12, 3, 3, padding=1), nn.Tanh()), torch.randn(2, 3, 12, 12)


class Pyramid(nn.Module):
    """A feature pyramid (Lin et al., 2017) that returns one map of scores per level."""

    def __init__(self, widths: Sequence[int] = (8, 16, 32), width: int = 16, scores: int = 2) -> None:
        super().__init__()
        ins = (3, *widths[:-1])
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU())
            for before, after in zip(ins, widths, strict=True)
        )
        self.lateral = nn.ModuleList(nn.Conv2d(each, width, 1) for each in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in widths)
        self.score = nn.Conv2d(width, scores, 1)

    def forward(self, x: Tensor) -> list[Tensor]:
        levels = []
        for stage, lateral in zip(self.stages, self.lateral, strict=True):
            x = stage(x)
            levels.append(lateral(x))
        for level in range(len(levels) - 2, -1, -1):
            levels[level] = levels[level] + functional.interpolate(levels[level + 1], scale_factor=2.0)
        return [self.score(smooth(level)) for smooth, level in zip(self.smooth, levels, strict=True)]


@CATALOGUE.add
def feature_pyramid() -> Made:
    """Return a feature pyramid with a shared head and three outputs."""
    return Pyramid(), torch.randn(2, 3, 16, 16)


class VariationalAutoencoder(nn.Module):
    """A convolutional variational autoencoder; it returns the reconstruction, the mean and the log-variance."""

    def __init__(self, latent: int = 6) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU())
        self.fc_mu, self.fc_var = nn.Linear(24 * 16, latent), nn.Linear(24 * 16, latent)
        self.decoder_input = nn.Linear(latent, 24 * 16)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(24, 16, 3, 2, 1, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 3, 2, 1, output_padding=1),
        )

    def reparameterise(self, mu: Tensor, logvar: Tensor) -> Tensor:
        if not self.training:
            return mu
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        code = torch.flatten(self.encoder(x), start_dim=1)
        mu, logvar = self.fc_mu(code), self.fc_var(code)
        z = self.decoder_input(self.reparameterise(mu, logvar))
        return torch.sigmoid(self.decoder(z.view(z.size(0), -1, 4, 4))), mu, logvar


@CATALOGUE.add
def vae() -> Made:
    """Return a convolutional variational autoencoder."""
    return VariationalAutoencoder(), torch.rand(3, 1, 16, 16)


@CATALOGUE.add
def gan_generator() -> Made:
    """Return the generator of a GAN: a vector is unflattened and grows."""
    layers = [nn.Linear(10, 32 * 16), nn.Unflatten(1, (32, 4, 4)), nn.BatchNorm2d(32), nn.ReLU()]
    up = [nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*layers, *up, nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh()), torch.randn(3, 10)
