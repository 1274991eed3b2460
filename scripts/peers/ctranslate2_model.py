"""The Transformer of an export of `weft bench decode`, written to a folder as CTranslate2 reads it, in float32."""

import numpy as np
from ctranslate2.specs import TransformerSpec, common_spec

SPECIALS = ["<unk>", "<s>", "</s>"]  # ids 0, 1 and 2
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}


def token(number):
    return SPECIALS[number] if number < len(SPECIALS) else f"w{number}"


def number(text):
    return SPECIALS.index(text) if text in SPECIALS else int(text[1:])


def positions(length, d_model):
    """Sinusoidal positions [length, d_model]: sines in even columns, cosines in odd ones."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, -1)[:, :d_model].astype(np.float32)


def write_model(options, source_vocabulary, target_vocabulary, weights, folder):
    """`options` is the config's section "model", `weights` are by Weft's names; all of them must have their place."""
    left = dict(weights)

    def linear(spec, prefix, *parts):
        names = [f"{prefix}.{part}" for part in parts] if parts else [prefix]
        spec.weight = np.concatenate([left.pop(f"{name}.weight") for name in names])
        spec.bias = np.concatenate([left.pop(f"{name}.bias") for name in names])

    def norm(spec, name):
        spec.gamma, spec.beta = left.pop(f"{name}.weight"), left.pop(f"{name}.bias")

    spec = TransformerSpec.from_config(
        (options["encoder_layers"], options["decoder_layers"]), options["heads"], pre_norm=options["norm_first"],
        activation=common_spec.Activation[ACTIVATIONS[options["activation"]]])
    table = positions(options["max_length"], options["d_model"])
    for name, side in ("encoder", spec.encoder), ("decoder", spec.decoder):
        side.scale_embeddings = options["scale_embeddings"]
        side.position_encodings.encodings = table
        if options["norm_first"]:
            norm(side.layer_norm, f"{name}.norm")
        for i, layer in enumerate(side.layer):
            prefix = f"{name}.layers.{i}"
            linear(layer.self_attention.linear[0], f"{prefix}.self_attention", "query", "key", "value")
            linear(layer.self_attention.linear[1], f"{prefix}.self_attention.output")
            norm(layer.self_attention.layer_norm, f"{prefix}.self_attention_norm")
            if name == "decoder":
                linear(layer.attention.linear[0], f"{prefix}.cross_attention.query")
                linear(layer.attention.linear[1], f"{prefix}.cross_attention", "key", "value")
                linear(layer.attention.linear[2], f"{prefix}.cross_attention.output")
                norm(layer.attention.layer_norm, f"{prefix}.cross_attention_norm")
            linear(layer.ffn.linear_0, f"{prefix}.feed_forward.inner")
            linear(layer.ffn.linear_1, f"{prefix}.feed_forward.output")
            norm(layer.ffn.layer_norm, f"{prefix}.feed_forward_norm")
    tied = options["tied_embeddings"]
    target_embedding = left.pop("target_embedding.weight")
    spec.decoder.embeddings.weight = target_embedding
    spec.encoder.embeddings[0].weight = target_embedding if tied == "all" else left.pop("source_embedding.weight")
    spec.decoder.projection.weight = target_embedding if tied != "none" else left.pop("output.weight")
    spec.decoder.projection.bias = left.pop("output.bias")
    if left:
        raise ValueError(f"no place in CTranslate2's model for {', '.join(sorted(left))}")

    spec.register_source_vocabulary([token(i) for i in range(source_vocabulary)])
    spec.register_target_vocabulary([token(i) for i in range(target_vocabulary)])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = SPECIALS
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.optimize()
    spec.save(str(folder))
