#!/usr/bin/env bash
# check.sh ROOT: house rules that a compiler does not enforce. Prints every violation; exits 1 if there is one.
set -uo pipefail
cd "$1"

# sources FOLDER…: the C++ and CUDA files below those of the folders that exist.
sources() {
  find "$@" -type f -not -path "*/.*/*" \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) \
    -not -path './build/*' 2>/dev/null
}

# label RULE: puts the rule before each violation on standard input.
label() { sed "s|\$|   <- $1|"; }

# may_include FOLDER REGEX: every quoted include in FOLDER is a path from the root into an allowed folder.
may_include() {
  sources "$1" | xargs -r grep -nHE '^\s*#\s*include\s*"' | grep -vE "\"($2)/" |
    label "$1/ may not include this"
}

violations=$(
  may_include formats 'formats'
  may_include emulator 'formats|emulator'
  may_include gpu 'formats|emulator|gpu'
  may_include experiments 'formats|emulator|experiments'
  may_include tools 'formats|emulator|gpu|experiments|tools'

  sources formats emulator gpu experiments | xargs -r grep -nHE '"--[a-z]' |
    label "a library does not know a command's options"
  sources formats emulator | xargs -r grep -nHE '^\s*#\s*(define|undef)\b' |
    label 'no macros in formats/ and emulator/'
  sources . | grep '\.hpp$' | xargs -r grep -LE '^#pragma once' | label 'header without #pragma once'
  sources . | grep -iE '/(utils?|common|helpers?|misc|([a-z0-9_]+_)?(utils?|fast|impl[0-9]*|optimi[sz]ed))[./]' |
    label 'name that says nothing'

  # Catch2 2.13 hands test names to CMake in a list, which a semicolon splits, and back on a command line, where a dash
  # begins an option.
  sources tests | xargs -r grep -nHzoP 'TEST_CASE\(\s*"(-|[^"]*;)' | tr '\0' '\n' | grep -v '^$' |
    label 'no semicolon in the name of a test, no dash before it'

  text=(grep -rInE --exclude-dir=.git --exclude=.git --exclude-dir=.deps --exclude-dir=build --exclude-dir=structure --exclude=LICENSE)
  "${text[@]}" -i 'mantissa' . | label 'say significand or fraction'
  "${text[@]}" '(^|[^[:alnum:]_.])/(home|root|work|tmp|Users)/' . | label 'path of one machine'
)
[[ -z $violations ]] && exit 0
echo "$violations"
exit 1
