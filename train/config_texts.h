// The one kind of key that is a list: texts, each an object that names files. From what stands in the JSON to TextFiles
// and back.
#pragma once

#include <string>
#include <vector>

#include "weft/data/text_files.h"
#include "weft/train/config_reader.h"

namespace weft {

/// What a list of texts looks like, to go after "must be".
inline constexpr const char* kTextListRule =
    R"(an array such as [{"source": "a.fr", "target": "a.en"}, {"tsv": "b.tsv", "source_column": 1, "target_column": 2}])";

/// Reads an array of texts. Each problem is added in words that begin with the path of what is wrong, such as
/// "data.train[0].sorce"; the result is good only if there is none.
std::vector<TextFiles> read_text_list(const std::string& path, const FoundValue& found,
                                      std::vector<std::string>& problems);

/// Writes texts as JSON in one line. Throws ConfigError for text that is not UTF-8.
std::string show_text_list(const std::vector<TextFiles>& texts);

}  // namespace weft
