// status.h - how Sluice says that something went wrong.
//
// Internals return Status (or Result<T>, a value or the Status that explains its absence); the edge
// of the public API throws Error. Nothing in the library aborts or exits; log.h carries warnings. A
// message is one sentence: what failed, where, and what to do.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace sluice {

enum class Code : std::uint8_t {
  Ok,
  InvalidArgument,   // the caller asked for something that cannot be
  InvalidInput,      // a file or text is wrong
  NotProven,         // a schedule failed verification
  NoMemory,          // the machine has no more of it
  Mismatch,          // ranks called different collectives
  PeerLost,          // another rank died or left
  DeadlineExceeded,  // a peer did not answer in time
};

// The name of a code as messages show it: "invalid argument", "not proven".
const char* name(Code code);

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

class Error : public std::runtime_error {
 public:
  explicit Error(const Status& status)
      : std::runtime_error{status.message()}, code_{status.code()} {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_{std::move(value)} {}  // NOLINT(google-explicit-constructor)
  // REQUIRES: !status.ok(), else throws Error: success without a value means nothing.
  Result(Status status) : held_{std::move(status)} {  // NOLINT(google-explicit-constructor)
    if (std::get<Status>(held_).ok()) {
      throw Error{
          Status{Code::InvalidArgument, "a Result needs a value or an error, not Code::Ok"}};
    }
  }

  bool ok() const { return std::holds_alternative<T>(held_); }
  Status status() const { return ok() ? Status{} : std::get<Status>(held_); }

  // REQUIRES: ok(), else throws Error with the status.
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
