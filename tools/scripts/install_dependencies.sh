# Sourced by demo.sh, test.sh and .ci/run: install_packages NAME… installs the Debian packages that are missing;
# configure prepares a folder below build/.

install_packages() {
  local package as_root=() missing=()
  if ! command -v dpkg-query >/dev/null; then
    echo "guardbit: not a Debian system; please install the equivalents of: $*" >&2
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "guardbit: cannot install without root; please run: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || {
    echo "guardbit: apt-get could not install: ${missing[*]}" >&2
    return 1
  }
}

install_dependencies() {
  install_packages g++ cmake ninja-build python3 python3-numpy catch2 libboost-dev libcli11-dev nlohmann-json3-dev libzip-dev \
    zlib1g-dev libhdf5-dev libbenchmark-dev libeigen3-dev libtomlplusplus-dev librsvg2-bin
}

# configure PRESET [OPTION...]: configures build/PRESET; a new folder for Ninja, one that is there for what it is for.
configure() {
  local generator=()
  [[ -e build/$1/CMakeCache.txt ]] || ! command -v ninja >/dev/null || generator=(-G Ninja)
  cmake --preset "$1" "${generator[@]}" "${@:2}"
}
