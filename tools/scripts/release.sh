#!/usr/bin/env bash
# Makes a release of what is checked out:
#   tools/scripts/release.sh [--dry-run] [FOLDER]
# Checks that the tree is clean, that CMakeLists.txt and the top of CHANGELOG.md name one version with its date, and that no
# tag has it; builds and tests; then makes the annotated tag vVERSION and FOLDER/guardbit-VERSION.tar.gz (FOLDER: build/).
# With --dry-run it checks only, and says what it would do. It never pushes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() {
  echo "release.sh: $*" >&2
  exit 1
}

dry_run=false
if [[ ${1:-} == --dry-run ]]; then
  dry_run=true
  shift
fi
folder=${1:-build}
[[ $# -le 1 && $folder != -* ]] || fail "usage: tools/scripts/release.sh [--dry-run] [FOLDER]"

version=$(sed -nE 's/^project\(guardbit VERSION ([0-9]+\.[0-9]+\.[0-9]+).*/\1/p' CMakeLists.txt)
[[ -n $version ]] || fail "CMakeLists.txt names no version"
# The first section that is a release; nothing may wait above it for a next one.
top=$(grep -m 1 -E '^## \[[0-9]' CHANGELOG.md || true)
[[ $top =~ ^'## ['([0-9.]+)'] - '[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || fail "CHANGELOG.md has no release with a date: '$top'"
[[ ${BASH_REMATCH[1]} == "$version" ]] ||
  fail "CMakeLists.txt has version $version, the top of CHANGELOG.md ${BASH_REMATCH[1]}"
waiting=$(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -E '^- ' || true)
[[ -z $waiting ]] || fail "CHANGELOG.md has changes under Unreleased: name the next version and move them there"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "there is a tag v$version already"
[[ -z $(git status --porcelain) ]] || fail "the tree is not clean: 'git status' says what differs"

archive=$folder/guardbit-$version.tar.gz
if $dry_run; then
  echo "would build and test, tag $(git rev-parse --short HEAD) as v$version, and write $archive"
  exit 0
fi

./tools/test.sh
notes=$(sed -n "/^## \[${version//./\\.}\]/,/^## \[/p" CHANGELOG.md | sed -e '1d' -e '/^## \[/d')
mkdir -p "$folder"
git archive --format=tar.gz --prefix="guardbit-$version/" -o "$archive" HEAD
# Headings of the notes begin with '#', which git takes for comments unless told otherwise.
git tag --annotate --cleanup=verbatim --message "guardbit $version"$'\n'"$notes" "v$version"
echo "v$version is tagged here and $archive written; nothing is pushed: git push origin v$version"
