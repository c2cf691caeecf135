# SPDX-License-Identifier: MIT
"""schema.py: writes graphs with each example of the schema on standard input, and checks the schema by itself: each type and
option has a title, a description and examples, which it allows (where the package jsonschema is there)."""
import json
import sys

try:
    import jsonschema
except ImportError:
    jsonschema = None

# Options without which a type does nothing, which its table does not tell.
NEEDED = {"binning": ["bins"], "logging": ["file"]}
schema = json.load(sys.stdin)
types = {name: one for name, one in schema["$defs"].items() if not name.startswith(".")}
if jsonschema:
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)


def look_at(where, one):
    for key in "title", "description", "examples":
        assert one.get(key), f"{where} has no {key}"
    if jsonschema:
        for example in one["examples"]:
            validator.evolve(schema=one).validate(example)


look_at("the graph", schema)
for name, one in schema["properties"].items():
    look_at(name, one)
resources, runtimes = {"base": {"type": "device"}, "other": {"type": "device"}, "staging": {"type": "pinned"}}, []
for name, one in types.items():
    assert one["title"] == name and one["description"], name
    options = {option: row for option, row in one["properties"].items() if option not in ("type", "upstream")}
    for option, row in options.items():
        look_at(f"{name}: {option}", row)
    least = {"type": name, **{option: options[option]["examples"][0] for option in one["required"] if option != "type"}}
    upstream = one["properties"].get("upstream")
    if upstream:
        least["upstream"] = ["base", "other"] if upstream.get("type") == "array" else "base"
    for option in NEEDED.get(name, ()):
        least[option] = options[option]["examples"][0]
    if name in ("software", "nvidia"):  # runtimes
        runtimes += [{"type": name, option: example} for option, row in options.items() for example in row["examples"]]
        continue
    for option, row in options.items():
        for number, example in enumerate(row["examples"]):
            resource = {**least, option: example}
            if option == "file":
                resource[option] = f"{number}.{name}.{example}"
            resources[f"{name}.{option}.{number}"] = resource
json.dump({"$schema": "hipmm.schema.json", "resources": resources, "devices": {"default": "base"}}, open("examples.json", "w"))
for number, runtime in enumerate(runtimes):
    json.dump({"runtime": runtime, "stack": ["device"]}, open(f"runtime.{number}.json", "w"))
if jsonschema:
    validator.validate(json.load(open("examples.json")))
    for runtime in runtimes:
        validator.validate({"runtime": runtime, "stack": ["device"]})
