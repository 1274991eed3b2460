#!/usr/bin/env python3
"""Makes tests/fixtures/parity_<name>.safetensors: what PyTorch computes for two small models.

A fixture holds a model's weights under Weft's names, a packed batch, and for these the logits, the loss, the
gradient of every weight, and the losses after each of ten updates by torch.optim.Adam. All is computed in
double from weights that float32 holds exactly, then stored in float32. Read by parity_test.cpp.

The model is written out here in rectangular, padded and masked batches, so it shares no idea with Weft's
packed ones, and is itself checked against torch.nn.Transformer with the same weights.

Needs: pip install torch numpy safetensors
"""

import math
import pathlib
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

PAD, BEGIN, END = 0, 1, 2
SOURCE_LENGTHS = [5, 3, 7]
TARGET_LENGTHS = [4, 6, 2]  # of the decoder's input, <s> included
UPDATES = 10
LABEL_SMOOTHING = 0.1

MODELS = {
    "post_norm": dict(d_model=16, heads=4, d_feed_forward=32, encoder_layers=2, decoder_layers=2, seed=1,
                      activation="relu", norm_first=False, tied=False, source_vocabulary=11,
                      target_vocabulary=13),
    "pre_norm": dict(d_model=10, heads=2, d_feed_forward=14, encoder_layers=2, decoder_layers=2, seed=2,
                     activation="gelu", norm_first=True, tied=True, source_vocabulary=12,
                     target_vocabulary=12),
}

ATTENTIONS = {"encoder": ["self_attention"], "decoder": ["self_attention", "cross_attention"]}


def make_weights(model):
    """Random weights by Weft's names: biases and norms too, so that none can be left out unnoticed."""
    torch.manual_seed(model["seed"])
    d, weights = model["d_model"], {}

    def matrix(name, rows, columns):
        weights[name] = torch.randn(rows, columns) / math.sqrt(columns)

    def linear(name, rows, columns):
        matrix(f"{name}.weight", rows, columns)
        weights[f"{name}.bias"] = 0.2 * torch.randn(rows)

    def norm(name):
        weights[f"{name}.weight"] = 1 + 0.2 * torch.randn(d)
        weights[f"{name}.bias"] = 0.2 * torch.randn(d)

    if not model["tied"]:
        matrix("source_embedding.weight", model["source_vocabulary"], d)
    matrix("target_embedding.weight", model["target_vocabulary"], d)
    for side, attentions in ATTENTIONS.items():
        for i in range(model[f"{side}_layers"]):
            layer = f"{side}.layers.{i}"
            for attention in attentions:
                for part in ("query", "key", "value", "output"):
                    linear(f"{layer}.{attention}.{part}", d, d)
                norm(f"{layer}.{attention}_norm")
            linear(f"{layer}.feed_forward.inner", model["d_feed_forward"], d)
            linear(f"{layer}.feed_forward.output", d, model["d_feed_forward"])
            norm(f"{layer}.feed_forward_norm")
        if model["norm_first"]:
            norm(f"{side}.norm")
    if not model["tied"]:
        matrix("output.weight", model["target_vocabulary"], d)
    weights["output.bias"] = 0.2 * torch.randn(model["target_vocabulary"])
    return {name: weight.double().requires_grad_() for name, weight in weights.items()}


def make_batch(model):
    """Padded rectangles of token ids: source, decoder input, target."""
    source = torch.full((len(SOURCE_LENGTHS), max(SOURCE_LENGTHS)), PAD)
    decoder_input = torch.full((len(TARGET_LENGTHS), max(TARGET_LENGTHS)), PAD)
    target = decoder_input.clone()
    for i, length in enumerate(SOURCE_LENGTHS):
        source[i, :length] = torch.randint(3, model["source_vocabulary"], (length,))
    for i, length in enumerate(TARGET_LENGTHS):
        words = torch.randint(3, model["target_vocabulary"], (length - 1,))
        decoder_input[i, :length] = torch.cat([torch.tensor([BEGIN]), words])
        target[i, :length] = torch.cat([words, torch.tensor([END])])
    return source, decoder_input, target


def padding(lengths):
    """[sentences, positions], true where there is no token."""
    return torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]


SOURCE_PADDING, TARGET_PADDING = padding(SOURCE_LENGTHS), padding(TARGET_LENGTHS)
FUTURE = torch.ones(max(TARGET_LENGTHS), max(TARGET_LENGTHS)).triu(1).bool()


def positions(length, d_model):
    table = torch.zeros(length, d_model, dtype=torch.double)
    for p in range(length):
        for i in range(0, d_model, 2):
            angle = p / 10000 ** (i / d_model)
            table[p, i] = math.sin(angle)
            if i + 1 < d_model:
                table[p, i + 1] = math.cos(angle)
    return table


def embed(table, ids):
    d_model = table.shape[1]
    return table[ids] * math.sqrt(d_model) + positions(ids.shape[1], d_model)


def reference(model, weights, source, decoder_input):
    """Logits [sentences, positions, vocabulary], with every step written out."""
    d, heads = model["d_model"], model["heads"]
    activation = {"relu": F.relu, "gelu": F.gelu}[model["activation"]]

    def linear(name, x):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name, x):
        centred = x - x.mean(-1, keepdim=True)
        deviation = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def attention(name, x, memory, mask):
        def split(y):  # [sentences, heads, positions, d / heads]
            return y.unflatten(-1, (heads, d // heads)).transpose(1, 2)
        query = split(linear(f"{name}.query", x))
        key, value = split(linear(f"{name}.key", memory)), split(linear(f"{name}.value", memory))
        scores = (query @ key.transpose(-1, -2) / math.sqrt(d // heads)).masked_fill(mask, -math.inf)
        return linear(f"{name}.output", (scores.softmax(-1) @ value).transpose(1, 2).flatten(2))

    def sublayer(name, x, function):
        if model["norm_first"]:
            return x + function(norm(f"{name}_norm", x))
        return norm(f"{name}_norm", x + function(x))

    def feed_forward(layer, x):
        name = f"{layer}.feed_forward"
        return sublayer(name, x, lambda y: linear(f"{name}.output", activation(linear(f"{name}.inner", y))))

    source_mask, target_mask = SOURCE_PADDING[:, None, None], TARGET_PADDING[:, None, None] | FUTURE
    target_table = weights["target_embedding.weight"]
    memory = embed(target_table if model["tied"] else weights["source_embedding.weight"], source)
    for i in range(model["encoder_layers"]):
        layer = f"encoder.layers.{i}"
        memory = sublayer(f"{layer}.self_attention", memory,
                          lambda y: attention(f"{layer}.self_attention", y, y, source_mask))
        memory = feed_forward(layer, memory)
    if model["norm_first"]:
        memory = norm("encoder.norm", memory)
    x = embed(target_table, decoder_input)
    for i in range(model["decoder_layers"]):
        layer = f"decoder.layers.{i}"
        x = sublayer(f"{layer}.self_attention", x,
                     lambda y: attention(f"{layer}.self_attention", y, y, target_mask))
        x = sublayer(f"{layer}.cross_attention", x,
                     lambda y: attention(f"{layer}.cross_attention", y, memory, source_mask))
        x = feed_forward(layer, x)
    if model["norm_first"]:
        x = norm("decoder.norm", x)
    return x @ (target_table if model["tied"] else weights["output.weight"]).T + weights["output.bias"]


def torch_transformer(model, weights, source, decoder_input):
    """The same logits from torch.nn.Transformer."""
    transformer = torch.nn.Transformer(
        d_model=model["d_model"], nhead=model["heads"], num_encoder_layers=model["encoder_layers"],
        num_decoder_layers=model["decoder_layers"], dim_feedforward=model["d_feed_forward"], dropout=0.0,
        activation=model["activation"], norm_first=model["norm_first"], batch_first=True).double()
    if not model["norm_first"]:  # torch.nn.Transformer always has final norms, the paper's has not
        transformer.encoder.norm = transformer.decoder.norm = None
    attentions = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}
    members = {"linear1": "feed_forward.inner", "linear2": "feed_forward.output"}
    state = {}
    for name in transformer.state_dict():
        parts = name.split(".")  # such as encoder.layers.0.self_attn.in_proj_weight
        prefix = ".".join(parts[:3])
        if parts[1] == "norm":
            state[name] = weights[name]
        elif parts[3] in attentions:
            ours = f"{prefix}.{attentions[parts[3]]}"
            kind = "weight" if name.endswith("weight") else "bias"
            inputs = [weights[f"{ours}.{part}.{kind}"] for part in ("query", "key", "value")]
            state[name] = weights[f"{ours}.output.{kind}"] if "out_proj" in name else torch.cat(inputs)
        elif parts[3] in members:
            state[name] = weights[f"{prefix}.{members[parts[3]]}.{parts[4]}"]
        else:
            norms = [*ATTENTIONS[parts[0]], "feed_forward"]  # norm1, norm2, …
            state[name] = weights[f"{prefix}.{norms[int(parts[3][-1]) - 1]}_norm.{parts[4]}"]
    transformer.load_state_dict(state)
    target_table = weights["target_embedding.weight"]
    source_table = target_table if model["tied"] else weights["source_embedding.weight"]
    states = transformer(embed(source_table, source), embed(target_table, decoder_input), tgt_mask=FUTURE,
                         src_key_padding_mask=SOURCE_PADDING, tgt_key_padding_mask=TARGET_PADDING,
                         memory_key_padding_mask=SOURCE_PADDING)
    output = target_table if model["tied"] else weights["output.weight"]
    return F.linear(states, output, weights["output.bias"])


def loss_of(logits, target):
    return F.cross_entropy(logits[~TARGET_PADDING], target[~TARGET_PADDING], label_smoothing=LABEL_SMOOTHING)


def make_fixture(model):
    weights = make_weights(model)
    source, decoder_input, target = make_batch(model)
    fixture = {name: weight.detach().clone() for name, weight in weights.items()}
    fixture["source"], fixture["source_lengths"] = source[~SOURCE_PADDING], torch.tensor(SOURCE_LENGTHS)
    fixture["decoder_input"], fixture["target"] = decoder_input[~TARGET_PADDING], target[~TARGET_PADDING]
    fixture["target_lengths"] = torch.tensor(TARGET_LENGTHS)

    logits = reference(model, weights, source, decoder_input)
    theirs = torch_transformer(model, weights, source, decoder_input)
    torch.testing.assert_close(logits[~TARGET_PADDING], theirs[~TARGET_PADDING], rtol=1e-10, atol=1e-10)
    loss = loss_of(logits, target)
    loss.backward()
    fixture["logits"], fixture["loss"] = logits[~TARGET_PADDING].detach(), loss.detach().reshape(1)
    for name, weight in weights.items():
        fixture[f"gradient.{name}"] = weight.grad.clone()

    adam = torch.optim.Adam(weights.values(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for _ in range(UPDATES):
        adam.zero_grad()
        loss_of(reference(model, weights, source, decoder_input), target).backward()
        adam.step()
        losses.append(loss_of(reference(model, weights, source, decoder_input), target).item())
    fixture["adam_losses"] = torch.tensor(losses, dtype=torch.double)
    return {name: value.float().contiguous() for name, value in fixture.items()}


def main():
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    folder = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
    for name, model in MODELS.items():
        fixture = make_fixture(model)
        path = folder / f"parity_{name}.safetensors"
        save_file(fixture, path)
        path.chmod(0o644)
        print(f"{path}: loss {fixture['loss'].item():.6f}, then {fixture['adam_losses'].tolist()}")


if __name__ == "__main__":
    main()
