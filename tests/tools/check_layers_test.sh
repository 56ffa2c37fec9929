#!/usr/bin/env bash
# tools/check-layers accepts a tree in order and reports each #include against the order.
source "$(dirname "$0")/expect.sh"

put include/sluice/schedule.h <<<'#include <vector>'
put src/base/text.h <<<'#include <fmt/format.h>'
put src/base/text.cc <<<'#include "base/text.h"'
put src/cli/main.cc <<<'#include "train/loop.h"'
put src/schedule/verify.cc <<'END'
#include "sluice/schedule.h"
#include <bit>
#include "base/text.h"
#include "sluice/torch/gradient_options.h"
END
put src/libtorch/hooks.cc <<<'#include <torch/torch.h>'
expect 0 "$tools/check-layers" "$tree"
keeps_quiet

put src/schedule/cost.cc <<'END'
#include "sluice/schedule.h"
#  include "algorithms/ring.h"
END
expect 1 "$tools/check-layers" "$tree"
[[ $output == "src/schedule/cost.cc:2: "* && $output != *$'\n'* ]] || fail "not one line: $output"
rm "$tree/src/schedule/cost.cc"

# refuse FILE LINE: tools/check-layers rejects the tree with this line added, and names the file.
refuse() {
  put "$1" <<<"$2"
  expect 1 "$tools/check-layers" "$tree"
  says "$1:1: "
  rm "$tree/$1"
}
refuse src/base/low.cc '#include "schedule/verify.h"'
refuse src/base/low.cc '#include <schedule/verify.h>'
refuse src/base/low.cc '#include "../schedule/verify.h"'
refuse src/base/low.cc '#include "text.h"'
refuse src/base/low.cc '#include <sluice/schedule.h>'
refuse src/engine/hook.cc '#include <torch/torch.h>'
refuse src/engine/hook.cc '#include <ATen/ATen.h>'
refuse src/engine/hook.cc '#include "libtorch/hooks.h"'
refuse src/engine/hook.cc '#include "sluice/torch/data_parallel.h"'
refuse include/sluice/plan.h '#include "base/text.h"'
refuse include/sluice/plan.h '#include <fmt/format.h>'
refuse include/sluice/plan.h '#include "sluice/torch/data_parallel.h"'
refuse src/engine/hook.cc '#include "recipe/recipe.h"'
refuse src/gradient/hook.cc '#include "simulate/flow_network.h"'
refuse src/data/loader.cc '#include <torch/torch.h>'
refuse include/sluice/torch/gradient_options.h '#include <torch/torch.h>'
refuse src/utils/misc.h '#include <vector>'
expect 0 "$tools/check-layers" "$tree"
