#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A sequence's result in a dynamically quantized nn.LSTM depends on the other sequences of its batch.
# A good guess: rows of a batch are independent, as they are in float32; only a sequence itself decides how it is quantized.
# Found: the scale of activations is taken over the whole batch at each step. A neighbour with large numbers makes the error of a quiet
# sequence 26 times as large. A server that batches requests gives other answers under load.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# PyTorch's own index has a build without GPU libraries.
install() { "$work/env/bin/pip" install --quiet --disable-pip-version-check "$@" torch==2.13.0 numpy==2.4.6; }
install --retries 0 --timeout 20 --index-url https://download.pytorch.org/whl/cpu 2>"$work/log" || install
"$work/env/bin/python" - <<'PY'
import torch, warnings
warnings.filterwarnings("ignore")
torch.manual_seed(0)
lstm = torch.nn.LSTM(16, 32, batch_first=True).eval()
small = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(lstm), {torch.nn.LSTM}, dtype=torch.qint8)[0]
quiet, loud = torch.randn(1, 10, 16), 20 * torch.randn(1, 10, 16)
with torch.no_grad():
    exact, beside = lstm(quiet)[0], lstm(torch.cat([quiet, loud]))[0][:1]
    alone, joined = small(quiet)[0], small(torch.cat([quiet, loud]))[0][:1]
errors = [(a - exact).abs().max().item() for a in (beside, alone, joined)]
print("torch", torch.__version__, "error of float32 in a batch, int8 alone, int8 in a batch:", errors)
assert errors[0] < 1e-5 and errors[1] < 0.02 and errors[2] > 5 * errors[1]
PY
