#!/usr/bin/env bash
# eigen_objects.sh VARIANT OBJECT…: an object compiled for more than the baseline may define no symbol that another one
# could define too, or the linker might take code that the CPU at hand does not have. Prints those and exits 1.
set -euo pipefail
variant=$1
shift
for object in "$@"; do
  [[ -e $object ]] || { echo "SKIPPED: $object is not built (a part of guardbit_benchmark)"; exit 0; }
done
if nm --demangle --defined-only "$@" | grep -E ' [TWVu] ' |
  grep -vE "Eigen_$variant|guardbit::experiments::eigen_$variant::|DW\.ref\.__gxx_personality_v0$"; then
  exit 1
fi
