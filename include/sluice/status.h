// status.h - how Sluice reports errors.
//
// A function that can fail returns a Status, or a Result: a value, or the Status that explains why
// there is none. Where the comment of a public function says so, it throws Error instead. The
// library never aborts or exits; warnings go to the log (log.h). A message is one sentence: what
// failed, where, and what to do.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "sluice/version.h"

namespace sluice {

enum class Code : std::uint8_t {
  Ok,
  InvalidArgument,   // the caller asked for something impossible
  InvalidInput,      // a file or a text has an error
  NotProven,         // a schedule failed verification
  NoMemory,          // the machine has no memory left
  Mismatch,          // ranks called different collectives
  PeerLost,          // another rank died or left
  DeadlineExceeded,  // a peer did not answer in time
};

// The name of a code as messages show it: "invalid argument", "not proven".
constexpr const char* name(Code code) {
  switch (code) {
    case Code::Ok:
      return "ok";
    case Code::InvalidArgument:
      return "invalid argument";
    case Code::InvalidInput:
      return "invalid input";
    case Code::NotProven:
      return "not proven";
    case Code::NoMemory:
      return "no memory";
    case Code::Mismatch:
      return "mismatch";
    case Code::PeerLost:
      return "peer lost";
    case Code::DeadlineExceeded:
      return "deadline exceeded";
  }
  return "unknown";
}

// Success, or a code and a message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_{code}, message_{std::move(message)} {}

  bool ok() const { return code_ == Code::Ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::Ok;
  std::string message_;
};

// The exception of the public API: what() is the message of the Status.
class SLUICE_API Error : public std::runtime_error {
 public:
  explicit Error(const Status& status)
      : std::runtime_error{status.message()}, code_{status.code()} {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// A value, or the Status that explains why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_{std::move(value)} {}  // NOLINT(google-explicit-constructor)
  // Throws Error if status.ok(): success without a value means nothing.
  Result(Status status) : held_{std::move(status)} {  // NOLINT(google-explicit-constructor)
    if (std::get<Status>(held_).ok()) {
      throw Error{
          Status{Code::InvalidArgument, "a Result needs a value or an error, not Code::Ok"}};
    }
  }

  bool ok() const { return std::holds_alternative<T>(held_); }
  Status status() const { return ok() ? Status{} : std::get<Status>(held_); }

  // The value; throws Error with the status if there is none.
  T& value() & {
    require();
    return std::get<T>(held_);
  }
  const T& value() const& {
    require();
    return std::get<T>(held_);
  }
  T&& value() && {
    require();
    return std::get<T>(std::move(held_));
  }

 private:
  void require() const {
    if (!ok()) throw Error{std::get<Status>(held_)};
  }
  std::variant<Status, T> held_;
};

}  // namespace sluice
