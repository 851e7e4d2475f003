#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment of one peer of `graphi bench frameworks`, or of the fits of `graphi bench regression` (sklearn),
# of `graphi bench recurrent`, `inference` and `python`, of `graphi bench run-cost` (onnxruntime), or of `graphi bench dynamic` (dynet,
# pytorch).
# Usage: setup.sh pytorch|tensorflow|jax|sklearn|onnxruntime|openvino|python|dynet FOLDER
# The benchmark calls it when FOLDER/NAME lacks; a failed installation leaves nothing behind.
set -eu
name=${1:?which peer} folder=${2:?which folder}
case "$name" in
pytorch) packages="torch==2.13.0 numpy" ;;
tensorflow) packages="tensorflow-cpu==2.21.0" ;;
jax) packages="jax==0.10.2 jaxlib==0.10.2" ;;
sklearn) packages="scikit-learn==1.9.1" ;;
python) packages="onnxruntime==1.32.0 onnx==1.23.2 numpy cffi ml_dtypes" ;;
onnxruntime) packages="onnxruntime==1.32.0 onnx==1.23.2 numpy" ;;
openvino) packages="openvino==2026.4.1 onnx==1.23.2 numpy" ;;
dynet) packages="dyNET38==2.2 numpy" ;;
*) echo "setup: found '$name', expected pytorch, tensorflow, jax, sklearn, onnxruntime, openvino, python or dynet" >&2; exit 2 ;;
esac

install() {
    # shellcheck disable=SC2086
    "$folder/$name/bin/python" -m pip install --disable-pip-version-check --quiet --timeout 20 "$@" $packages
}

mkdir -p "$folder"
trap 'rm -rf "${folder:?}/$name"' EXIT
python3 -m venv "$folder/$name" || { echo "setup: python3 -m venv failed; is python3-venv installed?" >&2; exit 1; }
# PyTorch's own index has a build without the gigabytes of GPU libraries; PyPI's does the same work on a CPU.
if [ "$name" != pytorch ] || ! install --retries 0 --index-url https://download.pytorch.org/whl/cpu 2>/dev/null; then
    install --retries 2
fi
trap - EXIT
