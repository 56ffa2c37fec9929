#!/usr/bin/env bash
# bench/train/compare_builds takes medians and ratios of two builds that take turns.
source "$(dirname "$0")/expect.sh"
compare=$tools/../bench/train/compare_builds

# build NAME SPEEDS: a fake build whose `sluice bench train` reports these images/s, one per call.
build() {
  put "$1/sluice" <<END
#!/bin/sh
echo "$1 \$*" >>"$tree/calls"
set -- $2
shift \$((\$(grep -c "^$1 " "$tree/calls") - 1))
echo "[{\"ranks\": 2, \"batch\": 8, \"images_per_s\": \$1, \"efficiency\": 1}]"
END
  chmod +x "$tree/$1/sluice"
  : >"$tree/calls"
}

# The ratios are 2, 1 and 0.95 within a round: their median is 1, that of the speeds 100 and 100.
build old '50 100 200'
build new '100 100 190'
expect 0 "$compare" "$tree/old" "$tree/new" --rounds 3 --output "$tree/rows.json" -- --ranks 2 --steps 30
says "     2      8          100.0          100.0         1.000"
says "at most 1.000 times the old one's time, limit 1.05"
grep -q '"speedup": 1.0' "$tree/rows.json" || fail "no speedup in $(cat "$tree/rows.json")"
diff - "$tree/calls" <<'END' || fail "the builds do not take turns"
old bench train --repeats 1 --json --ranks 2 --steps 30
new bench train --repeats 1 --json --ranks 2 --steps 30
new bench train --repeats 1 --json --ranks 2 --steps 30
old bench train --repeats 1 --json --ranks 2 --steps 30
old bench train --repeats 1 --json --ranks 2 --steps 30
new bench train --repeats 1 --json --ranks 2 --steps 30
END

build old 100
build new 90
expect 1 "$compare" "$tree/old" "$tree/new" --rounds 1
says "at most 1.111 times the old one's time"
build new 90
expect 0 "$compare" "$tree/old/sluice" "$tree/new/sluice" --rounds 1 --slower 1.2

put bad/sluice <<<'#!/bin/sh
echo "sluice: no data" >&2; exit 2'
chmod +x "$tree/bad/sluice"
build old 100
expect 2 "$compare" "$tree/old" "$tree/bad"
says "exit status 2: sluice: no data"
expect 2 "$compare" "$tree/old" "$tree/nowhere"
says "nowhere is not a command"
