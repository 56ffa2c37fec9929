#!/usr/bin/env bash
# tools/check-names accepts a tree whose types have different names and reports each duplicate name.
source "$(dirname "$0")/expect.sh"

put include/sluice/network.h <<'END'
namespace sluice {
class Network;  // a declaration, not a second one
class Network {
 public:
  struct Message {};  // inside another type
};
template <class T>
struct Trait {};
template <>
struct Trait<int> {};
}
END
put src/engine/run.cc <<'END'
#include "sluice/network.h"
namespace sluice::engine {
namespace {
struct Local {};
}
struct Message { int a; };  // Network::Message is nested
void run() { struct Step {}; }
const char* text = "struct Network {"; /* struct Network { */
const char* raw = R"(struct Network {)";
constexpr long kMany = 1'000'000;
enum class Kind : int { A };
}
END
put tests/engine/run_test.cc <<'END'
namespace sluice::engine {
namespace {
struct Local {};
struct Network {};
}
struct Step {};
}
END
expect 0 "$tools/check-names" "$tree"
keeps_quiet

# refuse LINE NAME: tools/check-names rejects the tree with this line added and reports NAME.
refuse() {
  put src/simulate/more.h <<<"namespace sluice::simulate { $1 }"
  expect 1 "$tools/check-names" "$tree"
  says "$2: "
  says "src/simulate/more.h:1"
  rm "$tree/src/simulate/more.h"
}
refuse 'class Network {};' Network
refuse 'class Network final : public Base {};' Network
refuse 'struct alignas(64) Message {};' Message
refuse 'enum class Kind : unsigned char { B };' Kind
refuse 'template <class A, class B = std::vector<A>> struct Trait {};' Trait
refuse 'struct [[nodiscard]] Step {};' Step
