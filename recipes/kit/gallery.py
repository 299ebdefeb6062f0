"""The pictures in docs/tasks.md.

    python -m recipes.kit.gallery docs/tasks                                          # the data
    python -m recipes.kit.gallery docs/tasks --detector runs/tasks/detection/full-seed0    # and what a detector finds
    python -m recipes.kit.gallery docs/tasks --segmenter runs/tasks/segmentation/full-seed0    # and with its masks
    python -m recipes.kit.gallery docs/tasks --samples vae=runs/tasks/vae/full-seed0       # and what a generator draws
    python -m recipes.kit.gallery docs/tasks --writer runs/tasks/captioning/full-seed0     # and what a captioner writes
    python -m recipes.kit.gallery docs/tasks --stereo runs/tasks/adamvs/full-seed0         # and the depths that it finds
"""

from __future__ import annotations

import argparse
import json
import pathlib
import textwrap

import numpy as np
import torch
import yaml
from PIL import Image, ImageDraw, ImageFont

from . import augment, captions, emoji, grids, lettering, pictures, scenes, sounds, terrain

COLOURS = [(230, 60, 60), (60, 120, 230), (50, 170, 70), (240, 160, 20), (160, 80, 200)]
SIZE, COLUMNS, ROWS = 128, 6, 2


def sheet(images: list[np.ndarray], path: pathlib.Path, columns: int = COLUMNS, scale: int = 1) -> None:
    grid = torch.stack([torch.from_numpy(image).permute(2, 0, 1).float() / 127.5 - 1 for image in images])
    grids.save(grid, path, columns=columns, scale=scale)


def marked(image: np.ndarray, boxes: list[tuple[int, tuple[float, ...]]], masks: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """Boxes as frames, masks as tints, in the colour of the class."""
    image = image.copy()
    for label, mask in masks:
        image[mask] = (0.6 * image[mask] + 0.4 * np.array(COLOURS[label])).astype(np.uint8)
    picture = Image.fromarray(image)
    draw = ImageDraw.Draw(picture)
    for label, (x, y, width, height) in boxes:
        draw.rectangle((x, y, x + width - 1, y + height - 1), outline=COLOURS[label])
    return np.array(picture)


def with_text(image: np.ndarray, text: str, lines: int) -> np.ndarray:
    """The picture, and below it the text."""
    font = ImageFont.load_default(size=11)
    height, width = image.shape[:2]
    picture = Image.new("RGB", (width, height + 13 * lines + 3), "white")
    picture.paste(Image.fromarray(image))
    ImageDraw.Draw(picture).multiline_text((2, height), "\n".join(textwrap.wrap(text, width // 6)), "black", font, spacing=1)
    return np.array(picture)


def draw_captions(folder: pathlib.Path) -> None:
    def picture(pixels: torch.Tensor) -> np.ndarray:
        return pixels.permute(1, 2, 0).numpy()

    still = captions.CaptionedScenes("in", COLUMNS, SIZE)
    shown = []
    for domain in ("in", "near", "out"):
        part = still.of(domain, COLUMNS).load()
        shown += [with_text(picture(part.pixels[k, 0]), part.captions[k][k % 5], 5) for k in range(COLUMNS)]
    sheet(shown, folder / "captions.webp")
    films = captions.CaptionedScenes("in", COLUMNS, SIZE, frames=6).load()
    strips = [np.concatenate([picture(films.pixels[k, t]) for t in (0, 2, 3, 5)], 1) for k in range(COLUMNS)]
    sheet([with_text(strip, films.captions[k][k % 5], 1) for k, strip in enumerate(strips)], folder / "films.webp", columns=2)
    styles = [emoji.read(style, 64, 12) for style in ("flat", "3d")]
    drawn = [with_text(picture(part.pixels[k, 0]), part.captions[k][0], 4) for part in styles for k in range(12)]
    sheet(drawn, folder / "emoji.webp", columns=12)


def draw_pictures(folder: pathlib.Path) -> None:
    cifar, drawings = pictures.cifar10("train", 40), pictures.quickdraw("train", 60)
    grids.save(cifar.pixels.float() / 127.5 - 1, folder / "cifar10.webp", columns=20, scale=1)
    grids.save(1 - drawings.pixels.float() / 127.5, folder / "quickdraw.png", columns=20, scale=1)
    found = scenes.Scenes("train", COLUMNS * ROWS, SIZE)
    shown = []
    for k in range(len(found)):
        scene = found[k]
        masks = [(instance.label, instance.mask) for instance in scene.instances]
        boxes = [(instance.label, instance.box) for instance in scene.instances]
        shown.append(marked(scene.image, boxes, masks if k >= COLUMNS else []))
    sheet(shown, folder / "scenes.webp")


def draw_words_and_views(folder: pathlib.Path) -> None:
    """Words, views with their depth, changed pictures, spectrograms."""
    words = lettering.rendered("train", 64, seed=3)
    grids.save(words.pixels[:60].float() / 127.5 - 1, folder / "words.webp", columns=10, scale=1)
    tiles = terrain.rendered("train", 8, 96)
    near, far = terrain.HEIGHT - terrain.TALLEST, terrain.HEIGHT
    depths = (1 - 2 * (tiles.depths - near) / (far - near))[None, :, None].expand(-1, -1, 3, -1, -1)
    rows = torch.cat([tiles.pixels.transpose(0, 1).float() / 127.5 - 1, depths])
    grids.save(rows.flatten(0, 1), folder / "terrain.webp", columns=len(tiles), scale=1)
    torch.manual_seed(0)
    images = pictures.cifar10("train", 20).pixels.float() / 127.5 - 1
    grids.save(torch.cat([images, augment.weak(images), augment.strong(images)]), folder / "views.webp", columns=20, scale=1)
    clips = sounds.syllables("train")
    shown = torch.stack([clips.spectrograms[clips.labels == k][0] for k in range(len(clips.classes))])
    grids.save((shown / 2).clamp(-1, 1).flip(2), folder / "syllables.webp", columns=17, scale=1)


def draw_found(path: pathlib.Path, run: pathlib.Path) -> None:
    """What the model of a detector's or a segmenter's run is surest of, as many things as there are in the picture.

    The pictures are the first of the validation part.
    """
    from . import coco, yolo

    settings = yaml.safe_load((run / "args.yaml").read_text())
    size, masks = settings["imgsz"], settings["task"] == "segment"
    config = str(run / "yolov5n-seg.yaml") if masks else "yolov5n.yaml"
    found = scenes.Scenes("val", COLUMNS * ROWS, size)
    annotations = coco.read(scenes.write(found, run / "gallery"))
    model = yolo.YOLO(str(run / "weights" / "last.pt")).model
    things = sorted(yolo.detections(model, config, annotations, size, masks), key=lambda thing: -thing["score"])
    shown = []
    for k in range(len(found)):
        surest = [thing for thing in things if thing["image_id"] == k][: len(found[k].instances)]
        boxes = [(thing["category_id"], tuple(thing["bbox"])) for thing in surest]
        tints = [(thing["category_id"], coco.decode_mask(thing["segmentation"], (size, size))) for thing in surest if masks]
        shown.append(marked(found[k].image, boxes, tints))
    sheet(shown, path, scale=max(1, SIZE // size))


def draw_written(folder: pathlib.Path, run: pathlib.Path) -> None:
    """Test scenes as the captioner of a quick run saw them, with what it wrote."""
    written = json.loads((run / "captions.json").read_text())
    shown = []
    for domain in ("in", "near", "out"):
        part = captions.CaptionedScenes(domain, COLUMNS, SIZE // 2).load()
        for k, row in enumerate(written[domain][:COLUMNS]):
            if part.captions[k] != row["references"]:
                raise SystemExit(f"{run / 'captions.json'}: must be of a quick run of the task image, got {row['references'][0]!r}")
            image = part.pixels[k, 0].permute(1, 2, 0).numpy().repeat(2, 0).repeat(2, 1)
            shown.append(with_text(image, row["written"], 5))
    sheet(shown, folder / "written.webp")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--detector", metavar="RUN", type=pathlib.Path, help="folder of a detector's run")
    parser.add_argument("--segmenter", metavar="RUN", type=pathlib.Path, help="folder of a segmenter's run")
    parser.add_argument("--writer", metavar="RUN", type=pathlib.Path, help="folder of a captioner's run")
    parser.add_argument("--stereo", metavar="RUN", type=pathlib.Path, help="folder of a stereo run")
    parser.add_argument("--samples", metavar="NAME=RUN", action="append", default=[], help="folder of a generator's run")
    args = parser.parse_args(argv)
    for draw in (draw_pictures, draw_captions, draw_words_and_views):
        draw(args.folder)
    if args.detector:
        draw_found(args.folder / "detections.webp", args.detector)
    if args.segmenter:
        draw_found(args.folder / "segments.webp", args.segmenter)
    if args.writer:
        draw_written(args.folder, args.writer)
    if args.stereo:
        Image.open(args.stereo / "depths.png").save(args.folder / "depths.webp", lossless=True)
    for choice in args.samples:
        name, _, run = choice.partition("=")
        picture = Image.open(pathlib.Path(run) / "samples.png")
        half = picture.crop((0, 0, picture.width, picture.height // 2 + 1))
        half.save(args.folder / f"{name}.webp", lossless=half.mode == "L")


if __name__ == "__main__":
    main()
