"""A saved model with all that it takes to look at pictures: files or images in, detections or classes out.

    model = roiops.models.load("ssd_300", preset="ssd", resize=(300, 300), classes=["cat", "dog"])
    for found in model.predict(["a.jpg", "b.jpg"]):
        print(found.picture, found.detections)

Pictures are decoded by threads while the network computes, and those of one size go through it together.
A picture that cannot be read is a prediction with an error, not the end of the run.
"""

import dataclasses
import io
import os
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import numpy as np

from ..context import Context
from ..errors import DeviceError, GraphError, MXNetError, SettingsError, ShapeError
from . import archive
from .labels import read_labels
from .outputs import Reading, Settings, read_outputs
from .pictures import Placement, Preprocessing, read_image

__all__ = ["PictureModel", "Prediction", "load"]

_IM_INFO = "im_info"


@dataclasses.dataclass
class Prediction:
    """What a model says about one picture.

    Attributes
    ----------
    picture : str
        The file, or ``"picture 3"`` for the fourth image of a list.
    width, height : int
        The picture's own size in pixels.
    reading : Reading or None
        Its objects, classes or segmentation.
    error : str or None
        Why there is nothing else.
    ms : float or None
        Milliseconds that the network took, those of its batch divided among the pictures.
    place : Placement or None
        Where the picture lay in the network's input.
    """

    picture: str
    width: int | None = None
    height: int | None = None
    reading: Reading | None = None
    error: str | None = None
    ms: float | None = dataclasses.field(default=None, compare=False)
    place: Placement | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def detections(self) -> list:
        """The objects found, best first; none where the model is no detector or there was an error."""
        return (self.reading and self.reading.detections) or []

    def draw(self):
        """The picture, read again from its file, with what was found in it; None where there is no file."""
        if self.reading is None or self.place is None or not os.path.isfile(self.picture):
            return None
        from .drawing import draw

        return draw(read_image(self.picture), self.reading, self.place)

    def _repr_png_(self):
        drawn, stream = self.draw(), io.BytesIO()
        if drawn is None:
            return None
        drawn.save(stream, "PNG")
        return stream.getvalue()

    def to_dict(self) -> dict:
        """What is known, fit for a line of JSON."""
        known = {"picture": self.picture, "width": self.width, "height": self.height}
        if self.reading is not None:
            known.update(self.reading.to_dict())
        known["error"] = self.error
        return {name: value for name, value in known.items() if value is not None}


def load(
    symbol,
    params=None,
    *,
    outputs=None,
    dtype=None,
    allow_missing=False,
    input=None,
    inputs=None,
    preset="raw",
    classes=(),
    threshold=0.5,
    box_stds=(1.0, 1.0, 1.0, 1.0),
    top=5,
    softmax=False,
    batch=8,
    ctx=None,
    source=None,
    **preprocessing,
) -> "PictureModel":
    """A saved model for inference: call it with inputs by name, or give it pictures.

    Parameters
    ----------
    symbol : str or path or Symbol
        The symbol's file, or the prefix from which MXNet's names are made: ``"vgg"`` for
        ``vgg-symbol.json`` and ``vgg-0012.params``.
    params : int, str, path or dict of arrays
        The epoch, the parameters' file, or the parameters. Unless given, the last epoch that lies beside
        the graph's file.
    outputs : str or list of str, optional
        Outputs to compute instead of the graph's own, by the names in ``symbol.get_internals()``. What they
        do not depend on, such as the losses of a training graph, is left out.
    dtype : optional
        Convert the parameters to this: a file in half precision computes faster in ``"float32"``.
    allow_missing : bool
        Whether parameters that the file lacks may be given later, as inputs are.
    input : str, optional
        The input that takes the picture; not needed where there is one besides ``im_info``.
    inputs : dict of array, optional
        Values of further inputs, the same for every picture, without the axis of the batch.
    preset : str
        How published families feed their networks: one of :data:`roiops.models.pictures.PRESETS`.
    classes : str or list of str
        Names of the classes: a list, ``"imagenet"``, ``"voc"`` or ``"coco"``, or a file of lines.
    threshold, box_stds, top, softmax
        As for :class:`roiops.models.outputs.Settings`.
    batch : int
        How many pictures of one size go through the network together. The last digits of a result may depend
        on its neighbours in a batch; with 1 they do not.
    ctx : Context, optional
        Where pictures are looked at; the CPU unless given.
    source : str, optional
        What messages call a model that is given as a symbol.
    **preprocessing
        Fields of :class:`roiops.models.pictures.Preprocessing`, in place of the preset's.
    """
    settings = Settings(read_labels(classes), threshold, box_stds, int(top), bool(softmax))
    how = Preprocessing.of(preset, **preprocessing)
    found = archive.load(
        symbol, params, outputs=outputs, dtype=dtype, allow_missing=allow_missing, source=source
    )
    return PictureModel(
        found.symbol,
        found.params,
        found.source,
        preprocessing=how,
        settings=settings,
        input=input,
        inputs=inputs,
        batch=batch,
        ctx=ctx,
    )


class PictureModel(archive.ArchivedModel):
    """An :class:`~roiops.models.archive.ArchivedModel` that takes pictures, too. Made by :func:`load`.

    It pickles. The weights are written out of band where the pickler asks for that (protocol 5), so that
    processes can share them; see :mod:`roiops.models.workers`.
    """

    _most_executors = 4

    def __init__(
        self,
        symbol,
        params: dict,
        source: str = "model",
        *,
        preprocessing: Preprocessing | None = None,
        settings: Settings | None = None,
        input: str | None = None,
        inputs: dict | None = None,
        batch: int = 8,
        ctx: Context | None = None,
    ):
        super().__init__(symbol, params, source)
        self.preprocessing, self.settings = preprocessing or Preprocessing(), settings or Settings()
        self.inputs = {name: np.asarray(value) for name, value in (inputs or {}).items()}
        self.input = input
        self.batch, self.ctx = int(batch), Context(ctx or "cpu")
        if self.batch < 1:
            raise MXNetError(f"{source}: batch must be at least 1, got {batch}")
        self._check_input_names((*self.inputs, *([input] if input else [])))

    def picture_input(self) -> str:
        """The name of the input that takes the picture."""
        free = [name for name in self.input_names if name not in self.inputs and name != _IM_INFO]
        name = self.input or (free[0] if len(free) == 1 else None)
        if name is None:
            raise GraphError(
                f"{self.source}: which input takes the picture? It is one of {', '.join(free)}: "
                f"--input {free[0]}=PICTURE (input=); the others need values (inputs=)"
                if free
                else f"{self.source}: no input takes a picture, since all have values"
            )
        lacking = [each for each in free if each != name]
        if lacking:
            raise GraphError(
                f"{self.source}: values are missing for {', '.join(lacking)} "
                f"(--input {lacking[0]}=..., inputs=)"
            )
        return name

    def takes(self, channels: int, height: int, width: int) -> str | None:
        """``"nchw"`` or ``"nhwc"``, whichever fits the graph and its parameters; None where neither does."""
        shapes = {name: tuple(array.shape) for name, array in self.params.items()}
        name = self.picture_input()
        for layout, shape in (
            ("nchw", (1, channels, height, width)),
            ("nhwc", (1, height, width, channels)),
        ):
            try:
                self.symbol.infer_shape_partial(**shapes, **{name: shape})
            except MXNetError:
                continue
            return layout
        return None

    # -- pictures in, predictions out -----------------------------------------------------------------

    def predict(self, pictures) -> list[Prediction]:
        """What is in these pictures, in their order.

        Parameters
        ----------
        pictures : list of path, PIL.Image or array (height, width, 3)
            Files or images. Arrays are RGB, with values from 0 to 255. A path alone is one picture.
        """
        if isinstance(pictures, str | os.PathLike):
            pictures = [pictures]
        return [prediction for _, prediction in self.stream(enumerate(pictures))]

    def stream(self, pictures, after=None, threads: int | None = None):
        """Yield ``(key, Prediction)`` in the order of the pictures, of which there may be any number.

        Decoding and ``after`` run in threads beside the network, a bounded number of pictures ahead.

        Parameters
        ----------
        pictures : iterable of (key, picture), or callable
            What to look at; ``key`` comes back with the result. A callable is asked for the next pair, with
            whether it may wait for one; it returns None when there is none now and raises StopIteration at
            the end.
        after : callable, optional
            Called in a thread with the image and its prediction, to draw, say, before the result is yielded.
        threads : int, optional
            How many threads decode and draw; 2 unless given.
        """
        self.picture_input()  # raises for a model that cannot be fed
        following = pictures if callable(pictures) else _following(iter(pictures))
        with ThreadPoolExecutor(threads or 2, "roiops-pictures") as pool:
            yield from _Stream(self, following, pool, after).run()

    def read(self, key, picture):
        """A picture as the network takes it, or the prediction that says why not. Runs in threads."""
        name = name_of(key, picture)
        try:
            image = read_image(picture, name)
            place = self.preprocessing.place(image.height, image.width)
            return _Ready(key, name, image, place, self.preprocessing.apply(image))
        except Exception as error:  # a damaged file makes Pillow raise errors of any type
            return key, Prediction(name, error=_reason(error))

    def compute(self, ready: list) -> list:
        """Predictions for pictures of one size, as pairs (key, Prediction), in their order."""
        try:
            return self.compute_batch(ready)
        except SettingsError:
            raise
        except Exception as error:  # one picture's failure is that picture's line, whatever it is
            if len(ready) > 1:  # some models take one picture at a time
                return [pair for each in ready for pair in self.compute([each])]
            width, height = ready[0].image.size
            return [(ready[0].key, Prediction(ready[0].name, width, height, error=_reason(error)))]

    def compute_batch(self, ready: list, outputs: dict | None = None) -> list:
        """The same, but what goes wrong is raised. ``outputs`` collects what the network puts out."""
        start = time.perf_counter()
        data = np.concatenate([each.array for each in ready]) if len(ready) > 1 else ready[0].array
        feeds = {self.picture_input(): data}
        for name, value in self.inputs.items():
            feeds[name] = np.broadcast_to(value, (len(ready), *value.shape))
        if _IM_INFO in self.input_names and _IM_INFO not in feeds:
            infos = [(each.place.height, each.place.width, each.place.scale[0]) for each in ready]
            feeds[_IM_INFO] = np.array(infos, np.float32)
        found = self.forward(feeds)
        ms = (time.perf_counter() - start) * 1e3 / len(ready)
        if outputs is not None:
            outputs.update(found)
        readings = read_outputs(found, [each.place for each in ready], self.settings)
        return [
            (each.key, Prediction(each.name, *each.image.size, reading, ms=ms, place=each.place))
            for each, reading in zip(ready, readings, strict=True)
        ]

    def forward(self, feeds: dict) -> dict:
        """What the network puts out, by name; a subclass may compute it in another runtime."""

        def take(outputs):
            return [array.asnumpy() for array in outputs]

        results = self._run(self._bind_for, self.ctx, feeds, take)
        return dict(zip(self.output_names, results, strict=True))

    def _bind_for(self, ctx, **shapes):
        try:
            return self.bind(ctx, **shapes)
        except MXNetError as error:
            if isinstance(error, DeviceError):
                raise
            height, width = self._size(shapes)
            if self.takes(self.preprocessing.channels, height, width) is None and self.takes(
                1, height, width
            ):
                raise SettingsError(
                    f"{self.source} takes pictures of one channel: --color gray (color=) makes them so"
                ) from error
            is_of_size = isinstance(error, ShapeError)
            if self.preprocessing.resize or self.preprocessing.crop:  # pictures of another size do not come
                hint = f"\npictures come as {height}x{width}; another size may fit" if is_of_size else ""
                raise SettingsError(f"{error}{hint}") from error
            others = [name for name in self.input_names if name != self.picture_input()]
            if not is_of_size or any(name in str(error) for name in others):
                raise
            near = [max(32, 32 * round(side / 32)) for side in (height, width)]
            perhaps = "" if near == [height, width] else f", perhaps {near[0]}x{near[1]}"
            raise ShapeError(
                f"{error}\npictures come as {height}x{width}; --resize HEIGHTxWIDTH (resize=) gives another "
                f"size{perhaps}"
            ) from error

    def _size(self, shapes: dict) -> tuple[int, int]:
        """Height and width of the pictures in inputs of these shapes."""
        _, *sides = shapes[self.picture_input()]
        return tuple(sides[:2] if self.preprocessing.layout == "nhwc" else sides[1:3])


@dataclasses.dataclass
class _Ready:
    """A decoded picture that waits for the network."""

    key: object
    name: str
    image: object
    place: Placement
    array: np.ndarray


class _Stream:
    """Pictures on their way: being decoded, waiting by size, being drawn, done. At most ``most`` at a time.

    They are numbered, and come out in that order.
    """

    def __init__(self, model: PictureModel, following, pool, after):
        self.model, self.following, self.pool, self.after = model, following, pool, after
        self.most = 4 * model.batch + 8
        self.decoding, self.waiting, self.finishing, self.done = set(), {}, deque(), {}
        self.begun = self.yielded = 0
        self.ended = False

    def run(self):
        while True:
            self._top_up()
            if self.yielded == self.begun:
                if self.ended:
                    return
                continue
            self._collect()
            # A full batch at once; a part of one only when there is nothing else to wait for.
            size = max(self.waiting, key=lambda each: len(self.waiting[each]), default=None)
            if size and (len(self.waiting[size]) >= self.model.batch or not self.decoding):
                self._compute(size)
            while self.yielded in self.done:
                yield self.done.pop(self.yielded)
                self.yielded += 1

    def _top_up(self) -> None:
        """Start to decode what may be; wait for a picture only where there is nothing else to do."""
        while not self.ended and self.begun - self.yielded < self.most:
            try:
                pair = self.following(self.yielded == self.begun)
            except StopIteration:
                self.ended = True
                return
            if pair is None:
                return
            self.decoding.add(self.pool.submit(self._read, self.begun, *pair))
            self.begun += 1

    def _read(self, number, key, picture):
        return number, self.model.read(key, picture)

    def _collect(self) -> None:
        """Take in what has been decoded and drawn; wait where nothing could be computed meanwhile."""
        full = any(len(each) >= self.model.batch for each in self.waiting.values())
        if self.decoding:
            decoded, self.decoding = wait(self.decoding, 0 if full else None, FIRST_COMPLETED)
            for number, result in sorted((each.result() for each in decoded), key=lambda pair: pair[0]):
                if isinstance(result, _Ready):
                    self.waiting.setdefault(result.array.shape[1:], []).append((number, result))
                else:
                    self.done[number] = result
        idle = not self.decoding and not self.waiting
        while self.finishing and (idle or self.finishing[0][0].done()):
            future, number, pair = self.finishing.popleft()
            future.result()
            self.done[number] = pair

    def _compute(self, size) -> None:
        """Bring the pictures of a size, as many as a batch may have, through the network."""
        waiting = self.waiting.pop(size)
        chosen, rest = waiting[: self.model.batch], waiting[self.model.batch :]
        if rest:
            self.waiting[size] = rest
        pairs = self.model.compute([ready for _, ready in chosen])
        for (number, ready), pair in zip(chosen, pairs, strict=True):
            if self.after is None:
                self.done[number] = pair
            else:
                self.finishing.append((self.pool.submit(self.after, ready.image, pair[1]), number, pair))


def _following(pairs):
    """An iterator as :class:`_Stream` asks for pictures."""
    return lambda may_wait: next(pairs)


def name_of(key, picture) -> str:
    """What predictions call a picture: its file, or its number."""
    return os.fspath(picture) if isinstance(picture, str | os.PathLike) else f"picture {key}"


def _reason(error) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if isinstance(error, MXNetError) else f"{type(error).__name__}: {error}"
