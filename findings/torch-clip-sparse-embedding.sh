#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch cannot clip the gradients of an embedding table that has sparse gradients.
# A good guess: clip_grad_norm_ and clip_grad_value_ work on whatever nn.Embedding(sparse=True) gives to SGD and Adagrad, which take it.
# Found: both raise NotImplementedError, as the norm and the bounds are not there for sparse tensors. Gradients arrive with doubled ids
# besides, so a norm of their values would be another number than that of the table's gradient.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# PyTorch's own index has a build without GPU libraries.
install() { "$work/env/bin/pip" install --quiet --disable-pip-version-check "$@" torch==2.13.0 numpy==2.4.6; }
install --retries 0 --timeout 20 --index-url https://download.pytorch.org/whl/cpu 2>"$work/log" || install
"$work/env/bin/python" - <<'PY'
import torch
torch.manual_seed(0)
table = torch.nn.Embedding(10, 4, sparse=True)
def gradient():
    table.zero_grad()
    (table(torch.tensor([1, 2, 2, 3])) ** 2).sum().backward()
    return table.weight.grad
g = gradient()
print("torch", torch.__version__, "coalesced", g.is_coalesced(), "rows", g._nnz(), "norm of values", g._values().norm().item(),
      "norm of the gradient", g.to_dense().norm().item())
assert g._nnz() == 4 and g._values().norm() != g.to_dense().norm()
for clip in (lambda: torch.nn.utils.clip_grad_norm_(table.parameters(), 1.0), lambda: torch.nn.utils.clip_grad_value_(table.parameters(), 0.5)):
    gradient()
    try:
        clip()
        told = ""
    except NotImplementedError as error:
        told = str(error)
    print(told[:80])
    assert "SparseCPU" in told
torch.optim.SGD(table.parameters(), lr=0.1).step()
PY
