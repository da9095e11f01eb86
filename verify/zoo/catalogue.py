"""The models that ``verify/check_model_zoo.py`` checks: name, family, inputs and how to build them.

Names that start with ``gluon:`` are of MXNet's own Gluon zoo, those with ``gluoncv:`` of GluonCV, the others
are built by the modules of this folder. Must run on Python 3.8, without mxnet or roiops.
"""

import re

_CLASSIFIERS_224 = [
    "alexnet",
    "vgg11",
    "vgg13",
    "vgg16",
    "vgg19",
    "vgg11_bn",
    "vgg13_bn",
    "vgg16_bn",
    "vgg19_bn",
    "resnet18_v1",
    "resnet34_v1",
    "resnet50_v1",
    "resnet101_v1",
    "resnet152_v1",
    "resnet18_v2",
    "resnet34_v2",
    "resnet50_v2",
    "resnet101_v2",
    "resnet152_v2",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
    "squeezenet1.0",
    "squeezenet1.1",
    "mobilenet1.0",
    "mobilenet0.75",
    "mobilenet0.5",
    "mobilenet0.25",
    "mobilenetv2_1.0",
    "mobilenetv2_0.75",
    "mobilenetv2_0.5",
    "mobilenetv2_0.25",
]
_GLUONCV_224 = [
    "resnet18_v1b",
    "resnet34_v1b",
    "resnet50_v1b",
    "resnet101_v1b",
    "resnet50_v1c",
    "resnet50_v1d",
    "resnet50_v1e",
    "resnet50_v1s",
    "resnet101_v1d_0.73",
    "resnext50_32x4d",
    "resnext101_32x4d",
    "se_resnext50_32x4d",
    "se_resnet18_v1",
    "se_resnet50_v2",
    "senet_154",
    "resnest14",
    "resnest26",
    "resnest50",
    "resnest101",
    "darknet53",
    "googlenet",
    "mobilenetv3_large",
    "mobilenetv3_small",
    "shufflenet_v1",
    "shufflenet_v2",
    "xception71",
    "hrnet_w18_small_v1_c",
    "hrnet_w18_small_v2_c",
    "hrnet_w18_c",
    "dla34",
    "residualattentionnet56",
]
_GLUONCV_32 = [
    "cifar_resnet20_v1",
    "cifar_resnet56_v2",
    "cifar_wideresnet16_10",
    "cifar_resnext29_16x64d",
    "cifar_residualattentionnet56",
]


class Model:
    """One row of the table: ``inputs`` are shapes by name, ``image`` the size that boxes are relative to."""

    def __init__(self, name, family, inputs, build=None, options=None):
        self.name, self.family, self.inputs = name, family, inputs
        self.build, self.options = build, options or {}

    @property
    def image(self):
        return next(iter(self.inputs.values()))[-2:]


def _images(size, width=None, count=1):
    return {"data": (count, 3, size, width or size)}


def _gluoncv(names, family, inputs, **options):
    options.setdefault("pretrained_base", False)
    return [Model("gluoncv:" + name, family, inputs, options=options) for name in names.split()]


def models():
    """All models, in the table's order."""
    rows = [Model("gluon:" + n, "classification", _images(224)) for n in _CLASSIFIERS_224]
    rows.append(Model("gluon:inceptionv3", "classification", _images(299)))
    rows += [Model("gluoncv:" + n, "classification", _images(224)) for n in _GLUONCV_224]
    rows.append(Model("gluoncv:xception", "classification", _images(299)))
    rows.append(Model("gluoncv:nasnet_4_1056", "classification", _images(224)))
    rows += [Model("gluoncv:" + n, "classification", _images(32)) for n in _GLUONCV_32]
    rows += _gluoncv("ssd_300_vgg16_atrous_voc ssd_300_resnet34_v1b_voc", "SSD", _images(300))
    rows += _gluoncv("ssd_300_mobilenet1.0_lite_coco ssd_300_mobilenet0.25_voc", "SSD", _images(300))
    rows += _gluoncv("ssd_512_vgg16_atrous_coco ssd_512_resnet50_v1_voc", "SSD", _images(512))
    rows += _gluoncv("ssd_512_mobilenet1.0_voc", "SSD", _images(512))
    rows += _gluoncv(
        "yolo3_darknet53_voc yolo3_mobilenet1.0_voc yolo3_mobilenet0.25_coco", "YOLOv3", _images(416)
    )
    rows += _gluoncv(
        "faster_rcnn_resnet50_v1b_voc faster_rcnn_resnet101_v1d_coco doublehead_rcnn_resnet50_v1b_voc",
        "Faster R-CNN",
        _images(400, 560),
        proposals=100,
    )
    rows += _gluoncv(
        "faster_rcnn_fpn_resnet50_v1b_coco faster_rcnn_fpn_syncbn_resnet50_v1b_coco",
        "FPN",
        _images(384, 512),
        proposals=100,
    )
    rows += _gluoncv(
        "mask_rcnn_resnet18_v1b_coco mask_rcnn_resnet50_v1b_coco",
        "Mask R-CNN",
        _images(400, 560),
        proposals=100,
    )
    rows += _gluoncv(
        "mask_rcnn_fpn_resnet18_v1b_coco mask_rcnn_fpn_resnet50_v1b_coco",
        "Mask R-CNN",
        _images(384, 512),
        proposals=100,
    )
    rows += _gluoncv(
        "center_net_resnet18_v1b_voc center_net_resnet18_v1b_dcnv2_voc center_net_dla34_coco "
        "center_net_dla34_dcnv2_coco center_net_mobilenetv3_large_duc_voc",
        "CenterNet",
        _images(512),
    )
    rows += _gluoncv(
        "fcn_resnet50_voc fcn_resnet101_voc psp_resnet50_ade psp_resnet101_voc deeplab_resnet50_ade "
        "deeplab_resnest50_ade danet_resnet50_citys",
        "segmentation",
        _images(240),
        crop_size=240,
    )
    rows += _gluoncv("icnet_resnet50_citys fastscnn_citys", "segmentation", _images(480), crop_size=480)
    rows += _gluoncv(
        "simple_pose_resnet18_v1b simple_pose_resnet50_v1b simple_pose_resnet50_v1d mobile_pose_mobilenet1.0 "
        "mobile_pose_mobilenetv3_large",
        "SimplePose",
        _images(256, 192),
    )
    return rows + _built()


def _built():
    image = _images(400, 560)
    info = {**image, "im_info": (1, 3)}
    rows = []
    for backbone in ("vgg16", "resnet50", "resnet101"):
        for era in ("0.12", "1.x"):
            name = "rcnn_%s_%s" % (backbone, era)
            rows.append(Model(name, "example/rcnn", info, ("rcnn", "faster_rcnn", (backbone, era))))
            extra = {"gt_boxes": (1, 4, 5)}
            build = ("rcnn", "faster_rcnn", (backbone, era, True))
            rows.append(Model(name + "_train", "example/rcnn", {**info, **extra}, build))
    for backbone, size in (("vgg16", 300), ("vgg16", 512), ("resnet50", 512), ("inception_v3", 512)):
        name, inputs = "ssd_%s_%d" % (backbone, size), _images(size)
        rows.append(Model(name, "example/ssd", inputs, ("ssd", "ssd", (backbone, size))))
        build = ("ssd", "ssd", (backbone, size, True))
        labelled = {**inputs, "label": (1, 5, 6)}
        rows.append(Model(name + "_train", "example/ssd", labelled, build))
    for deformable in (False, True):
        suffix = "_deformable" if deformable else ""
        for name in ("rfcn", "faster_rcnn", "fpn"):
            size = {"data": (1, 3, 384, 512)} if name == "fpn" else {}
            build = ("deformable", name, (deformable,))
            rows.append(Model("dcn_" + name + suffix, "Deformable-ConvNets", {**info, **size}, build))
    for backbone in ("resnet50", "mobilenet0.25"):
        rows.append(
            Model(
                "retinaface_" + backbone,
                "RetinaFace/SSH",
                _images(480, 640),
                ("faces", "retinaface", (backbone,)),
            )
        )
    rows.append(Model("ssh_vgg16", "RetinaFace/SSH", _images(480, 640), ("faces", "ssh", ())))
    for stage, inputs in (
        ("pnet", _images(300, 400)),
        ("rnet", _images(24, count=32)),
        ("onet", _images(48, count=32)),
    ):
        rows.append(Model("mtcnn_" + stage, "MTCNN", inputs, ("faces", "mtcnn", (stage,))))
    rows.append(Model("arcface_r50", "ArcFace", _images(112), ("faces", "arcface", ())))
    rows.append(Model("arcface_r100", "ArcFace", _images(112), ("faces", "arcface", ((3, 13, 30, 3),))))
    rows.append(Model("mobilefacenet", "ArcFace", _images(112), ("faces", "mobilefacenet", ())))
    return rows


#: How a network of GluonCV's own list is built, and what it takes: the family, the shapes and the arguments
#: of the first pattern that its name fits. In place of a family, why it is left out.
_CLASSES = {"classes": ["cat", "dog", "bird"], "pretrained_base": False}
_BASE = {"pretrained_base": False}
_RULES = (
    (r"_int8$", "quantised: its graph holds MXNet's int8 operators, which are not offered", None, {}),
    (r"^siamrpn", "tracking", {"data0": (1, 3, 127, 127), "data1": (1, 3, 287, 287)}, {}),
    (r"^monodepth2_.*posenet", "depth", _images(192, 640), _BASE),
    (r"^monodepth2", "depth", _images(192, 640), _BASE),
    (r"^(c3d|p3d|r2plus1d)", "video", {"data": (1, 3, 16, 112, 112)}, {}),
    (r"^i3d_inceptionv3", "video", {"data": (1, 3, 32, 299, 299)}, _BASE),
    (r"^i3d", "video", {"data": (1, 3, 32, 224, 224)}, _BASE),
    (r"^slowfast_16x8", "video", {"data": (1, 3, 64, 224, 224)}, _BASE),
    (r"^slowfast_8x8", "video", {"data": (1, 3, 64, 224, 224)}, _BASE),
    (r"^slowfast", "video", {"data": (1, 3, 36, 224, 224)}, _BASE),
    (r"^inceptionv3_.*(ucf|hmdb|kinetics|sthsth)", "video", _images(299), _BASE),
    (r"_(ucf101|hmdb51|kinetics400|sthsthv2)$", "video", _images(224), _BASE),
    (r"^resnet(18|50)_v1b_custom$", "video", _images(224), {**_BASE, "use_kinetics_pretrain": False}),
    (r"^ssd_300.*_custom$", "SSD", _images(300), _CLASSES),
    (r"^ssd_512.*_custom$", "SSD", _images(512), _CLASSES),
    (r"^ssd_300", "SSD", _images(300), _BASE),
    (r"^ssd_512", "SSD", _images(512), _BASE),
    (r"^yolo3.*_custom$", "YOLOv3", _images(416), _CLASSES),
    (r"^yolo3", "YOLOv3", _images(416), _BASE),
    (r"^custom_faster_rcnn_fpn", "FPN", _images(384, 512), {**_CLASSES, "proposals": 100}),
    (r"^custom_mask_rcnn_fpn", "Mask R-CNN", _images(384, 512), {**_CLASSES, "proposals": 100}),
    (r"^faster_rcnn.*_custom$", "Faster R-CNN", _images(400, 560), {**_CLASSES, "proposals": 100}),
    (r"^faster_rcnn_fpn", "FPN", _images(384, 512), {**_BASE, "proposals": 100}),
    (r"^mask_rcnn_fpn", "Mask R-CNN", _images(384, 512), {**_BASE, "proposals": 100}),
    (r"^(faster|doublehead)_rcnn", "Faster R-CNN", _images(400, 560), {**_BASE, "proposals": 100}),
    (r"^mask_rcnn", "Mask R-CNN", _images(400, 560), {**_BASE, "proposals": 100}),
    (r"^center_net", "CenterNet", _images(256), _BASE),
    (r"^(fcn|psp|deeplab|danet)_", "segmentation", _images(240), {**_BASE, "crop_size": 240}),
    (r"^(icnet|fastscnn)_", "segmentation", _images(480), {**_BASE, "crop_size": 480}),
    (r"^hrnet.*_s$", "segmentation", _images(480), {}),
    (r"^(simple_pose|mobile_pose|alpha_pose)_", "pose", _images(256, 192), _BASE),
    (r"^cifar_", "classification", _images(32), {}),
    (r"^(inceptionv3|xception)$", "classification", _images(299), {}),
    (r"^nasnet", "classification", _images(224), {}),
    (r"", "classification", _images(224), {}),
)


def of_gluoncv(name):
    """A network of GluonCV's list by its name there; one that is left out has no inputs."""
    _, family, shapes, options = next(rule for rule in _RULES if re.search(rule[0], name))
    return Model("gluoncv:" + name, family, shapes, options=options)


def named(texts, among=None):
    """The models of these names; for a text that is no name, those with it in theirs."""
    among = models() if among is None else among
    names = {m.name for m in among}
    return [m for m in among if any(m.name == t or (t not in names and t in m.name) for t in texts)]


def find(name):
    listed = [m for m in models() if m.name == name]
    return listed[0] if listed else of_gluoncv(name.split(":")[1])
