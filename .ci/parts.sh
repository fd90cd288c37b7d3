# Sourced by .ci/run and .ci/full: what both do.

# need PROGRAM: false, and a word about it, where it is not there.
need() {
  command -v "$1" >/dev/null || { echo "SKIPPED: $1 is not available"; return 1; }
}

check_formatting() {
  need clang-format-14 || return 0
  git ls-files -z -- '*.hpp' '*.cpp' '*.cu' '*.cuh' | xargs -0 -r clang-format-14 --dry-run -Werror
}

# tidy_options: what clang-tidy is always told.
# The commands are those of g++, which has warnings, pragmas and options of its own.
tidy_options=(--quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas
  --extra-arg=-Wno-unused-command-line-argument)

# check_by_clang_tidy PATTERN…: those files, by the commands of a build that is configured only.
check_by_clang_tidy() {
  need clang-tidy-14 || return 0
  cmake --preset dev >/dev/null || return 1
  git ls-files -z -- "$@" | xargs -0 -r -n 1 -P "$(nproc)" clang-tidy-14 -p build/dev "${tidy_options[@]}"
}

# check_units_by_clang_tidy FOLDER…: the libraries of those folders as a unity build groups their files, which takes half the
# time. It misses a using-declaration that only a neighbour uses.
check_units_by_clang_tidy() {
  need clang-tidy-14 || return 0
  cmake --preset dev -B build/units -DGUARDBIT_UNITY=ON >/dev/null || return 1
  local folders
  folders=$(IFS='|'; echo "$*")
  # Experiments only describe numbers. Eigen's product is compiled once for each instruction set.
  # Functions, operators and replays have no time here: .ci/full takes them.
  sed -n 's/^  "file": "\(.*\)",\{0,1\}$/\1/p' build/units/compile_commands.json | sort -u |
    grep -E "^$PWD/(build/units/)?($folders)/" |
      grep -vE '/experiments/(suite|training/eigen_product)|emulator/(functions|operators|replay)/|files_(functions|operators|replay)' |
    xargs -r -n 1 -P "$(nproc)" clang-tidy-14 -p build/units "${tidy_options[@]}" --checks=-bugprone-suspicious-include \
      --header-filter='/(formats|emulator|experiments)/.*\.[hc]pp$'
}

# The tests that reach an engine or a conversion kernel.
masked_tests='^(claims|emulator|formats)/|^experiments/trace|^tools/(GUARDBIT_CPU|a recording|cast)'

# run_masked MASK LABEL CTEST_OPTION…: tests of the release build; engines that the mask takes away show as skipped.
run_masked() {
  local mask=$1 label=$2
  shift 2
  printf -- '-- GUARDBIT_CPU=%s\n' "$mask"
  GUARDBIT_CPU=$mask ctest --test-dir build/release -L "$label" --no-tests=error --output-on-failure --parallel "$(nproc)" "$@"
}

# python_environment PACKAGE…: a fresh virtual environment in build/venv with what builds the wheel, and these packages.
python_environment() {
  install_packages python3-venv python3-dev
  rm -rf build/venv
  python3 -m venv build/venv &&
    build/venv/bin/pip install --quiet --disable-pip-version-check 'scikit-build-core>=0.11' 'nanobind>=2.4' "$@"
}

# python_tests FOLDER CMAKE_OPTION…: builds the wheel in that build folder, installs it in a fresh environment and runs the quick
# tests with NumPy and ml_dtypes, the examples among them, and the type checker on the package and the examples.
python_tests() {
  local folder=$1 defines=() option
  shift
  for option in "$@"; do defines+=(-C "cmake.define.${option#-D}"); done
  python_environment numpy ml_dtypes pytest mypy || return 1
  rm -rf build/wheels
  build/venv/bin/pip wheel . --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir build/wheels \
    -C build-dir="$folder" "${defines[@]}" || return 1
  ls -l build/wheels
  build/venv/bin/pip install --quiet --disable-pip-version-check build/wheels/guardbit-*.whl &&
    build/venv/bin/python -m pytest -q -p no:cacheprovider tests/python &&
    build/venv/bin/mypy &&
    build/venv/bin/mypy --config-file= --ignore-missing-imports --check-untyped-defs --cache-dir=build/mypy docs/examples
}

# The PyTorch that an H200 is modelled with, and what some of the programs in tests/python/programs take besides.
pytorch=('torch==2.11.*')
of_programs=('torchvision==0.26.*' 'transformers==5.17.*')

# program_test: PyTorch into the environment that python_environment made, and one program against what an H200 printed.
program_test() {
  local installed=$SECONDS
  timeout 600 build/venv/bin/pip install --quiet --disable-pip-version-check "${pytorch[@]}" ||
    { echo 'SKIPPED: PyTorch cannot be installed'; return 0; }
  echo "PyTorch installed in $((SECONDS - installed)) s"
  timeout 180 build/venv/bin/python -m pytest -q -p no:cacheprovider tests/python/test_programs.py -k a_program_prints_what_the_h200_printed
}

# documentation: the site, into build/site; a link that leads nowhere and a page that is in no menu are errors. In the environment
# that python_environment made.
documentation() {
  build/venv/bin/pip install --quiet --disable-pip-version-check 'mkdocs>=1.6,<2' 'mkdocs-material>=9.7,<10' 'mkdocstrings[python]>=1.0' ruff &&
    NO_MKDOCS_2_WARNING=1 build/venv/bin/mkdocs build --strict --quiet
}
