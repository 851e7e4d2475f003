#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch packs sequences of equal length in an order that is not theirs.
# A good guess: pack_sequence(enforce_sorted=False) sorts stably, so sequences that are as long as each other stay in the order given.
# Found: 40 sequences of length 2 are packed as 30, 21, 22 ...; a few stay as they are. What reads the rows of a PackedSequence, or compares them
# with another implementation, goes by sorted_indices and never by position.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# PyTorch's own index has a build without GPU libraries.
install() { "$work/env/bin/pip" install --quiet --disable-pip-version-check "$@" torch==2.13.0 numpy==2.4.6; }
install --retries 0 --timeout 20 --index-url https://download.pytorch.org/whl/cpu 2>"$work/log" || install
"$work/env/bin/python" - <<'PY'
import torch
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence
packed = pack_sequence([torch.full((2, 1), float(i)) for i in range(40)], enforce_sorted=False)
few = pack_sequence([torch.full((2, 1), float(i)) for i in range(4)], enforce_sorted=False)
print("torch", torch.__version__, "40 equal lengths:", packed.sorted_indices.tolist(), "4:", few.sorted_indices.tolist())
assert packed.sorted_indices.tolist() != list(range(40)) and sorted(packed.sorted_indices.tolist()) == list(range(40))
assert pad_packed_sequence(packed)[0][0, :, 0].tolist() == list(range(40))
PY
