// Rows of the op table for elementwise functions, products, sums and changes of shape.
#include <cmath>
#include <utility>

#include "op_table.h"

namespace weft {
namespace {

const std::vector<Shapes> kOne = {{{5, 17}}, {{1, 33}}, {{2, 3, 5}}, {{7}}, {{0, 5}}, {{3, 200}}, {{401, 203}}};
const std::vector<Shapes> kTwo = {{{5, 17}, {5, 17}}, {{2, 3, 5}, {2, 3, 5}}, {{33}, {33}},
                                  {{0, 5}, {0, 5}},   {{1, 200}, {1, 200}},   {{401, 203}, {401, 203}}};
const std::vector<Shapes> kSpread = {{{5, 17}, {17}},   {{5, 17}, {1}},      {{1, 33}, {33}},  {{2, 3, 5}, {5}},
                                     {{2, 3, 5}, {1}},  {{0, 5}, {5}},       {{0, 5}, {1}},    {{4, 1}, {1}},
                                     {{3, 200}, {200}}, {{401, 203}, {203}}, {{401, 203}, {1}}};

/// A function of one operand, on values from [low, high).
OpRow unary_row(std::string_view name, Var (*run)(const Var&), const Differentiable& reference, double low = -2,
                double high = 2) {
  return {name,
          random_cases(
              kOne, [run](Vars v) { return run(v[0]); }, reference, low, high),
          {}};
}

/// A function of two operands with all ways of spreading the second over the first.
OpRow binary_row(std::string_view name, Var (*run)(const Var&, const Var&), const Differentiable& reference, double low,
                 double high) {
  std::vector<Shapes> shapes = kTwo;
  shapes.insert(shapes.end(), kSpread.begin(), kSpread.end());
  return {name,
          random_cases(
              shapes, [run](Vars v) { return run(v[0], v[1]); }, reference, low, high),
          {[run] {
             run(zeros({4, 6}), zeros({4, 5}));
           },
           [run] {
             run(zeros({4, 6}), zeros({3, 6}));
           },
           [run] {
             run(zeros({4, 6}), zeros({4}));
           },
           [run] { run(zeros({1}), zeros({6})); },
           [run] {
             run(zeros({2, 3, 4}), zeros({3, 4}));
           }}};
}

OpRow residual_row() {
  OpRow row{"residual", {}, {}};
  row.cases = random_cases(
      kTwo, [](Vars v) { return residual(v[0], v[1], kSomeDropout); },
      [](Vars v) { return add(v[0], dropout(v[1], kSomeDropout)); });
  row.cases.push_back(random_case(
      "no dropout", {{5, 17}, {5, 17}}, [](Vars v) { return residual(v[0], v[1], {}); },
      [](Vars v) { return add(v[0], v[1]); }));
  row.wrong = {[] {
                 residual(zeros({4, 6}), zeros({4, 5}), kSomeDropout);
               },
               [] {
                 residual(zeros({4, 6}), zeros({6}), {});
               }};
  return row;
}

OpRow matmul_row() {
  OpRow row{"matmul", {}, {}};
  struct Size {
    Index m, n, k;
  };
  for (const Size& s : {Size{5, 17, 3}, {1, 1, 33}, {7, 1, 200}, {1, 5, 17}, {3, 4, 0}, {0, 4, 3}, {310, 150, 70}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Shapes shapes = {ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, tb ? Shape{s.n, s.k} : Shape{s.k, s.n}};
        row.cases.push_back(random_case(
            ta && tb ? "both transposed"
            : ta     ? "a transposed"
            : tb     ? "b transposed"
                     : "plain",
            shapes, [ta, tb](Vars v) { return matmul(v[0], v[1], ta, tb); },
            ta || tb ? Differentiable([ta, tb](Vars v) {
              return matmul(ta ? transpose(v[0]) : v[0], tb ? transpose(v[1]) : v[1]);
            })
                     : nullptr));
      }
    }
  }
  row.wrong = {[] {
                 matmul(zeros({3, 4}), zeros({3, 4}));
               },
               [] {
                 matmul(zeros({3, 4}), zeros({4, 5}), true);
               },
               [] {
                 matmul(zeros({3, 4}), zeros({4, 5}), false, true);
               }};
  return row;
}

OpRow linear_row() {
  const auto activate = [](const Var& x, Activation activation) {
    switch (activation) {
      case Activation::kRelu:
        return relu(x);
      case Activation::kGelu:
        return gelu(x);
      case Activation::kSilu:
        return silu(x);
      default:
        return x;
    }
  };
  OpRow row{"linear", {}, {}};
  struct Size {
    Index rows, in, out;
  };
  for (const Size& s : {Size{5, 17, 33}, {1, 5, 17}, {7, 200, 3}, {4, 3, 1}, {0, 5, 3}, {301, 65, 130}}) {
    for (const auto& [name, activation] : {std::pair{"none", Activation::kNone},
                                           {"relu", Activation::kRelu},
                                           {"gelu", Activation::kGelu},
                                           {"silu", Activation::kSilu}}) {
      for (const bool bias : {true, false}) {
        const Shapes shapes = {{s.rows, s.in}, {s.out, s.in}, {s.out}};
        const auto a = activation;  // a structured binding cannot be captured in C++20 by all compilers
        row.cases.push_back(random_case(
            std::string(name) + (bias ? " with bias" : ""), bias ? shapes : Shapes(shapes.begin(), shapes.end() - 1),
            [a](Vars v) { return linear(v[0], v[1], v.size() > 2 ? v[2] : Var(), a); },
            [a, activate](Vars v) {
              const Var product = matmul(v[0], v[1], false, true);
              return activate(v.size() > 2 ? add(product, v[2]) : product, a);
            }));
      }
    }
  }
  row.wrong = {[] {
                 linear(zeros({3, 4}), zeros({5, 6}), Var());
               },
               [] {
                 linear(zeros({3, 4}), zeros({5, 4}), zeros({4}));
               },
               [] {
                 linear(zeros({3, 4}), zeros({5, 4}), zeros({1}));
               }};
  return row;
}

/// sum or mean; the reference is a product with ones, or with shares.
OpRow reduction_row(std::string_view name, Var (*run)(const Var&, Over), bool mean) {
  OpRow row{name, {}, {}};
  for (const auto& [what, over] : {std::pair{"all", Over::kAll}, {"rows", Over::kRows}, {"columns", Over::kColumns}}) {
    const auto o = over;
    for (const Shape& shape : {Shape{5, 17}, Shape{1, 33}, Shape{4, 1}, Shape{2, 3, 5}, Shape{3, 200}, Shape{7},
                               Shape{0, 5}, Shape{1003, 41}, Shape{41, 1003}}) {
      if (mean && shape.size() == 0) continue;
      row.cases.push_back(random_case(
          what, {shape}, [run, o](Vars v) { return run(v[0], o); },
          [o, mean](Vars v) {
            const Index T = v[0].rows(), D = v[0].cols();
            const Var x = reshape(v[0], {T, D});
            const auto share = [mean](Index n) { return mean ? real{1} / static_cast<real>(n) : real{1}; };
            const Var left(Tensor::full({1, T}, o == Over::kColumns ? 1 : share(T)));
            const Var right(Tensor::full({D, 1}, o == Over::kRows ? 1 : share(D)));
            if (o == Over::kRows) return reshape(matmul(left, x), {D});
            if (o == Over::kColumns) return reshape(matmul(x, right), {T});
            return reshape(matmul(matmul(left, x), right), {1});
          }));
    }
  }
  return row;
}

std::vector<Index> counting(Index begin, Index end) {
  std::vector<Index> numbers;
  for (Index i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

OpRow slice_row(std::string_view name, Var (*run)(const Var&, Index, Index), bool rows) {
  OpRow row{name, {}, {}};
  struct Size {
    Index rows, columns, begin, end;
  };
  for (const Size& s : {Size{5, 17, 1, 4},
                        {17, 5, 0, 5},
                        {1, 33, 0, 1},
                        {6, 6, 5, 6},
                        {6, 6, 2, 2},
                        {3, 200, 1, 3},
                        {350, 320, 5, 311}}) {
    row.cases.push_back(random_case(
        std::to_string(s.begin) + " to " + std::to_string(s.end), {{s.rows, s.columns}},
        [run, s](Vars v) { return run(v[0], s.begin, s.end); },
        [rows, s](Vars v) {
          const Var pick = one_hot(counting(s.begin, s.end), rows ? s.rows : s.columns);
          return rows ? matmul(pick, v[0]) : matmul(v[0], pick, false, true);
        }));
  }
  row.wrong = {[run] {
                 run(zeros({4, 4}), 3, 5);
               },
               [run] {
                 run(zeros({4, 4}), -1, 2);
               },
               [run] {
                 run(zeros({4, 4}), 3, 2);
               }};
  return row;
}

OpRow concat_row(std::string_view name, Var (*run)(Vars), bool rows) {
  OpRow row{name, {}, {}};
  const auto shape = [rows](Index along, Index across) { return rows ? Shape{along, across} : Shape{across, along}; };
  const std::vector<Shapes> shapes = {{shape(2, 5), shape(3, 5), shape(1, 5)},
                                      {shape(17, 3)},
                                      {shape(0, 4), shape(2, 4)},
                                      {shape(33, 1), shape(5, 1)},
                                      {shape(200, 3), shape(1, 3)},
                                      {shape(301, 150), shape(77, 150)}};
  row.cases = random_cases(
      shapes, [run](Vars v) { return run(v); },
      [rows](Vars v) {
        Index total = 0, begin = 0;
        for (const Var& part : v) total += rows ? part.rows() : part.cols();
        Var result;
        for (const Var& part : v) {
          const Index end = begin + (rows ? part.rows() : part.cols());
          const Var put = one_hot(counting(begin, end), total);
          const Var wide = rows ? matmul(put, part, true) : matmul(part, put);
          result = result.defined() ? add(result, wide) : wide;
          begin = end;
        }
        return result;
      });
  row.wrong = {[run] { run({}); },
               [run, shape] {
                 const std::vector<Var> parts = {zeros(shape(2, 5)), zeros(shape(2, 4))};
                 run(parts);
               }};
  return row;
}

}  // namespace

std::vector<OpRow> elementary_rows() {
  const auto logistic = [](const Var& x) { return div(Var(Tensor::full(x.shape(), 1)), add(exp(neg(x)), number(1))); };
  return {
      binary_row(
          "add", add, [](Vars v) { return sub(v[0], neg(v[1])); }, -1, 1),
      binary_row(
          "sub", sub, [](Vars v) { return add(v[0], scale(v[1], -1)); }, -1, 1),
      binary_row(
          "mul", mul, [](Vars v) { return exp(add(log(v[0]), log(v[1]))); }, 0.5, 2),
      binary_row(
          "div", div, [](Vars v) { return exp(sub(log(v[0]), log(v[1]))); }, 0.5, 2),
      {"scale",
       random_cases(
           kOne, [](Vars v) { return scale(v[0], real{-1.75}); }, [](Vars v) { return mul(v[0], number(-1.75)); }),
       {}},
      unary_row("neg", neg, [](Vars v) { return scale(v[0], -1); }),
      unary_row("exp", exp, nullptr),
      unary_row("log", log, nullptr, 0.25, 4),
      unary_row(
          "sqrt", sqrt, [](Vars v) { return exp(scale(log(v[0]), real{0.5})); }, 0.25, 4),
      unary_row("relu", relu, nullptr),
      unary_row("gelu", gelu, nullptr, -4, 4),
      unary_row(
          "silu", silu, [logistic](Vars v) { return mul(v[0], logistic(v[0])); }, -4, 4),
      unary_row("tanh", tanh, [logistic](Vars v) { return sub(scale(logistic(scale(v[0], 2)), 2), number(1)); }),
      unary_row(
          "sigmoid", sigmoid, [logistic](Vars v) { return logistic(v[0]); }, -4, 4),
      {"dropout",
       random_cases(
           kOne, [](Vars v) { return dropout(v[0], kSomeDropout); },
           [](Vars v) { return mul(v[0], dropout_mask(kSomeDropout, v[0].shape())); }),
       {}},
      residual_row(),
      matmul_row(),
      linear_row(),
      reduction_row("sum", sum, false),
      reduction_row("mean", mean, true),
      {"reshape",
       {random_case("to [3, 10]", {{2, 3, 5}},
                    [](Vars v) {
                      return reshape(v[0], {3, 10});
                    }),
        random_case("to [340, 300]", {{300, 340}},
                    [](Vars v) {
                      return reshape(v[0], {340, 300});
                    })},
       {[] {
         reshape(zeros({4, 6}), {5, 5});
       }}},
      {"transpose",
       random_cases(
           {{{5, 17}}, {{1, 33}}, {{3, 200}}, {{0, 5}}, {{401, 203}}}, [](Vars v) { return transpose(v[0]); },
           [](Vars v) {
             const Index T = v[0].rows();
             return matmul(v[0], one_hot(counting(0, T), T), true);
           }),
       {}},
      slice_row("slice_rows", slice_rows, true),
      slice_row("slice_columns", slice_columns, false),
      concat_row("concat_rows", concat_rows, true),
      concat_row("concat_columns", concat_columns, false),
  };
}

}  // namespace weft
