"""Pictures of detections."""

import colorsys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .boxes import iou

__all__ = ["draw_detections", "montage", "worth_drawing"]


def worth_drawing(detections, least_score=0.5, most_overlap=0.6):
    """Detections of at least this score, and of those that lie on each other the best one only.

    Evaluation counts classes apart, so there a square may be a star as well; a picture shows one of them.
    """
    shown = []
    for each in sorted(detections, key=lambda d: -d.score):
        if each.score < least_score:
            break
        others = np.array([other.box for other in shown]).reshape(-1, 4)
        if not (iou(np.array([each.box]), others) > most_overlap).any():
            shown.append(each)
    return shown


def colour_of(number: int, count: int):
    """One of ``count`` well separated colours."""
    return tuple(round(255 * v) for v in colorsys.hsv_to_rgb(number / max(count, 1), 0.75, 0.95))


def draw_detections(image, detections, classes, least_side=480, notes=None):
    """The picture with boxes, labels and scores; small pictures are enlarged so that text can be read.

    Parameters
    ----------
    image : PIL.Image
        The picture.
    detections : list of Detection
        What was found in it.
    classes : list of str
        All class names, which decide the colours.
    least_side : int
        The shorter side of the result is at least so long.
    notes : list of str, optional
        What to write behind the score of each detection.
    """
    zoom = max(1, -(-least_side // min(image.size)))
    canvas = image.resize((image.width * zoom, image.height * zoom), Image.Resampling.LANCZOS)
    draw = ImageDraw.Draw(canvas)
    text_size = max(13, min(canvas.size) // 32)
    font = ImageFont.load_default(text_size)
    line = max(2, min(canvas.size) // 200)
    noted = zip(detections, notes or [""] * len(detections), strict=True)
    for each, note in sorted(noted, key=lambda pair: pair[0].score):
        colour = colour_of(classes.index(each.label), len(classes))
        x1, y1, x2, y2 = each.box
        # The last pixel belongs to the box, so its far edge is one further.
        box = [x1 * zoom, y1 * zoom, (x2 + 1) * zoom - 1, (y2 + 1) * zoom - 1]
        draw.rectangle(box, outline=colour, width=line)
        text = f"{each.label} {each.score:.2f} {note}".strip()
        left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
        width, height = right - left + 2 * line, bottom - top + 2 * line
        x = min(max(box[0], 0), canvas.width - width)
        y = box[1] - height if box[1] >= height else min(box[1], canvas.height - height)
        draw.rectangle([x, y, x + width, y + height], fill=colour)
        dark = sum(colour) > 400
        draw.text((x + line - left, y + line - top), text, fill="black" if dark else "white", font=font)
    return canvas


def montage(images, columns: int, gap=8):
    """Pictures of one size side by side."""
    rows = -(-len(images) // columns)
    width, height = images[0].size
    sheet = Image.new("RGB", (columns * (width + gap) - gap, rows * (height + gap) - gap), "white")
    for i, image in enumerate(images):
        sheet.paste(image, ((i % columns) * (width + gap), (i // columns) * (height + gap)))
    return sheet
