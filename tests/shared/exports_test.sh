#!/usr/bin/env bash
# exports_test.sh LIBRARY... - checks the symbols that Sluice's shared libraries export.
set -euo pipefail
bad=0
for library; do
  names=$(nm -DC --defined-only "$library" | awk '$2 ~ /^[TDBRVWu]$/' | cut -d' ' -f3-)
  grep -q '^sluice::' <<<"$names" || { echo "$library exports nothing of Sluice"; bad=1; }
  # The libraries above use these layers only through the public API, except that the simulator reads the links of the
  # cost model.
  if grep -v '^sluice::algorithms::Fabric::' <<<"$names" |
      grep -E '^((vtable|typeinfo)( name)? for )?sluice::(transport|bootstrap|algorithms|schedule)::' |
      head -5 | grep .; then
    echo "^ $library exports these internal symbols"; bad=1
  fi
  if grep -E '^((vtable|typeinfo)( name)? for )?(fmt|nlohmann|toml|CLI|hwy)::' <<<"$names" | head -5 | grep .; then
    echo "^ $library exports these symbols of a library that is compiled into it"; bad=1
  fi
done
exit $bad
