#!/usr/bin/env python3
"""Writes tests/fixtures/scores.json: made-up texts with the scores that sacreBLEU gives them, lines with its
tokens, and texts in lower case.

Needs sacrebleu (pip install sacrebleu). The same versions of sacrebleu and Python give the same file.
Usage: scripts/make_score_fixtures.py
"""

import json
import pathlib
import random
import unicodedata

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.bleu import _get_tokenizer

WORDS = """the a cat dog sat ran on under mat tree red small old and or but not is was has seen very quickly
house river night day green two three people of in to we they walk sing bread milk""".split()
ODD = """Mr. U.S. don't l'eau "quoted" (round) [square] {curly} well-known 1,000.5 3.14 .5 5. 10-20 7-day -3 2,5
1,,2 ... .,. ,., a.b x,y 9.9.9 &amp; &quot;hi&quot; &lt;b&gt; &amp;amp; &apos; AT&T <skipped> <unk> a/b
50% $5.00 #tag e@mail.x C++ x=y ~home under_score back\\slash caret^ pipe| tick` semi; colon: what?
İstanbul ΟΔΟΣ ΣΟΦΙΑ Σ ΑΣ. ΝΑΣ' STRASSE STRAẞE Ǆ Ⅷ Ω ÉCOLE ÀÇ ЖУК Ꙁ (hi) (a) "b c" d' 'e ''f'' .g. x!? I'M
stop! -- - . , ' " café naïve Straße ΑΘΗΝΑ привет мир. 你好 世界。 東京、 ３,５ “curly” «guillemets» … – — 🙂
👨\u200d👩\u200d👧 é１ ١٢٣. ½, m² co\u00adop zero\u200bwidth""".split()
SPACES = ["\t", "\u00a0", "\u3000", "\u2009", "\u2028", "\x85", "\x1f", "\u202f", "\x0b", "\n", "-\n", "  "]
CHINESE = """我 你 他 的 是 了 在 不 有 这 那 人 学 生 喜欢 吃 苹果 北京 上海 明天 天气 很 好 吗 ， 。 ！ ？ 《红》 “对” —— ……
iPhone 3.5 10% CPU A.I. 2024年 １２ ㈱ 〇 々 かな 한국 👍 𠀀 𠮷野 ｡ ﹏ ㍿ ⼀ ⺀ ☀ ✓ ・ﾃｽﾄ e-mail 5-3 .5 5. 、""".split()
SMOOTHINGS = [("exp", None), ("none", None), ("floor", None), ("floor", 0.01), ("floor", 0.0),
              ("add-k", None), ("add-k", 0.5)]
TOKENIZERS = ["13a", "none", "char", "zh"]


def word(rng, odd, usual):
    return rng.choice(ODD if rng.random() < odd else usual)


def sentence(rng, longest, odd, usual=WORDS):
    words = [word(rng, odd, usual) for _ in range(rng.randint(0, longest))]
    if words and rng.random() < 0.7:
        words[-1] += rng.choice([".", "!", "?", " .", "...", ",", "\u3002"])
    out = ""
    for one in words:
        space = "" if usual is CHINESE and rng.random() < 0.9 else " "
        out += one + (rng.choice(SPACES) if rng.random() < odd / 4 else space)
    return out if rng.random() < 0.2 else out.strip()


def disturb(rng, text, rate, odd, usual=WORDS):
    """Drops, replaces, adds, swaps and re-cases some words; of Chinese, characters."""
    between = "" if usual is CHINESE else " "
    out = []
    for one in list(text) if usual is CHINESE else text.split(" "):
        r = rng.random()
        if r < rate / 3:
            continue
        if r < 2 * rate / 3:
            one = word(rng, odd, usual)
        elif rng.random() < rate / 4:
            one = rng.choice([one.upper(), one.lower(), one.title(), unicodedata.normalize("NFD", one)])
        out.append(one)
        if r > 1 - rate / 3:
            out.append(rng.choice(usual))
    if len(out) > 1 and rng.random() < rate:
        i = rng.randrange(len(out) - 1)
        out[i], out[i + 1] = out[i + 1], out[i]
    return between.join(out)


def bleu(hypotheses, references, tokenize, method, value, lowercase):
    metric = BLEU(tokenize=tokenize, smooth_method=method, smooth_value=value, lowercase=lowercase, force=True)
    result = metric.corpus_score(hypotheses, references)
    return {"metric": "bleu", "tokenize": tokenize, "smooth_method": method, "smooth_value": value,
            "lowercase": lowercase, "score": result.score, "precisions": result.precisions, "bp": result.bp,
            "hyp_len": result.sys_len, "ref_len": result.ref_len, "printed": result.format(),
            "signature": signature(metric)}


def sentence_bleu(hypothesis, references, tokenize, method, value, lowercase):
    metric = BLEU(tokenize=tokenize, smooth_method=method, smooth_value=value, lowercase=lowercase, force=True,
                  effective_order=True)
    result = metric.sentence_score(hypothesis, references)
    return {"hypothesis": hypothesis, "references": references, "tokenize": tokenize, "smooth_method": method,
            "smooth_value": value, "lowercase": lowercase, "score": result.score, "printed": result.format(),
            "signature": signature(metric)}


def chrf(hypotheses, references, word_order, lowercase):
    metric = CHRF(word_order=word_order, lowercase=lowercase)
    result = metric.corpus_score(hypotheses, references)
    return {"metric": "chrf", "word_order": word_order, "lowercase": lowercase, "score": result.score,
            "printed": result.format(), "signature": signature(metric)}


def signature(metric):
    return metric.get_signature().format().split("|version:")[0]


def by_hand():
    """Corpora that a generator seldom makes."""
    ref = ["A cat sat on the mat.", "", "Is it 1,000.5 or 3.14?", "one"]
    yield ref, [ref]                                      # perfect, with a blank line
    yield [""] * 4, [ref]                                 # nothing said
    yield [""] * 4, [[""] * 4]                            # nothing to say
    yield ref, [[""] * 4]
    yield ["one"], [["one"]]                              # too short for any 4-gram
    yield ["one two three"], [["one two three"]]
    yield ["x y z w v"], [["a b c d e"]]                  # no match
    yield ["a b c d e"], [["e d c b a"]]                  # unigrams only
    yield ["the the the the the"], [["the cat"]]          # clipped counts
    yield ["a b c"], [["a b c d e f g h i j k l"]]        # short
    yield ["a b c d"], [["a b c d e"], ["a b c"]]         # two references equally far: the shorter counts
    yield ["a b c d"], [["a b c"], ["a b c d e"]]
    yield ["a a b b c d e f"], [["a b c d e f"], ["a a c d e f"], ["b b c d e f"]]
    yield ["cafe\u0301 au lait is good"], [["caf\u00e9 au lait is good"]]  # no normalisation
    yield ["a b c d"], [[""], ["a b c d e f"]]            # one of two references is blank
    yield ["a b c d", "x"], [["", ""], ["", ""]]
    yield ["", "a b c d e"], [["a", ""], ["", "a b c d e"]]
    yield ["  a b c d e "], [["a b c d e"]]               # spaces around
    yield ["abc"], [["abcdefghi"], ["abd"], ["ab"]]       # the best reference of chrF is not the closest
    yield ["ab ab", "ba"], [["ab", "ba"], ["ab ab ba", "ab"]]
    yield ["x"], [["x"]]                                  # one character
    yield ["ab"], [["ba"]]
    yield ["(hi) there, \"you\"!"], [["(hi there, you)!"]]  # marks that chrF++ takes off
    yield ["A Cat SAT on THE mat"], [["a cat sat on the mat"]]
    yield ["DİYARBAKIR VE İZMİR ÇOK GÜZEL"], [["di\u0307yarbakır ve i\u0307zmi\u0307r çok güzel"]]
    yield ["ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΟΦΟΣ ΑΝΗΡ ΗΛΘΕΝ"], [["οδυσσευς και σοφος ανηρ ηλθεν"]]
    yield ["&lt;b&gt; AT&amp;T &quot;x&quot; &amp;lt; y"], [["<b> AT&T \"x\" &lt; y"]]
    yield ["我喜欢吃苹果。", "他是Peter，对吗？"], [["我喜欢吃苹果。", "他是Peter，对吗？"]]
    yield ["我喜欢吃苹果。"], [["我很喜欢吃红苹果！"]]
    yield ["他在北京买了3.5公斤苹果(10元)。"], [["他在北京买了3.5公斤的苹果（10元）。"]]
    yield ["𠮷野家很好吃", "👍👍👨\u200d👩\u200d👧 好"], [["𠮷野家好吃", "👍👨\u200d👩\u200d👧 好"]]
    yield ["e\u0301te\u0301 école"], [["été e\u0301cole"]]
    yield ["a", "b", "c", "d"], [["a", "b", "c", "d"]]     # no bigram anywhere
    yield ["1,000.5 - 2.5-3 ... 5."], [["1,000.5-2.5 - 3 … 5 ."]]


def lowered(rng):
    """Texts for lower-casing: letters of all scripts old enough for any Unicode data, and sigmas anywhere."""
    old = unicodedata.ucd_3_2_0
    letters = [chr(c) for c in range(0x110000) if old.category(chr(c)) != "Cn"]
    letters = [c for c in letters if c.lower() != c or c.upper() != c]
    yield from (" ".join(letters[i:i + 100]) for i in range(0, len(letters), 100))
    around = "aZ1 .':-·’,_^\u00ad\u0301\u200d\u02b0ªⅧⓐ中ς\u0345🄰ﬀ\uff0e\u2024"
    yield from (a + "Σ" + b + c for a in around for b in around for c in ("", "A"))
    yield from ("".join(rng.choice("ΣΣσaB .'\u0301İıIß") for _ in range(rng.randint(1, 9))) for _ in range(200))


def main():
    rng = random.Random(20240607)
    corpora = list(by_hand())
    by_hand_count = len(corpora)
    while len(corpora) < 130:
        usual = CHINESE if rng.random() < 0.3 else WORDS
        odd = rng.choice([0.0, 0.1, 0.3, 0.8])
        longest = rng.choice([1, 3, 6, 12, 20])
        rate = rng.choice([0.02, 0.1, 0.3, 0.6, 1.0])
        lines = rng.choice([1, 1, 2, 3, 5])
        refs = [sentence(rng, longest, odd, usual) for _ in range(lines)]
        hyps = [disturb(rng, ref, rate, odd, usual) for ref in refs]
        if rng.random() < 0.1:
            hyps[-1] = sentence(rng, longest, odd, usual)
        streams = [refs]
        for _ in range(rng.choice([0, 0, 0, 1, 2])):
            streams.append([disturb(rng, ref, 0.4, odd, usual) for ref in refs])
        corpora.append((hyps, streams))

    cases = []
    for i, (hyps, streams) in enumerate(corpora):
        settings = [(tokenizer, "exp", None, False) for tokenizer in TOKENIZERS]
        if i < by_hand_count:
            settings += [("13a", *smoothing, False) for smoothing in SMOOTHINGS[1:]] + [("13a", "exp", None, True)]
        else:
            settings = rng.sample(settings, 2)
            settings.append((rng.choice(TOKENIZERS), *rng.choice(SMOOTHINGS), rng.random() < 0.5))
        scores = [bleu(hyps, streams, *setting) for setting in settings]
        scores += [chrf(hyps, streams, order, lower) for order in (0, 1, 2) for lower in (False, True)]
        cases.append({"hypotheses": hyps, "references": streams, "scores": scores})

    sentences = [sentence_bleu(hyps[0], [stream[0] for stream in streams], rng.choice(TOKENIZERS),
                               *rng.choice(SMOOTHINGS), rng.random() < 0.2) for hyps, streams in corpora * 2]

    lines = ODD + CHINESE + [sentence(rng, 10, 0.9) for _ in range(60)]
    lines += [sentence(rng, 10, 0.3, CHINESE) for _ in range(60)]
    lines += ["".join(rng.choice("a1.,-&;'\" \n/é。我\u3000") for _ in range(rng.randint(1, 14))) for _ in range(200)]
    lines += [space + "x" + space + "," + space for space in SPACES]
    # Every character that begins or ends a run of Chinese ones.
    tokenize = {name: _get_tokenizer(name)() for name in TOKENIZERS}
    chinese = [c not in range(0xD800, 0xE000) and len(tokenize["zh"]("a" + chr(c) + "b").split()) > 1
               for c in range(0x20000)]
    edges = [c for c in range(0x80, 0x20000) if chinese[c] != chinese[c - 1]]
    edges = sorted({c for edge in edges for c in (edge - 1, edge) if c not in range(0xD800, 0xE000)})
    lines += ["".join("a" + chr(c) + "b " for c in edges)]
    tokens = {name: [[line, tokenizer(line.rstrip()).split()] for line in lines] for name, tokenizer in tokenize.items()}

    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "scores.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    row = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write('{"sacrebleu":%s,\n"corpora":[\n' % row(sacrebleu.__version__))
        out.write(",\n".join(map(row, cases)))
        out.write('\n],\n"sentences":[\n')
        out.write(",\n".join(map(row, sentences)))
        out.write('\n],\n"tokens":{\n')
        out.write(",\n".join('"%s":[\n%s\n]' % (name, ",\n".join(map(row, pairs))) for name, pairs in tokens.items()))
        out.write('\n},\n"lower":[\n')
        out.write(",\n".join(row([text, text.lower()]) for text in lowered(rng)))
        out.write("\n]}\n")
    print(f"{path.name}: {len(cases)} corpora, {sum(len(case['scores']) for case in cases)} scores, "
          f"sacreBLEU {sacrebleu.__version__}")


if __name__ == "__main__":
    main()
