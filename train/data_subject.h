// What is looked for in each text by the checks of data_check.h: lines that are there twice or in the training text as
// well, and lengths, blank sides and tokens that the vocabulary lacks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/data/corpus.h"
#include "weft/data/hold_out.h"
#include "weft/train/checked_text.h"
#include "weft/train/data_check.h"

namespace weft {

/// A text of the configuration on its way through the checks.
struct SubjectText {
  CheckedText text;
  TextReport report;
  std::shared_ptr<const std::vector<FoldedPair>> shared = {};  // of all lines
  std::vector<Part> parts = {};                                // of all lines
  Part part = Part::kTrain;                                    // the lines of this part belong to the report

  const std::vector<FoldedPair>& folded() const { return *shared; }
};

/// Hashes the lines, all of which belong to the text's own part.
void hash_lines(SubjectText& subject);

/// Notes the pairs that a text has twice.
void check_duplicates(SubjectText& subject);

/// Notes what others have in common with the training text: whole pairs, sources, and targets.
void check_overlap(const SubjectText& train, std::vector<SubjectText>& others);

/// Counts what training would keep, with the lengths and shares of the pairs that are not blank.
void measure_lengths(SubjectText& subject, const TextEncoder& source, const TextEncoder& target);

}  // namespace weft
