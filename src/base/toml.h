// toml.h - toml++, which everything of ours includes by this header.
//
// Its assertions are left out, and what it would assume in their place in an optimised build: some
// do not hold for every text (a table's name that begins with "!"), and the parser reports such
// texts by itself.
#pragma once

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
