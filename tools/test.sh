#!/usr/bin/env bash
# Builds the release preset (asserts stay on) and runs the quick tests. What is given is handed to cmake:
# -DGUARDBIT_CUDA=ON builds the CUDA code as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/scripts/install_dependencies.sh
install_dependencies
configure release "$@"
cmake --build --preset release --parallel "$(nproc)"
ctest --test-dir build/release -L '^quick$' --no-tests=error --output-on-failure --parallel "$(nproc)"
