#!/usr/bin/env bash
# pack.sh BUILD ARCHIVE.tar.xz: what it takes to run the fuzz targets of BUILD on a machine without clang: the targets
# without their debugging information, the shared libraries but for the C library's, the first inputs and run.sh.
set -eu
build=$1
archive=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/fuzz/lib"
find "$build" -name 'guardbit_fuzz_*' -type f -perm -u+x | while read -r program; do
  strip -o "$folder/fuzz/$(basename "$program")" "$program"
  ldd "$program"
done | awk '$3 ~ "^/" {print $3}' | sort -u | grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv)\.so' |
  xargs -I{} cp -L {} "$folder/fuzz/lib/"
python3 "$here/seeds.py" "$folder/fuzz/seeds"
for name in run.sh seeds regressions; do
  [[ -e $here/$name ]] && cp -rn "$here/$name" "$folder/fuzz/"
done
tar -C "$folder" -cJf "$archive" fuzz
ls -l "$archive"
