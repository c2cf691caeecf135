// SPDX-License-Identifier: MIT
//
// node page_lines.js PAGE: runs the script of a page of `hipmm report` without a browser, at several zooms. The lines of pages and
// of what is held may lie nowhere below the live bytes that are drawn with them. Prints how many columns of pixels were compared.
"use strict";
const fs = require("fs");
const html = fs.readFileSync(process.argv[2], "utf8");
const width = 400, height = 120;
let columns = 0, worst = 0;

// Where a line of points is at x; the highest of several places, and undefined where it is not.
function lineAt(points, x) {
  let found;
  for (let i = 0; i + 1 < points.length; i++) {
    const [[left, from], [right, to]] = [points[i], points[i + 1]];
    if (x < left || x > right || left === right) continue;
    const y = from + (to - from) * (x - left) / (right - left);
    if (found === undefined || y < found) found = y;
  }
  return found;
}

function makeContext() {
  let fills = [], points = [];
  return {
    canvas: { matches: () => true },
    setTransform() { fills = []; },
    fillRect(x, y, w) { if (w === 1 && this.fillStyle === "--fill") fills.push([x, y]); },
    fillText() {}, measureText: () => ({ width: 40 }),
    beginPath() { points = []; },
    lineTo(x, y) { points.push([x, y]); },
    stroke() {
      for (const [x, y] of this.strokeStyle === "--free" ? [] : fills) {
        const line = lineAt(points, x + 0.5);
        if (line === undefined) continue;
        columns++;
        worst = Math.max(worst, line - y);
      }
    },
    createImageData: (w, h) => ({ data: new Uint8ClampedArray(4 * w * h) }),
    putImageData() {},
  };
}

const elements = new Map();
function makeElement(id) {
  const data = new RegExp('<script type="[^"]*" id="' + id + '">([^<]*)</script>').exec(html);
  const context = makeContext(), listeners = {};
  return {
    textContent: data ? data[1] : "", listeners, style: { setProperty() {} }, options: [{}, {}],
    value: { colour: "size", group: "size", axis: "events" }[id] || "",
    remove() {}, append() {}, replaceChildren() {}, querySelector: () => ({}), setPointerCapture() {},
    classList: { add() {} },
    addEventListener(name, call) { listeners[name] = call; },
    getBoundingClientRect: () => ({ width, height, left: 0, top: 0 }), getContext: () => context,
  };
}
const byId = id => { if (!elements.has(id)) elements.set(id, makeElement(id)); return elements.get(id); };
global.document = { getElementById: byId, createElement: () => makeElement(""), documentElement: { classList: { add() {} } },
  querySelectorAll: query => query === ".memory" ? [byId("text-0")] : [] };
global.location = { hash: "" };
global.getComputedStyle = () => ({ getPropertyValue: name => name });
global.devicePixelRatio = 1;
global.requestAnimationFrame = call => call();
global.addEventListener = () => {};
global.matchMedia = () => ({ addEventListener() {} });
global.atob = text => Buffer.from(text, "base64").toString("latin1");
global.Option = function () {};

const scripts = [...html.matchAll(/<script>\n([\s\S]*?)<\/script>/g)];
eval(scripts[scripts.length - 1][1]);
for (let zoom = 0; zoom < 12; zoom++) {
  byId("zoom-in").listeners.click();
  for (const key of ["ArrowRight", "ArrowLeft"]) byId("curve").listeners.keydown({ key, preventDefault() {} });
}
byId("to-peak").listeners.click();
for (const key of ["PageUp", "ArrowUp", "ArrowDown", "PageDown", "Home"]) byId("map").listeners.keydown({ key, preventDefault() {} });
if (worst > 0.01 || !columns) {
  console.log("the line of pages lies " + worst + " pixels below the live bytes, in " + columns + " columns");
  process.exit(1);
}
console.log(columns, byId("moment-name").textContent);
