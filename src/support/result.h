#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/error.h"

namespace tokamak {

// A value, or the error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value, or an error. Return success with `return Ok();`.
struct Unit {};
using Status = Result<Unit>;
inline Status Ok() {
  return Unit{};
}

#define TOK_CONCAT_TOKENS(a, b) a##b
#define TOK_CONCAT(a, b) TOK_CONCAT_TOKENS(a, b)

// NOLINTBEGIN(bugprone-macro-parentheses): `declaration` declares a variable.
// TOK_TRY(Shape shape, InferShape(...)): binds the value, or returns the error.
#define TOK_TRY(declaration, expression)                     \
  auto TOK_CONCAT(result_, __LINE__) = (expression);         \
  if (!TOK_CONCAT(result_, __LINE__).ok()) [[unlikely]]      \
    return std::move(TOK_CONCAT(result_, __LINE__).error()); \
  declaration = std::move(TOK_CONCAT(result_, __LINE__)).value()
// NOLINTEND(bugprone-macro-parentheses)

// TOK_RETURN_IF_ERROR(Verify(x)) returns the error of a Status, if there is one.
#define TOK_RETURN_IF_ERROR(expression)     \
  do {                                      \
    auto tok_status = (expression);         \
    if (!tok_status.ok()) [[unlikely]]      \
      return std::move(tok_status.error()); \
  } while (false)

}  // namespace tokamak
