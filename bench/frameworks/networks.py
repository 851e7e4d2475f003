# SPDX-License-Identifier: Apache-2.0
"""Parameters and inputs of the four networks in Graphi's names, shapes and layouts: images [N,H,W,C], filters
[H,W,I,O], matrices [in,out]; a recurrent layer has w_G, u_G, b_G for the gates G = i, f, g, o. Frameworks that want
another layout convert once, on loading. Recurrent peers merge the four gates, which is the same mathematics and the
faster form for them."""
import numpy as np

import common

GATES = "ifgo"
LEAK = 0.001
INCEPTION = {  # 1x1; 3x3 reduce, 3x3; 5x5 reduce, 5x5; pool projection
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
}


def is_recurrent(model):
    return model in ("lstm", "phased-lstm")


class Merged:
    """The parameters of one recurrent layer with its gates side by side: w [in,4U], u [U,4U], b [4U]."""

    def __init__(self, layer, units, phased):
        self.scope, self.units, self.phased = f"layer{layer}", units, phased

    def initial(self):
        n = self.units
        def gates(kind, dims):
            return np.concatenate([common.parameter_array(f"{self.scope}/{kind}_{g}", dims) for g in GATES], -1)
        values = {"w": gates("w", (n, n)), "u": gates("u", (n, n)), "b": gates("b", (n,))}
        for name in ("period", "shift", "ratio") if self.phased else ():
            values[name] = common.parameter_array(f"{self.scope}/{name}", (n,))
        return values

    def split(self, values):
        """(name, array) in Graphi's names, from gradients keyed as initial() keys its values."""
        for name, value in values.items():
            if name in ("w", "u", "b"):
                for g, part in zip(GATES, np.split(np.asarray(value), 4, -1)):
                    yield f"{self.scope}/{name}_{g}", part
            else:
                yield f"{self.scope}/{name}", np.asarray(value)


def layers(request):
    return [Merged(l, request["units"], request["model"] == "phased-lstm") for l in range(request["layers"])]


def sequence(request):
    """x [steps*batch,units] and, for phased-lstm, time [steps*batch,1]; first states are zero."""
    rows = request["steps"] * request["batch"]
    x = common.input_array("x", (rows, request["units"]), request["seed"])
    time = common.input_array("time", (rows, 1), request["seed"]) if request["model"] == "phased-lstm" else None
    return x, time


def image_batch(request):
    side = request["image"]
    images = common.input_array("images", (request["batch"], side, side, request["channels"]), request["seed"])
    return images, common.input_labels("labels", request["batch"], request["classes"], request["seed"])


def pathnet(ops, x, request):
    """Gives the logits. `ops` does conv(scope, x, kernel, stride, channels), which adds bias and ReLU; pool(x, kernel, stride,
    pad); add(list); concat(list); flatten(x) in the order [H,W,C]; mean(x) over the image; dense(scope, x, outputs)."""
    for layer in range(3):
        x = ops.add([ops.pool(ops.conv(f"layer{layer}/module{m}", x, 3, 1, request["units"]), 2, 2, 0) for m in range(6)])
    return ops.dense("output", ops.flatten(x), request["classes"])


def googlenet(ops, x, request):
    width = request["units"]

    def conv(scope, y, kernel, stride, channels):
        return ops.conv(scope, y, kernel, stride, channels * width)

    x = ops.pool(conv("conv1", x, 7, 2, 64), 3, 2, 1)
    x = conv("conv2", conv("conv2/reduce", x, 1, 1, 64), 3, 1, 192)
    x = ops.pool(x, 3, 2, 1)
    for name, (one, reduce3, three, reduce5, five, project) in INCEPTION.items():
        if name in ("4a", "5a"):
            x = ops.pool(x, 3, 2, 1)
        x = ops.concat([conv(f"{name}/one", x, 1, 1, one),
                        conv(f"{name}/three", conv(f"{name}/three/reduce", x, 1, 1, reduce3), 3, 1, three),
                        conv(f"{name}/five", conv(f"{name}/five/reduce", x, 1, 1, reduce5), 5, 1, five),
                        conv(f"{name}/pool/project", ops.pool(x, 3, 1, 1), 1, 1, project)])
    return ops.dense("output", ops.mean(x), request["classes"])


IMAGES = {"pathnet": pathnet, "googlenet": googlenet}


class Shapes:
    """Runs a network on (side, channels) alone and so lists its parameters."""

    def __init__(self):
        self.dims = {}

    def conv(self, scope, x, kernel, stride, channels):
        self.dims[f"{scope}/weight"] = (kernel, kernel, x[1], channels)
        self.dims[f"{scope}/bias"] = (channels,)
        return (x[0] + 2 * (kernel // 2) - kernel) // stride + 1, channels

    def pool(self, x, kernel, stride, pad):
        return (x[0] + 2 * pad - kernel) // stride + 1, x[1]

    def add(self, parts):
        return parts[0]

    def concat(self, parts):
        return parts[0][0], sum(p[1] for p in parts)

    def flatten(self, x):
        return x[0] * x[0] * x[1]

    def mean(self, x):
        return x[1]

    def dense(self, scope, x, outputs):
        self.dims[f"{scope}/weight"] = (x, outputs)
        self.dims[f"{scope}/bias"] = (outputs,)


def image_parameters(request):
    """Name -> dims."""
    shapes = Shapes()
    IMAGES[request["model"]](shapes, (request["image"], request["channels"]), request)
    return shapes.dims


def update_gradients(dims, current, rate):
    """What plain SGD subtracted, over the rate: (name, array). `current(name)` gives a parameter after the step."""
    for name, shape in dims.items():
        yield name, (common.parameter_array(name, shape) - current(name)) / np.float32(rate)
