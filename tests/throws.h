// CHECK_THROWS_SAYING(expression, part, Type): the expression throws a Type whose text contains `part`. (doctest has the like
// since 2.4.8, which is too new for Ubuntu 22.04.)
#pragma once

#include <doctest/doctest.h>

#include <string>

/// The text of the Type that the action throws, or a text that says that it threw none.
template <class Type, class Action>
std::string thrown_text(Action action) {
  try {
    action();
  } catch (const Type& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

#define CHECK_THROWS_SAYING(expression, part, Type)                                       \
  do {                                                                                    \
    const std::string thrown = thrown_text<Type>([&] { static_cast<void>(expression); }); \
    CHECK_MESSAGE(thrown.find(part) != std::string::npos, thrown);                        \
  } while (false)
