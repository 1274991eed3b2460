// The loops: raw pointers and sizes, no shapes checked, no gradients known. Each runs on several threads over tiles that
// depend on the sizes alone. In this header: T rows (tokens), D columns (d_model), H heads, V classes (vocabulary);
// arrays are row-major. Backward kernels write through sinks.
#pragma once

#include <span>

#include "weft/core/random.h"
#include "weft/core/types.h"

namespace weft {

/// Where a kernel puts a result g: data = beta * data + g, with data not read when beta is 0. Empty: not wanted.
struct Dst {
  real* data = nullptr;
  real beta = 0;
  explicit operator bool() const { return data != nullptr; }
};

/// A function applied at the end of a linear map.
enum class Activation { kNone, kRelu, kGelu, kSilu };

/// Functions of one element.
enum class Unary { kNeg, kExp, kLog, kSqrt, kRelu, kGelu, kSilu, kTanh, kSigmoid };

/// Functions of two elements.
enum class Binary { kAdd, kSub, kMul, kDiv };

/// Which elements are dropped: element (row, column) is, with `probability`, as a function of stream, site, row, column.
/// The probability counts in steps of 2^-16.
struct DropoutMask {
  real probability = 0;
  RandomStream stream;
  std::uint64_t site = 0;
};

// ---- elementwise (kernels_elementwise.cpp) ------------------------------------------------------------------------------

/// dst += g or dst = g.
void accumulate(Index size, const real* g, Dst dst);
/// dst = factor * g (+ dst).
void accumulate_scaled(Index size, real factor, const real* g, Dst dst);

void unary(Unary function, Index size, const real* x, real* y);
/// Whether the derivative is read off the result (y) rather than the argument (x).
bool derivative_from_result(Unary function);
/// dx from dy and the argument or the result, as derivative_from_result says.
void unary_backward(Unary function, Index size, const real* x_or_y, const real* dy, Dst dx);

/// How b lies along a [T, D].
enum class Spread { kSame, kRow, kScalar };
void binary(Binary function, Spread spread, Index T, Index D, const real* a, const real* b, real* y);
/// Gradient for a; `b` is read for mul and div.
void binary_backward_a(Binary function, Spread spread, Index T, Index D, const real* b, const real* dy, Dst da);
/// Gradient for b; `a` is read for mul and div, `b` for div.
void binary_backward_b(Binary function, Spread spread, Index T, Index D, const real* a, const real* b, const real* dy,
                       Dst db);

// ---- dropout (kernels_dropout.cpp) ----------------------------------------------------------------------------------

/// The factor, 0 or 1 / (1 - p), of the first `columns` columns of a row.
void dropout_factors(const DropoutMask& dropout, std::uint64_t row, Index columns, real* factors);
/// y = x * factors, for x [T, D].
void dropout_rows(const DropoutMask& dropout, Index T, Index D, const real* x, Dst y);
/// y = x + z * factors.
void residual_rows(const DropoutMask& dropout, Index T, Index D, const real* x, const real* z, real* y);

// ---- sums (kernels_reduce.cpp) ---------------------------------------------------------------------------------------

/// The sum of all elements, in double, in an order that depends on the size alone.
double sum_all(Index size, const real* x);
/// dst[d] = sum over t of x[t, d].
void sum_rows(Index T, Index D, const real* x, Dst dst);
/// dst[t] = sum over d of x[t, d].
void sum_columns(Index T, Index D, const real* x, Dst dst);
/// The transpose: y[d, t] = x[t, d].
void transpose(Index T, Index D, const real* x, Dst y);
/// Copies a block of T rows and D columns between matrices of row strides `from` and `to`.
void copy_block(Index T, Index D, const real* x, Index from, Dst y, Index to);

// ---- linear maps (kernels_linear.cpp) ----------------------------------------------------------------------------------

/// y = activation(x W^T + b): x [T, K], W [N, K], b [N] or null, y [T, N]; the sum before the activation also goes to
/// `before`, unless null. With `many_rows`, as in training, W is laid out anew first; without, as in decoding, it is read
/// as it lies. The two differ in the last bits; in either, a row of y depends on its row of x alone where gemm_rows.h and
/// gemm_vector.cpp are at work.
void linear(Index T, Index N, Index K, const real* x, const real* W, const real* b, Activation activation, real* y,
            real* before, bool many_rows);
/// The gradient before the activation, g [T, N], from dy and what linear kept: y for relu, `before` for gelu and silu; it
/// may take the place of dy. Its sum over the rows goes to `dbias`.
void activation_backward(Activation activation, Index T, Index N, const real* kept, const real* dy, real* g, Dst dbias);

// ---- rows (kernels_rows.cpp) -----------------------------------------------------------------------------------------

void softmax(Index T, Index D, const real* x, real* y);
void softmax_backward(Index T, Index D, const real* y, const real* dy, Dst dx);
void log_softmax(Index T, Index D, const real* x, real* y);
void log_softmax_backward(Index T, Index D, const real* y, const real* dy, Dst dx);

/// What cross_entropy_rows sums up.
struct CrossEntropySums {
  double loss = 0;                     ///< with label smoothing
  double negative_log_likelihood = 0;  ///< without
  Index correct = 0;                   ///< rows whose target has the highest logit
};
/// Cross-entropy of T rows of logits [T, V]. With `dlogits`, also factor * the gradient of the summed loss for the
/// logits, which may take the place of the logits themselves, and its sum over the rows to `dbias`.
CrossEntropySums cross_entropy_rows(Index T, Index V, const real* logits, const TokenId* targets, real label_smoothing,
                                    real factor, real* dlogits, Dst dbias = {});

// ---- layer normalisation (kernels_norm.cpp) -------------------------------------------------------------------------

/// y = (x - mean) * rstd * gain + shift; mean and rstd [T] are kept unless null.
void layer_norm(Index T, Index D, const real* x, const real* gain, const real* shift, real epsilon, real* y, real* mean,
                real* rstd);
/// The same of x + z * factors, a sum that is put into `s` [T, D], which may be y.
void add_norm(const DropoutMask& dropout, Index T, Index D, const real* x, const real* z, const real* gain,
              const real* shift, real epsilon, real* s, real* y, real* mean, real* rstd);
/// Whether what was normalised by these can be had back from the result with little rounding.
bool can_undo_norm(Index D, const real* gain, const real* shift);

/// What is left of a normalisation: what was normalised and its means; or, without means, the result and the shift, from
/// which can_undo_norm() lets it be had back.
struct NormInput {
  const real* rows;   ///< [T, D]
  const real* mean;   ///< [T], or null
  const real* shift;  ///< [D]; not read if there are means
};

/// ds, dgain, dshift of add_norm, with ds to dx and ds * factors to dz, in this order where they are one; of layer_norm
/// without dz.
void add_norm_backward(const DropoutMask& dropout, Index T, Index D, const NormInput& input, const real* gain,
                       const real* rstd, const real* dy, Dst dx, Dst dz, Dst dgain, Dst dshift);

// ---- sequences (kernels_sequence.cpp) --------------------------------------------------------------------------------

/// y[t] = factor * table[ids[t]].
void gather_rows(std::span<const TokenId> ids, Index D, real factor, const real* table, real* y);
/// dtable[ids[t]] += factor * dy[t]; with beta 0, all V rows of dtable are set first.
void scatter_rows(std::span<const TokenId> ids, Index V, Index D, real factor, const real* dy, Dst dtable);

/// y[t] = x[t] + table[first + position of t in its sequence]. `offsets`: the begin of each sequence, then T.
void add_positions(std::span<const Index> offsets, Index D, Index first, const real* x, const real* table, real* y);
/// The gradient for the table, which has P rows.
void add_positions_backward(std::span<const Index> offsets, Index P, Index D, Index first, const real* dy, Dst dtable);

// ---- attention (kernels_attention.cpp) -------------------------------------------------------------------------------

/// The operands of attention: head h of a row begins at column h * d_head of its matrix; a row of Q, K, V begins every
/// *_stride elements; O is [query rows, heads * d_head] without gaps.
struct AttentionOperands {
  const real* Q;
  const real* K;
  const real* V;
  Index q_stride, k_stride, v_stride;
  std::span<const Index> query_offsets, key_offsets;  ///< the begin of each sequence, then the number of rows
  Index heads, d_head;
  bool causal;          ///< query i sees keys 0 to i; there are as many queries as keys
  DropoutMask dropout;  ///< row: query row * heads + head; column: position of the key
};
/// O, and for backward the logarithm of each softmax sum, log_sum [query rows, heads], unless null. With `weights`, the
/// weights before dropout: for each sequence [heads, queries, keys], one sequence after the other.
void attention(const AttentionOperands& a, real* O, real* log_sum, real* weights);
/// dQ, dK, dV, with the strides of Q, K, V.
void attention_backward(const AttentionOperands& a, const real* log_sum, const real* dO, Dst dQ, Dst dK, Dst dV);

// ---- decoding (kernels_decode.cpp) ------------------------------------------------------------------------------------

/// Attention of one new query for each row over the keys and values of its own past. At step t, row r of the past is
/// row ancestors[r * steps + t] of past[t], a matrix [rows then, 2 D] of keys and values side by side.
struct CachedOperands {
  const real* Q;  ///< [rows, heads * d_head] with row stride q_stride
  Index q_stride;
  std::span<const real* const> past;
  std::span<const Index> ancestors;
  Index heads, d_head;
};
/// O [rows, heads * d_head]. A row's result does not depend on the other rows.
void cached_attention(Index rows, const CachedOperands& a, real* O);

/// Attention of a few new queries for each sentence over keys and values that stay the same: those of sequence i are rows
/// [key_offsets[i], key_offsets[i + 1]) of KV [key rows, 2 D], side by side.
struct MemoryOperands {
  const real* Q;  ///< [query rows, D] with D = heads * d_head
  const real* KV;
  std::span<const Index> query_offsets, key_offsets;  ///< the begin of each sequence, then the number of rows
  Index heads, d_head;
};
/// O [query rows, D]; zeros for a sequence without keys. A row's result does not depend on the other rows.
void memory_attention(const MemoryOperands& a, real* O);

/// The `count` columns with the largest numbers of each row of x [T, V], from column `first` on, largest first, equal
/// numbers in the order of their columns: columns [T, count], with -1 where there are not as many numbers; and the
/// logarithm of the sum of all e^x of the row, log_sum [T].
void best_columns(Index T, Index V, const real* x, Index first, Index count, TokenId* columns, real* log_sum);

/// The logarithm of the mean of the softmax of several matrices x[m] [T, V], whose rows' logarithms of sums are
/// log_sums [models, T]: out [T, V] = log(sum over m of e^(x[m] - log_sums[m]) / models).
void log_mean_softmax(Index T, Index V, std::span<const real* const> x, std::span<const real> log_sums, real* out);

}  // namespace weft
