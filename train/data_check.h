// Everything that can be said about the text of a configuration before training: what would be kept, what is odd, and
// whether training would refuse it. A fault in one place never hides those in others. Of the text, hashes are kept, not
// lines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/data/text_check.h"
#include "weft/train/config.h"

namespace weft {

/// One side of the pairs of a text that are not blank, in tokens.
struct SideReport {
  std::map<Index, Index> lengths;  ///< how many sentences have each length
  Index tokens = 0;
  Index unknown = 0;     ///< tokens that the vocabulary lacks
  Index characters = 0;  ///< code points

  /// The least length that `percent` of the sentences do not exceed (nearest rank); 0 if there are none.
  Index percentile(Index percent) const;
  double unknown_rate() const;
  double characters_per_token() const;
};

/// What is known about the training, validation or test text.
struct TextReport {
  TextReport(std::string split_name, Index limit) : split(std::move(split_name)), findings(limit) {}

  std::string split;
  std::vector<std::string> files;
  Index longest = 0;  ///< tokens that a side may have
  Index pairs = 0;
  bool measured = false;  ///< false where there are no vocabularies: then the numbers up to `target` are not known
  Index kept = 0, blank = 0, too_long = 0;
  SideReport source, target;
  Findings findings;
};

/// What is known about all of them.
struct DataReport {
  std::vector<TextReport> texts;
  Index source_vocabulary = 0, target_vocabulary = 0;  ///< 0 if none can be made
  std::vector<std::string> problems;                   ///< why training would be refused; empty if it would not
};

/// Reads and checks the text of a configuration, with up to `limit` places of each finding.
DataReport check_data(const Config& config, Index limit);

/// The report for people, and as JSON.
std::string format_report(const DataReport& report);
std::string report_json(const DataReport& report);

}  // namespace weft
