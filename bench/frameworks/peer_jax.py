# SPDX-License-Identifier: Apache-2.0
"""JAX: one jitted function a step. Speaks the protocol of common.py.

Settings: `defaults` (XLA splits one operation over all threads); `operations`, one thread in each of several
operations; `one-thread`. `pages`: peer.h says what it does. Forms of the recurrent networks: `layers`, a scan over time
for each layer after the input products of all steps (the default), `cells`, one scan over time with all layers in its
body."""
import os

import common
import networks

THREADS = {
    "operations": "--xla_cpu_multi_thread_eigen=false --xla_cpu_enable_concurrency_optimized_scheduler=true",
    "one-thread": "--xla_cpu_multi_thread_eigen=false",
}


def settings(model, mode):
    cells = ["cells", "cells pages"] if networks.is_recurrent(model) else []
    return ["defaults", "operations", "one-thread", "pages"] + cells


class Recurrent:
    def __init__(self, jax, request):
        self.jax, self.np, self.request = jax, jax.numpy, request
        self.training = request["mode"] == "training"
        self.merged = networks.layers(request)
        x, time = networks.sequence(request)
        shape = (request["steps"], request["batch"], -1)
        self.x = jax.device_put(x.reshape(shape))
        self.time = None if time is None else jax.device_put(time.reshape(shape))
        self.p = [{k: jax.device_put(v) for k, v in layer.initial().items()} for layer in self.merged]
        forward = self.time_major if "cells" in request["setting"].split() else self.layer_major
        self.run = jax.jit(jax.value_and_grad(forward) if self.training else forward)

    def openness(self, p, time):
        np, tau, r = self.np, p["period"], p["ratio"]
        phi = np.mod(time - p["shift"] * tau, tau) / tau
        slope = 2 * phi / r
        return np.where(2 * phi < r, slope, np.where(phi < r, 2 - slope, networks.LEAK * phi))

    def cell(self, gates, h, c, k):
        np, sigmoid = self.np, self.jax.nn.sigmoid
        i, f, g, o = np.split(gates, 4, 1)
        new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        new_h = sigmoid(o) * np.tanh(new_c)
        return (new_h, new_c) if k is None else (h + k * (new_h - h), c + k * (new_c - c))

    def layer_major(self, parameters, x, time):
        np, loss = self.np, 0.0
        zero = np.zeros((self.request["batch"], self.request["units"]), np.float32)
        for p in parameters:
            k = None if time is None else self.openness(p, time)

            def body(state, now, p=p):
                xw, open_ = now
                state = self.cell(xw + state[0] @ p["u"], *state, open_)
                return state, state[0]

            (h, c), x = self.jax.lax.scan(body, (zero, zero), (x @ p["w"] + p["b"], k))
            loss += h.sum() + c.sum()
        return loss + x.sum()

    def time_major(self, parameters, x, time):
        np = self.np
        zero = np.zeros((self.request["batch"], self.request["units"]), np.float32)
        k = [None if time is None else self.openness(p, time) for p in parameters]
        wu = [np.concatenate([p["w"], p["u"]]) for p in parameters]

        def body(states, now):
            x, open_ = now
            after = []
            for p, w, (h, c), o in zip(parameters, wu, states, open_):
                h, c = self.cell(np.concatenate([x, h], 1) @ w + p["b"], h, c, o)
                after.append((h, c))
                x = h
            return after, x

        states, tops = self.jax.lax.scan(body, [(zero, zero)] * len(parameters), (x, k))
        return tops.sum() + sum(h.sum() + c.sum() for h, c in states)

    def step(self):
        result = self.jax.block_until_ready(self.run(self.p, self.x, self.time))
        if not self.training:
            return float(result)
        self.gradients = result[1]
        return float(result[0])

    def check(self, rate):
        loss = self.step()
        return loss, self.named() if self.training else []

    def named(self):
        for layer, values in zip(self.merged, self.gradients):
            yield from layer.split(values)


class Ops:
    """What networks.py calls, over one set of parameters; images are [N,H,W,C], filters [H,W,I,O], as Graphi's."""

    def __init__(self, jax, parameters):
        self.jax, self.np, self.p = jax, jax.numpy, parameters

    def conv(self, scope, x, kernel, stride, channels):
        pad = kernel // 2
        y = self.jax.lax.conv_general_dilated(x, self.p[f"{scope}/weight"], (stride, stride), [(pad, pad)] * 2,
                                              dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return self.jax.nn.relu(y + self.p[f"{scope}/bias"])

    def pool(self, x, kernel, stride, pad):
        return self.jax.lax.reduce_window(x, -self.np.inf, self.jax.lax.max, (1, kernel, kernel, 1), (1, stride, stride, 1),
                                          [(0, 0), (pad, pad), (pad, pad), (0, 0)])

    def add(self, parts):
        return sum(parts)

    def concat(self, parts):
        return self.np.concatenate(parts, 3)

    def flatten(self, x):
        return x.reshape(x.shape[0], -1)

    def mean(self, x):
        return x.mean((1, 2))

    def dense(self, scope, x, outputs):
        return x @ self.p[f"{scope}/weight"] + self.p[f"{scope}/bias"]


class Images:
    def __init__(self, jax, request):
        self.jax, self.np, self.request = jax, jax.numpy, request
        self.training = request["mode"] == "training"
        images, labels = networks.image_batch(request)
        self.x, self.labels = jax.device_put(images), jax.device_put(labels)
        self.dims = networks.image_parameters(request)
        self.rate = self.np.float32(request["rate"])
        self.restore()
        self.run = jax.jit(self.train, donate_argnums=0) if self.training else jax.jit(self.loss)

    def restore(self):
        self.p = {name: self.jax.device_put(common.parameter_array(name, dims)) for name, dims in self.dims.items()}

    def loss(self, parameters, x, labels):
        logits = networks.IMAGES[self.request["model"]](Ops(self.jax, parameters), x, self.request)
        chosen = self.np.take_along_axis(self.jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean()

    def train(self, parameters, x, labels, rate):
        loss, gradients = self.jax.value_and_grad(self.loss)(parameters, x, labels)
        return {name: value - rate * gradients[name] for name, value in parameters.items()}, loss

    def step(self):
        if not self.training:
            return float(self.run(self.p, self.x, self.labels))
        self.p, loss = self.jax.block_until_ready(self.run(self.p, self.x, self.labels, self.rate))
        return float(loss)

    def check(self, rate):
        self.restore()
        self.rate = self.np.float32(rate)
        loss = self.step()
        gradients = []
        if self.training:
            import numpy
            gradients = list(networks.update_gradients(self.dims, lambda name: numpy.asarray(self.p[name]), rate))
        self.rate = self.np.float32(self.request["rate"])
        self.restore()
        return loss, gradients


def load(request):
    flags = THREADS.get(request["setting"].split()[0], "")
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    os.environ["JAX_PLATFORMS"] = "cpu"
    if request["setting"].split()[0] == "one-thread":
        os.environ["NPROC"] = "1"  # the size of XLA's own thread pool
    import jax
    jax.devices()  # part of start-up
    request["started"]()
    network = (Recurrent if networks.is_recurrent(request["model"]) else Images)(jax, request)
    network.version = jax.__version__
    return network


if __name__ == "__main__":
    common.Server(settings, load).run()
