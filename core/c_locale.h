// The locale of C, whatever a host program has chosen for itself: libraries that Weft calls read numbers by the locale.
#pragma once

#include <locale.h>

namespace weft {

/// Gives the calling thread the locale "C" for as long as it lives; no other thread notices.
class CLocale {
 public:
  CLocale() : before_(::uselocale(c())) {}
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;
  ~CLocale() { ::uselocale(before_); }

 private:
  static locale_t c() {
    static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", locale_t{});
    return locale;
  }

  locale_t before_;
};

}  // namespace weft
