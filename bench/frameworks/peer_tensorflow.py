# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: tf.function graphs. Speaks the protocol of common.py.

Settings: `defaults`; `wide` all threads in one operation (intra = cores, inter 1); `operations` one thread in each of
several operations (intra 1, inter = cores); `one-thread`. Further words: `pages` (peer.h says what it does);
`frozen`, inference with the weights as constants, which TensorFlow folds and brings into their form once. Forms of the
recurrent networks: `cells`, one product of [x,h] a cell in time order (the default: cells of different layers can run
side by side), `layers`, input products of a layer all at once. XLA is what JAX runs on; `jit_compile` took two to eight
times as long as these settings."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import common
import networks

THREADS = ["defaults", "wide", "operations", "one-thread"]


def settings(model, mode):
    forms = ["layers", "operations layers"] if networks.is_recurrent(model) else ["pages"]
    frozen = [] if mode == "training" else ["frozen pages", "operations frozen pages"]
    return THREADS + forms + ["operations pages"] + frozen


def compiled(tf, request, body, inputs):
    """`body` as one graph. The inputs stay arguments: what follows from constants alone would be folded."""
    run = tf.function(body)
    if "frozen" in request["setting"].split():
        from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
        constant = convert_variables_to_constants_v2(run.get_concrete_function(*inputs))
        return lambda: constant(*inputs)[0]
    return lambda: run(*inputs)


class Recurrent:
    def __init__(self, tf, request):
        self.tf, self.request = tf, request
        self.training = request["mode"] == "training"
        self.merged = networks.layers(request)
        self.by_layers = "layers" in request["setting"].split()
        x, time = networks.sequence(request)
        inputs = [tf.constant(x)] + ([] if time is None else [tf.constant(time)])
        self.zero = tf.zeros([request["batch"], request["units"]])
        self.p = []
        for layer in self.merged:
            values = layer.initial()
            if not self.by_layers:
                values["wu"] = tf.concat([values.pop("w"), values.pop("u")], 0)
            self.p.append({k: tf.Variable(v) for k, v in values.items()})
        self.parameters = [v for p in self.p for v in p.values()]
        self.forward = self.layer_major if self.by_layers else self.time_major
        self.run = compiled(tf, request, self.train if self.training else self.forward, inputs)

    def openness(self, p, time):
        """Per step [batch,units]: how far each unit is open."""
        tf, tau, r = self.tf, p["period"], p["ratio"]
        phi = tf.math.floormod(time - p["shift"] * tau, tau) / tau
        slope = 2 * phi / r
        k = tf.where(2 * phi < r, slope, tf.where(phi < r, 2 - slope, networks.LEAK * phi))
        return tf.split(k, self.request["steps"])

    def cell(self, gates, h, c, k):
        tf = self.tf
        i, f, g, o = tf.split(gates, 4, 1)
        new_c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        new_h = tf.sigmoid(o) * tf.tanh(new_c)
        return (new_h, new_c) if k is None else (h + k * (new_h - h), c + k * (new_c - c))

    def time_major(self, x, time=None):
        tf = self.tf
        open_ = [None if time is None else self.openness(p, time) for p in self.p]
        h, c, tops = [self.zero] * len(self.p), [self.zero] * len(self.p), []
        for t, x in enumerate(tf.split(x, self.request["steps"])):
            for l, p in enumerate(self.p):
                gates = tf.nn.bias_add(tf.concat([x, h[l]], 1) @ p["wu"], p["b"])
                h[l], c[l] = self.cell(gates, h[l], c[l], open_[l][t] if open_[l] else None)
                x = h[l]
            tops.append(x)
        return sum(tf.reduce_sum(tf.concat(part, 0)) for part in (tops, h, c))

    def layer_major(self, x, time=None):
        tf, loss = self.tf, 0.0
        for p in self.p:
            products = tf.split(tf.nn.bias_add(x @ p["w"], p["b"]), self.request["steps"])
            open_ = [None] * len(products) if time is None else self.openness(p, time)
            h, c, outputs = self.zero, self.zero, []
            for xw, k in zip(products, open_):
                h, c = self.cell(xw + h @ p["u"], h, c, k)
                outputs.append(h)
            x = tf.concat(outputs, 0)
            loss += tf.reduce_sum(h) + tf.reduce_sum(c)
        return loss + tf.reduce_sum(x)

    def train(self, *inputs):
        with self.tf.GradientTape() as tape:
            loss = self.forward(*inputs)
        return loss, tape.gradient(loss, self.parameters)

    def step(self):
        if not self.training:
            return float(self.run())
        loss, self.gradients = self.run()
        return float(loss)

    def check(self, rate):
        loss = self.step()
        return loss, self.named() if self.training else []

    def named(self):
        grads = iter(self.tf.convert_to_tensor(g).numpy() for g in self.gradients)
        for layer, p in zip(self.merged, self.p):
            values = {key: next(grads) for key in p}
            if "wu" in values:
                wu = values.pop("wu")
                values["w"], values["u"] = wu[: layer.units], wu[layer.units :]
            yield from layer.split(values)


class Images:
    """conv, pool ... are what networks.py calls; images are [N,H,W,C], filters [H,W,I,O], as Graphi's."""

    def __init__(self, tf, request):
        self.tf, self.request = tf, request
        self.training = request["mode"] == "training"
        images, labels = networks.image_batch(request)
        inputs = [tf.constant(images), tf.constant(labels)]
        self.dims = networks.image_parameters(request)
        self.p = {name: tf.Variable(common.parameter_array(name, dims)) for name, dims in self.dims.items()}
        self.rate = tf.Variable(request["rate"])
        self.run = compiled(tf, request, self.train if self.training else self.loss, inputs)

    def padded(self, x, pad):
        return self.tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]])

    def conv(self, scope, x, kernel, stride, channels):
        tf = self.tf
        if stride > 1:  # SAME would pad less on the left
            x = self.padded(x, kernel // 2)
        y = tf.nn.conv2d(x, self.p[f"{scope}/weight"], stride, "SAME" if stride == 1 else "VALID")
        return tf.nn.relu(tf.nn.bias_add(y, self.p[f"{scope}/bias"]))

    def pool(self, x, kernel, stride, pad):
        if stride > 1 and pad:  # zeros do: what is pooled has passed a ReLU
            x = self.padded(x, pad)
        return self.tf.nn.max_pool2d(x, kernel, stride, "SAME" if stride == 1 else "VALID")

    def add(self, parts):
        return self.tf.add_n(parts)

    def concat(self, parts):
        return self.tf.concat(parts, 3)

    def flatten(self, x):
        return self.tf.reshape(x, [self.request["batch"], -1])

    def mean(self, x):
        return self.tf.reduce_mean(x, [1, 2])

    def dense(self, scope, x, outputs):
        return self.tf.nn.bias_add(x @ self.p[f"{scope}/weight"], self.p[f"{scope}/bias"])

    def loss(self, images, labels):
        logits = networks.IMAGES[self.request["model"]](self, images, self.request)
        return self.tf.reduce_mean(self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    def train(self, images, labels):
        parameters = list(self.p.values())
        with self.tf.GradientTape() as tape:
            loss = self.loss(images, labels)
        for parameter, gradient in zip(parameters, tape.gradient(loss, parameters)):
            parameter.assign_sub(self.rate * gradient)
        return loss

    def step(self):
        return float(self.run())

    def restore(self):
        for name, value in self.p.items():
            value.assign(common.parameter_array(name, self.dims[name]))

    def check(self, rate):
        self.restore()
        self.rate.assign(rate)
        loss = self.step()
        gradients = []
        if self.training:
            gradients = list(networks.update_gradients(self.dims, lambda name: self.p[name].numpy(), rate))
        self.rate.assign(self.request["rate"])
        self.restore()
        return loss, gradients


def load(request):
    import tensorflow as tf
    cores = request["cores"]
    threads = {"wide": (cores, 1), "operations": (1, cores), "one-thread": (1, 1)}.get(request["setting"].split()[0])
    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads[0])
        tf.config.threading.set_inter_op_parallelism_threads(threads[1])
    request["started"]()
    network = (Recurrent if networks.is_recurrent(request["model"]) else Images)(tf, request)
    network.version = tf.__version__
    return network


if __name__ == "__main__":
    common.Server(settings, load).run()
