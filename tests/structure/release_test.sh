#!/usr/bin/env bash
# release_test.sh ROOT: the release script takes a clean tree of one version, and refuses every other before it does anything.
set -euo pipefail
script=$1/tools/scripts/release.sh
command -v git >/dev/null || { echo "SKIPPED: needs git"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git=(git -C "$scratch/tree" -c user.name=test -c user.email=test@example.org -c tag.gpgSign=false -c commit.gpgSign=false)

# fresh VERSION CHANGELOG: a tree of that version with that text, committed.
fresh() {
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree/tools/scripts"
  cp "$script" "$scratch/tree/tools/scripts/"
  printf '#!/usr/bin/env bash\ntouch tested\n' >"$scratch/tree/tools/test.sh"
  chmod +x "$scratch/tree/tools/test.sh"
  printf '/build/\n/tested\n' >"$scratch/tree/.gitignore"
  printf 'project(guardbit VERSION %s DESCRIPTION "x")\n' "$1" >"$scratch/tree/CMakeLists.txt"
  printf "$2" >"$scratch/tree/CHANGELOG.md"
  "${git[@]}" init -q
  "${git[@]}" add -A
  "${git[@]}" commit -qm tree
}

# release ARGUMENTS…: what the script of the tree says.
release() {
  (cd "$scratch/tree" && GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.org tools/scripts/release.sh "$@" 2>&1)
}

# refuses WORDS ARGUMENTS…: it fails, says so, and leaves no tag.
refuses() {
  local words=$1 said
  shift
  said=$(release "$@") && { echo "not refused: $words"; exit 1; }
  grep -qF -- "$words" <<<"$said" || { echo "expected '$words', got: $said"; exit 1; }
  [[ $("${git[@]}" tag -l | wc -l) -eq ${tags:-0} && ! -e $scratch/tree/tested ]] || { echo "something was done: $words"; exit 1; }
}

sound='# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n### Added\n- A line.\n\n## [1.2.2] - 2026-01-01\n- Another.\n'
fresh 1.2.4 "$sound"
refuses 'has version 1.2.4, the top of CHANGELOG.md 1.2.3'
fresh 1.2.3 '# Changelog\n\n## [1.2.3]\n- A line.\n'
refuses 'no release with a date'
fresh 1.2.3 "${sound/Unreleased]/Unreleased]\\n- Waits.}"
refuses 'changes under Unreleased'
fresh 1.2 "$sound"
refuses 'names no version'
fresh 1.2.3 "$sound"
refuses usage --fast
touch "$scratch/tree/new"
refuses 'not clean' --dry-run
rm "$scratch/tree/new"

grep -qF 'would build and test' <<<"$(release --dry-run)" || { echo 'the dry run fails'; exit 1; }
[[ ! -e $scratch/tree/tested && -z $("${git[@]}" tag -l) ]] || { echo 'the dry run does something'; exit 1; }
release >/dev/null
[[ -e $scratch/tree/tested ]] || { echo 'it does not test'; exit 1; }
rm "$scratch/tree/tested"
message=$("${git[@]}" tag -l --format='%(contents)' v1.2.3)
grep -qF -- '### Added' <<<"$message" && grep -qF -- '- A line.' <<<"$message" || { echo "the tag lacks notes: $message"; exit 1; }
! grep -qF 'Another' <<<"$message" || { echo 'the tag has the notes of an older version'; exit 1; }
tar -tzf "$scratch/tree/build/guardbit-1.2.3.tar.gz" | grep -qx 'guardbit-1.2.3/CMakeLists.txt' || { echo 'no archive'; exit 1; }
tags=1
refuses 'a tag v1.2.3 already'
