#!/usr/bin/env bash
# Builds the command and gives a short tour of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/install_dependencies.sh
install_dependencies
cmake --preset release
cmake --build --preset release --target guardbit --parallel "$(nproc)"
build/release/guardbit --help
