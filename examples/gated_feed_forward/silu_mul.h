// An operation of this project's own: two inputs, its value and its gradients in one function.
#pragma once

#include <weft/autograd/tape.h>

/// silu(a) * b, element by element, in one pass over memory; shapes equal. Throws weft::ShapeError if they are not.
weft::Var silu_mul(const weft::Var& a, const weft::Var& b);
