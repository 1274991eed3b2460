// The one way in which Weft uses several cores: loops over tiles. The bounds of a tile depend on the problem alone, never
// on the number of threads, so results are the same bits for any number of threads.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "weft/core/types.h"

namespace weft {

/// A reference to a callable, valid while the callable lives; calling through it allocates nothing.
template <class Signature>
class FunctionRef;
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): made to be passed a lambda
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

/// Sets how many threads parallel_for may use, from now on; 0 for the default, which is the number of cores that the
/// process may run on, or OMP_NUM_THREADS if that is less.
void set_threads(int count);

/// How many threads parallel_for may use.
int threads();

/// Starts as many threads now, so that what their stacks take of the address space is taken and can be seen; otherwise they
/// start as loops need them. There are fewer if the system gives no more.
void start_threads();

/// Calls body(begin, end) for every tile [0, tile), [tile, 2 tile), … of [0, count), in any order and possibly at the
/// same time. Runs in the calling thread alone if there is one tile, one thread, or if it is already inside a
/// parallel_for. An exception from the body is thrown again here once all tiles have ended.
void parallel_for(Index count, Index tile, FunctionRef<void(Index begin, Index end)> body);

}  // namespace weft
