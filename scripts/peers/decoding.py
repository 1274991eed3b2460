"""Weft's decoding speed against CTranslate2's, for one configuration."""

import pathlib
import statistics
import sys

from machine import cpu_has, environment
from worker import PeersError, Worker

WEFT_ROUNDS = 9  # of one call, which are short


def backends():
    """The ways in which CTranslate2 can compute, as variables of its environment."""
    ways = {"default": {}, "MKL": {"CT2_USE_MKL": "1", "CT2_PACKED_GEMM": "0"},
            "MKL, packed": {"CT2_USE_MKL": "1", "CT2_PACKED_GEMM": "1"}}
    if cpu_has("avx512f"):
        ways["AVX-512"] = {"CT2_FORCE_CPU_ISA": "AVX512"}
    return ways


def worker(name, folder, threads, variables):
    program = pathlib.Path(__file__).with_name("ctranslate2_worker.py")
    return Worker(f"CTranslate2 ({name})", [sys.executable, program, folder, "--threads", str(threads)],
                  environment(threads, **variables))


def speeds_of(results):
    return {(one["beam"], one["batch"]): one["tokens_per_second"] for one in results}


def compare(config, weft, folder, options, say):
    """Measures in `folder`, which is made. Throws PeersError if the work is not the same or a program fails."""
    name = config.stem
    weft.export("decode", config, folder)
    own, theirs, first = [], {}, {}
    for backend, variables in backends().items():
        say(f"{name}: CTranslate2 {backend}: check, first round")
        with worker(backend, folder, options.threads, variables) as one:
            check = one.ask("check")
            if check["greedy_equal"] != check["sentences"]:
                raise PeersError(f"{name}: CTranslate2 ({backend}) finds Weft's tokens for {check['greedy_equal']} of "
                                 f"{check['sentences']} sentences only")
            first[backend] = speeds_of(one.ask("round")["results"])
    settings = sorted(next(iter(first.values())))
    for backend in sorted({max(first, key=lambda backend: first[backend][setting]) for setting in settings}):
        theirs[backend] = []
        with worker(backend, folder, options.threads, backends()[backend]) as one:
            one.ask("round")
            for number in range(options.rounds):
                own.append(speeds_of(weft.bench("decode", config, WEFT_ROUNDS)["results"]))
                theirs[backend].append(speeds_of(one.ask("round")["results"]))
                say(f"{name}: decoding, round {number + 1} of {options.rounds}: Weft "
                    f"{[round(own[-1][setting]) for setting in settings]} tokens/s, CTranslate2 {backend} "
                    f"{[round(theirs[backend][-1][setting]) for setting in settings]}")

    rows = []
    for setting in settings:
        medians = {backend: statistics.median(one[setting] for one in rounds) for backend, rounds in theirs.items()}
        backend = max(medians, key=medians.get)
        rows.append({"beam": setting[0], "batch": setting[1], "ctranslate2": medians[backend], "backend": backend,
                     "weft": statistics.median(one[setting] for one in own),
                     "rounds": {"weft": [one[setting] for one in own],
                                "ctranslate2": {b: [one[setting] for one in rounds] for b, rounds in theirs.items()}}})
    return {"config": name, **check, "results": rows}
