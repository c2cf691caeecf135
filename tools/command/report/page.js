"use strict";
(() => {
  const byId = id => document.getElementById(id);
  // The page has the data of several memories, each with a number behind its names; "#text-NUMBER" in the address chooses.
  const memories = [...document.querySelectorAll(".memory")];
  const which = Math.min(Math.max(0, parseInt(location.hash.slice(6)) || 0), memories.length - 1), suffix = which ? "-" + which : "";
  const summary = JSON.parse(byId("summary" + suffix).textContent);
  if (memories.length > 1) {
    const choice = byId("memory");
    choice.append(...memories.map((memory, i) => new Option(memory.querySelector("h2").textContent, i, i === which, i === which)));
    choice.addEventListener("change", () => { history.pushState("chosen", "", "#text-" + choice.value); location.reload(); });
    addEventListener("hashchange", () => location.reload());
    byId("memory-choice").hidden = false;
    if (history.state) choice.focus(); // arrow keys choose the next
  }
  document.documentElement.classList.add("has-script");
  memories[which].classList.add("is-chosen");

  // ---- Data -------------------------------------------------------------------------------------------------------

  function bytesOf(name) {
    const element = byId("column-" + name + suffix), text = atob(element.textContent), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    element.remove();
    return bytes;
  }
  // Gives the numbers of a column, one at each call: Exp-Golomb codes, whose order is the first byte.
  function numbersOf(name) {
    const bytes = bytesOf(name), order = bytes[0], bits = 8 * bytes.length;
    let at = 8;
    return () => {
      let left = order, number = 0, unit = 1;
      while (at < bits && !(bytes[at >> 3] >> (at & 7) & 1)) { at++; left++; }
      for (at++; left > 0; left--, at++, unit *= 2) if (bytes[at >> 3] >> (at & 7) & 1) number += unit;
      return number + unit - 2 ** order;
    };
  }
  const signed = number => number % 2 ? -Math.floor(number / 2) : number / 2;
  // A column of places in a table; without rows, of what is added to the least value.
  function tabled(name, Type) {
    const next = numbersOf(name), row = numbersOf(name + "-table"), rows = row(), unit = 2 ** row(), values = new Type(n), table = [];
    for (let i = 0, value = 0; i < rows; i++) table.push(unit * (value += signed(row())));
    const least = rows ? 0 : unit * row();
    for (let i = 0; i < n; i++) values[i] = rows === 1 ? table[0] : rows ? table[next()] : least + unit * next();
    return values;
  }
  // A line: `most` and `least` have the bytes from the event `at` of each step on. Without `at` each event is a step.
  function levelsOf(name) {
    const next = numbersOf(name), count = next(), unit = 2 ** next(), at = new Float64Array(count), most = new Float64Array(count);
    for (let i = 0, event = 0, value = 0; i < count; i++) {
      at[i] = Math.min(event += next(), events - 1);
      most[i] = unit * (value += signed(next()));
    }
    return { at, most, least: most };
  }
  function eventsOf() {
    const allocates = numbersOf("from"), frees = numbersOf("to"), from = new Uint32Array(n), to = new Uint32Array(n);
    for (let i = 0; i < n; i++) {
      from[i] = (i ? from[i - 1] : 0) + allocates();
      to[i] = frees();
      to[i] = to[i] ? from[i] + to[i] : 0xffffffff; // live at the end
    }
    return [from, to];
  }
  // Lowest byte first: a page is read on machines of that byte order alone.
  const reals = name => new Float64Array(bytesOf(name).buffer), n = summary.kept_blocks, events = summary.events, [from, to] = eventsOf(),
    address = tabled("address", Float64Array), size = tabled("bytes", Float64Array), stream = tabled("stream", Uint16Array),
    thread = tabled("thread", Uint16Array), stack = tabled("stack", Uint32Array), tag = tabled("tag", Uint16Array), times = reals("times"), ranges = reals("ranges");
  const isWhole = summary.kept_blocks === summary.allocations;
  const hasTimes = times.length > 1 && times[times.length - 1] > 0, hasStacks = summary.stacks.length > 1, hasTags = summary.tags.length > 1;

  // How many of the first `most` numbers pass a test that none passes behind one that fails.
  function countOf(most, passes) {
    let low = 0;
    while (low < most) {
      const middle = low + most >> 1;
      if (passes(middle)) low = middle + 1; else most = middle;
    }
    return low;
  }
  // The step that an event is in; -1: it is before the first.
  const stepOf = (line, event) => line.at ? countOf(line.at.length, i => line.at[i] <= event) - 1 : event;

  // Live bytes: after each event if the page has all blocks, else in each of many parts of the log.
  function liveOf() {
    if (!isWhole) return { ...levelsOf("most"), least: levelsOf("least").most };
    const most = new Float64Array(events);
    for (let i = 0; i < n; i++) {
      most[from[i]] += size[i];
      if (to[i] < events) most[to[i]] -= size[i];
    }
    for (let i = 1; i < events; i++) most[i] += most[i - 1];
    return { most, least: most };
  }

  // The bytes of the pages of 2 MiB with live blocks, likewise.
  function pagesOf() {
    if (!isWhole) return levelsOf("pages");
    const next = numbersOf("pages"), allocates = new Uint8Array(events), most = new Float64Array(events);
    for (let i = 0; i < n; i++) allocates[from[i]] = 1;
    for (let i = 0, sum = 0; i < events; i++) {
      const number = next(), otherWay = number >= 2 ** 30;
      most[i] = sum += (otherWay ? number - 2 ** 30 : number) * (allocates[i] ? 1 : -1) * (otherWay ? -1 : 1) * summary.fragmentation.page_bytes;
    }
    return { most, least: most };
  }
  const live = liveOf(), pages = pagesOf();
  const held = levelsOf("held"), free = levelsOf("device_free"), marks = summary.marks || [];
  const segments = [];
  {
    const next = numbersOf("segments");
    for (let left = next(), from = 0, address = 0; left > 0; left--) {
      from += signed(next());
      address += signed(next());
      const life = next();
      segments.push({ from, address, to: life ? from + life - 1 : Infinity, bytes: next() });
    }
  }

  // Addresses without the gaps between the ranges: where each block stands.
  const place = new Float64Array(n);
  let height = 0;
  {
    const starts = [];
    for (let i = 0; i < ranges.length; i += 2) {
      starts.push(height);
      height += ranges[i + 1] - ranges[i];
    }
    const placeOf = where => {
      const range = Math.max(0, countOf(starts.length, i => ranges[2 * i] <= where) - 1);
      return starts.length ? starts[range] + where - ranges[2 * range] : 0;
    };
    for (let i = 0; i < n; i++) place[i] = placeOf(address[i]);
    for (const segment of segments) segment.place = placeOf(segment.address);
  }

  // ---- Words ------------------------------------------------------------------------------------------------------

  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  function bytes(number) {
    let unit = 0;
    while (number >= 1024 && unit < units.length - 1) { number /= 1024; unit++; }
    const exact = Math.abs(number - Math.round(number)) < 1e-9;
    return (unit && number < 100 && !exact ? number.toPrecision(3) : Math.round(number).toString()) + " " + units[unit];
  }
  const count = number => number.toLocaleString("en");
  const plural = (number, word) => count(number) + " " + word + (number === 1 ? "" : "s");
  const percent = (part, whole) => whole ? (100 * part / whole).toFixed(1) + " %" : "";
  function seconds(number) {
    const absolute = Math.abs(number);
    return absolute >= 1 ? number.toPrecision(4) + " s" : absolute >= 1e-3 ? (number * 1e3).toPrecision(3) + " ms" :
      (number * 1e6).toPrecision(3) + " µs";
  }
  function timeOf(event) {
    if (!hasTimes) return 0;
    const at = Math.max(0, Math.min(times.length - 1, event * (times.length - 1) / Math.max(1, events - 1)));
    const left = Math.floor(at), right = Math.min(left + 1, times.length - 1);
    return times[left] + (times[right] - times[left]) * (at - left);
  }
  function eventAt(time) {
    const low = Math.max(0, countOf(times.length, i => times[i] <= time) - 1);
    const step = low + 1 < times.length ? times[low + 1] - times[low] : 0;
    const at = low + (step > 0 ? Math.min(1, (time - times[low]) / step) : 0);
    return at * Math.max(1, events - 1) / Math.max(1, times.length - 1);
  }
  const eventName = event => "event " + count(event) + (hasTimes ? " (" + seconds(timeOf(event)) + ")" : "");
  const streamName = index => summary.streams[index] ? "stream " + summary.streams[index].name : "other streams";
  const threadName = index => summary.threads[index] ? "thread " + summary.threads[index].name : "other threads";
  const tagName = index => summary.tags[index] || (index ? "other tags" : "no tag");
  // "#3 in name+0x12 from file (+0x34)": the name. "#3 in name from folder/file.py:7": "name file.py:7".
  const frameName = line => {
    const found = / in (.*?)(?:\+0x[0-9a-f]+)? from (\S+)/.exec(line);
    if (!found) return line.replace(/^\s*#\d+ (in )?/, "");
    const file = found[2].replace(/.*\//, "");
    return found[1] === "?" ? file : /:\d+$/.test(file) ? found[1] + " " + file : found[1];
  };
  const framesOf = index => (summary.stacks[index] || "").split("\n").filter(line => line.trim()).map(frameName);
  const stackName = index => summary.stack_names[index];
  const stackTitle = index => framesOf(index).join("\n");
  // What a block adds to its call stack, where stacks are a sample: as in stack_sample.h.
  const sample = summary.stack_sample || 0, isCertain = number => number >= sample || number >= 1 << 20;
  const stackBytes = i => isCertain(size[i]) ? size[i] : stack[i] && size[i] ? sample : 0;
  const stackBlocks = i => isCertain(size[i]) || !size[i] ? 1 : stack[i] ? Math.round(sample / size[i]) : 0;

  // ---- Tables -----------------------------------------------------------------------------------------------------

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }
  // Rows of [name, blocks, bytes, what is told under the mouse].
  function table(heading, rows, whole) {
    const made = element("table"), head = element("tr"), most = Math.max(1, ...rows.map(row => row[2]));
    head.append(element("th", heading), element("th", "blocks", "number"), element("th", "bytes", "number"),
      element("th", "share", "number"), element("th", ""));
    made.append(head);
    for (const [name, blocks, total, title] of rows) {
      const row = element("tr"), bar = element("td", undefined, "bar"), filled = element("div"), cell = element("td", title ? undefined : name, "name");
      filled.style.width = 100 * total / most + "%";
      if (title) { // without a mouse, too
        const more = element("details");
        row.title = title;
        more.append(element("summary", name), element("pre", title));
        cell.append(more);
      }
      bar.append(filled);
      row.append(cell, element("td", count(blocks), "number"), element("td", bytes(total), "number"),
        element("td", percent(total, whole), "number"), bar);
      made.append(row);
    }
    return made;
  }
  function fill(id, ...parts) {
    byId(id).replaceChildren(...parts);
  }

  function showWhole() {
    byId("counts").textContent = plural(events, "event") + " (allocations and frees), " + plural(summary.allocations, "allocation") + " of " +
      bytes(summary.requested_bytes) + " in all" + (hasTimes ? ", over " + seconds(times[times.length - 1]) : "");
    const requested = summary.requested_bytes;
    fill("sizes", table("size", (summary.sizes || []).map(bin =>
      [bytes(2 ** bin.log2) + " to " + bytes(2 ** (bin.log2 + 1)), bin.blocks, bin.bytes]), requested));
    fill("lives", table("events from allocation to free", (summary.lifetimes || []).map(bin =>
      [count(2 ** bin.log2) + " to " + count(2 ** (bin.log2 + 1) - 1), bin.blocks, bin.bytes]), requested));
    const users = list => (list || []).map(user => [user.name, user.blocks, user.bytes])
      .sort((a, b) => b[2] - a[2]).slice(0, 30);
    fill("streams", table("stream", users(summary.streams), requested));
    fill("threads", table("thread", users(summary.threads), requested));
    const end = summary.end;
    fill("end", ...(!end || !end.blocks ? [element("p", "Nothing: every block was freed.")] : [
      table("size", end.by_size.map(group => [bytes(group.size), group.blocks, group.bytes]), end.bytes),
      ...(end.by_tag || []).length ? [table("tag", end.by_tag.map(group => [group.tag || "no tag", group.blocks, group.bytes]), end.bytes)] : [],
      ...(end.by_stack || []).length ? [table("call stack", end.by_stack.map(group =>
        [group.name, group.blocks, group.bytes, stackTitle(group.stack)]), end.bytes)] : []]));
    const fragments = summary.fragmentation;
    if (fragments)
      fill("fragments", element("p", "Memory of a GPU comes in pages of " + bytes(fragments.page_bytes) +
        ". Pages with any live block have at most " + bytes(fragments.peak_pages_bytes) + ". The difference to the blocks " +
        "in them is greatest after " + eventName(fragments.worst_event) + ": " + bytes(fragments.worst_pages_bytes) +
        " of pages hold " + bytes(fragments.worst_live_bytes) + "."));
  }

  // ---- Colours ----------------------------------------------------------------------------------------------------

  const palette = [[78, 121, 167], [242, 142, 43], [89, 161, 79], [225, 87, 89], [118, 183, 178], [237, 201, 72],
    [176, 122, 161], [156, 117, 95], [255, 157, 167], [190, 210, 90]], none = [150, 150, 150];
  const ramp = [[68, 1, 84], [70, 50, 126], [54, 92, 141], [39, 127, 142], [31, 161, 135], [74, 193, 109], [160, 218, 57],
    [253, 231, 37]];
  const sizeSteps = [12, 15, 18, 20, 22, 25, 28]; // powers of two between the colours of the ramp
  function step(steps, log) {
    let at = 0;
    while (at < steps.length && log >= steps[at]) at++;
    return at;
  }
  const lifeSteps = [2, 4, 6, 8, 10, 13, 16];
  const colourOf = {
    size: i => ramp[step(sizeSteps, Math.log2(size[i] || 1))],
    stream: i => palette[stream[i] % palette.length],
    thread: i => palette[thread[i] % palette.length],
    stack: i => stack[i] ? palette[stack[i] % palette.length] : none,
    tag: i => tag[i] ? palette[tag[i] % palette.length] : none,
    life: i => ramp[step(lifeSteps, Math.log2(Math.min(to[i], events) - from[i] || 1))],
  };
  function showLegend() {
    const by = byId("colour").value, items = [];
    const range = (steps, word) => ramp.forEach((colour, i) => items.push([colour, i === 0 ? "below " + word(steps[0]) :
      i === steps.length ? word(steps[i - 1]) + " and more" : "from " + word(steps[i - 1])]));
    if (by === "size") range(sizeSteps, log => bytes(2 ** log));
    else if (by === "life") range(lifeSteps, log => count(2 ** log) + " events");
    else {
      const names = { stream: [summary.streams.length, streamName], thread: [summary.threads.length, threadName],
        stack: [summary.stacks.length, stackName], tag: [summary.tags.length, tagName] }[by];
      const values = { stack, tag }[by], first = values ? 1 : 0, last = Math.min(names[0], first + palette.length);
      for (let i = first; i < last; i++) items.push([palette[i % palette.length], names[1](i)]);
      if (values && values.includes(0)) items.push([none, names[1](0)]);
      if (last < names[0]) items.push([null, "and " + count(names[0] - last) + " more, in these colours again"]);
    }
    fill("legend", ...items.map(([colour, text]) => {
      const made = element("span", text);
      if (colour) made.style.setProperty("--key", "rgb(" + colour + ")");
      return made;
    }));
  }

  // ---- The view: a range of the axis, which counts events or seconds ----------------------------------------------

  const curve = byId("curve"), map = byId("map");
  let isTime = false, start = 0, end = 1, moment = summary.peak ? summary.peak.event : 0;
  const limit = () => isTime ? times[times.length - 1] : events;
  const toEvent = at => isTime ? eventAt(at) : at;
  const toAxis = event => isTime ? timeOf(event) : event;
  const pixelOf = (event, width) => (toAxis(event) - start) / (end - start) * width;
  function look(newStart, newEnd) {
    const span = Math.max(isTime ? limit() / 1e7 : 4, Math.min(limit(), newEnd - newStart));
    start = Math.max(0, Math.min(limit() - span, newStart));
    end = start + span;
    requestDraw();
  }
  function lookAtAll() {
    lookAtRows(0, height);
    look(0, limit());
  }
  function zoom(factor, at) {
    look(at - (at - start) * factor, at + (end - at) * factor);
  }
  const paint = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function prepare(canvas) {
    const scale = devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    canvas.width = Math.max(1, Math.round(box.width * scale));
    canvas.height = Math.max(1, Math.round(box.height * scale));
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    return [context, canvas.width, canvas.height, scale];
  }

  const paths = [{ ...pages, colour: "--second", name: "orange: all of the 2 MiB pages that live blocks touch" },
    { ...held, colour: "--held", name: "violet: held from the device" }, { ...free, colour: "--free", name: "green: free on the device" }];
  const shownPaths = () => paths.filter(path => path.most.length && (path.most !== free.most || byId("free").checked));
  // The most and the least of a line at each pixel.
  function boundsOf(line, width) {
    const at = line.at;
    const most = new Float64Array(width).fill(-1), least = new Float64Array(width).fill(Infinity);
    const first = Math.max(0, Math.floor(toEvent(start))), last = Math.min(events - 1, Math.ceil(toEvent(end)));
    for (let i = Math.max(0, stepOf(line, first)); i < line.most.length && (at ? at[i] : i) <= last; i++) {
      const left = Math.max(0, Math.floor(pixelOf(at ? at[i] : i, width)));
      const next = at ? (i + 1 < at.length ? at[i + 1] : events) : i + 1;
      const right = Math.min(width - 1, Math.max(left, Math.ceil(pixelOf(next, width)) - 1));
      for (let x = left; x <= right; x++) {
        if (line.most[i] > most[x]) most[x] = line.most[i];
        if (line.least[i] < least[x]) least[x] = line.least[i];
      }
    }
    return [most, least];
  }

  function drawCurve() {
    const [context, width, full, scale] = prepare(curve), bottom = full - 16 * scale;
    const [most, least] = boundsOf(live, width);
    const drawn = shownPaths().map(path => ({ ...path, most: boundsOf(path, width)[0] }));
    const greatest = bounds => bounds.reduce((top, value) => Math.max(top, value), 1);
    // The pages can be many times the blocks; what is held and what is free is shown whole.
    const top = Math.max(greatest(most), ...drawn.filter(path => path.colour !== "--second").map(path => greatest(path.most)));
    const y = value => bottom - value / top * (bottom - 14 * scale);
    context.fillStyle = paint("--fill");
    for (let x = 0; x < width; x++) if (most[x] >= 0) context.fillRect(x, y(most[x]), 1, bottom - y(most[x]));
    context.fillStyle = paint("--accent");
    for (let x = 0; x < width; x++)
      if (most[x] >= 0) context.fillRect(x, y(most[x]), 1, Math.max(1.5 * scale, y(least[x]) - y(most[x])));
    for (const path of drawn) drawPath(context, width, path, value => y(Math.min(value, 1.05 * top)));
    byId("curve-note").textContent = drawn.map(path => "; " + path.name).join("") + (isWhole ? "" : "; live bytes are the least to the most, and pages the most, in each of " +
      count(live.at.length) + " parts of the log, since the page has " + count(n) + " of " + count(summary.allocations) + " blocks");
    context.fillStyle = paint("--faint");
    context.font = 11 * scale + "px system-ui, sans-serif";
    context.fillText(bytes(top), 4 * scale, 11 * scale);
    const ticks = Math.max(1, Math.min(6, Math.floor(width / scale / 80)));
    for (let i = 0; i <= ticks; i++) {
      const at = start + (end - start) * i / ticks, text = isTime ? seconds(at) : count(Math.round(at));
      context.textAlign = i === 0 ? "left" : i === ticks ? "right" : "center";
      context.fillText(text, width * i / ticks, full - 3 * scale);
    }
    context.textAlign = "left";
    drawMarks(context, width, bottom, scale);
    drawMoment(context, width, full, scale);
  }
  function drawPath(context, width, path, y) {
    context.strokeStyle = paint(path.colour);
    context.lineWidth = devicePixelRatio || 1;
    context.beginPath();
    for (let x = 0; x < width; x++) {
      if (path.most[x] < 0) continue;
      const at = y(path.most[x]);
      context.lineTo(x, at);
      context.lineTo(x + 1, at);
    }
    context.stroke();
  }
  // The steps of the program: if there is room, a line where each begins, and its name.
  function drawMarks(context, width, bottom, scale) {
    let room = 0, line = -Infinity;
    for (const mark of marks) {
      const x = pixelOf(mark.event, width);
      if (x < 0 || x > width || x < line + 8 * scale) continue;
      line = x;
      context.fillStyle = paint("--line");
      context.fillRect(x, 14 * scale, scale, bottom - 14 * scale);
      if (x < room) continue;
      context.fillStyle = paint("--faint");
      context.fillText(mark.name, x + 3 * scale, 24 * scale);
      room = x + 12 * scale + context.measureText(mark.name).width;
    }
  }
  // The moment, and a cross in the middle if keys move the plot.
  function drawMoment(context, width, full, scale) {
    context.fillStyle = paint("--ink");
    context.fillRect(pixelOf(moment + 0.5, width) - scale / 2, 0, scale, full);
    if (!context.canvas.matches(":focus-visible")) return;
    context.fillRect((width - scale) / 2, full / 2 - 7 * scale, scale, 14 * scale);
    context.fillRect(width / 2 - 7 * scale, (full - scale) / 2, 14 * scale, scale);
  }

  // The part of the addresses that is in view.
  let low = 0, high = height;
  function lookAtRows(newLow, newHigh) {
    const span = Math.max(Math.min(4096, height), Math.min(height, newHigh - newLow));
    low = Math.max(0, Math.min(height - span, newLow));
    high = low + span;
    requestDraw();
  }
  function zoomRows(factor, at) {
    lookAtRows(at - (at - low) * factor, at + (high - at) * factor);
  }

  function drawMap() {
    const [context, width, full, scale] = prepare(map), image = context.createImageData(width, full);
    const pixels = new Uint32Array(image.data.buffer), colour = colourOf[byId("colour").value];
    const first = toEvent(start), last = toEvent(end), word = (red, green, blue) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
    // Fills a rectangle of the map, with a border where that leaves room inside.
    const put = (fromEvent, toEvent, at, bytes, value, border) => {
      const left = Math.max(0, Math.floor(pixelOf(fromEvent, width)));
      const right = Math.min(width - 1, Math.max(left, Math.ceil(pixelOf(Math.min(toEvent, events), width)) - 1));
      const below = full - 1 - Math.floor((at - low) / (high - low) * full), above = full - Math.floor((at + bytes - low) / (high - low) * full);
      const bottom = Math.min(full - 1, below), top = Math.max(0, Math.min(below, above)), hasBorder = below - above > 4 * scale && right - left > 4 * scale;
      for (let y = top; y <= bottom; y++) {
        const isEdge = hasBorder && (y === above || y === below);
        pixels.fill(isEdge ? border : value, y * width + left, y * width + right + 1);
        if (hasBorder) pixels[y * width + left] = pixels[y * width + right] = border;
      }
    };
    const isInView = (at, bytes) => at < high && at + bytes > low;
    const idle = word(...(paint("--idle").match(/[0-9a-f]{2}/gi) || ["80", "80", "80"]).map(part => parseInt(part, 16)));
    for (const segment of segments)
      if (segment.from <= last && segment.to >= first && isInView(segment.place, segment.bytes)) put(segment.from, segment.to, segment.place, segment.bytes, idle, idle);
    let shown = 0;
    for (let i = 0; i < n; i++) {
      if (from[i] > last || to[i] < first || !isInView(place[i], size[i] || 1)) continue;
      shown++;
      const parts = colour(i);
      put(from[i], to[i], place[i], size[i], word(...parts), word(...parts.map(part => part * 0.6)));
    }
    context.putImageData(image, 0, 0);
    drawMoment(context, width, full, scale);
    byId("map-note").textContent = (segments.length ? ", on grey segments" : "") + " (" + plural(shown, "block") + " in view, " +
      bytes(high - low) + " of " + bytes(height) + " of addresses)";
  }

  let isDue = false;
  function requestDraw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(draw);
  }
  function draw() {
    isDue = false;
    drawCurve();
    drawMap();
  }

  // ---- The moment -------------------------------------------------------------------------------------------------

  function showMoment() {
    const by = byId("group").value, groups = new Map(), stacks = new Map();
    const keyOf = { size: i => size[i], stream: i => stream[i], thread: i => thread[i], stack: i => stack[i], tag: i => tag[i] }[by];
    const nameOf = { size: key => bytes(key), stream: streamName, thread: threadName, stack: stackName, tag: tagName }[by];
    let total = 0, blocks = 0;
    for (let i = 0; i < n; i++) {
      if (from[i] > moment || to[i] <= moment) continue;
      const key = keyOf(i), group = groups.get(key) || [0, 0];
      group[0] += by === "stack" ? stackBlocks(i) : 1;
      group[1] += by === "stack" ? stackBytes(i) : size[i];
      groups.set(key, group);
      if (stack[i]) stacks.set(stack[i], (stacks.get(stack[i]) || 0) + stackBytes(i));
      total += size[i];
      blocks++;
    }
    const rows = [...groups].filter(([, group]) => group[0]).map(([key, group]) =>
      [nameOf(key), group[0], group[1], by === "stack" ? stackTitle(key) : ""]).sort((a, b) => b[2] - a[2]);
    byId("moment-name").textContent = eventName(moment) + ": " + bytes(total) + " in " + plural(blocks, "block") +
      (isWhole ? "" : " of those that the page has");
    fill("holders", table(by, rows.slice(0, 15), total));
    if (hasStacks) showFlame(stacks);
    showEvents();
  }

  // The events before and after the moment, of all blocks that the page has.
  function showEvents() {
    const first = Math.max(0, moment - 20), last = Math.min(events - 1, moment + 20), found = new Map(), rows = [];
    for (let i = 0; i < n && from[i] <= last; i++) {
      if (from[i] >= first) found.set(from[i], i);
      if (to[i] >= first && to[i] <= last && !found.has(to[i])) found.set(to[i], i);
    }
    const head = element("tr"), made = element("table");
    const columns = ["event", ...hasTimes ? ["time"] : [], "", "size", "address", "stream", "thread", ...hasTags ? ["tag"] : [], ...hasStacks ? ["call stack"] : []];
    head.append(...columns.map(name => element("th", name)));
    for (let event = first; event <= last; event++) {
      const i = found.get(event), row = element("tr"), time = hasTimes ? [seconds(timeOf(event))] : [];
      const texts = i === undefined ? [isWhole ? "failed, or of no block" : "of no block of this page"] :
        [from[i] === event ? "allocate" : "free", bytes(size[i]), "0x" + address[i].toString(16), streamName(stream[i]).replace("stream ", ""),
          threadName(thread[i]).replace("thread ", ""),
          ...hasTags ? [tagName(tag[i])] : [], ...hasStacks ? [stackName(stack[i])] : []];
      const cells = [count(event), ...time, ...texts].map(text => element("td", text));
      if (i !== undefined) row.title = stackTitle(stack[i]);
      if (event === moment) {
        row.ariaCurrent = "true";
        if (i !== undefined && stack[i]) cells.at(-1).append(element("pre", stackTitle(stack[i])));
      }
      row.append(...cells);
      row.onclick = () => choose(event);
      rows.push(row);
    }
    made.append(head, ...rows);
    fill("events", made);
  }

  // Rectangles as wide as the bytes of a call, the outermost calls at the bottom.
  function showFlame(stacks) {
    const total = [...stacks.values()].reduce((sum, amount) => sum + amount, 0);
    const root = { bytes: total, calls: new Map() }, box = byId("flame"), made = [];
    let depth = 0;
    for (const [index, amount] of stacks) {
      let node = root;
      const frames = framesOf(index).reverse();
      for (const name of frames) {
        if (!node.calls.has(name)) node.calls.set(name, { bytes: 0, calls: new Map() });
        node = node.calls.get(name);
        node.bytes += amount;
      }
      depth = Math.max(depth, frames.length);
    }
    const put = (node, left, level) => {
      for (const [name, call] of [...node.calls].sort((a, b) => b[1].bytes - a[1].bytes)) {
        const share = call.bytes / total, part = element("div", name);
        if (share < 0.002) continue;
        const [red, green, blue] = palette[(name.length * 7 + level) % palette.length];
        part.style.cssText = "left:" + 100 * left + "%;width:" + 100 * share + "%;bottom:" + 1.4 * level + "em;background:rgb(" +
          [red, green, blue].map(part => Math.round(part * 0.5 + 127)) + ")";
        part.title = name + ": " + bytes(call.bytes) + " (" + percent(call.bytes, total) + ")";
        part.onmouseenter = () => { byId("flame-under").textContent = part.title; };
        made.push(part);
        put(call, left, level + 1);
        left += share;
      }
    };
    put(root, 0, 0);
    byId("flame-box").hidden = false;
    box.style.height = 1.4 * depth + 0.3 + "em";
    box.replaceChildren(...made);
  }

  function choose(event) {
    moment = Math.max(0, Math.min(events - 1, Math.floor(event)));
    byId("moment").value = moment;
    showMoment();
    requestDraw();
  }

  // ---- What is under the mouse ------------------------------------------------------------------------------------

  function tell(canvas, x, y) {
    const box = canvas.getBoundingClientRect(), at = start + (end - start) * (x - box.left) / box.width;
    const event = Math.max(0, Math.min(events - 1, Math.floor(toEvent(at))));
    let text = eventName(event), title = "";
    for (const [line, word] of [[live, " live"], [held, " held"], [free, " free on the device"]]) {
      const i = stepOf(line, event), [least, most] = [line.least[i], line.most[i]];
      if (i >= 0) text += (line === live ? ": " : ", ") + (least < most ? bytes(least) + " to " : "") + bytes(most) + word;
    }
    const mark = marks.filter(mark => mark.event <= event && (mark.end === null || event < mark.end)).pop();
    if (mark) text += ", in " + mark.name;
    if (canvas === map) {
      const where = low + (1 - (y - box.top) / box.height) * (high - low);
      for (let i = 0; i < n; i++)
        if (from[i] <= event && to[i] > event && place[i] <= where && where < place[i] + size[i]) {
          text += " — block of " + bytes(size[i]) + " (" + count(size[i]) + " bytes) at 0x" + address[i].toString(16) +
            ", " + streamName(stream[i]) + ", " + threadName(thread[i]) + ", from " + eventName(from[i]) +
            (to[i] < events ? " to " + eventName(to[i]) : ", not freed") + (tag[i] ? ", " + tagName(tag[i]) : "") +
            (stack[i] ? ", " + stackName(stack[i]) : "");
          title = stackTitle(stack[i]);
          break;
        }
    }
    canvas.title = title;
    byId("under").textContent = text;
  }

  // ---- Mouse, keys, choices ---------------------------------------------------------------------------------------

  function listen(canvas) {
    let grabbed = null;
    const axisAt = event => {
      const box = canvas.getBoundingClientRect();
      return start + (end - start) * (event.clientX - box.left) / box.width;
    };
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (event.altKey && canvas === map) {
        const box = canvas.getBoundingClientRect();
        zoomRows(Math.exp(event.deltaY / 400), low + (1 - (event.clientY - box.top) / box.height) * (high - low));
      } else if (event.shiftKey) look(start + (end - start) * event.deltaY / 1000, end + (end - start) * event.deltaY / 1000);
      else zoom(Math.exp(event.deltaY / 400), axisAt(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => {
      grabbed = { x: event.clientX, y: event.clientY, start, end, low, high, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      tell(canvas, event.clientX, event.clientY);
      if (!grabbed) return;
      const moved = event.clientX - grabbed.x, rose = event.clientY - grabbed.y, box = canvas.getBoundingClientRect();
      if (Math.abs(moved) > 3 || (canvas === map && Math.abs(rose) > 3)) grabbed.moved = true;
      const shift = moved / box.width * (grabbed.end - grabbed.start), rise = rose / box.height * (grabbed.high - grabbed.low);
      if (grabbed.moved) look(grabbed.start - shift, grabbed.end - shift);
      if (grabbed.moved && canvas === map) lookAtRows(grabbed.low + rise, grabbed.high + rise);
    });
    canvas.addEventListener("pointerup", event => {
      if (grabbed && !grabbed.moved) choose(toEvent(axisAt(event)));
      grabbed = null;
    });
    canvas.addEventListener("pointercancel", () => { grabbed = null; }); // the finger scrolls the page
    canvas.addEventListener("focus", requestDraw);
    canvas.addEventListener("blur", requestDraw);
    canvas.addEventListener("keydown", event => {
      const span = end - start, middle = (start + end) / 2;
      const moves = { ArrowLeft: () => look(start - span / 8, end - span / 8), ArrowRight: () => look(start + span / 8, end + span / 8),
        "+": () => zoom(0.7, middle), "=": () => zoom(0.7, middle), "-": () => zoom(1 / 0.7, middle), Home: lookAtAll,
        Enter: () => choose(toEvent(middle)) };
      const rows = high - low, centre = (low + high) / 2;
      if (canvas === map)
        Object.assign(moves, { ArrowUp: () => lookAtRows(low + rows / 8, high + rows / 8), ArrowDown: () => lookAtRows(low - rows / 8, high - rows / 8),
          PageUp: () => zoomRows(0.7, centre), PageDown: () => zoomRows(1 / 0.7, centre) });
      if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      moves[event.key]();
      const box = canvas.getBoundingClientRect();
      tell(canvas, box.left + box.width / 2, box.top + box.height / 2);
    });
  }

  showWhole();
  if (!events) {
    for (const part of document.querySelectorAll(".scripted")) part.hidden = true;
    return;
  }
  byId("axis").options[1].disabled = !hasTimes;
  for (const id of ["colour", "group"])
    for (const [word, isThere] of [["stack", hasStacks], ["tag", hasTags]]) byId(id).querySelector("[value=" + word + "]").disabled = !isThere;
  byId("moment").max = events - 1;
  listen(curve);
  listen(map);
  byId("axis").addEventListener("change", () => {
    const first = toEvent(start), last = toEvent(end);
    isTime = byId("axis").value === "time";
    look(toAxis(first), Math.max(toAxis(last), toAxis(first)));
  });
  byId("colour").addEventListener("change", () => { showLegend(); requestDraw(); });
  byId("group").addEventListener("change", showMoment);
  byId("moment").addEventListener("input", () => choose(+byId("moment").value));
  byId("to-peak").addEventListener("click", () => {
    choose(summary.peak.event);
    look(toAxis(moment) - limit() / 40, toAxis(moment) + limit() / 40);
  });
  byId("zoom-in").addEventListener("click", () => zoom(0.5, (start + end) / 2));
  byId("zoom-out").addEventListener("click", () => zoom(2, (start + end) / 2));
  byId("reset").addEventListener("click", lookAtAll);
  byId("rows-in").addEventListener("click", () => zoomRows(0.5, (low + high) / 2));
  byId("rows-out").addEventListener("click", () => zoomRows(2, (low + high) / 2));
  byId("free-choice").hidden = !free.at.length;
  // A device that is mostly free would leave no room for the rest.
  byId("free").checked = free.most.reduce((least, value) => Math.min(least, value), Infinity) < 2 * Math.max(summary.peak.bytes, summary.held ? summary.held.peak_bytes : 0);
  byId("free").addEventListener("change", requestDraw);
  byId("mark-choice").hidden = !marks.length;
  byId("mark").append(...marks.map((mark, i) => new Option(mark.name + ", " + eventName(mark.event), i)));
  byId("mark").addEventListener("change", () => {
    const mark = marks[byId("mark").value], next = mark.end === null ? mark.event + events / 40 : mark.end, room = Math.max(4, (next - mark.event) / 8);
    choose(Math.min(mark.event, events - 1));
    look(toAxis(Math.max(0, mark.event - room)), toAxis(Math.min(events - 1, next + room)));
  });
  addEventListener("resize", requestDraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", requestDraw);
  for (const type of ["beforeprint", "afterprint"]) addEventListener(type, () => { // on paper a dark page is light
    document.documentElement.classList.toggle("is-printed", type === "beforeprint");
    draw();
  });
  if (hasStacks) byId("group").value = "stack";
  if (hasTags) byId("colour").value = byId("group").value = "tag";
  showLegend();
  look(0, limit());
  choose(moment);
})();
