# Sourced by the tests of tools/: a scratch tree, and expectations that end the test on failure.
set -euo pipefail
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put FILE: writes standard input to FILE in the tree.
put() { mkdir -p "$(dirname "$tree/$1")"; cat >"$tree/$1"; }

fail() { echo "FAILED: $*" >&2; exit 1; }

# expect STATUS COMMAND...: runs the command, which must end with STATUS; stores its output in $output.
expect() {
  local wanted=$1 status=0
  shift
  output=$("$@" 2>&1) || status=$?
  [[ $status -eq $wanted ]] || fail "$* ended with $status, not $wanted; its output: $output"
}

# says TEXT: the output of the last command contains TEXT. keeps_quiet: it is empty.
says() { [[ $output == *"$1"* ]] || fail "'$1' is not in: $output"; }
keeps_quiet() { [[ -z $output ]] || fail "it should print nothing, but printed: $output"; }
