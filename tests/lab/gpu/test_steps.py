# SPDX-License-Identifier: MIT
"""What of the step `torch` needs no GPU: its judgement of results that are made up, the turns of stand-ins for trainings,
what is refused on the command line, and the models on the processor where there is a PyTorch. Run by steps.sh."""

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
from pathlib import Path

import steps_programs
import steps_reach
from proof import Done, Proof

HERE = Path(__file__).resolve().parent


def run(script, *words):
    return subprocess.run([sys.executable, "-B", script, *map(str, words)], capture_output=True, text=True)


class CommandLine(unittest.TestCase):
    def refuses(self, script, words, message):
        done = run(HERE / script, *words.split())
        self.assertEqual((done.returncode, done.stdout), (2, ""), words)
        self.assertIn(message, done.stderr, words)

    def test_trainings(self):
        for words, message in (
            ("--model trees", "invalid choice: 'trees'"),
            ("--model graphs --length 64", "--length is not an option of the model graphs"),
            ("--model graphs --varied", "--varied is not an option of the model graphs"),
            ("--nodes 64", "--nodes is not an option of the model gpt2"),
            ("--length 15", "--length is 16 to 1024"),
            ("--length 1025", "--length is 16 to 1024"),
            ("--model graphs --nodes 0", "at least one"),
            ("--layers 0", "at least one layer"),
            ("--batch -1", "at least one"),
            ("--steps 5", "more than 5 steps"),
            ("--turn 0", "turns of at least one"),
            ("--turn 10 --steps 10", "more than 10 steps"),
            ("--model lora --width 100", "a multiple of 64"),
            ("--model lora --rank 0", "at least one"),
            ("--model volumes --edge 8", "--edge at least 16"),
            ("--model beam --rank 4", "--rank is not an option of the model beam"),
        ):
            self.refuses("torch_train.py", words, message)

    def test_turns(self):
        for words, message in (
            ("native", "two turns of two allocators"),
            ("native hipmm --turns 1", "two turns of two allocators"),
            ("native malloc", "malloc is not native, expandable, hipmm or run"),
            ("native native:hipmm.json", "native:hipmm.json is not native, expandable, hipmm or run"),
        ):
            self.refuses("torch_turns.py", words, message)


# In the place of torch_train.py: tells how long its turns took, and at the end its words.
STAND_IN = """
    import json, os, sys
    words = sys.argv[1:]
    steps, turn = (int(words[words.index(name) + 1]) for name in ("--steps", "--turn"))
    for _ in range(steps // turn):
        if sys.stdin.readline() == "end\\n":
            break
        print(json.dumps({"seconds": 2.0 if "native" in words else 1.6}), flush=True)
    else:
        sys.stdin.readline()
    if "--fail" in words:
        sys.exit("no more memory")
    rank = int(os.environ.get("RANK", 0))
    print(json.dumps({"words": words, "rank": rank, "most_bytes_held": 100 + rank, "graph": os.environ.get("HIPMM_CONFIG")}), flush=True)
"""


class Turns(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(HERE / "torch_turns.py", self.folder)
        (self.folder / "torch_train.py").write_text(textwrap.dedent(STAND_IN))

    def test_turn_by_turn(self):
        words = "native hipmm native --turn 10 --turns 6 --model graphs"
        done = run(self.folder / "torch_turns.py", *words.split())
        said = json.loads(done.stdout)
        self.assertEqual(said["as_fast"], [1.25, 1.0])
        words = said["trainings"][1]["words"]
        self.assertEqual(words, "--allocator hipmm --turn 10 --steps 70 --model graphs".split())
        self.assertEqual(said["warm_up_seconds"], [2.0, 1.6, 2.0])

    def test_two_graphs(self):
        done = run(self.folder / "torch_turns.py", "hipmm:/one.json", "hipmm:/two.json", "--turns", 2)
        self.assertEqual([one["graph"] for one in json.loads(done.stdout)["trainings"]], ["/one.json", "/two.json"])

    def test_until_the_time_is_over(self):
        done = run(self.folder / "torch_turns.py", "native", "hipmm", "--turns", 60, "--seconds", 0)
        said = json.loads(done.stdout)
        self.assertEqual((said["turns"], said["as_fast"]), (2, [1.25]))

    def test_ranks(self):
        done = run(self.folder / "torch_turns.py", "native", "hipmm", "--turns", 3, "--ranks", 2)
        for one in json.loads(done.stdout)["trainings"]:
            self.assertEqual((one["rank"], one["most_bytes_held"]), (0, 101))

    def test_under_run(self):
        command = self.folder / "hipmm"
        command.write_text('#!/bin/sh\nshift 3\nexec "$@" --under\n')
        command.chmod(0o755)
        with unittest.mock.patch.dict(os.environ, HIPMM_COMMAND=str(command)):
            done = run(self.folder / "torch_turns.py", "native", "run", "--turns", 3)
        words = [one["words"] for one in json.loads(done.stdout)["trainings"]]
        self.assertNotIn("--under", words[0])
        self.assertEqual((words[1][:2], words[1][-1]), (["--allocator", "run"], "--under"))

    def test_a_training_that_fails(self):
        done = run(self.folder / "torch_turns.py", "native", "hipmm", "--turns", 2, "--fail")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no more memory", done.stderr)


class MadeUp(Proof):
    """Instead of trainings, what `change` makes of figures that are as they should be."""

    def __init__(self, change):
        super().__init__(HERE, 60)
        self.on_gpu, self.change, self.asked = True, change, []

    def has_module(self, name):
        return True

    def python(self, script, *words, limit=120, **environment):
        self.asked.append([str(word) for word in words])
        allocators = [word for word in words if word in ("native", "expandable", "hipmm", "run")]
        trainings = [{"allocator": name, "losses": [7.5, 7.25], "steps_per_second": 10.0,
                      "most_bytes_held": 900 if name == "hipmm" else 1000, "most_bytes_reserved": 2 << 20,
                      "most_bytes_allocated": 1 << 20, "least_budget": 3 << 20} for name in allocators]
        found = {"trainings": trainings, "as_fast": [1.0] * (len(trainings) - 1),
                 "quartiles": [[0.99, 1.01]] * (len(trainings) - 1)}
        status = self.change(words, found) or 0
        return Done(status, "" if status else json.dumps(found), "no more memory" if status else "", 1.0)


class Judgement(unittest.TestCase):
    def failed(self, change):
        """The names of the checks that fail, and the table."""
        proof = MadeUp(change)
        self.addCleanup(shutil.rmtree, proof.folder)
        steps_programs.torch(proof)
        self.assertEqual(len(proof.asked), len(steps_programs.TURNS))
        return [check["name"] for check in proof.checks if not check["good"]], proof.tables[0]["rows"]

    @staticmethod
    def of_graphs(words):
        return "graphs" in words and "expandable" in words

    def test_all_is_well(self):
        failed, rows = self.failed(lambda words, found: None)
        self.assertEqual(failed, [])
        self.assertEqual([row[2] for row in rows if row[0] == "graphs of all sizes"], ["hipmm", "native", "hipmm"])

    def test_slower(self):
        def change(words, found):
            if self.of_graphs(words):
                found["as_fast"] = [0.97]

        self.assertEqual(self.failed(change)[0], ["graphs of all sizes, beside expandable: hipmm is as fast"])

    def test_the_others_differ_from_themselves(self):
        def change(words, found):
            found["as_fast"] = [0.98, 0.9][:len(found["as_fast"])]

        self.assertEqual(self.failed(change)[0], [])

    def test_other_losses(self):
        def change(words, found):
            if self.of_graphs(words):
                found["trainings"][1]["losses"] = [7.5, 7.250001]

        self.assertEqual(self.failed(change)[0], ["graphs of all sizes, beside expandable: hipmm has the same losses"])

    def test_holds_more(self):
        def change(words, found):
            if self.of_graphs(words):
                found["trainings"][1]["most_bytes_held"] = 1011

        self.assertEqual(self.failed(change)[0], ["graphs of all sizes, beside expandable: hipmm holds as little"])

    def test_fails(self):
        failed, rows = self.failed(lambda words, found: 1 if self.of_graphs(words) else 0)
        self.assertEqual(failed, ["graphs of all sizes, beside expandable: trains"])
        self.assertEqual(len([row for row in rows if row[0] == "graphs of all sizes"]), 2)

    def test_ways(self):
        def change(words, found):
            if "beam" in words:
                found["as_fast"][1] = 0.9
            return 1 if "lora" in words else 0

        proof = MadeUp(change)
        self.addCleanup(shutil.rmtree, proof.folder)
        steps_programs.programs(proof)
        self.assertEqual([check["name"] for check in proof.checks if not check["good"]],
                         ["LoRA, beside native: trains", "beam search, beside native: run is as fast"])
        rows = [row for row in proof.tables[0]["rows"] if row[0] == "beam search"]
        self.assertEqual([row[1:4] for row in rows],
                         [["native", "10.00", ""], ["hipmm", "10.00", "1.000"], ["run", "10.00", "0.900"]])
        self.assertEqual([row[-1] for row in rows], ["3", "3", "3"])


has_torch = unittest.skipUnless(importlib.util.find_spec("torch"), "there is no PyTorch here")

# In the place of torch_train.py, which it runs: the processor stands in for a GPU, of which 5 of 8 GiB are free. From the
# start of its work on, PyTorch itself would ask more of a GPU.
NO_CUDA = """
    import runpy, sys
    import torch, torch_models
    torch_models.VOCABULARY = torch_models.TOKENS = 500  # the processor is slow
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # sums in an order that depends on addresses
    results = {"is_available": True, "synchronize": None, "mem_get_info": (5 << 30, 8 << 30), "get_device_name": "none",
               "max_memory_reserved": 0, "max_memory_allocated": 0}
    for name, result in results.items():
        setattr(torch.cuda, name, lambda result=result: result)
    torch.cuda.init = lambda: setattr(torch.cuda, "is_available", lambda: False)
    runpy.run_path(sys.argv[0].replace("torch_train", "trains"), run_name="__main__")
"""


@has_torch
class Training(unittest.TestCase):
    def test_by_turns(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        for name, copy in (("torch_turns.py", "torch_turns.py"), ("torch_train.py", "trains.py"),
                           ("torch_models.py", "torch_models.py"), ("driver_memory.py", "driver_memory.py")):
            shutil.copy(HERE / name, folder / copy)
        (folder / "torch_train.py").write_text(textwrap.dedent(NO_CUDA))
        small = ["--layers", 1, "--batch", 2, "--length", 16]
        decoder = [*small, "--width", 64]
        for words in (["graphs", "--nodes", 16], ["gpt2", *small], ["lora", *decoder, "--rank", 2], ["reinforce", *decoder],
                      ["beam", *decoder, "--beams", 2], ["volumes", "--width", 4, "--edge", 16],
                      ["llama", *decoder, "--ranks", 2]):
            done = run(folder / "torch_turns.py", "native", "expandable", "--turn", 1, "--turns", 2, "--model", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = json.loads(done.stdout)
            self.assertEqual(len(said["as_fast"]), 1)
            one, other = said["trainings"]
            self.assertEqual([one["model"], one["steps"], len(one["losses"])], [words[0], 3, 3])
            self.assertEqual(one["losses"], other["losses"])


@has_torch
class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        import torch_models

        cls.torch, cls.models = torch, torch_models
        torch_models.VOCABULARY = torch_models.TOKENS = 500  # the processor is slow
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(1)
        torch.backends.mkldnn.enabled = False  # sums in an order that depends on addresses

    def train(self, make, steps, seed):
        torch = self.torch
        torch.manual_seed(seed)
        model, random = make(), torch.Generator().manual_seed(seed)
        learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(learnt, lr=3e-3) if learnt else None
        losses = []
        for _ in range(steps):
            losses.append(model.loss(*model.draw(random)))
            if optimizer is not None:
                optimizer.zero_grad(set_to_none=True)
                losses[-1].backward()
                optimizer.step()
        return [loss.item() for loss in losses]

    def test_each_learns_and_repeats(self):
        models, decoder = self.models, {"layers": 1, "width": 64, "batch": 2, "length": 16}
        for make, steps, learnt in (  # random tokens teach nothing
            (lambda: models.Graphs(layers=2, nodes=64), 60, 0.6),
            (lambda: models.Gpt2(layers=1, batch=1, length=16, varied=True), 3, 1.1),
            (lambda: models.Decoder(**decoder), 3, 1.1),
            (lambda: models.Lora(**decoder, rank=2), 3, 1.1),
            (lambda: models.Reinforce(**decoder), 3, math.inf),
            (lambda: models.Beam(**decoder, beams=3), 3, 1.1),
            (lambda: models.Volumes(width=4, batch=1, edge=16), 40, 0.9),
        ):
            losses = self.train(make, steps, seed=1)
            self.assertEqual(losses, self.train(make, steps, seed=1))
            self.assertNotEqual(losses, self.train(make, steps, seed=2))
            end = losses[-steps // 4:]
            self.assertLess(sum(end) / len(end), learnt * abs(losses[0]))

    def test_a_cache_changes_nothing(self):
        """Token by token, a decoder says what it says of all tokens at once."""
        torch = self.torch
        torch.manual_seed(1)
        model, caches, said = self.models.Decoder(layers=2, width=64, batch=1, length=12), None, []
        tokens = torch.randint(500, (2, 12))
        for token in tokens.split(1, 1):
            logits, caches = model(token, caches)
            said.append(logits)
        self.assertTrue(torch.allclose(torch.cat(said, 1), model(tokens)[0], atol=1e-5))

    def test_beams_find_what_all_ways_would(self):
        """With as many beams as there are ways, a search finds the likeliest of all."""
        torch = self.torch
        torch.manual_seed(1)
        self.models.TOKENS, kept = 5, self.models.TOKENS
        try:
            model = self.models.Beam(layers=1, width=64, batch=1, length=8, beams=5)
            prompt = torch.tensor([[1, 2]])
            ways = torch.cartesian_prod(*[torch.arange(5)] * 2)
            chances = model(torch.cat((prompt.expand(25, 2), ways), 1))[0].float().log_softmax(-1)
            best = (chances[:, 1].gather(1, ways[:, :1]) + chances[:, 2].gather(1, ways[:, 1:])).max()
            self.assertAlmostEqual(float(model.loss(prompt, 2)), -float(best) / 2, places=2)
        finally:
            self.models.TOKENS = kept

    def test_graphs_are_of_all_sizes(self):
        graphs, random = self.models.Graphs(layers=1, nodes=256), self.torch.Generator().manual_seed(1)
        drawn = [graphs.draw(random) for _ in range(100)]
        edges = [len(source) for _, source, _ in drawn]
        self.assertGreater(len(set(edges)), 95)
        self.assertGreater(max(edges), 50 * min(edges))
        for features, source, target in drawn:
            self.assertLess(max(source.max(), target.max()), len(features))



class Reach(unittest.TestCase):
    """The judgement of NCCL's ranks and of PyTorch's registered pools, with results that are made up."""

    def setUp(self):
        self.proof = Proof(HERE.parents[2], 100)
        self.addCleanup(shutil.rmtree, self.proof.folder)

    def failed(self):
        return [check["name"] for check in self.proof.checks if check["good"] is False]

    def nccl(self, words=("--register",), slower=1.0, right=True, opened=4, registered=8, handles=5, kind="shared", opens=True):
        seconds = {"memory": [1.0, 1.1, 0.9, 1.0], kind: [slower, 1.1 * slower, 0.9 * slower, slower]}
        ranks = [{"rank": rank, "right": {"memory": True, kind: right}, "seconds": seconds,
                  "handles": {"memory": 1, kind: handles}} for rank in range(2)]
        log = {"registered": registered, "opened": opened, "refused": 0}
        done = Done(0, json.dumps({"nccl": 22809, "ranks": ranks, "log": log}), "", 1)
        steps_reach.judge_nccl(self.proof, kind, list(words), opens, done, [], 1)
        return self.failed()

    def test_what_is_right(self):
        self.assertEqual(self.nccl(), [])
        self.assertEqual(self.nccl([], opened=0, registered=0, kind="mapped", opens=False), [])

    def test_other_data(self):
        self.assertEqual(self.nccl(right=False), ["NCCL, shared, register: the sums are right"])

    def test_too_slow(self):
        self.assertEqual(self.nccl(slower=1.04), ["NCCL, shared, register: within 3 % of the driver's memory"])

    def test_slow_where_nothing_compares(self):
        self.assertEqual(self.nccl(slower=1.5, opened=2, kind="mapped", opens=False), [])

    def test_not_opened(self):
        self.assertEqual(self.nccl(opened=2), ["NCCL, shared, register: the other rank opens the buffer"])

    def test_not_registered(self):
        self.assertEqual(self.nccl(registered=4), ["NCCL, shared, register: NCCL's log has the registrations"])

    def test_one_chunk_shows_nothing(self):
        self.assertEqual(self.nccl([], kind="mapped", handles=1, opens=False), ["NCCL, mapped: the block lies in several chunks"])

    def test_ended(self):
        steps_reach.judge_nccl(self.proof, "mapped", [], False, Done(1, "", "no NCCL", 1), [], 1)
        self.assertEqual(self.failed(), ["NCCL, mapped: goes on to the end"])

    def torch(self, **changed):
        rank = {"right": {"outside": True}, "segments": 4, "registered": 4, "outside": 0, "opened": 2, "hook": "0", **changed}
        out = "\n".join(json.dumps({"rank": number, **rank}) for number in range(2))
        steps_reach.judge_torch(self.proof, "device", True, "1", Done(0, out, "", 1), [])
        return [name.partition(", rank 1: ")[2] for name in self.failed() if ", rank 1: " in name or "all data" in name]

    def test_pools(self):
        self.assertEqual(self.torch(), [])
        for change, told in (
            ({"registered": 3}, "NCCL's log has each segment of the MemPool"),
            ({"outside": 1}, "and nothing else"),
            ({"opened": 0}, "the other rank opens it"),
            ({"hook": "1"}, "the hook is turned off"),
            ({"right": {"outside": False}}, ""),
        ):
            self.proof.checks = []
            self.assertEqual(self.torch(**change), [told], change)


if __name__ == "__main__":
    unittest.main()
