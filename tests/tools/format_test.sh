#!/usr/bin/env bash
# tools/format --check rejects a file that tools/format then repairs.
source "$(dirname "$0")/expect.sh"

cp "$tools/../.clang-format" "$tree/"
put src/base/sum.cc <<<'int  sum( int a,int b ){return a+b;}'
"$tools/format" --check "$tree" 2>&1 | grep -q 'was not found' && exit 77
expect 1 "$tools/format" --check "$tree"
says "sum.cc:1:"
expect 0 "$tools/format" "$tree"
expect 0 "$tools/format" --check "$tree"
