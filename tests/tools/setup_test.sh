#!/usr/bin/env bash
# tools/setup --check lists what dpkg does not know and is silent when it knows everything.
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
[[ $said == libfmt-dev ]] || fail "listed: $said"
LACKING=clang-tidy-14 expect 1 "$tools/setup" --check
[[ $said == clang-tidy-14 ]] || fail "listed: $said"
LACKING=libsimgrid-dev expect 1 "$tools/setup" --check
[[ $said == libsimgrid-dev ]] || fail "listed: $said"
UNKNOWN=libsimgrid-dev LACKING=libsimgrid-dev expect 0 "$tools/setup" --check
keeps_quiet
LACKING=libgloo-dev expect 0 "$tools/setup" --check
keeps_quiet
LACKING=libgloo-dev expect 1 "$tools/setup" --check --bench
[[ $said == libgloo-dev ]] || fail "listed: $said"
expect 2 "$tools/setup" --no-such-option
