# Sourced by the self-tests of tools/: a scratch tree, and expectations that end the test.
set -euo pipefail
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put FILE: writes standard input to FILE in the tree.
put() { mkdir -p "$(dirname "$tree/$1")"; cat >"$tree/$1"; }

fail() { echo "FAILED: $*" >&2; exit 1; }

# expect STATUS COMMAND...: runs it, keeps what it said in $said.
expect() {
  local wanted=$1 status=0
  shift
  said=$("$@" 2>&1) || status=$?
  [[ $status -eq $wanted ]] || fail "$* ended with $status, not $wanted; it said: $said"
}

# says TEXT: the last command said it. keeps_quiet: it said nothing.
says() { [[ $said == *"$1"* ]] || fail "'$1' is not in: $said"; }
keeps_quiet() { [[ -z $said ]] || fail "it should be silent, but said: $said"; }
