// Every differentiable operation, one function each. A function checks the shapes (ShapeError names the operation, what
// was found and the rule), runs a kernel, and, where an argument wants a gradient, records the way back on its tape.
// Matrices are [rows, columns]. Elementwise operations and reductions take any rank, a tensor counting as the matrix of its
// rows (see Shape::rows); the others take matrices.
#pragma once

#include <span>
#include <vector>

#include "weft/autograd/tape.h"
#include "weft/core/kernels.h"
#include "weft/core/ragged.h"

namespace weft {

// ---- elementwise (ops_elementwise.cpp) ------------------------------------------------------------------------------

/// a + b, a - b, a * b, a / b. `b` has the shape of `a`, or is a row vector [columns], or one element [1].
Var add(const Var& a, const Var& b);
Var sub(const Var& a, const Var& b);
Var mul(const Var& a, const Var& b);
Var div(const Var& a, const Var& b);

/// factor * x.
Var scale(const Var& x, real factor);

/// -x, e^x, the natural logarithm, the square root.
Var neg(const Var& x);
Var exp(const Var& x);
Var log(const Var& x);
Var sqrt(const Var& x);

/// max(x, 0).
Var relu(const Var& x);
/// x Phi(x), with Phi the normal distribution function. Hendrycks and Gimpel 2016, the exact form.
Var gelu(const Var& x);
/// x sigmoid(x). Ramachandran et al. 2017 (swish with beta 1).
Var silu(const Var& x);
Var tanh(const Var& x);
/// 1 / (1 + e^-x).
Var sigmoid(const Var& x);

/// x with each element dropped (set to 0) with the given probability and the others divided by 1 - probability.
/// Srivastava et al. 2014. Which are dropped is a function of the dropout's stream and site and of the element's row and
/// column. With probability 0, x itself.
Var dropout(const Var& x, const DropoutMask& dropout);

/// x + dropout(y): a residual connection without its norm. Shapes equal.
Var residual(const Var& x, const Var& y, const DropoutMask& dropout);

// ---- products (ops_matrix.cpp) ----------------------------------------------------------------------------------------

/// op(a) op(b) for matrices, op being the transpose where asked for.
Var matmul(const Var& a, const Var& b, bool transpose_a = false, bool transpose_b = false);

/// activation(x weight^T + bias): x [rows, in], weight [out, in], bias [out] or left out, result [rows, out].
Var linear(const Var& x, const Var& weight, const Var& bias, Activation activation = Activation::kNone);

// ---- shapes and sums (ops_shape.cpp) ------------------------------------------------------------------------------------

/// Which elements a reduction takes together.
enum class Over {
  kAll,      ///< all of them: result [1]
  kRows,     ///< those of a column, over all rows: result [columns]
  kColumns,  ///< those of a row, over all columns: result [rows]
};
Var sum(const Var& x, Over over = Over::kAll);
Var mean(const Var& x, Over over = Over::kAll);

/// The same elements under another shape of equal size.
Var reshape(const Var& x, const Shape& shape);
/// The transpose of a matrix.
Var transpose(const Var& x);
/// Rows [begin, end) of a matrix.
Var slice_rows(const Var& x, Index begin, Index end);
/// Columns [begin, end) of a matrix.
Var slice_columns(const Var& x, Index begin, Index end);
/// Matrices of equal width below each other; at least one.
Var concat_rows(std::span<const Var> parts);
/// Matrices of equal height beside each other; at least one.
Var concat_columns(std::span<const Var> parts);

// ---- sequences (ops_sequence.cpp) -----------------------------------------------------------------------------------------

/// factor * table[id] for each id: table [vocabulary, d_model], result [ids, d_model]. Throws ShapeError for an id
/// outside of the table.
Var embedding(const Var& table, std::span<const TokenId> ids, real factor = 1);

/// x with row `first + i` of `table` added to row i of each sequence: x [rows, d_model], table [positions, d_model].
/// Throws ShapeError when a sequence is longer than the table.
Var add_positions(const Var& x, const Var& table, const Ragged& rows, Index first = 0);

/// What attention needs to know beside its operands.
struct AttentionOptions {
  Index heads = 1;
  bool causal = false;  ///< query i of a sequence sees keys 0 to i only (then both sides have the same rows)
  DropoutMask dropout;  ///< on the attention weights
  /// Where to put the attention weights (before dropout): for each sequence a tensor [heads, queries, keys]. Null: nowhere.
  std::vector<Tensor>* weights = nullptr;
};

/// Scaled dot-product attention in several heads, each sequence within itself: softmax(Q K^T / sqrt(d_head)) V.
/// Vaswani et al. 2017, section 3.2. query [query rows, d_model], key and value [key rows, d_model]; head h owns columns
/// [h d_head, (h+1) d_head). Query sequence i attends to key sequence i. A query whose sequence has no keys gives zeros.
Var attention(const Var& query, const Var& key, const Var& value, const Ragged& query_rows, const Ragged& key_rows,
              const AttentionOptions& options);
/// Self-attention from a joint projection: qkv [rows, 3 d_model] = [Q | K | V].
Var self_attention(const Var& qkv, const Ragged& rows, const AttentionOptions& options);
/// Cross-attention with keys and values from a joint projection: query [query rows, d_model], kv [key rows, 2 d_model].
Var cross_attention(const Var& query, const Var& kv, const Ragged& query_rows, const Ragged& key_rows,
                    const AttentionOptions& options);

// ---- normalisation (ops_norm.cpp) ---------------------------------------------------------------------------------------

/// e^x of each row divided by its sum.
Var softmax(const Var& x);
/// The logarithm of softmax.
Var log_softmax(const Var& x);

/// (x - mean) / sqrt(variance + epsilon) * gain + shift for each row, with the row's mean and (biased) variance; gain
/// and shift [columns]. Ba et al. 2016.
Var layer_norm(const Var& x, const Var& gain, const Var& shift, real epsilon);

/// layer_norm(x + dropout(y)): "Add & Norm" of the paper (Vaswani et al. 2017, section 3.1 and 5.4).
Var add_norm(const Var& x, const Var& y, const Var& gain, const Var& shift, real epsilon, const DropoutMask& dropout);

// ---- losses (ops_loss.cpp) ----------------------------------------------------------------------------------------------

/// How a batch fared, beside its loss.
struct TokenStatistics {
  double negative_log_likelihood = 0;  ///< natural logarithm, summed over targets, without label smoothing
  Index correct = 0;                   ///< targets that had the highest logit
};

/// How a loss is computed, and where its statistics go.
struct CrossEntropyOptions {
  real label_smoothing = 0;  ///< this share of the target is spread evenly over all classes (Szegedy et al. 2016)
  real factor = 1;           ///< the loss is this times the sum over targets; 1 / targets gives the mean
  TokenStatistics* statistics = nullptr;  ///< added to, if given
};

/// Cross-entropy of softmax(logits) and target classes, summed: logits [targets, classes], result [1]. Throws ShapeError
/// for a target outside of the classes.
Var cross_entropy(const Var& logits, std::span<const TokenId> targets, const CrossEntropyOptions& options = {});

/// cross_entropy(linear(x, weight, bias), targets) in chunks of rows: [targets, classes] never exists as a whole. When
/// recorded, the gradients are made on the way forward. x [targets, in], weight [classes, in], bias [classes] or none.
Var linear_cross_entropy(const Var& x, const Var& weight, const Var& bias, std::span<const TokenId> targets,
                         const CrossEntropyOptions& options = {});

/// The mean of (x - y)^2 over all elements; shapes equal, result [1].
Var mean_squared_error(const Var& x, const Var& y);

/// The mean over rows of sum(target * (log target - log_probability)), 0 log 0 being 0; shapes equal, result [1].
Var kl_divergence(const Var& log_probability, const Var& target);

}  // namespace weft
