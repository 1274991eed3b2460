"""A worker that trains the work of `weft bench step --export FOLDER` with PyTorch: forward, loss, backward, clipping by
global norm and Adam.

  check   parameters, and the loss of each batch without dropout, from the exported weights
  warm    trains until everything is compiled; without compiling, also picks the faster way to compute attention
  round   trains through all batches for half a second at least; the seconds of one step
  memory  peak resident bytes since it was warm
"""

import argparse
import json
import pathlib
import time
from typing import NamedTuple

import torch
import torch._inductor.config
from pytorch_model import Transformer
from safetensors.torch import load_file
from torch.nn.attention import SDPBackend, sdpa_kernel
from worker import peak_resident_bytes, reset_peak, serve

ROUND_SECONDS = 0.5


class Batch(NamedTuple):
    source: torch.Tensor  # [sentences, source positions]
    source_mask: torch.Tensor | None  # to add to scores, [sentences, 1, 1, source positions]; none without padding
    decoder_input: torch.Tensor  # [sentences, target positions]
    target: torch.Tensor  # [target tokens]
    rows: torch.Tensor | None  # where in sentences * target positions these are; none without padding


def padded(sentences):
    """Ids [sentences, positions], and where there is a token."""
    longest = max(map(len, sentences))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in sentences])
    return ids, torch.arange(longest) < torch.tensor([len(s) for s in sentences])[:, None]


def make_batch(work):
    source, there = padded(work["source"])
    decoder_input, _ = padded(work["decoder_input"])
    target, used = padded(work["target"])
    mask = None if there.all() else torch.zeros(there.shape).masked_fill(~there, float("-inf"))[:, None, None]
    rows = None if used.all() else used.flatten().nonzero().flatten()
    return Batch(source, mask, decoder_input, target[used], rows)


class Training:
    def __init__(self, folder, compile_it):
        work = json.loads((folder / "work.json").read_text(encoding="utf-8"))
        config = work["config"]
        self.batches = [make_batch(batch) for batch in work["batches"]]
        longest = max(max(b.source.shape[1], b.decoder_input.shape[1]) for b in self.batches)
        self.model = Transformer(config["model"], work["source_vocabulary"], work["target_vocabulary"], longest)
        self.model.load(load_file(folder / "model.safetensors"))
        self.label_smoothing = config["training"]["label_smoothing"]
        o = config["optimizer"]
        self.clip_norm = o["clip_norm"]
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=o["learning_rate"], eps=o["epsilon"],
                                          betas=(o["beta1"], o["beta2"]), fused=True)
        self.backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]  # one, once warm
        self.loss = self.model
        if compile_it:
            # Dropout by the generator's own bits, faster than those that compiled code computes for itself.
            torch._inductor.config.fallback_random = True
            one_shape = len({(b.source.shape, b.decoder_input.shape) for b in self.batches}) == 1
            self.loss = torch.compile(self.model, dynamic=not one_shape)  # else minutes, and no faster
            del self.backends[1:]

    def check(self):
        self.model.eval()
        with torch.no_grad():
            losses = [self.model(batch, self.label_smoothing).item() for batch in self.batches]
        return {"parameters": sum(p.numel() for p in self.model.parameters()), "losses": losses}

    def step(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(batch, self.label_smoothing).backward()
        if self.clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm, foreach=True)
        self.optimizer.step()

    def seconds_a_step(self, least):
        """Whole passes through the batches, for as many seconds at least."""
        self.model.train()
        steps, begin = 0, time.perf_counter()
        with sdpa_kernel(self.backends[0]):
            while steps == 0 or time.perf_counter() - begin < least:
                for batch in self.batches:
                    self.step(batch)
                steps += len(self.batches)
        return (time.perf_counter() - begin) / steps

    def warm(self):
        def seconds(backend):
            self.backends = [backend]
            self.seconds_a_step(0)
            return self.seconds_a_step(ROUND_SECONDS)
        self.backends = [min(self.backends, key=seconds)]
        self.seconds_a_step(0)
        reset_peak()
        return {"attention": self.backends[0].name}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    training = Training(options.folder, options.compile)
    serve({"check": training.check, "warm": training.warm,
           "round": lambda: {"seconds": training.seconds_a_step(ROUND_SECONDS)},
           "memory": lambda: {"peak_resident_bytes": peak_resident_bytes()}})


if __name__ == "__main__":
    main()
