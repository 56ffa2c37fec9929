// program.h - what main() of every benchmark does: reads its options, runs, and says what went
// wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/format.h"

namespace sluice::bench {

// Thrown by whatever waits when the user stops the benchmark.
struct Stopped {
  int signal;
};

// Returns main()'s exit status: what the body returns; 2 for wrong usage, or a sentence of why it
// cannot be done here.
template <typename Body>
int run_program(CLI::App& app, int argc, char** argv, const Body& body) {
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what is found is kept, whatever comes
  try {
    app.parse(argc, argv);
    return body();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Stopped& stopped) {
    return 128 + stopped.signal;
  } catch (const std::exception& error) {
    base::print(stderr, "{}: {}\n", app.get_name(), error.what());
    return 2;
  }
}

}  // namespace sluice::bench
