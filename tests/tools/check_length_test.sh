#!/usr/bin/env bash
# tools/check-length allows 600 lines and refuses 601.
source "$(dirname "$0")/expect.sh"

seq 600 | put src/base/long.cc
seq 9000 | put docs/table.md
seq 9000 | put build/dev/generated.cc
expect 0 "$tools/check-length" "$tree"
keeps_quiet

seq 601 | put src/base/longer.cc
expect 1 "$tools/check-length" "$tree"
says "src/base/longer.cc:600: has 601 lines"
