#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nltk.DependencyGraph finds no root in Universal Dependencies unless it is told how roots are called there.
# A good guess: the word whose head is 0 is the root; the label of that relation does not matter.
# Found: only a relation called ROOT counts, and Universal Dependencies write root. The graph has no root, which is a warning, and tree()
# raises TypeError.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check nltk==3.10.4
"$work/env/bin/python" - <<'PY'
import nltk, warnings
from nltk.parse import DependencyGraph
rows = "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n"
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    graph = DependencyGraph(rows)
try:
    graph.tree()
    raised = ""
except TypeError as error:
    raised = str(error)
print("nltk", nltk.__version__, "root", graph.root, [str(w.message) for w in told], raised)
named = DependencyGraph(rows, top_relation_label="root")
print(named.tree())
assert graph.root is None and told and raised and named.root["word"] == "bark"
PY
