"""A model that feeds pictures and reads outputs as roiops does, and computes in onnxruntime."""

from pathlib import Path

import roiops
from roiops.models.onnx.check import session


class OnnxModel(roiops.models.PictureModel):
    """A ``PictureModel`` that computes in onnxruntime; it pickles with the ONNX file in it.

    Parameters
    ----------
    model : PictureModel
        How pictures are fed and outputs read.
    file : str or path
        The same network as ONNX. Lengths that differ between calls, such as the batch, must be open in it.
    threads : int
        Of onnxruntime.
    """

    def __init__(self, model, file, threads: int = 1):
        super().__init__(
            model.symbol,
            model.params,
            str(file),
            preprocessing=model.preprocessing,
            settings=model.settings,
            input=model.input,
            inputs=model.inputs,
            batch=model.batch,
        )
        self.proto, self.threads, self._session = Path(file).read_bytes(), threads, None

    def __getstate__(self):
        return {**super().__getstate__(), "_session": None}

    def forward(self, feeds: dict) -> dict:
        if self._session is None:
            self._session = session(self.proto, self.threads)
        asked = {each.name for each in self._session.get_inputs()}
        found = self._session.run(self.output_names, {name: feeds[name] for name in feeds if name in asked})
        return dict(zip(self.output_names, found, strict=True))
