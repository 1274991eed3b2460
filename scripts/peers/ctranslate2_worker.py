"""A worker that translates the work of `weft bench decode --export FOLDER` with CTranslate2, in float32.

  check  for how many sentences greedy search finds Weft's tokens, and beam search has Weft's result among its own
  round  tokens a second of greedy search and beam search, a sentence at a time and all together

Weft's results have `length` tokens and </s>, one decoder step for each. CTranslate2 takes no step for a </s> that the
longest length forces, so here it writes one token more.
"""

import argparse
import json
import pathlib
import tempfile
import time

import ctranslate2
from ctranslate2_model import number, token, write_model
from safetensors.numpy import load_file
from worker import serve

SINGLE_SENTENCES = 4  # searched one after the other, as Weft does
ROUND_SECONDS = 0.5


class Translation:
    def __init__(self, folder, threads):
        work = json.loads((folder / "decode.json").read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as model:
            write_model(work["config"]["model"], work["source_vocabulary"], work["target_vocabulary"],
                        load_file(folder / "model.safetensors"), model)
            self.translator = ctranslate2.Translator(model, device="cpu", compute_type="float32", inter_threads=1,
                                                     intra_threads=threads)
        self.sources = [[token(i) for i in source] for source in work["sources"]]
        self.steps, self.outputs = work["length"] + 1, work["outputs"]

    def translate(self, sources, beam, steps, hypotheses=1):
        return self.translator.translate_batch(
            sources, beam_size=beam, num_hypotheses=hypotheses, length_penalty=0, min_decoding_length=steps,
            max_decoding_length=steps, max_input_length=0, disable_unk=True, suppress_sequences=[[token(1)]])

    def check(self):
        def equal(beam):
            results = self.translate(self.sources, beam, self.steps - 1, beam)
            return sum(wanted in [[number(text) for text in tokens] for tokens in result.hypotheses]
                       for wanted, result in zip(self.outputs[str(beam)], results, strict=True))
        return {"sentences": len(self.sources), "greedy_equal": equal(1), "beam_equal": equal(4)}

    def tokens_per_second(self, beam, batch):
        count = SINGLE_SENTENCES if batch == 1 else len(self.sources)
        tokens, begin = 0, time.perf_counter()
        while tokens == 0 or time.perf_counter() - begin < ROUND_SECONDS:
            for first in range(0, count, batch):
                for result in self.translate(self.sources[first:min(first + batch, count)], beam, self.steps):
                    tokens += len(result.hypotheses[0])
        return tokens / (time.perf_counter() - begin)

    def round(self):
        return {"results": [{"beam": beam, "batch": batch, "tokens_per_second": self.tokens_per_second(beam, batch)}
                            for batch in (1, len(self.sources)) for beam in (1, 4)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    translation = Translation(options.folder, options.threads)
    serve({"check": translation.check, "round": translation.round})


if __name__ == "__main__":
    main()
