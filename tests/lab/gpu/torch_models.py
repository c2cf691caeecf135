# SPDX-License-Identifier: MIT
"""The models that torch_train.py trains. draw() makes the data of a step, of random numbers alone, and loss() computes the
loss. The same seed gives the same data and losses with every allocator: the caller has PyTorch use deterministic
algorithms, so that each sum over a graph's edges has one order."""

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
