"""Published families of convolutional networks, a small member of each, from the package `pytorchcv`.

A name is that of `pytorchcv.model_provider.get_model`; the number is the side of the images. Many members end in a
pooling of 7 × 7 pixels and so read nothing smaller than 224. Not here: RegNet (there is one among the networks of the
hub) and NTS-Net, whose code needs a numpy older than 1.24; PolyNet and PNASNet, which read nothing smaller than 331;
and NASNet and the networks of stochastic depth, whose factories refuse an image size.
"""

from functools import partial

import torch

from benchmarks.zoo.catalogue import Catalogue, Made
from topiarist.data.extras import import_extra

CATALOGUE = Catalogue("published", "published convolutional families")
CLASSES, BATCH = 10, 2

CLASSIFIERS: dict[str, int] = {
    "alexnet": 224,
    "bn_vgg11": 224,
    "bninception": 224,
    "resnet10": 224,
    "preresnet10": 224,
    "resnext14_16x4d": 224,
    "seresnet10": 224,
    "senet16": 224,
    "resnestabc14": 64,
    "ibn_resnet50": 224,
    "airnet50_1x64d_r2": 224,
    "bam_resnet18": 224,
    "cbam_resnet18": 224,
    "resattnet56": 224,
    "sknet50": 224,
    "scnet50": 128,
    "diaresnet10": 224,
    "pyramidnet110_a48_cifar10": 32,
    "diracnet18v2": 224,
    "sharesnet18": 224,
    "densenet40_k12_bc_cifar10": 32,
    "condensenet74_c4_g4": 224,
    "sparsenet121": 224,
    "peleenet": 224,
    "wrn16_10_cifar10": 32,
    "wrn20_10_1bit_cifar10": 32,
    "drnd22": 224,
    "dpn68": 224,
    "darknet_tiny": 224,
    "channelnet": 224,
    "revnet38": 224,
    "bagnet9": 224,
    "dla46c": 224,
    "msdnet22_cifar10": 32,
    "fishnet99": 224,
    "espnetv2_wd2": 224,
    "dicenet_wd5": 32,
    "hrnet_w18_small_v1": 224,
    "vovnet27s": 224,
    "selecsls42": 224,
    "hardnet39ds": 224,
    "xdensenet40_2_k24_bc_cifar10": 32,
    "squeezenet_v1_1": 224,
    "sqnxt23_w1": 224,
    "shufflenet_g3_wd4": 224,
    "shufflenetv2_wd2": 224,
    "menet108_8x1_g3": 224,
    "mobilenet_wd4": 224,
    "mobilenetv2_wd4": 224,
    "mobilenetv3_small_w7d20": 224,
    "igcv3_wd4": 224,
    "ghostnet": 224,
    "mnasnet_small": 224,
    "darts": 224,
    "proxylessnas_cpu": 224,
    "fbnet_cb": 224,
    "spnasnet": 224,
    "xception": 299,
    "inceptionv3": 299,
    "efficientnet_b0": 224,
    "mixnet_s": 224,
    "nin_cifar10": 32,
    "ror3_56_cifar10": 32,
    "fractalnet_cifar10": 32,
    "isqrtcovresnet18": 64,
    "resneta10": 64,
    "octresnet10_ad2": 224,
}
FOR_EVERY_PIXEL: dict[str, int] = {
    "fcn8sd_resnetd50b_voc": 32,
    "fastscnn_cityscapes": 32,
    "cgnet_cityscapes": 32,
    "dabnet_cityscapes": 32,
    "sinet_cityscapes": 128,
    "edanet_cityscapes": 32,
    "enet_cityscapes": 32,
    "erfnet_cityscapes": 32,
    "unet_cityscapes": 32,
    "centernet_resnet18_voc": 32,
}


def published(name: str, size: int) -> Made:
    """Return a network by its name, and images for it."""
    provider = import_extra("pytorchcv.model_provider", what="the zoo", extra="zoo")
    model = provider.get_model(name, pretrained=False, in_size=(size, size), num_classes=CLASSES)
    return model, torch.randn(BATCH, 3, size, size)


for _name, _size in (CLASSIFIERS | FOR_EVERY_PIXEL).items():
    CATALOGUE.add_named(_name, partial(published, _name, _size))
