// A reference to something that can be called, for parameters: no copy, no template, nothing from the heap.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

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

}  // namespace weft
