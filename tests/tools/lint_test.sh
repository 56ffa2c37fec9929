#!/usr/bin/env bash
# tools/lint rejects a badly named function, and lints a source again when only its header changed.
source "$(dirname "$0")/expect.sh"
command -v clang-tidy-14 >/dev/null || command -v clang-tidy >/dev/null || exit 77

cp "$tools/../.clang-tidy" "$tree/"
put src/base/sum.h <<<'int sum(int a, int b);'
put src/base/sum.cc <<'END'
#include "base/sum.h"
int sum(int a, int b) { return a + b; }
END
put build/clang/compile_commands.json <<END
[
{
  "directory": "$tree",
  "command": "c++ -std=c++20 -Isrc -c src/base/sum.cc",
  "file": "$tree/src/base/sum.cc"
}
]
END
expect 0 "$tools/lint" "$tree"
says "1 of 1 files changed"
expect 0 "$tools/lint" "$tree"
keeps_quiet

put src/base/sum.h <<<'int AddUp(int a, int b);'
put src/base/sum.cc <<'END'
#include "base/sum.h"
int sum(int a, int b) { return a + b; }
END
expect 1 "$tools/lint" "$tree"
says "readability-identifier-naming"
expect 1 "$tools/lint" "$tree"

put src/base/sum.h <<<'int sum(int a, int b);'
put src/base/sum.cc <<<'#include "base/not_there.h"'
expect 1 "$tools/lint" "$tree"
says "not_there.h"
