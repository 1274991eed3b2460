// The errors that the library throws. Each text names the thing, what was found, and the rule or the mend.
#pragma once

#include <stdexcept>
#include <string>

namespace weft {

/// Base of every error thrown by Weft. The library never aborts or exits.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Operands whose shapes do not fit: a mistake in calling code.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A configuration or a command line that cannot be used.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// Text or vocabulary that cannot be used.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that is missing, damaged, or does not fit the model.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that could not be read: it may be whole nevertheless.
class UnreadableError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

}  // namespace weft
