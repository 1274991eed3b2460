#include "weft/data/subword_model.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "weft/core/error.h"
#include "weft/core/file.h"
#include "weft/data/text_file.h"
#include "weft/data/utf8.h"

namespace weft {
namespace {

/// Whether a piece can be an entry of a vocabulary as it is.
bool can_stand(std::string_view piece) {
  if (is_special_token(piece) || text_problem(piece)) return false;
  for (std::size_t at = 0; at < piece.size();) {
    const CodePoint point = code_point_at(piece, at);
    if (is_space(point.value)) return false;
    at += point.length;
  }
  return true;
}

void append_code_points(std::string_view text, std::vector<std::string>& tokens) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = code_point_at(text, at).length;
    tokens.emplace_back(text.substr(at, length));
    at += length;
  }
}

}  // namespace

void silence_sentencepiece() {
  // The level can be set through an option of training only; without text this trains nothing.
  static std::once_flag once;
  std::call_once(once, [] {
    const std::unordered_map<std::string, std::string> options{{"minloglevel", "3"}};
    std::string nothing;
    sentencepiece::SentencePieceTrainer::Train(options, nullptr, &nothing).IgnoreError();
  });
}

struct SubwordModel::Processor : sentencepiece::SentencePieceProcessor {};

SubwordModel::SubwordModel(std::string bytes, const std::string& name)
    : bytes_(std::move(bytes)),
      proto_(read_subword_proto(bytes_, name)),
      processor_(std::make_unique<Processor>()),
      sampler_(proto_) {
  if (proto_.kind != "unigram" && proto_.kind != "bpe") {
    throw DataError(
        fmt::format("{}: a SentencePiece model of the kind {}; use one of unigram or bpe", name, proto_.kind));
  }
  silence_sentencepiece();
  std::string problem;
  try {
    const auto status = processor_->LoadFromSerializedProto(without_self_test(bytes_));
    if (!status.ok()) problem = status.error_message();
  } catch (const std::exception& error) {  // of the trie that it builds
    problem = error.what();
  }
  if (problem.empty() && processor_->GetPieceSize() != static_cast<int>(proto_.pieces.size())) problem = "lost pieces";
  if (!problem.empty()) {
    std::replace(problem.begin(), problem.end(), '\n', ' ');
    throw DataError(
        fmt::format("{}: SentencePiece cannot use this model ({}); give a .model file that it wrote", name, problem));
  }

  tokens_.assign(kSpecialTokens.begin(), kSpecialTokens.end());
  // Not processor_->unk_id(), which goes by a name that another piece may have.
  const auto unknown = std::find_if(proto_.pieces.begin(), proto_.pieces.end(),
                                    [](const SubwordPiece& p) { return p.type == SubwordType::kUnknownPiece; });
  if (unknown == proto_.pieces.end()) throw DataError(fmt::format("{}: has no piece for what is unknown", name));
  unknown_ = unknown->text;
  const std::vector<int> specials{static_cast<int>(unknown - proto_.pieces.begin()), processor_->bos_id(),
                                  processor_->eos_id()};
  for (int id = 0; id < processor_->GetPieceSize(); ++id) {
    const std::string& piece = proto_.pieces[static_cast<std::size_t>(id)].text;
    stands_.push_back(can_stand(piece));
    if (std::count(specials.begin(), specials.end(), id) > 0) continue;
    if (stands_.back()) {
      tokens_.push_back(piece);
    } else {
      tokens_.push_back(
          fmt::format("\xEF\xBF\xAD"
                      "unused{}",
                      id));
      unused_.insert(tokens_.back());
    }
  }
}

SubwordModel::~SubwordModel() = default;

std::shared_ptr<const SubwordModel> SubwordModel::load(std::string bytes, const std::string& name) {
  return std::shared_ptr<const SubwordModel>(new SubwordModel(std::move(bytes), name));
}

std::shared_ptr<const SubwordModel> SubwordModel::load_file(const std::filesystem::path& path) {
  const InputFile file(path);
  // One byte over the limit is read, so that the error is that of load.
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kMostSubwordBytes + 1)), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return load(std::move(bytes), path.string());
}

/// Whether a space ends a run of unknown characters.
bool SubwordModel::knows_spaces() const {
  const SubwordType space = proto_.pieces[static_cast<std::size_t>(processor_->PieceToId(kVisibleSpace))].type;
  return proto_.escapes_spaces && !proto_.table.matches_spaces() &&
         (space == SubwordType::kNormal || space == SubwordType::kUserDefined);
}

/// The parts of a text, cut before spaces, that SentencePiece has time and memory for: all of it but for a very long
/// one.
std::vector<std::string_view> SubwordModel::parts(std::string_view text) const {
  if (text.size() * proto_.table.growth() <= kLongestSubwordWord) return {text};
  const std::size_t most = knows_spaces() ? kMostLineBytes : kLongestSubwordWord;
  std::vector<std::string_view> parts;
  std::size_t begin = 0, made = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at + 1), text.size());
    const std::size_t word = proto_.table.most_made(text, at, end);
    if (made > 0 && made + word > most) {
      parts.push_back(text.substr(begin, at - begin));
      begin = at;
      made = 0;
    }
    made += word;
    at = end;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// Gives the normal pieces of the best segmentation to `normal` and all other tokens to `other`, in order.
template <class Normal, class Other>
void SubwordModel::encode(std::string_view text, Normal normal, Other other) const {
  std::vector<std::string> pieces, points;
  for (const std::string_view part : parts(text)) {
    const auto status = processor_->Encode(part, &pieces);
    if (!status.ok()) throw DataError(fmt::format("SentencePiece cannot cut the text ({})", status.error_message()));
    for (const std::string& piece : pieces) {
      const auto id = static_cast<std::size_t>(processor_->PieceToId(piece));
      const SubwordType type = proto_.pieces[id].type;
      const bool control = type == SubwordType::kControl || (type == SubwordType::kByte && !proto_.byte_fallback);
      if (type == SubwordType::kNormal && stands_[id]) {
        normal(piece);
      } else if (type == SubwordType::kUnknownPiece ? !is_special_token(piece) : stands_[id] && !control) {
        other(piece);
      } else {  // unknown characters that would be taken for a symbol of the model
        points.clear();
        append_code_points(piece, points);
        for (const std::string& point : points) other(point);
      }
    }
  }
}

std::vector<std::string> SubwordModel::split(std::string_view text) const {
  std::vector<std::string> tokens;
  const auto add = [&tokens](const std::string& token) { tokens.push_back(token); };
  encode(text, add, add);
  return tokens;
}

std::vector<std::string> SubwordModel::sample(std::string_view text, double strength, Random& random) const {
  std::vector<std::string> tokens;
  std::string run;
  const auto draw = [&] {
    if (!run.empty()) sampler_.sample(run, strength, random, tokens);
    run.clear();
  };
  encode(
      text, [&run](const std::string& piece) { run += piece; },
      [&](const std::string& token) {
        draw();
        tokens.push_back(token);
      });
  draw();
  return tokens;
}

std::string SubwordModel::join(std::span<const std::string> tokens) const {
  std::vector<std::string> pieces;
  for (const std::string& token : tokens) {
    if (token.empty() || unused_.contains(token)) continue;
    if (token == kSpecialTokens[kBegin] || token == kSpecialTokens[kEnd]) continue;
    pieces.push_back(token == kSpecialTokens[kUnknown] ? unknown_ : token);
  }
  std::string text;
  const auto status = processor_->Decode(pieces, &text);
  if (!status.ok()) throw DataError(fmt::format("SentencePiece cannot join the pieces ({})", status.error_message()));
  return text;
}

}  // namespace weft
