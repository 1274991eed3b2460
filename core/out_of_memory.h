// What the pool throws when memory is out, for those who try whether something fits.
#pragma once

#include "weft/core/error.h"

namespace weft {

/// The system has no memory for a tensor.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace weft
