# SPDX-License-Identifier: MIT
"""hipmm-gdb.py: gdb's command `info hipmm`.

    info hipmm                     the stacks of the process and their resources
    info hipmm blocks [RESOURCE]   the blocks of a resource, or of all; RESOURCE is a name, or a path that `info hipmm` prints
    info hipmm owner EXPRESSION    the resources that the memory at an address belongs to, from the top down

It reads the records in the memory of the process, or of its core file, and calls no function of the program. So it works
while a thread holds a lock, and on a core file. It needs the debug information of libhipmm and of the plugins. The types
that it can read are those in `READERS`, and all sources. `make install` puts it where gdb loads it together with libhipmm.
"""

import struct

import gdb

LISTED = "'core/stack/stack_list.c'::first"
FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Unreadable(Exception):
    """Why something cannot be shown."""


# ---- Memory ----


def offset_of(kind, name):
    """The offset and the size of a field, which may be in an unnamed union."""
    for field in kind.fields():
        if field.name == name:
            return field.bitpos // 8, field.type.sizeof
        if not field.name:
            inner = offset_of(field.type.strip_typedefs(), name)
            if inner:
                return field.bitpos // 8 + inner[0], inner[1]
    return None


def records(start, kind, count, names):
    """The fields `names` of each of `count` records. They are read at once, since gdb takes long for a single value."""
    if not count:
        return []
    places = [offset_of(kind, name) for name in names]
    if None in places:
        raise Unreadable("this script does not know this version of hipmm: %s has no %s" % (kind, names[places.index(None)]))
    memory = bytes(gdb.selected_inferior().read_memory(start, count * kind.sizeof))
    decoders = [(struct.Struct("=" + FORMATS[size]), offset) for offset, size in places]
    return (
        [decoder.unpack_from(memory, at + offset)[0] for decoder, offset in decoders]
        for at in range(0, count * kind.sizeof, kind.sizeof)
    )


def text(pointer):
    return pointer.string(errors="replace") if int(pointer) else ""


def words_of(kind):
    """The values of an enum as words: BLOCK_ON_LOAN is "on loan"."""
    return {field.enumval: field.name.split("_", 1)[1].lower().replace("_", " ") for field in kind.fields()}


# ---- Resources ----


class Resource:
    def __init__(self, stack, path, instance):
        self.stack, self.path, self.instance = stack, path, instance
        node = instance["node"].dereference()
        self.name = text(node["name"])
        self.descriptor = node["plugin"].dereference()["descriptor"]
        self.type = text(self.descriptor["type"])
        self.upstreams = [int(instance["upstreams"][i]) for i in range(int(instance["n_upstreams"]))]

    def kind(self, name):
        """A type of the resource's plugin: other plugins may have one of the same name."""
        block = gdb.block_for_pc(int(self.descriptor["create"]))
        if not block:
            raise Unreadable("the plugin %s has no debug information" % self.type)
        return gdb.lookup_type(name, block.static_block)

    def is_source(self):
        return int(self.descriptor["max_upstreams"]) == 0

    def blocks(self):
        """(start, bytes, state, requested bytes or None, stream or None) of each, in the order of addresses."""
        if self.type in READERS:
            return sorted(READERS[self.type](self))
        if self.is_source():
            return sorted(source_blocks(self))
        raise Unreadable("the blocks of a %s cannot be read here; the program can ask hipmm_resource_visit_blocks()" % self.type)


def source_blocks(resource):
    """Blocks from the runtime. Only the pool knows the memory that it maps."""
    sizes = resource.instance["block_map"]["sizes"]
    kind = sizes["entries"].type.target()
    for key, value in records(int(sizes["entries"]), kind, int(sizes["capacity"]), ["key", "value"]):
        if value:
            yield key, value - 1, "live", value - 1, None


def stream_handle(streams, number):
    return int(streams["items"][number]["handle"]) if number else 0


def sub_allocator_blocks(resource, heap, hidden, local_stream):
    """All blocks of a heap. `local_stream` gives the stream of a local arena, whose free blocks are that stream's."""
    blocks, streams = heap["blocks"], heap["streams"]
    states = words_of(resource.kind("enum block_state"))
    names = ["start", "bytes", "state", "requested", "handle", "stream", "arena"]
    found = records(int(blocks["items"]), blocks["items"].type.target(), int(blocks["count"]), names)
    for start, size, state, requested, handle, stream, arena in found:
        word = states[state]
        if word in hidden:
            continue
        if word == "free" and arena:
            stream = local_stream(arena)
        if word == "live":
            yield start, size, word, requested, handle
        elif word == "free" and not stream:
            yield start, size, word, None, None
        else:
            is_pending = word in ("free", "pending")
            yield start, size, "pending" if is_pending else word, None, stream_handle(streams, stream) if is_pending else None


def arena_blocks(resource):
    """The blocks of an arena, which a pool begins with: those in superblocks take the place of the superblock."""
    arena = resource.instance["self"].cast(resource.kind("struct arena").pointer()).dereference()
    hidden = ("unused", "reserved", "on loan")
    return sub_allocator_blocks(resource, arena["heap"], hidden, lambda number: int(arena["locals"]["items"][number]["stream"]))


READERS = {"pool": arena_blocks, "arena": arena_blocks}


class Stack:
    def __init__(self, value):
        self.value = value
        graph = value["graph"].dereference()
        self.source = text(graph["source"])
        self.device = int(value["device"])
        self.references = int(value["entry"]["holds"]) & 0xFFFFFFFF
        self.is_built = bool(value["entry"]["is_ready"])
        name = text(value["entry"]["name"])
        self.path = "created/" + name if name else "devices/%d" % self.device
        is_single = bool(name) and int(graph["n_nodes"]) == 1
        self.resources = []
        for i in range(int(graph["n_nodes"]) - 1, -1, -1):
            instance = value["instances"][i]
            if not bool(instance["created"]):
                continue
            path = self.path if is_single else self.path + "/" + text(instance["node"]["name"])
            self.resources.append(Resource(self, path, instance))

    def title(self):
        held, peak = int(self.value["held_bytes"]), int(self.value["peak_held_bytes"])
        built = "" if self.is_built else ", not built yet"
        return "%s: graph %s, device %d, %d reference%s, held %d bytes, peak %d%s" % (
            self.path, self.source, self.device, self.references, "s" * (self.references != 1), held, peak, built)


def stacks():
    try:
        stack = gdb.parse_and_eval(LISTED)
    except gdb.error:
        raise Unreadable(
            "libhipmm is not loaded, or has no debug information: install its debug symbols, or build it with -g and do not "
            "strip it"
        ) from None
    found = []
    while int(stack):
        found.append(Stack(stack.dereference()))
        stack = stack["entry"]["next"]
    return found


# ---- What is printed ----


def summary(resource):
    totals = {}
    for _, size, state, _, _ in resource.blocks():
        count, total = totals.get(state, (0, 0))
        totals[state] = (count + 1, total + size)
    return ", ".join("%d %s (%d bytes)" % (count, state, total) for state, (count, total) in sorted(totals.items()))


def print_stacks():
    found = stacks()
    if not found:
        print("hipmm has no stack: it is not initialised, or no device was used yet")
    for stack in found:
        print(stack.title())
        paths = {int(resource.instance.address): resource.path for resource in stack.resources}
        for resource in stack.resources:
            below = [paths.get(upstream, "%#x" % upstream) for upstream in resource.upstreams]
            line = "  %s: %s" % (resource.path, resource.type)
            if below:
                line += " over " + ", ".join(below)
            if bool(resource.instance["is_suspended"]):
                line += ", suspended"
            try:
                line += "; " + (summary(resource) or "no blocks")
            except Unreadable:
                pass
            print(line)


def show(block):
    start, size, state, requested, stream = block
    line = "%#x %12d bytes  %s" % (start, size, state)
    if requested is not None and requested != size:
        line += ", requested %d" % requested
    if stream is not None:
        line += ", stream %#x" % stream
    return line


def print_blocks(wanted):
    every = [resource for stack in stacks() for resource in stack.resources]
    chosen = [resource for resource in every if not wanted or wanted in (resource.path, resource.name, resource.stack.path)]
    if not chosen:
        raise Unreadable("there is no resource %s; there are: %s" % (wanted, ", ".join(r.path for r in every) or "none"))
    for resource in chosen:
        print(resource.path + ":")
        try:
            for block in resource.blocks():
                print("  " + show(block))
        except Unreadable as error:
            print("  " + str(error))


def print_owner(expression):
    if not expression:
        raise Unreadable("info hipmm owner needs an expression, such as a pointer of the program")
    address = int(gdb.parse_and_eval(expression).cast(gdb.lookup_type("unsigned long")))
    is_found = False
    for resource in (resource for stack in stacks() for resource in stack.resources):
        try:
            holders = [block for block in resource.blocks() if block[0] <= address < block[0] + max(block[1], 1)]
        except Unreadable:
            continue
        for block in holders:
            is_found = True
            print("%s: %s, at byte %d of it" % (resource.path, show(block), address - block[0]))
    if not is_found:
        print("%#x is in no block that hipmm's pools, arenas and sources have" % address)


class InfoHipmm(gdb.Command):
    __doc__ = __doc__.split("\n", 2)[2]

    def __init__(self):
        super().__init__("info hipmm", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        command, _, rest = argument.strip().partition(" ")
        if command not in ("", "blocks", "owner"):
            usage = "`info hipmm`, `info hipmm blocks [RESOURCE]` or `info hipmm owner EXPRESSION`"
            raise gdb.GdbError("info hipmm %s: write %s" % (command, usage))
        try:
            if command == "blocks":
                print_blocks(rest.strip())
            elif command == "owner":
                print_owner(rest.strip())
            else:
                print_stacks()
        except Unreadable as error:
            raise gdb.GdbError("hipmm: %s" % error)
        except gdb.MemoryError as error:
            raise gdb.GdbError("hipmm: %s; a core file that leaves out private memory lacks the records (man core)" % error)


InfoHipmm()
