// Text packed as gzip does, for tests that read it.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <string>

namespace weft {

/// One gzip member that holds these bytes.
inline std::string gzipped(std::string bytes) {
  z_stream zlib = {};
  REQUIRE(deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&zlib, static_cast<uLong>(bytes.size())) + 64, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(bytes.data());
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&zlib, Z_FINISH) == Z_STREAM_END);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

}  // namespace weft
