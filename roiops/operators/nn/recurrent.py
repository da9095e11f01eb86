"""Recurrent layers: MXNet's fused ``RNN``."""

import numpy as np

from ...errors import ParamError
from ...kernels.cpu.network import recurrent
from ...params import Field, Parameter, enum, optional
from ...registry import register
from ..dense import DenseOperator, FloatProperty
from .dropout import draw_mask

_NOT_ON_CPU = "must be left out: MXNet has it on GPUs only"


class RNNParam(Parameter):
    state_size = Field(int, range=(1, None), doc="numbers in each layer's state")
    num_layers = Field(int, range=(1, 1000), doc="how many layers lie one on another")
    bidirectional = Field(bool, False, doc="whether each layer goes through the sequence backwards, too")
    mode = Field(enum("rnn_relu", "rnn_tanh", "lstm", "gru"), doc="kind of layer")
    p = Field(float, 0.0, range=(0, 1), doc="fraction dropped of what goes from layer to layer, in training")
    state_outputs = Field(bool, False, doc="whether the last states are outputs, too")
    projection_size = Field(optional(int), None, doc=_NOT_ON_CPU)
    lstm_state_clip_min = Field(optional(float), None, doc=_NOT_ON_CPU)
    lstm_state_clip_max = Field(optional(float), None, doc=_NOT_ON_CPU)
    lstm_state_clip_nan = Field(bool, False, doc=_NOT_ON_CPU)
    use_sequence_length = Field(bool, False, doc=_NOT_ON_CPU)

    def validate(self, operator):
        for name, field in self.fields.items():
            if field.doc == _NOT_ON_CPU and getattr(self, name) not in (None, False):
                raise ParamError(f"{operator}: {name} is not supported; neither is it by MXNet on a CPU")

    @property
    def directions(self) -> int:
        """How many directions a layer goes in."""
        return 2 if self.bidirectional else 1

    @property
    def drops(self) -> bool:
        """Whether training drops anything."""
        return self.p > 0 and self.num_layers > 1

    @property
    def num_visible(self) -> int:
        """How many outputs a user sees."""
        return 1 + self.state_outputs * (2 if self.mode == "lstm" else 1)


class RNNOp(DenseOperator):
    """Its backward pass runs the layers forward again: what they keep is several times the output."""

    def compute(self, ctx, in_data, out_data, aux):
        p, data = self.params, in_data[0]
        out, *last = out_data[: p.num_visible]
        if out is None:
            out = self.scratch("out", (*data.shape[:2], p.directions * p.state_size), data.dtype)
        masks = self._draw_masks(out, out_data[-1]) if self._drops(ctx) else None
        for target, values in zip(last, self._network(in_data).forward(out, masks), strict=False):
            if target is not None:
                np.stack(values, out=target)

    def gradient(self, ctx, out_grad, in_data, out_data, in_grad, aux):
        head, *to_last = out_grad[: self.params.num_visible]
        masks = out_data[-1] if self._drops(ctx) else None
        network = self._network(in_data)
        network.forward(self.scratch("out", head.shape, head.dtype), masks)
        none = np.zeros_like(in_data[2])
        to_states, to_cells = (*to_last, none, none)[:2]
        to_data, to_parameters, *to_first = network.backward(head, to_states, to_cells, masks)
        for target, values in zip(in_grad, (to_data, to_parameters, *map(np.stack, to_first)), strict=False):
            if target is not None:
                np.copyto(target, values)

    def _network(self, in_data):
        p, (data, parameters, *first) = self.params, in_data
        return recurrent.Network(p.mode, data, parameters, *first, directions=p.directions)

    def _drops(self, ctx):
        return ctx.is_train and self.params.drops

    def _draw_masks(self, out, masks):
        """Factors on what goes from each layer to the next."""
        if masks is None:
            masks = self.scratch("masks", (self.params.num_layers - 1, *out.shape), out.dtype)
        draw_mask(masks, self.params.p)
        return masks


@register("RNN", "_npx_rnn")
class RNNProp(FloatProperty):
    """Recurrent layers one on another (LSTM, GRU, or a plain one), over a whole sequence."""

    param, op = RNNParam, RNNOp
    arguments = {
        "data": "the sequence, (steps, batch, features)",
        "parameters": "all weights, flat: the matrices for input and state of each direction of each layer, "
        "then the biases in the same order",
        "state": "first states, (num_layers * directions, batch, state_size)",
        "state_cell": "first cells, of the same shape; only with 'lstm'",
    }
    present_if = {"state_cell": lambda p: p.mode == "lstm"}

    def list_outputs(self):
        visible = ("output", "state_output", "statecell_output")[: self.params.num_visible]
        return (*visible, "masks") if self.params.drops else visible

    @property
    def num_visible_outputs(self):
        return self.params.num_visible

    def infer_shape(self, in_shapes):
        p, data = self.params, in_shapes[0]
        self.check_ndim("data", data, 3)
        steps, batch, features = data
        sizes = (p.state_size, p.num_layers, p.directions)
        count = -1 if features == -1 else recurrent.num_parameters(p.mode, features, *sizes)
        parameters = self.check_shape("parameters", in_shapes[1], (count,))
        first = (p.num_layers * p.directions, batch, p.state_size)
        names = self.list_arguments()
        for name, shape in zip(names[2:], in_shapes[2:], strict=True):
            first = self.check_shape(name, shape, first)
        out = (steps, first[1], p.directions * p.state_size)
        outputs = [out, first, first][: p.num_visible]
        if p.drops:
            outputs.append((p.num_layers - 1, *out))
        return [(steps, first[1], features), parameters, *[first] * (len(names) - 2)], outputs
