"""The comparison as Markdown."""

from training import OVERRIDE


def table(head, rows):
    align = ["---"] + ["---" if len(head) == 2 else "--:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, align, *rows])


def count(number):
    return f"{number:,.0f}"


def megabytes(number):
    return f"{number / 1e6:,.0f} MB"


def times(ours, theirs):
    return f"{ours / theirs:.2f}×"


def training_text(results):
    overridden = any(way.endswith(OVERRIDE) for one in results for way in one["pytorch"])
    head = ["model", "parameters", "Weft", "of the peak", "PyTorch eager", "compiled", "Weft / best"]
    if overridden:
        head += ["eager, AVX-512", "compiled, AVX-512", "Weft / best"]
    rows, memory, scaling = [], [], []
    for one in results:
        speed, pytorch, name = one["weft"]["target_tokens_per_second"], one["pytorch"], one["config"]
        row = [name, count(one["parameters"]), count(speed), f"{100 * one['weft']['share_of_peak']:.0f} %"]
        for suffix in ("", OVERRIDE) if overridden else ("",):
            both = [pytorch["eager" + suffix], pytorch["compiled" + suffix]]
            row += [count(both[0]), count(both[1]), times(speed, max(both))]
        rows.append(row)
        own, theirs = one["weft"]["peak_resident_bytes"], one["pytorch_resident_bytes"]
        memory.append([name, megabytes(own), megabytes(theirs["eager"]), megabytes(theirs["compiled"]),
                       times(own, min(theirs.values()))])
        if "weft_one_thread" in one:
            scaling.append([name, count(one["weft_one_thread"]), count(speed), times(speed, one["weft_one_thread"])])

    worst = max(one["loss_difference"] for one in results)
    text = ["## Training", "",
            "Target tokens a second in whole updates: forward, loss with label smoothing, backward, clipping by global "
            "norm, Adam. Both train the same weights on the same batches in float32, with dropout in the same places. "
            f"Proof: equal numbers of parameters, and losses without dropout that differ by {worst:.1e} of their "
            "value at most.", "",
            "PyTorch's model is written for speed: fused projections, scaled_dot_product_attention, masks and selected "
            "rows only where there is padding, fused Adam, foreach clipping, an allocator that keeps its memory, and "
            "the faster of two kinds of attention. \"Of the peak\" is Weft's share of what fused multiply-adds reach "
            "in registers.", "",
            table(head, rows), ""]
    if overridden:
        text += ["MKL, which multiplies matrices for PyTorch, has AVX-512 kernels but does not use them on this "
                 "maker's processors. In the columns \"AVX-512\" it was made to, by loading a library that answers its "
                 "question for the maker.", ""]
    text += ["### Memory", "",
             "Peak resident memory of the process. PyTorch's is of steady steps alone, in processes that compile "
             "nothing.", "", table(["model", "Weft", "PyTorch eager", "compiled", "Weft / lesser"], memory), ""]
    if scaling:
        text += ["### Threads", "", table(["model", "1 thread", "all threads", "ratio"], scaling), ""]
    return text


def decoding_text(results):
    rows = []
    for one in results:
        for row in one["results"]:
            search = "greedy" if row["beam"] == 1 else f"beam {row['beam']}"
            rows.append([one["config"], search, str(row["batch"]), count(row["weft"]), count(row["ctranslate2"]),
                         times(row["weft"], row["ctranslate2"]), row["backend"]])
    beams = ", ".join(f"{one['beam_equal']} of {one['sentences']} ({one['config']})" for one in results)
    return ["## Decoding", "",
            "Tokens a second, float32, from source to result. All results have the same length, so both take the same "
            "number of decoder steps. Proof: greedy search finds the same tokens for all sentences. With beam 4, "
            f"Weft's result is among CTranslate2's four for {beams}; the rest may differ, as CTranslate2 spreads the "
            "probability of tokens that are forbidden over the others and does not count the final `</s>`.", "",
            "CTranslate2 is measured with each of its backends that works here; the fastest is shown.", "",
            table(["model", "search", "batch", "Weft", "CTranslate2", "ratio", "backend"], rows), ""]


def report(about, training, decoding):
    """`about` holds the lists "machine" and "versions", of pairs, and "command" and "rounds"."""
    text = ["# Benchmarks", "",
            f"Made by `{about['command']}`: medians of {about['rounds']} rounds, in which the programs take turns.", "",
            table(["machine", ""], about["machine"]), "", table(["program", "version"], about["versions"]), ""]
    if training:
        text += training_text(training)
    if decoding:
        text += decoding_text(decoding)
    return "\n".join(text)
