#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes build/peers/sklearn, the environment of the regression study. Downloads scikit-learn from the Python package
# index.
set -e
cd "$(dirname "$0")/../.."
python3 -m venv build/peers/sklearn
build/peers/sklearn/bin/pip install --quiet scikit-learn
build/peers/sklearn/bin/python -c 'import sklearn; print("scikit-learn", sklearn.__version__)'
