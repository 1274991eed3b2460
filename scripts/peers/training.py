"""Weft's training speed and memory against PyTorch's, for one configuration."""

import json
import pathlib
import statistics
import sys

from machine import environment, mkl_override
from worker import PeersError, Worker

LOSS_TOLERANCE = 1e-4  # relative
# glibc would give large blocks back to the system after each use, and PyTorch takes them anew in every step.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**33), "MALLOC_TOP_PAD_": str(2**26)}
COMPILED = {"eager": False, "compiled": True}
OVERRIDE = " with MKL's AVX-512"


def worker(name, folder, threads, **more):
    program = pathlib.Path(__file__).with_name("pytorch_worker.py")
    options = ["--compile"] if COMPILED[name.removesuffix(OVERRIDE)] else []
    return Worker(f"PyTorch ({name})", [sys.executable, program, folder, "--threads", str(threads), *options],
                  environment(threads, **more))


def prove_equal_work(name, work, answer):
    """Returns the largest relative difference of a batch's loss. Throws PeersError if the work is not the same."""
    if answer["parameters"] != work["parameters"]:
        raise PeersError(f"{name}: PyTorch's model has {answer['parameters']} parameters, Weft's {work['parameters']}")
    worst = max(abs(theirs / ours - 1) for theirs, ours in zip(answer["losses"], work["losses"], strict=True))
    if not worst <= LOSS_TOLERANCE:
        raise PeersError(f"{name}: PyTorch's loss differs from Weft's by {worst:.1e}; {LOSS_TOLERANCE} is allowed")
    return worst


def compare(config, weft, folder, options, say):
    """Measures in `folder`, which is made. Throws PeersError if the work is not the same or a program fails."""
    name = config.stem
    weft.export("step", config, folder)
    work = json.loads((folder / "work.json").read_text(encoding="utf-8"))
    result = {"config": name, "parameters": work["parameters"], "batches": len(work["batches"])}
    tokens = sum(len(target) for batch in work["batches"] for target in batch["target"]) / len(work["batches"])

    ways = {way: MALLOC for way in COMPILED}
    override = mkl_override(folder)
    if override:
        ways |= {way + OVERRIDE: {**MALLOC, "LD_PRELOAD": str(override)} for way in COMPILED}
    own = []
    theirs = {way: [] for way in ways}
    for way, variables in ways.items():  # one after the other, as idle processes that hold much memory slow the others
        say(f"{name}: PyTorch {way}: check, compile, warm up")
        with worker(way, folder, options.threads, **variables) as one:
            result["loss_difference"] = prove_equal_work(name, work, one.ask("check"))
            one.ask("warm")
            for number in range(options.rounds):
                own.append(weft.bench("step", config, 1))
                theirs[way].append(tokens / one.ask("round")["seconds"])
                say(f"{name}: training, round {number + 1} of {options.rounds}: Weft "
                    f"{own[-1]['target_tokens_per_second']:.0f} tokens/s, PyTorch {way} {theirs[way][-1]:.0f}")

    result["weft"] = {key: statistics.median(one[key] for one in own)
                      for key in ("target_tokens_per_second", "gflop_per_step", "share_of_peak", "peak_gflops",
                                  "peak_resident_bytes", "peak_bytes")}
    result["pytorch"] = {way: statistics.median(speeds) for way, speeds in theirs.items()}
    result["rounds"] = {"weft": [one["target_tokens_per_second"] for one in own], "pytorch": theirs}
    result["pytorch_resident_bytes"] = {}
    for way in COMPILED:  # in fresh processes that compile nothing, and with memory given back
        with worker(way, folder, options.threads) as one:
            for what in ("warm", "round"):
                one.ask(what)
            result["pytorch_resident_bytes"][way] = one.ask("memory")["peak_resident_bytes"]
    if options.scaling:
        single = [weft.bench("step", config, 1, threads=1) for _ in range(options.rounds)]
        result["weft_one_thread"] = statistics.median(one["target_tokens_per_second"] for one in single)
    return result
