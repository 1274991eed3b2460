#include "weft/train/text_format.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace weft;

TEST_CASE("counts") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(1000) == "1,000");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(-123) == "-123");
  CHECK(format_count(-1234) == "-1,234");
  CHECK(format_count(std::numeric_limits<Index>::max()) == "9,223,372,036,854,775,807");
}

TEST_CASE("bytes") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.0 KiB");
  CHECK(format_bytes(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(format_bytes(12897484) == "12.3 MiB");
  CHECK(format_bytes(std::numeric_limits<Index>::max()) == "8.0 EiB");
}

TEST_CASE("durations") {
  CHECK(format_duration(0) == "0.0s");
  CHECK(format_duration(4.24) == "4.2s");
  CHECK(format_duration(9.96) == "10s");
  CHECK(format_duration(59.6) == "1m 00s");
  CHECK(format_duration(83) == "1m 23s");
  CHECK(format_duration(3599.6) == "1h 00m");
  CHECK(format_duration(2 * 3600 + 5 * 60 + 10) == "2h 05m");
  CHECK(format_duration(86399) == "1d 00h");
  CHECK(format_duration(3 * 86400 + 4 * 3600) == "3d 04h");
  CHECK(format_duration(-1) == "?");
  CHECK(format_duration(std::nan("")) == "?");
  CHECK(format_duration(std::numeric_limits<double>::infinity()) == "?");
}

TEST_CASE("perplexities") {
  CHECK(format_perplexity(12.34567) == "12.346");
  CHECK(format_perplexity(12.34567, 6) == "12.345670");
  CHECK(format_perplexity(999999) == "999999.000");
  CHECK(format_perplexity(2.19e50) == "2.19e+50");
  CHECK(format_perplexity(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(format_perplexity(-std::nan("")) == "nan");
}

TEST_CASE("width of text, and clipping to it") {
  CHECK(display_width("") == 0);
  CHECK(display_width("café") == 4);
  CHECK(display_width("cafe\u0301") == 4);
  CHECK(display_width("日本") == 4);
  CHECK(display_width("🙂") == 2);
  CHECK(display_width("\xff\xe9") == 2);  // not UTF-8: a replacement each
  CHECK(clip_text("café", 4) == "café");
  CHECK(clip_text("cafés", 4) == "caf…");
  CHECK(clip_text("日本語", 4) == "日…");
  CHECK(clip_text("abc", 1) == "…");
  CHECK(clip_text("abc", 0) == "");
}

TEST_CASE("control characters show, and nothing else changes") {
  CHECK(show_controls("") == "");
  CHECK(show_controls("caf\u00e9 \"a\\b\" \xFF") == "caf\u00e9 \"a\\b\" \xFF");
  CHECK(show_controls("a\nb\r\tc\x1B[2J\x7F") == "a\\nb\\r\\tc\\x1B[2J\\x7F");
  CHECK(show_controls(std::string("\0\u0085\u009B", 5)) == "\\x00\\x85\\x9B");
  CHECK(show_controls("a\u2028b\u2029") == "a\\u2028b\\u2029");
}

TEST_CASE("code points, and what is none") {
  const auto first = [](std::string_view text) { return take_code_point(text); };
  CHECK(first("a") == U'a');
  CHECK(first("é") == U'é');
  CHECK(first("語") == U'語');
  CHECK(first("🙂") == U'🙂');
  for (const char* const bad :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f\x99"}) {
    std::string_view text = bad;
    const std::size_t size = text.size();
    CHECK(take_code_point(text) == 0xFFFD);
    CHECK(text.size() == size - 1);
  }
}

TEST_CASE("tables line up") {
  CHECK(format_table({{"name", "steps"}, {"café", "1,000"}, {"a longer one", "5"}, {"last"}}, "lr") ==
        "name          steps\n"
        "café          1,000\n"
        "a longer one      5\n"
        "last\n");
  CHECK(format_table({{"a", "b"}, {"ccc", "d"}}) == "a    b\nccc  d\n");
  CHECK(format_table({}) == "");
  CHECK(format_table({{}, {"a"}}) == "\na\n");
}
