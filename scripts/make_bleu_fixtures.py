#!/usr/bin/env python3
"""Writes tests/fixtures/bleu.json: made-up corpora with sacreBLEU's scores, and lines with its tokens.

Needs sacrebleu (pip install sacrebleu). The same version of sacrebleu gives the same file.
Usage: scripts/make_bleu_fixtures.py
"""

import json
import pathlib
import random

import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import _get_tokenizer

WORDS = """the a cat dog sat ran on under mat tree red small old and or but not is was has seen very quickly
house river night day green two three people of in to we they walk sing bread milk""".split()
ODD = """Mr. U.S. don't l'eau "quoted" (round) [square] {curly} well-known 1,000.5 3.14 .5 5. 10-20 7-day -3 2,5
1,,2 ... .,. ,., a.b x,y 9.9.9 &amp; &quot;hi&quot; &lt;b&gt; &amp;amp; &apos; AT&T <skipped> <unk> a/b
50% $5.00 #tag e@mail.x C++ x=y ~home under_score back\\slash caret^ pipe| tick` semi; colon: what?
stop! -- - . , ' " café naïve Straße ΑΘΗΝΑ привет мир. 你好 世界。 東京、 ３,５ “curly” «guillemets» … – — 🙂
👨\u200d👩\u200d👧 é１ ١٢٣. ½, m² co\u00adop zero\u200bwidth""".split()
SPACES = ["\t", "\u00a0", "\u3000", "\u2009", "\u2028", "\x85", "\x1f", "\u202f", "\x0b", "\n", "-\n", "  "]
SMOOTHINGS = [("exp", None)] * 3 + [("none", None), ("floor", None), ("floor", 0.01), ("floor", 0.0),
                                    ("add-k", None), ("add-k", 0.5)]


def sentence(rng, longest, odd):
    words = [rng.choice(ODD if rng.random() < odd else WORDS) for _ in range(rng.randint(0, longest))]
    if words and rng.random() < 0.7:
        words[-1] += rng.choice([".", "!", "?", " .", "...", ",", "\u3002"])
    out = ""
    for word in words:
        out += word + (rng.choice(SPACES) if rng.random() < odd / 4 else " ")
    return out if rng.random() < 0.2 else out.strip()


def disturb(rng, text, rate, odd):
    out = []
    for word in text.split(" "):
        r = rng.random()
        if r < rate / 3:
            continue
        if r < 2 * rate / 3:
            word = rng.choice(ODD if rng.random() < odd else WORDS)
        out.append(word)
        if r > 1 - rate / 3:
            out.append(rng.choice(WORDS))
    if len(out) > 1 and rng.random() < rate:
        i = rng.randrange(len(out) - 1)
        out[i], out[i + 1] = out[i + 1], out[i]
    return " ".join(out)


def score(hypotheses, references, tokenize, method, value):
    bleu = BLEU(tokenize=tokenize, smooth_method=method, smooth_value=value, force=True)
    result = bleu.corpus_score(hypotheses, references)
    return {
        "tokenize": tokenize, "smooth_method": method, "smooth_value": value,
        "hypotheses": hypotheses, "references": references,
        "score": result.score, "precisions": result.precisions, "bp": result.bp,
        "hyp_len": result.sys_len, "ref_len": result.ref_len,
        "printed": result.format(), "signature": bleu.get_signature().format(),
    }


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


def main():
    rng = random.Random(20240607)
    corpora = list(by_hand())
    while len(corpora) < 110:
        odd = rng.choice([0.0, 0.1, 0.3, 0.8])
        longest = rng.choice([1, 3, 6, 12, 20])
        rate = rng.choice([0.02, 0.1, 0.3, 0.6, 1.0])
        lines = rng.choice([1, 1, 2, 3, 5])
        refs = [sentence(rng, longest, odd) for _ in range(lines)]
        hyps = [disturb(rng, ref, rate, odd) for ref in refs]
        if rng.random() < 0.1:
            hyps[-1] = sentence(rng, longest, odd)
        streams = [refs]
        for _ in range(rng.choice([0, 0, 0, 1, 2])):
            streams.append([disturb(rng, ref, 0.4, odd) for ref in refs])
        corpora.append((hyps, streams))

    cases = []
    for i, (hyps, streams) in enumerate(corpora):
        method, value = ("exp", None) if i < 3 else rng.choice(SMOOTHINGS)
        cases.append(score(hyps, streams, "13a", "exp", None))
        cases.append(score(hyps, streams, rng.choice(["13a", "none"]), method, value))

    lines = ODD + [sentence(rng, 10, 0.9) for _ in range(60)]
    lines += ["".join(rng.choice("a1.,-&;'\" \n/é。") for _ in range(rng.randint(1, 14))) for _ in range(200)]
    lines += [space + "x" + space + "," + space for space in SPACES]
    tokenizer = _get_tokenizer("13a")()
    tokens = [[line, tokenizer(line.rstrip()).split()] for line in lines]

    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "bleu.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    row = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write('{"sacrebleu":%s,\n"cases":[\n' % row(sacrebleu.__version__))
        out.write(",\n".join(map(row, cases)))
        out.write('\n],\n"tokens":[\n')
        out.write(",\n".join(map(row, tokens)))
        out.write("\n]}\n")
    print(f"{path.name}: {len(cases)} cases, {len(tokens)} lines, sacreBLEU {sacrebleu.__version__}")


if __name__ == "__main__":
    main()
