#!/usr/bin/env bash
# run.sh SECONDS [TARGET...]: runs each fuzz target (default: all that are built) for that many seconds, one after the
# other; prints the executions of each and of all. Status 1, and the input that shows it, where a target found anything.
#
# BUILD=DIR: where the targets are (default build/fuzz). WORKERS=N: processes of a target at a time (default 1); they
# share its corpus, DIR/corpus/TARGET. DIR/lib, where it is there, has shared libraries that the machine may lack.
set -u
seconds=${1:?run.sh SECONDS [TARGET...]}
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${BUILD:-build/fuzz}" && pwd) || exit 2
workers=${WORKERS:-1}
programs=$(find "$build" -name 'guardbit_fuzz_*' -type f -perm -u+x)
targets=("$@")
if ((${#targets[@]} == 0)); then
  mapfile -t targets < <(sed 's/.*guardbit_fuzz_//' <<<"$programs" | sort)
fi
if [[ -d $build/lib ]]; then export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=0}
[[ -d $build/seeds ]] || python3 "$here/seeds.py" "$build/seeds" || exit 2

total=0
failed=()
for target in "${targets[@]}"; do
  program=$(grep "/guardbit_fuzz_$target\$" <<<"$programs") || { echo "no target $target" >&2; exit 2; }
  corpus=$build/corpus/$target logs=$build/logs/$target crashes=$build/crashes
  mkdir -p "$corpus" "$logs" "$crashes"
  folders=("$corpus")
  for folder in "$build/seeds/$target" "$here/seeds/$target" "$here/regressions/$target"; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  case $target in
    hdf5 | npz | torch | scaler_log | trace_results) longest=20000 ;;
    instruction_name | format_name) longest=128 ;;  # each is compared with every name
    *) longest=4096 ;;
  esac
  processes=()
  for ((i = 0; i < workers; ++i)); do
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=$longest -print_final_stats=1 \
      -reload=10 -artifact_prefix="$crashes/$target-" "${folders[@]}" >"$logs/$i" 2>&1 &
    processes+=($!)
  done
  state=ok
  for process in "${processes[@]}"; do wait "$process" || state=FAILED; done
  executions=$(awk '/number_of_executed_units/ {n += $2} END {print n + 0}' "$logs"/*)
  total=$((total + executions))
  printf '%-20s %12d executions  %s\n' "$target" "$executions" "$state"
  if [[ $state != ok ]]; then
    failed+=("$target")
    grep -hE "SUMMARY|ERROR: |broken: |runtime error|Test unit written" "$logs"/* | sort -u
  fi
done
echo "$total executions of ${#targets[@]} targets"
if ((${#failed[@]} > 0)); then
  echo "found something: ${failed[*]}; guardbit_fuzz_TARGET FILE shows it again" >&2
  exit 1
fi
