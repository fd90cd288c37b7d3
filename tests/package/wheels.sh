#!/usr/bin/env bash
# wheels.sh: what tools/scripts/build_wheels.sh left in build/wheelhouse.
#
# No wheel has more than 20 MB. The source archive builds in a fresh environment, in a folder that holds nothing else; so does the wheel for this
# interpreter install, and the words of the README work there. Wheels for 64-bit ARM run under QEMU in Debian's Python of that
# architecture, where one is of its version, and compute the bits that this machine computes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
scratch=$root/build/wheel-test
rm -rf "$scratch"
mkdir -p "$scratch"

fail() { echo "wheels.sh: $*" >&2; exit 1; }

for wheel in build/wheelhouse/*.whl; do
  size=$(stat -c %s "$wheel")
  echo "$(basename "$wheel"): $size bytes"
  ((size < 20000000)) || fail "$wheel has more than 20 MB"
done

# words_of_the_readme VENV: the line of Python in README.md, and the command, away from the source tree.
words_of_the_readme() {
  local line
  line=$(sed -n 's/^\$ \(python -c "import guardbit.*\)$/\1/p' "$root/README.md")
  [[ -n $line ]] || fail 'README.md has no line of Python'
  (cd "$scratch" && PATH=$1/bin:$PATH && eval "$line" && guardbit --version && guardbit experiment run E02 --quick | head -1)
}

# environment NAME: a fresh one with what stands after the name.
environment() {
  python3 -m venv "$scratch/$1"
  "$scratch/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
}

echo '-- the wheel of this interpreter'
version=$(python3 -c 'import sys; print("%d%d" % sys.version_info[:2])')
own=(build/wheelhouse/guardbit-*-cp"$version"-cp"$version"-*"$(uname -m)".whl)
[[ -e ${own[0]} ]] || own=(build/wheelhouse/guardbit-*-cp312-abi3-*"$(uname -m)".whl)
environment wheel "${own[0]}"
words_of_the_readme "$scratch/wheel"
"$scratch/wheel/bin/python" tests/package/digests.py >"$scratch/expected"

# Of ARM: the Python of this Debian, its libraries and NumPy in folders; nothing is installed.
for wheel in build/wheelhouse/guardbit-*-cp"$version"-cp"$version"-*aarch64.whl; do
  [[ -e $wheel ]] || { echo 'SKIPPED: no wheel for ARM and this version of Python'; continue; }
  echo "-- $(basename "$wheel") under QEMU"
  python=$(readlink -f /usr/bin/python3 | sed 's#.*/##')
  mkdir -p "$scratch/arm/packages" "$scratch/arm/root" "$scratch/arm/site"
  (cd "$scratch/arm/packages" && apt-get download -qq {"$python",lib"$python"}-minimal:arm64 lib"$python"-stdlib:arm64 \
    libexpat1:arm64 libffi8:arm64 libc6:arm64 libgcc-s1:arm64 libstdc++6:arm64 zlib1g:arm64 libssl3:arm64 libbz2-1.0:arm64 liblzma5:arm64)
  for package in "$scratch"/arm/packages/*.deb; do dpkg -x "$package" "$scratch/arm/root"; done
  platforms=(--platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64)
  "$scratch/wheel/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: "${platforms[@]}" --target "$scratch/arm/site" numpy
  python3 -m zipfile -e "$wheel" "$scratch/arm/site"
  PYTHONPATH=$scratch/arm/site qemu-aarch64-static -L "$scratch/arm/root" "$scratch/arm/root/usr/bin/$python" \
    tests/package/digests.py >"$scratch/arm/digests"
  diff "$scratch/expected" "$scratch/arm/digests" || fail "$wheel computes other bits"
  echo "$(wc -l <"$scratch/expected") results are equal in every bit"
done

echo '-- the source archive'
environment source "$root"/build/wheelhouse/guardbit-*.tar.gz
words_of_the_readme "$scratch/source"
diff "$scratch/expected" <("$scratch/source/bin/python" tests/package/digests.py) || fail 'the source archive computes other bits'
