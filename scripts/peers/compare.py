"""Compares Weft with PyTorch (training) and CTranslate2 (decoding) on this machine, at equal work, and writes a report.

Run by scripts/bench_peers, which installs both.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import shlex
import sys
import tempfile

import decoding
import training
from machine import describe
from report import report
from weft import Weft
from worker import PeersError

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ["toy", "tiny", "small", "base"]


def say(text):
    print(f"bench_peers: {text}", file=sys.stderr, flush=True)


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found {text}")
    return int(text)


def config_path(name):
    path = pathlib.Path(name) if name.endswith(".json") else ROOT / "configs" / "bench" / f"{name}.json"
    if not path.is_file():
        raise PeersError(f"no configuration {path}")
    return path


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench_peers", description=__doc__.split("\n")[0],
                                     epilog="For how the peers are installed see the top of scripts/bench_peers.")
    parser.add_argument("--configs", nargs="+", default=CONFIGS, metavar="NAME",
                        help="of configs/bench, or paths of .json files; all of configs/bench unless given")
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="5 unless given")
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="of every program; one on each core unless given")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--train-only", action="store_true", help="without CTranslate2")
    which.add_argument("--decode-only", action="store_true", help="without PyTorch")
    parser.add_argument("--scaling", action="store_true", help="also train with Weft and one thread")
    parser.add_argument("--output", type=pathlib.Path, metavar="FILE", help="for the report; else it is printed")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="for all numbers")
    parser.add_argument("--weft", type=pathlib.Path, default=ROOT / "build" / "release" / "weft", metavar="PROGRAM",
                        help="build/release/weft unless given")
    return parser.parse_args()


def run(options):
    configs = [config_path(name) for name in options.configs]
    weft = Weft(options.weft, options.threads)
    versions = [("Weft", weft.run("--version").strip().removeprefix("weft "))]
    trained, decoded = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for config in configs:
            folder = pathlib.Path(scratch) / config.stem
            if not options.decode_only:
                trained.append(training.compare(config, weft, folder, options, say))
            if not options.train_only:
                decoded.append(decoding.compare(config, weft, folder, options, say))
    packages = {"PyTorch": "torch"} if trained else {}
    packages |= {"CTranslate2": "ctranslate2"} if decoded else {}
    versions += [(name, importlib.metadata.version(package)) for name, package in packages.items()]

    machine = [*describe(), ("threads", str(options.threads))]
    if trained:
        peak = max(one["weft"]["peak_gflops"] for one in trained)
        machine.append(("peak of fused multiply-adds", f"{peak:.0f} GFLOP/s"))
    about = {"machine": machine, "versions": versions, "rounds": options.rounds,
             "command": shlex.join(["scripts/bench_peers", *sys.argv[1:]])}
    text = report(about, trained, decoded)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text)
    if options.json:
        numbers = {**about, "training": trained, "decoding": decoded}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


def main():
    try:
        run(parse())
    except (PeersError, OSError) as error:
        sys.exit(f"bench_peers: {error}")
    except KeyboardInterrupt:
        sys.exit("bench_peers: interrupted")


if __name__ == "__main__":
    main()
