"""The paper's tasks as recipes: what `make tasks` runs, and the paper's own rows for the page."""

from dataclasses import dataclass, field

METHODS = ["full", "fewer-epochs", "random-dynamic", "bls-infobatch", "bls-seta", "ogs-infobatch", "ogs-seta"]
SEEDS = [0, 1, 2]
CLASSIFICATION, CAPTIONING, GENERATION = "recipes.classification.train", "recipes.captioning.train", "recipes.generation"
SEMISUPERVISED = "recipes.semisupervised"


@dataclass(frozen=True)
class Task:
    """One table.

    Attributes:
        key: Name of its result file, and of its pictures in docs/tasks.
        module: The recipe.
        settings: Changes to its quick preset.
        ours: What the recipe trains on.
        theirs: The paper's data and metric.
        paper: Its figures by method: (value, pruned in percent).
        pictures: {file in docs/tasks: what it shows}.
        fidelity: Further runs whose scores are compared with the losses: {name: changes}.
    """

    key: str
    title: str
    module: str
    ours: str
    theirs: str
    paper: dict
    settings: tuple = ()
    pictures: dict = field(default_factory=dict)
    fidelity: dict = field(default_factory=dict)


def rows(full, infobatch, seta):
    """(value, pruned) of the paper's three rows; full as a value."""
    return {"full": (full, None), "bls-infobatch": infobatch, "bls-seta": seta}


IMAGENET = "ImageNet-1K, accuracy"
SCENES = "500 composed scenes: real cut-outs (Tux Paint) on photographs (MATE), other cut-outs in the validation part"
NAMED = "640 composed scenes with 5 captions each, tested on scenes of seen (in), seen and new (near) or new classes (out)"
NAMES_GIVEN = "names of the objects given"

TASKS = [
    Task("resnet18", "Classification, ResNet-18", CLASSIFICATION, "3,000 pictures of CIFAR-10", "CIFAR-100, accuracy",
         rows(78.2, (78.3, 33.9), (78.4, 40.1)), pictures={"cifar10.webp": "CIFAR-10"}),
    Task("resnet50", "Classification, ResNet-50", CLASSIFICATION, "3,000 pictures of CIFAR-10", "CIFAR-100, accuracy",
         rows(80.6, (80.5, 38.6), (80.7, 40.7)), ("model=resnet50",)),
    Task("efficientnet", "Classification, EfficientNet", CLASSIFICATION, "3,000 pictures of CIFAR-10", IMAGENET,
         rows(76.1, (75.7, 32.8), (76.0, 31.1)), ("model=efficientnet",)),
    Task("vit", "Classification, ViT", CLASSIFICATION, "3,000 pictures of CIFAR-10", IMAGENET,
         rows(73.3, (73.2, 26.2), (73.3, 25.2)), ("model=vit",)),
    Task("swin", "Classification, Swin", CLASSIFICATION, "3,000 pictures of CIFAR-10", IMAGENET,
         rows(80.0, (80.0, 30.8), (80.0, 44.5)), ("model=swin",)),
    Task("vim", "Classification, Vim (Mamba)", CLASSIFICATION, "3,000 pictures of CIFAR-10", IMAGENET,
         rows(75.7, (75.6, 22.9), (75.6, 29.4)), ("model=vim",)),
    Task("quickdraw", "Classification, YOLOv5n-cls", CLASSIFICATION, "6,900 of QuickDraw's drawings", "CIFAR-100, acc@1",
         rows(58.0, (57.6, 20.4), (58.0, 35.4)), ("model=yolov5n-cls", "dataset=quickdraw", "limit=6900"),
         {"quickdraw.png": "drawings of QuickDraw"}),
    Task("detection", "Object detection, YOLOv5n", "recipes.detection.train", SCENES, "COCO, mAP.5",
         rows(38.2, (38.5, 21.6), (38.3, 25.2)),
         pictures={"scenes.webp": "scenes of the training part, boxes and masks (Tux Paint, MATE: GPL)",
                   "detections.webp": "what a detector is surest of in the validation part, as many things as there are"}),
    Task("segmentation", "Instance segmentation, YOLOv5n-seg", "recipes.segmentation.train", SCENES, "COCO, mask mAP.5",
         rows(29.5, (31.0, 29.5), (31.7, 36.1)),
         pictures={"segments.webp": "what a segmenter is surest of, as many things as there are"}),
    Task("captioning", "Image captioning, small CLIP and GPT-2", CAPTIONING, f"{NAMED}; {NAMES_GIVEN}", "COCO to NoCaps, CIDEr",
         rows(65.2, (65.3, 20.9), (65.3, 28.1)),
         pictures={"captions.webp": "scenes in, near and out of the domain (Tux Paint, MATE: GPL), with one of their five captions",
                   "emoji.webp": "emoji, flat and solid, with their labels (Google, Microsoft)",
                   "written.webp": "the same three domains, with what a captioner has written"}),
    Task("captioning-zero-shot", "Zero-shot captioning", CAPTIONING,
         f"3,200 texts (templates, WordNet's nouns), tested on the same scenes; {NAMES_GIVEN}", "ToCa to NoCaps, CIDEr",
         rows(70.5, (70.6, 23.8), (71.2, 32.0)), ("task=text",)),
    Task("captioning-cross", "Cross-domain captioning", CAPTIONING,
         "3,200 texts about emoji (labels, WordNet's glosses), tested on scenes and on emoji of another style",
         "SS1M to COCO, CIDEr", rows(45.1, (44.5, 24.9), (45.5, 41.1)), ("task=cross",)),
    Task("captioning-video", "Video captioning", CAPTIONING, f"640 composed films of 6 frames with 5 captions each; {NAMES_GIVEN}",
         "MSR-VTT, CIDEr", rows(27.9, (29.9, 21.8), (29.3, 40.3)), ("task=video",),
         {"films.webp": "films: four of six frames (Tux Paint, MATE: GPL), with one of their five captions"}),
    Task("vae", "Generation, VAE", f"{GENERATION}.vae", "6,000 digits of MNIST", "MNIST, FID",
         rows(35.34, (35.55, 28.9), (35.34, 34.0)), pictures={"vae.webp": "digits that a VAE has drawn"}),
    Task("ddpm", "Generation, DDPM", f"{GENERATION}.ddpm", "1,000 pictures of CIFAR-10", "CIFAR-10, FID",
         rows(16.38, (17.01, 28.7), (16.35, 30.8)),
         pictures={"ddpm.webp": "what a diffusion model paints after 630 steps: light and dark patches, no things yet"},
         fidelity={"time step 500": ("time_step=500",)}),
    Task("ddpm-cfg", "Generation, DDPM with classifier-free guidance", f"{GENERATION}.ddpm", "1,000 pictures of CIFAR-10",
         "CIFAR-10, FID", rows(14.89, (14.99, 22.0), (14.72, 22.3)), ("guidance=2.0",),
         {"ddpm-cfg.webp": "the same with guidance, a column for each class: patches in the class's colours, no things yet"}),
    Task("abinet", "Scene text recognition, ABINet", "recipes.recognition.abinet",
         "4,000 rendered words of up to 6 letters in the fonts of aenigma, other words and fonts in the test part",
         "MJ+ST, accuracy on IIIT5K", rows(96.1, (96.1, 25.4), (96.2, 33.0)),
         pictures={"words.webp": "rendered words of the training part"}),
    Task("adamvs", "Multi-view stereo, Ada-MVS", "recipes.stereo.adamvs",
         "160 tiles of rendered terrain (ETOPO5 under Blue Marble), other continents in the test part",
         "WHU-MVS, share below 3 intervals", rows(95.01, (95.17, 45.0), (95.04, 37.5)),
         pictures={"terrain.webp": "three views of each tile and, below them, the depth of the first",
                   "depths.webp": "tiles of the test part, their depth, and the depth that was found"}),
    Task("fixmatch", "Semi-supervised images, FixMatch", f"{SEMISUPERVISED}.fixmatch",
         "2,000 pictures of CIFAR-10, 400 of them labelled", "CIFAR-100, accuracy", rows(61.9, (61.9, 31.3), (61.9, 47.4)),
         pictures={"views.webp": "pictures of CIFAR-10, and below each its weak and its strong change"}),
    Task("flexmatch", "Semi-supervised text, FlexMatch", f"{SEMISUPERVISED}.flexmatch",
         "4,000 of IMDB's reviews, 480 of them labelled", "Yelp Review, accuracy", rows(53.7, (54.4, 38.1), (54.7, 49.4))),
    Task("dash", "Semi-supervised audio, Dash", f"{SEMISUPERVISED}.dash",
         "1,811 spoken syllables (gcin-voice), 10 of each final labelled", "ESC-50, accuracy",
         rows(64.5, (64.5, 25.0), (64.6, 28.7)),
         pictures={"syllables.webp": "spectrograms of spoken syllables, one of each final"}),
]


def find(key):
    return next(task for task in TASKS if task.key == key)
