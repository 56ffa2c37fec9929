#!/usr/bin/env bash
# exports_test.sh LIBRARY... - what shared libraries of ours export.
set -euo pipefail
bad=0
for library; do
  names=$(nm -DC --defined-only "$library" | awk '$2 ~ /^[TDBRVWu]$/' | cut -d' ' -f3-)
  grep -q '^sluice::' <<<"$names" || { echo "$library exports nothing of Sluice"; bad=1; }
  # Layers that only libraries above them use by way of the public API.
  if grep -E '^((vtable|typeinfo)( name)? for )?sluice::(transport|bootstrap|algorithms|schedule)::' <<<"$names" |
      head -5 | grep .; then
    echo "^ internal, but exported by $library"; bad=1
  fi
  if grep -E '^((vtable|typeinfo)( name)? for )?(fmt|nlohmann|toml|CLI|hwy)::' <<<"$names" | head -5 | grep .; then
    echo "^ of a library that we compile in, but exported by $library"; bad=1
  fi
done
exit $bad
