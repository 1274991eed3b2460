"""The Transformer of an export of `weft bench step`, as written in PyTorch for speed: fused projections, PyTorch's own
attention, a mask only where there is padding, and logits only where there is a target.

Modules are named as Weft's parameters are, but for the fused ones: `qkv` and `key_value` hold Weft's `query`, `key` and
`value` one below the other.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

FUSED = {"qkv": ("query", "key", "value"), "key_value": ("key", "value")}
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


def positions(length, d_model):
    """Sinusoidal positions [length, d_model]: sines in even columns, cosines in odd ones."""
    columns = torch.arange(0, d_model, 2, dtype=torch.double)
    angles = torch.arange(length, dtype=torch.double)[:, None] / 10000 ** (columns / d_model)
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    return table[:, :d_model].float()


class Attention(nn.Module):
    def __init__(self, options, cross, causal=False):
        super().__init__()
        d = options["d_model"]
        self.heads, self.causal, self.cross = options["heads"], causal, cross
        self.dropout = options.get("attention_dropout", 0.0)
        if cross:
            self.query, self.key_value = nn.Linear(d, d), nn.Linear(d, 2 * d)
        else:
            self.qkv = nn.Linear(d, 3 * d)
        self.output = nn.Linear(d, d)

    def forward(self, x, memory=None, mask=None):
        sentences, length, d = x.shape

        def split(y):  # [sentences, heads, positions, d / heads]
            return y.view(sentences, -1, self.heads, d // self.heads).transpose(1, 2)

        if self.cross:
            query, (key, value) = self.query(x), self.key_value(memory).chunk(2, -1)
        else:
            query, key, value = self.qkv(x).chunk(3, -1)
        y = F.scaled_dot_product_attention(split(query), split(key), split(value), mask, is_causal=self.causal,
                                           dropout_p=self.dropout if self.training else 0.0)
        return self.output(y.transpose(1, 2).reshape(sentences, length, d))


class FeedForward(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.inner = nn.Linear(options["d_model"], options["d_feed_forward"])
        self.output = nn.Linear(options["d_feed_forward"], options["d_model"])
        self.activation = ACTIVATIONS[options["activation"]]
        self.dropout = options.get("activation_dropout", 0.0)

    def forward(self, x):
        return self.output(F.dropout(self.activation(self.inner(x)), self.dropout, self.training))


class Layer(nn.Module):
    """An encoder layer, or with `decoder` one of the decoder."""

    def __init__(self, options, decoder):
        super().__init__()
        d = options["d_model"]
        self.norm_first, self.dropout = options["norm_first"], options["dropout"]
        self.self_attention = Attention(options, cross=False, causal=decoder)
        self.self_attention_norm = nn.LayerNorm(d)
        self.cross_attention = Attention(options, cross=True) if decoder else None
        self.cross_attention_norm = nn.LayerNorm(d) if decoder else None
        self.feed_forward, self.feed_forward_norm = FeedForward(options), nn.LayerNorm(d)

    def sublayer(self, x, norm, function, *others):
        if self.norm_first:
            return x + F.dropout(function(norm(x), *others), self.dropout, self.training)
        return norm(x + F.dropout(function(x, *others), self.dropout, self.training))

    def forward(self, x, memory, mask):
        """`mask` is of the source. The decoder's own padding comes last, so being causal is enough there."""
        own_mask = mask if self.cross_attention is None else None
        x = self.sublayer(x, self.self_attention_norm, self.self_attention, None, own_mask)
        if self.cross_attention is not None:
            x = self.sublayer(x, self.cross_attention_norm, self.cross_attention, memory, mask)
        return self.sublayer(x, self.feed_forward_norm, self.feed_forward)


class Stack(nn.Module):
    """Encoder or decoder: layers, and a final norm where norms come first."""

    def __init__(self, options, decoder):
        super().__init__()
        count = options["decoder_layers" if decoder else "encoder_layers"]
        self.layers = nn.ModuleList(Layer(options, decoder) for _ in range(count))
        self.norm = nn.LayerNorm(options["d_model"]) if options["norm_first"] else nn.Identity()

    def forward(self, x, memory, mask):
        for layer in self.layers:
            x = layer(x, memory, mask)
        return self.norm(x)


class Transformer(nn.Module):
    def __init__(self, options, source_vocabulary, target_vocabulary, longest):
        super().__init__()
        d, tied = options["d_model"], options["tied_embeddings"]
        self.dropout = options["dropout"]
        self.scale = math.sqrt(d) if options["scale_embeddings"] else 1.0
        self.target_embedding = nn.Embedding(target_vocabulary, d)
        self.source_embedding = self.target_embedding if tied == "all" else nn.Embedding(source_vocabulary, d)
        self.encoder, self.decoder = Stack(options, False), Stack(options, True)
        self.output = nn.Linear(d, target_vocabulary)
        if tied != "none":
            self.output.weight = self.target_embedding.weight
        self.register_buffer("positions", positions(longest, d), persistent=False)

    def embed(self, embedding, ids):
        x = embedding(ids) * self.scale + self.positions[: ids.shape[1]]
        return F.dropout(x, self.dropout, self.training)

    def forward(self, batch, label_smoothing):
        """The mean loss of a target token."""
        memory = self.encoder(self.embed(self.source_embedding, batch.source), None, batch.source_mask)
        states = self.decoder(self.embed(self.target_embedding, batch.decoder_input), memory, batch.source_mask)
        states = states.flatten(0, 1)
        if batch.rows is not None:
            states = states.index_select(0, batch.rows)
        return F.cross_entropy(self.output(states), batch.target, label_smoothing=label_smoothing)

    def load(self, weights):
        """Takes weights by Weft's names; each must have its place here, and the other way round."""
        weights = dict(weights)
        with torch.no_grad():
            for name, parameter in self.named_parameters():  # a tied one once, by its first name
                prefix, part, kind = ["", *name.rsplit(".", 2)][-3:]
                names = [f"{prefix}.{p}.{kind}" for p in FUSED[part]] if part in FUSED else [name]
                parameter.copy_(torch.cat([weights.pop(n) for n in names]))
        if weights:
            raise ValueError(f"no place in PyTorch's model for {', '.join(sorted(weights))}")
