#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nltk.Tree loses a leaf that is a no-break space, and cuts a word in two at one.
# A good guess: words of a bracketed tree are apart where the format has blanks, which are ASCII in the Penn Treebank and in the sentiment
# treebank.
# Found: the reader splits at every Unicode space. A node whose word is U+00A0 has no children, so the tree has a leaf less than the sentence
# has labels; a number written with such a blank becomes two leaves. The sentiment treebank has three such leaves.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check nltk==3.10.4
"$work/env/bin/python" - <<'PY'
import nltk
from nltk import Tree
alone, within = Tree.fromstring("(3 (2 \u00a0) (4 good))"), Tree.fromstring("(3 (2 10\u00a0000) (4 people))")
print("nltk", nltk.__version__, [len(node) for node in alone], alone.leaves(), within.leaves())
assert [len(node) for node in alone] == [0, 1] and alone.leaves() == ["good"]
assert within.leaves() == ["10", "000", "people"]
PY
