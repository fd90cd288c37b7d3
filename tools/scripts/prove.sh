#!/usr/bin/env bash
# Proves the models on this machine's GPU: tools/scripts/prove.sh [FOLDER] [OUTPUTS]
# Installs what is missing, builds for the card that is here, compares OUTPUTS (1e8) results of every instruction, every
# conversion and every open question with the model, and writes the records as JSON to FOLDER (proof). Needs a driver and
# nvcc. Exit status 1 where the card and the model differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:-proof}
outputs=${2:-1e8}
source tools/scripts/install_dependencies.sh

for program in nvidia-smi nvcc; do
  command -v "$program" >/dev/null || {
    echo "guardbit: $program was not found; the proof needs an NVIDIA driver and the CUDA toolkit" >&2
    exit 2
  }
done
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '.')
architecture=$capability
((capability < 90)) || architecture+=a  # from Hopper on, all instructions need the specific target
install_dependencies
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES="$architecture" -DGUARDBIT_TESTS=OFF
cmake --build --preset cuda --parallel "$(nproc)" --target guardbit
mkdir -p "$folder"
guardbit=build/cuda/guardbit
status=0
"$guardbit" gpu validate --all --outputs "$outputs" --captures "$folder" -o "$folder/validate.json" || status=$?
"$guardbit" gpu convert --all -o "$folder/conversions.json" || status=$?
"$guardbit" gpu probe-questions -o "$folder/questions.json" || status=$?
echo "records: $folder"
exit "$status"
