#!/usr/bin/env bash
# tools/setup --check lists the packages that dpkg does not know, and prints nothing if it knows all.
source "$(dirname "$0")/expect.sh"

put bin/apt-get <<<'#!/bin/sh
exit 1'
put bin/apt-cache <<<'#!/bin/sh
for package; do :; done
[ "$package" != "$UNKNOWN" ]'
put bin/dpkg-query <<<'#!/bin/sh
shift 3
for package; do [ "$package" = "$LACKING" ] || echo "installed $package"; done'
chmod +x "$tree"/bin/*
export PATH=$tree/bin:$PATH

LACKING= expect 0 "$tools/setup" --check
keeps_quiet
LACKING= expect 0 "$tools/setup"
keeps_quiet
LACKING=libfmt-dev expect 1 "$tools/setup" --check
[[ $output == libfmt-dev ]] || fail "listed: $output"
LACKING=clang-tidy-14 expect 1 "$tools/setup" --check
[[ $output == clang-tidy-14 ]] || fail "listed: $output"
LACKING=libsimgrid-dev expect 1 "$tools/setup" --check
[[ $output == libsimgrid-dev ]] || fail "listed: $output"
UNKNOWN=libsimgrid-dev LACKING=libsimgrid-dev expect 0 "$tools/setup" --check
keeps_quiet
LACKING=libgloo-dev expect 0 "$tools/setup" --check
keeps_quiet
LACKING=libgloo-dev expect 1 "$tools/setup" --check --bench
[[ $output == libgloo-dev ]] || fail "listed: $output"
expect 2 "$tools/setup" --no-such-option
