# SPDX-License-Identifier: Apache-2.0
"""Fits the regression models of concurrency-control.txt III-B to the records of `graphi bench regression`.

One model per case (width and mode), as in the paper: it maps an operation's features and its times at N sampled widths to its time
in that case. Features are chosen by a decision tree among the counters (per instruction) that all records have and the operation's
own figures. Times are scaled like features, since gradient descent and support vectors go by their size. Trained on
all networks but the test one. Reads a line of JSON, {"records": FILE}, and answers with one: accuracy = 1 - mean |predicted - true| /
true and R2 over cases of the test network that are not among the N, per model and N as far as any are left; and, of the model that the
records name, what it predicts with four samples for every record in every case, trained on all networks but that record's own. Sampled
cases keep what was measured.
"""
import json
import sys
import warnings

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import ARDRegression, LinearRegression, TheilSenRegressor
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

try:  # moved in newer releases: passive-aggressive is SGD with the PA-I rule
    from sklearn.linear_model import PassiveAggressiveRegressor
except ImportError:
    PassiveAggressiveRegressor = None
    from sklearn.linear_model import SGDRegressor

SAMPLES = (1, 4, 8, 16)
PREDICT_SAMPLES = 4  # with which the paper's best model was best
CASES = 8  # evenly chosen of those that were not sampled; the paper has 68
PAPER = {  # Table IV, accuracy and R2 at N = 1, 4, 8, 16
    "gradient boosting": ((0.61, 0.961), (0.57, 0.957), (0.51, 0.972), (0.34, 0.959)),
    "k-neighbours": ((0.56, 0.818), (0.67, 0.592), (0.56, 0.589), (0.26, 0.585)),
    "Theil-Sen": ((0.37, 0.779), (0.17, 0.539), (0.26, 0.965), (0.13, 0.852)),
    "least squares": ((0.27, 0.981), (0.21, 0.951), (0.31, 0.977), (0.14, 0.892)),
    "passive-aggressive": ((0.18, 0.196), (0.14, 0.175), (0.18, 0.177), (0.11, 0.159)),
}


def passive_aggressive():
    if PassiveAggressiveRegressor:
        return PassiveAggressiveRegressor(random_state=0)
    return SGDRegressor(loss="epsilon_insensitive", penalty=None, learning_rate="pa1", eta0=1.0, random_state=0)


MODELS = {
    "k-neighbours": lambda: KNeighborsRegressor(3),
    "gradient boosting": lambda: GradientBoostingRegressor(n_estimators=50, random_state=0),
    "Theil-Sen": lambda: TheilSenRegressor(max_subpopulation=300, random_state=0),
    "least squares": LinearRegression,
    "passive-aggressive": passive_aggressive,
    "random forest": lambda: RandomForestRegressor(50, random_state=0),
    "SVR linear": lambda: SVR(kernel="linear"),
    "SVR poly": lambda: SVR(kernel="poly"),
    "SVR rbf": lambda: SVR(kernel="rbf"),
    "decision tree": lambda: DecisionTreeRegressor(random_state=0),
    "ARD": ARDRegression,
    "MLP sgd": lambda: MLPRegressor(hidden_layer_sizes=(32,), solver="sgd", max_iter=300, random_state=0),
    "MLP lbfgs": lambda: MLPRegressor(hidden_layer_sizes=(32,), solver="lbfgs", max_iter=300, random_state=0),
    "MLP adam": lambda: MLPRegressor(hidden_layer_sizes=(32,), solver="adam", max_iter=300, random_state=0),
}


def counted(records):
    """The counters that every record has beside its instructions; none where one lacks these."""
    if not all(r["counters"].get("instructions", 0) > 0 for r in records):
        return []
    return sorted(set.intersection(*(set(r["counters"]) for r in records)) - {"instructions"})


def features_of(record, counters):
    """Named features: these counters per instruction, and the operation's figures."""
    flops, size = record["flops"], max(record["bytes"], 1)
    own = {"flops": np.log1p(flops), "bytes": np.log(size), "shares": np.log(record["shares"]),
           "phases": record["phases"], "intensity": np.log1p(flops / size)}
    return own | {name: record["counters"][name] / record["counters"]["instructions"] for name in counters}


def table(records, counters):
    names = sorted(features_of(records[0], counters))
    features = np.array([[features_of(r, counters)[n] for n in names] for r in records])
    times = np.array([[t["ns"] for t in r["times"]] for r in records]) / 1e6  # ms
    return names, features, times


def choose_features(names, features, target):
    """The four most important ones for a decision tree; fewer when there are fewer."""
    tree = DecisionTreeRegressor(random_state=0).fit(features, target)
    return sorted(np.argsort(tree.feature_importances_)[::-1][:4])


def pipeline(make):
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), make()), transformer=StandardScaler())


def evaluate(make, x_train, y_train, x_test, y_test, cases):
    predicted, true = [], []
    for case in cases:
        predicted.append(pipeline(make).fit(x_train, y_train[:, case]).predict(x_test))
        true.append(y_test[:, case])
    predicted, true = np.concatenate(predicted), np.concatenate(true)
    error = np.mean(np.abs(predicted - true) / true)
    return 1 - error, r2_score(true, predicted)


def sample_cases(count, samples):
    return sorted({int(s) for s in np.linspace(0, count - 1, samples)})


def predict(make, networks, features, times, samples):
    """ns per record and case."""
    sampled = sample_cases(times.shape[1], samples)
    x = np.hstack([features, times[:, sampled]])
    predicted = times.copy()
    for network in sorted(set(networks)):
        own = networks == network
        for case in (c for c in range(times.shape[1]) if c not in sampled):
            predicted[own, case] = pipeline(make).fit(x[~own], times[~own, case]).predict(x[own])
    return np.maximum(predicted * 1e6, 1).tolist()


def answer(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    records = data["records"]
    networks = np.array([r["network"] for r in records])
    train = [r for r in records if r["network"] != data["test"]]
    test = [r for r in records if r["network"] == data["test"]]
    notes, fits = [], []
    if len(train) < 8 or not test:
        return {"ok": True, "fits": [], "notes": ["too few records to fit: %d to train, %d to test" % (len(train), len(test))]}
    counters = counted(records)
    some = sum(bool(r["counters"]) for r in records)
    if some and not counters:
        notes.append("counters left out: %d of %d records have none, or no instructions"
                     % (sum(r["counters"].get("instructions", 0) <= 0 for r in records), len(records)))
    names, x_train, y_train = table(train, counters)
    _, x_test, y_test = table(test, counters)
    chosen = choose_features(names, x_train, y_train[:, -1])
    notes.append("features chosen by a decision tree: " + ", ".join(names[i] for i in chosen))
    notes.append("%d classes to train, %d of %s to test" % (len(train), len(test), data["test"]))
    count = y_train.shape[1]
    for samples in SAMPLES:
        if samples >= count:
            continue  # nothing would be left to predict
        sampled = sample_cases(count, samples)
        others = [c for c in range(count) if c not in sampled]
        left = [others[i] for i in sample_cases(len(others), min(CASES, len(others)))]
        with_times = lambda x, y: np.hstack([x[:, chosen], y[:, sampled]])
        for name, make in MODELS.items():
            fit = {"model": name, "samples": samples}
            try:
                fit["accuracy"], fit["r2"] = evaluate(make, with_times(x_train, y_train), y_train, with_times(x_test, y_test),
                                                      y_test, left)
            except ValueError as error:  # gradient descent may diverge
                fit["reason"] = str(error)
            if name in PAPER:
                fit["paper_accuracy"], fit["paper_r2"] = PAPER[name][SAMPLES.index(samples)]
            fits.append(fit)
    _, x, y = table(records, counters)
    predictions = predict(MODELS[data["predict"]], networks, x[:, chosen], y, min(PREDICT_SAMPLES, count))
    return {"ok": True, "fits": fits, "notes": notes, "predictions": predictions}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    print(json.dumps(answer(json.loads(sys.stdin.readline())["records"])))
