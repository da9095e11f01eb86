"""Find an MXNet operator by its name in a graph, and run it through its symbol."""

import mxnet as mx

VERSION = mx.__version__


def operator(name):
    """The symbol function of an operator, whatever its prefix."""
    spaces = ((getattr(mx.sym, space), f"_{space}_") for space in ("contrib", "linalg", "image"))
    for module, prefix in (*spaces, (mx.sym._internal, "_")):
        if name.startswith(prefix) and hasattr(module, name[len(prefix) :]):
            return getattr(module, name[len(prefix) :])
    return getattr(mx.sym, name, None) or getattr(mx.sym._internal, name)


def run(name, params, inputs, head_gradient=None):
    """Forward of an operator with one output, and its gradients for ``head_gradient(shape)``.

    Returns the output, the head gradient and the gradients by argument name; without a head gradient,
    None and nothing.
    """
    symbol = operator(name)(**{key: mx.sym.Variable(key) for key in inputs}, **params)
    arguments = {key: mx.nd.array(value, dtype=value.dtype) for key, value in inputs.items()}
    gradients = {key: mx.nd.zeros(value.shape, dtype=value.dtype) for key, value in arguments.items()}
    request = "null" if head_gradient is None else "write"
    executor = symbol.bind(mx.cpu(), arguments, args_grad=gradients, grad_req=request)
    (output,) = executor.forward(is_train=True)
    if head_gradient is None:
        return output.asnumpy(), None, {}
    head = head_gradient(output.shape).astype(output.dtype)
    executor.backward([mx.nd.array(head, dtype=head.dtype)])
    return output.asnumpy(), head, {key: value.asnumpy() for key, value in gradients.items()}
