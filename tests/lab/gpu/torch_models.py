# SPDX-License-Identifier: MIT
"""The models that torch_train.py trains. draw() makes the data of a step, of random numbers alone, and loss() computes the
loss. The same seed gives the same data and losses with every allocator: the caller has PyTorch use deterministic
algorithms, so that each sum over a graph's edges has one order."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional

# ---- GPT-2 of the small size

VOCABULARY, POSITIONS, WIDTH, HEADS = 50257, 1024, 768, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.attend(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        heads = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        x = x + self.project(heads.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x))))


class Gpt2(nn.Module):
    def __init__(self, layers, batch, length, varied):
        super().__init__()
        self.batch, self.length, self.varied = batch, length, varied
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def draw(self, random):
        """Tokens, of a length that is drawn for each step if it varies."""
        length = self.length
        if self.varied:
            length = int(torch.randint(length // 4, length + 1, (1,), generator=random))
        tokens = torch.randint(VOCABULARY, (self.batch, length + 1), generator=random)
        return (tokens.to(self.head.weight.device),)

    def loss(self, tokens):
        with torch.autocast(tokens.device.type, torch.bfloat16):
            logits = self(tokens[:, :-1])
            return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


# ---- A small network over graphs of all sizes

FEATURES, STATE = 16, 128
NODES_SPREAD, DEGREE, DEGREE_SPREAD = 1.0, 8, 0.5  # the spreads are of the logarithms
LEAST_NODES, MOST_EDGES_OF_MEDIAN = 4, 256


class Messages(nn.Module):
    """A round: each edge carries a message, made of the states of its two ends, and each node adds up what reaches it."""

    def __init__(self):
        super().__init__()
        self.norm, self.norm_heard = nn.LayerNorm(STATE), nn.LayerNorm(STATE)
        self.of_source, self.of_target = nn.Linear(STATE, STATE), nn.Linear(STATE, STATE, bias=False)
        self.hear = nn.Linear(STATE, STATE)

    def forward(self, state, source, target):
        x = self.norm(state)
        messages = functional.gelu(self.of_source(x)[source] + self.of_target(x)[target])
        heard = torch.zeros_like(state).index_add(0, target, messages)
        return state + self.hear(self.norm_heard(heard))


class Graphs(nn.Module):
    """For each node it learns the sum of a feature over the nodes from which an edge comes."""

    def __init__(self, layers, nodes):
        super().__init__()
        self.nodes = nodes
        self.enter, self.leave = nn.Linear(FEATURES, STATE), nn.Linear(STATE, 1)
        self.rounds = nn.ModuleList(Messages() for _ in range(layers))

    def forward(self, features, source, target):
        state = self.enter(features)
        for messages in self.rounds:
            state = messages(state, source, target)
        return self.leave(state).squeeze(1)

    def draw(self, random):
        """The features of nodes, and the ends of edges. Both counts are log-normal, so that sizes hardly ever repeat."""

        def log_normal(median, spread, least, most):
            drawn = median * math.exp(spread * torch.randn((), generator=random).item())
            return int(min(max(drawn, least), most))

        most_edges = MOST_EDGES_OF_MEDIAN * self.nodes
        nodes = log_normal(self.nodes, NODES_SPREAD, LEAST_NODES, most_edges)
        edges = log_normal(DEGREE * nodes, DEGREE_SPREAD, LEAST_NODES, most_edges)
        device = self.leave.weight.device
        source, target = torch.randint(nodes, (2, edges), device=device)
        return torch.randn(nodes, FEATURES, device=device), source, target

    def loss(self, features, source, target):
        sums = torch.zeros_like(features[:, 0]).index_add(0, target, features[source, 0])
        variance = len(source) / len(features)
        return functional.mse_loss(self(features, source, target), sums / variance ** 0.5)


# ---- A decoder with a cache of keys and values

TOKENS, HEAD = 32000, 64
NORM_EPSILON = 1e-5


class Adapted(nn.Module):
    """A linear layer that stays as it is, and the product of two thin ones that learns (LoRA)."""

    def __init__(self, width, out, rank):
        super().__init__()
        self.frozen = nn.Linear(width, out, bias=False)
        self.narrow, self.widen = nn.Linear(width, rank, bias=False), nn.Linear(rank, out, bias=False)
        nn.init.zeros_(self.widen.weight)

    def forward(self, x):
        return self.frozen(x) + self.widen(self.narrow(x))


class Layer(nn.Module):
    def __init__(self, width, linear):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width, NORM_EPSILON), nn.RMSNorm(width, NORM_EPSILON)
        self.attend, self.project = linear(width, 3 * width), linear(width, width)
        self.widen, self.narrow = linear(width, 6 * width), linear(3 * width, width)

    def forward(self, x, cache=None):
        """The keys and values of the tokens before, if there are any, come as `cache`, and go on with those of `x`."""
        batch, length, width = x.shape
        q, k, v = self.attend(self.norm1(x)).view(batch, length, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.project(heads.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.widen(self.norm2(x)).chunk(2, -1)
        return x + self.narrow(functional.silu(gate) * up), (k, v)


class Decoder(nn.Module):
    """Learns tokens at random."""

    def __init__(self, layers, width, batch, length, linear=functools.partial(nn.Linear, bias=False)):
        super().__init__()
        self.batch, self.length = batch, length
        self.tokens, self.positions = nn.Embedding(TOKENS, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, linear) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, NORM_EPSILON), nn.Linear(width, TOKENS, bias=False)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens, caches=None):
        """The logits, and the caches for the tokens that follow."""
        done = caches[0][0].shape[2] if caches else 0
        x = self.tokens(tokens) + self.positions(torch.arange(done, done + tokens.shape[1], device=tokens.device))
        kept = []
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers)):
            x, cache = layer(x, cache)
            kept.append(cache)
        return self.head(self.norm(x)), kept

    def draw_tokens(self, random, length):
        return torch.randint(TOKENS, (self.batch, length), generator=random).to(self.head.weight.device)

    def draw(self, random):
        return (self.draw_tokens(random, int(torch.randint(self.length // 4, self.length, (1,), generator=random)) + 1),)

    def loss(self, tokens):
        with torch.autocast(tokens.device.type, torch.bfloat16):
            logits, _ = self(tokens[:, :-1])
            return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


class Lora(Decoder):
    """Only adapters of this rank learn."""

    def __init__(self, layers, width, batch, length, rank):
        super().__init__(layers, width, batch, length, functools.partial(Adapted, rank=rank))
        self.requires_grad_(False).to(torch.bfloat16)
        for module in self.modules():
            if isinstance(module, Adapted):
                for thin in (module.narrow, module.widen):
                    thin.float().requires_grad_()


class Reinforce(Decoder):
    """Generates from prompts, and learns what earned more than the mean: even tokens. The two halves of a step need memory by
    turns: caches that grow with each token, and then the activations of whole sequences."""

    def draw(self, random):
        prompts = self.draw_tokens(random, self.length // 8)
        return prompts, int(torch.randint(self.length // 4, self.length - prompts.shape[1], (1,), generator=random))

    @torch.no_grad()
    def generate(self, tokens, count):
        new, caches = tokens, None
        for _ in range(count):
            logits, caches = self(new, caches)
            new = torch.multinomial(logits[:, -1].float().softmax(-1), 1)
            tokens = torch.cat((tokens, new), 1)
        return tokens

    def loss(self, prompts, count):
        with torch.autocast(prompts.device.type, torch.bfloat16):
            tokens = self.generate(prompts, count)
            logits, _ = self(tokens[:, :-1])
            chances = logits[:, -count:].float().log_softmax(-1).gather(-1, tokens[:, -count:, None])
        earned = (tokens[:, -count:] % 2 == 0).float().mean(1)
        return -((earned - earned.mean()) * chances.squeeze(-1).sum(1)).mean()


class Beam(Decoder):
    """Searches for the likeliest continuations, and learns nothing. With each token the caches are made anew in the order of
    the beams that go on."""

    def __init__(self, layers, width, batch, length, beams):
        super().__init__(layers, width, batch, length)
        self.requires_grad_(False).to(torch.bfloat16)
        self.beams = beams

    draw = Reinforce.draw

    def loss(self, prompts, count):
        logits, caches = self(prompts)
        chances, tokens = logits[:, -1].float().log_softmax(-1).topk(self.beams)
        caches = [[each.repeat_interleave(self.beams, 0) for each in cache] for cache in caches]
        first = torch.arange(self.batch, device=prompts.device)[:, None] * self.beams
        found = tokens.view(-1, 1)
        for _ in range(count - 1):
            logits, caches = self(found[:, -1:], caches)
            further = logits[:, -1].float().log_softmax(-1).view(self.batch, self.beams, -1) + chances[..., None]
            chances, best = further.flatten(1).topk(self.beams)
            order = (first + best // TOKENS).flatten()
            caches = [[each.index_select(0, order) for each in cache] for cache in caches]
            found = torch.cat((found.index_select(0, order), (best % TOKENS).view(-1, 1)), 1)
        return -chances.max(1).values.mean() / count


# ---- A network over volumes

GROUPS, DEPTH = 4, 3


def convolved(before, after):
    return nn.Sequential(nn.Conv3d(before, after, 3, padding=1), nn.GroupNorm(GROUPS, after), nn.GELU(),
                         nn.Conv3d(after, after, 3, padding=1), nn.GroupNorm(GROUPS, after), nn.GELU())


class Volumes(nn.Module):
    """A 3D U-Net. It learns where the mean of a voxel's neighbourhood is above zero, in volumes of all sizes."""

    def __init__(self, width, batch, edge):
        super().__init__()
        self.batch, self.edge = batch, edge
        widths = [width << level for level in range(DEPTH)]
        self.down = nn.ModuleList(convolved(before, after) for before, after in zip([1, *widths], widths))
        self.shrink = nn.ModuleList(nn.Conv3d(each, each, 2, 2) for each in widths[:-1])
        self.enlarge = nn.ModuleList(nn.ConvTranspose3d(2 * each, each, 2, 2) for each in widths[:-1])
        self.up = nn.ModuleList(convolved(2 * each, each) for each in widths[:-1])
        self.leave = nn.Conv3d(width, 1, 1)

    def forward(self, x):
        kept = []
        for level, down in enumerate(self.down):
            x = down(x)
            if level < len(self.shrink):
                kept.append(x)
                x = self.shrink[level](x)
        for level in reversed(range(len(self.up))):
            x = self.up[level](torch.cat((kept.pop(), self.enlarge[level](x)), 1))
        return self.leave(x)

    def draw(self, random):
        unit = 1 << DEPTH - 1
        sizes = torch.randint(self.edge // unit // 2, self.edge // unit + 1, (3,), generator=random) * unit
        return (torch.randn(self.batch, 1, *sizes.tolist(), device=self.leave.weight.device),)

    def loss(self, volumes):
        wanted = (functional.avg_pool3d(volumes, 3, 1, 1) > 0).float()
        with torch.autocast(volumes.device.type, torch.bfloat16):
            found = self(volumes)
        return functional.binary_cross_entropy_with_logits(found.float(), wanted)
