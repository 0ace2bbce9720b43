# Sourced by the scripts that plant bugs: applies patches to this checkout and reverts them, also when interrupted.
# A patch is a text for git apply; lines above the diff name the test that must find it.

# Planting must not lose uncommitted changes.
require_clean_sources() {
  if ! git diff --quiet HEAD -- src; then
    echo "error: src/ has changes that are not committed; planting could lose them" >&2
    exit 2
  fi
}

planted=
plant() {  # plant <patch file>
  patch -s -p1 --no-backup-if-mismatch <"$1"
  planted=$1
}
uproot() {
  [ -z "$planted" ] || patch -s -R -p1 --no-backup-if-mismatch <"$planted"
  planted=
}
trap uproot EXIT

# The value of a line "name: value" above a patch's diff.
header_of() {  # header_of <patch file> <name>
  sed -n "/^--- /q; s/^$2: //p" "$1"
}

# Names of the patches of a folder, without their ending.
patches_of() {  # patches_of <folder>
  local patch
  for patch in "$1"/*.patch; do basename "$patch" .patch; done
}
