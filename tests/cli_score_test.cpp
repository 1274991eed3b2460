// weft score through the real binary: a line for a pair, in order, and a summary.
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli.h"

using namespace weft::cli;
using weft::bytes_of;
using weft::contains;
using weft::put;
using Json = nlohmann::ordered_json;

namespace {

Words score(const Words& more) { return Words{"score", trained()} + more; }

Words fields(const std::string& line) {
  Words result{""};
  for (const char c : line) {
    if (c == '\t') {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  return result;
}

double number(const std::string& text) { return std::stod(text); }

}  // namespace

TEST_CASE("one line comes out for each pair: logarithm, tokens, mean") {
  trained();
  put("s", "a b c\n\nd e\na b c d e f a b c d\na b c\n");
  put("t", "a b c\na\nd e\na\nf f f\n");
  const Outcome outcome = run_weft(score({"--source", "s", "--target", "t", "--alignment", "links"}));
  CHECK(outcome.code == 0);
  const Words lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 5);
  for (const std::size_t skipped : {1u, 3u}) CHECK(lines[skipped] == "nan\t0\tnan");
  double sum = 0, tokens = 0;
  for (const std::size_t i : {0u, 2u, 4u}) {
    const Words parts = fields(lines[i]);
    REQUIRE(parts.size() == 3);
    CHECK(number(parts[0]) < 0);
    CHECK(number(parts[1]) == (i == 2 ? 3 : 4));
    CHECK(number(parts[2]) == doctest::Approx(number(parts[0]) / number(parts[1])).epsilon(1e-4));
    sum += number(parts[0]);
    tokens += number(parts[1]);
  }
  CHECK(number(fields(lines[0])[0]) > -1);                               // it has learnt to copy
  CHECK(number(fields(lines[4])[0]) < number(fields(lines[0])[0]) - 5);  // and nothing else
  const Words messages = lines_of(outcome.err);
  REQUIRE(messages.size() == 3);
  CHECK(messages[0] == "weft: warning: line 2: the source is blank; the pair has no score");
  CHECK(messages[1] == "weft: warning: line 4: the source has 10 tokens; the model holds 9; the pair has no score");
  CHECK(messages[2].starts_with("weft: 3 pairs scored, 2 skipped; 11 tokens, log-probability -"));
  CHECK(number(messages[2].substr(messages[2].rfind(' '))) == doctest::Approx(std::exp(-sum / tokens)).epsilon(1e-4));
  const Words links = lines_of(bytes_of("links"));
  REQUIRE(links.size() == 5);
  CHECK(links[1].empty());
  CHECK(std::count(links[0].begin(), links[0].end(), '-') == 3);
  CHECK(contains(links[0], "-0 "));
}

TEST_CASE("scores do not depend on neighbours, threads, or where they go; a model twice is the model") {
  trained();
  const auto text = weft::letters(30, 11, 1, 7);
  put("s", joined(text.source));
  put("t", joined(weft::letters(30, 12, 1, 7).source));
  const Words whole = lines_of(run_weft(score({"--source", "s", "--target", "t"})).out);
  REQUIRE(whole.size() == 30);
  for (const char* threads : {"1", "3"}) {
    CHECK(lines_of(run_weft(score({"--source", "s", "--target", "t", "--threads", threads})).out) == whole);
  }
  CHECK(run_weft(score({"--source", "s", "--target", "t", "--output", "scores"})).out.empty());
  CHECK(lines_of(bytes_of("scores")) == whole);
  put("s", text.source[7] + "\n");
  put("t", weft::letters(30, 12, 1, 7).source[7] + "\n");
  const auto same = [](const std::string& a, const std::string& b) {
    CHECK(number(fields(a)[0]) == doctest::Approx(number(fields(b)[0])).epsilon(1e-4));
  };
  same(lines_of(run_weft(score({"--source", "s", "--target", "t"})).out).at(0), whole[7]);
  same(lines_of(run_weft(score({trained(), "--source", "s", "--target", "t"})).out).at(0), whole[7]);
}

TEST_CASE("--json and --summary") {
  trained();
  put("s", "a b\n \nc\n");
  put("t", "a zebra\nb\nc\n");
  const Outcome outcome = run_weft(score({"--source", "s", "--target", "t", "--json"}));
  CHECK(outcome.code == 0);
  const Words lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 3);
  const Json first = Json::parse(lines[0]), second = Json::parse(lines[1]);
  CHECK(first["line"] == 1);
  CHECK(first["tokens"] == 3);
  CHECK(first["unknown"] == 1);
  CHECK(first["target"] == Words{"a", "zebra"});
  REQUIRE(first["token_log_probabilities"].size() == 3);
  double sum = 0;
  for (const auto& one : first["token_log_probabilities"]) sum += one.get<double>();
  CHECK(first["log_probability"].get<double>() == doctest::Approx(sum));
  CHECK(first["mean"].get<double>() == doctest::Approx(sum / 3));
  CHECK(second["log_probability"].is_null());
  CHECK(second["skipped"] == "the source is blank");

  const Outcome summary = run_weft(score({"--source", "s", "--target", "t", "--json", "--summary"}));
  CHECK(lines_of(summary.out).size() == 1);
  const Json all = Json::parse(summary.out);
  CHECK(all["pairs"] == 2);
  CHECK(all["skipped"] == 1);
  CHECK(all["tokens"] == 5);
  CHECK(all["log_probability"].get<double>() ==
        doctest::Approx(sum + Json::parse(lines[2])["log_probability"].get<double>()));
  CHECK(all["perplexity"].get<double>() == doctest::Approx(std::exp(-all["log_probability"].get<double>() / 5)));
  CHECK(lines_of(run_weft(score({"--source", "s", "--target", "t", "--summary"})).out)
            .at(0)
            .starts_with("2 pairs scored, 1 skipped; 5 tokens, "));
  put("none", "");
  CHECK(Json::parse(run_weft(score({"--source", "none", "--target", "none", "--json", "--summary"})).out)["perplexity"]
            .is_null());
}

TEST_CASE("what cannot be scored is refused in one line") {
  trained();
  put("s", "a\nb\n");
  put("t", "a\n");
  check_refused({"score"}, {"CHECKPOINT", "found 0"});
  check_refused(score({"--source", "s"}), {"--target is missing"});
  check_refused(score({"--target", "s"}), {"--source is missing"});
  check_refused(score({"--source", "s", "--target", "t"}), {"s has 2 lines", "t has 1"});
  check_refused(score({"--source", "s", "--target", "missing"}), {"missing", "no such file"});
  check_refused(score({"--source", "s", "--target", "s", "--output", "no/where"}), {"no folder no"});
  check_refused({"score", "missing.safetensors", "--source", "s", "--target", "s"}, {"missing.safetensors"});
}
