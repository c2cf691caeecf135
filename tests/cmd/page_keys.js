// SPDX-License-Identifier: MIT
//
// node page_keys.js BROWSER PAGE FOLDER: drives a page of `hipmm report` by keys alone, in Chromium, whose profile is in the folder.
// Prints the first thing that cannot be reached or does not answer, or that a narrow screen or paper cuts off. Exit status 77: the
// browser does not run here.
"use strict";
const [browser, file, folder] = process.argv.slice(2);
const child = require("child_process").spawn(browser, ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
  "--user-data-dir=" + folder], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const [input, output] = child.stdio.slice(3), waiting = new Map();
let text = "", number = 0, session;
function end(status, message) {
  if (message) console.log(message);
  child.on("exit", () => process.exit(status)).kill();
}
setTimeout(() => end(77, "the browser does not answer"), 50000);
child.on("error", () => process.exit(77));
for (const pipe of [input, output]) pipe.on("error", () => {});
output.on("data", data => {
  const parts = (text += data).split("\0");
  text = parts.pop();
  for (const part of parts.map(part => JSON.parse(part))) if (waiting.has(part.id)) waiting.get(part.id)(part.result);
});
const ask = (method, params = {}) => new Promise(answer => {
  waiting.set(++number, answer);
  input.write(JSON.stringify({ id: number, method, params, sessionId: session }) + "\0");
});
const value = async expression => (await ask("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true })).result.value;
const codes = { Tab: 9, Enter: 13, PageUp: 33, Home: 36, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, "+": 187 };
async function press(key) {
  const event = { key, code: key, windowsVirtualKeyCode: codes[key], text: key === "Enter" ? "\r" : key.length === 1 ? key : undefined };
  await ask("Input.dispatchKeyEvent", { type: event.text ? "keyDown" : "rawKeyDown", ...event });
  await ask("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  await value("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
}
async function is(expression, wanted) {
  for (let i = 0; i < 50 && await value(expression) !== wanted; i++) await new Promise(later => setTimeout(later, 100));
  const found = await value(expression);
  if (found !== wanted) throw new Error(expression + " is " + found + " and not " + wanted);
}
async function reach(query) {
  for (let i = 0; i < 80; i++) {
    await press("Tab");
    if (await value("document.activeElement.matches('" + query + "')")) return;
  }
  throw new Error("Tab does not reach " + query);
}
const content = id => value("document.getElementById('" + id + "').textContent");

async function drivePlots() {
  if (await value("!document.getElementById('memory-choice').hidden")) {
    await reach("#memory");
    for (const memory of [1, 2]) {
      await press("ArrowDown");
      await is("location.hash + document.activeElement.id + document.readyState", "#text-" + memory + "memorycomplete");
    }
  }
  const events = await value("+document.getElementById('moment').max") + 1;
  await reach("#curve");
  for (const key of ["+", "Home", "Enter"]) await press(key);
  await is("+document.getElementById('moment').value", Math.floor(events / 2));
  if (!/^event .* live/.test(await content("under"))) throw new Error("the plot does not tell its middle: " + await content("under"));
  const before = await content("map-note");
  await reach("#map");
  for (const key of ["PageUp", "PageUp", "ArrowDown"]) await press(key);
  if (await content("map-note") === before) throw new Error("the addresses do not zoom");
  await reach("#moment");
  await press("ArrowRight");
  await is("+document.getElementById('moment').value", Math.floor(events / 2) + 1);
  await reach("#group");
  await reach("summary:has(+ #events)");
  await press("Enter");
  await is("document.querySelector('#events [aria-current] td').checkVisibility()", true);
  await is("document.querySelector('#events [aria-current] td').textContent", (Math.floor(events / 2) + 1).toLocaleString("en"));
  await is("(row => (row.querySelector('pre') || { textContent: '' }).textContent === row.title)(document.querySelector('#events [aria-current]'))", true);
  await is("document.querySelectorAll('#events tr').length - 1", Math.min(events, Math.floor(events / 2) + 22) - Math.max(0, Math.floor(events / 2) - 19));
}
// A browser prints a dark page with the colours of a light one; the plots are to have them, too.
async function printsLight() {
  const colours = [];
  for (const [scheme, event] of [["light"], ["dark"], ["dark", "beforeprint"], ["dark", "afterprint"]]) {
    await ask("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    await value("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
    if (event) await value("dispatchEvent(new Event('" + event + "'))");
    colours.push(await value("document.getElementById('curve').toDataURL()"));
  }
  const [light, dark, printed, after] = colours;
  if (light === dark || printed !== light || after !== dark) throw new Error("paper has the colours of a dark page");
}
async function fits(query, width, mobile) {
  await ask("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile });
  await is("Math.max(...[...document.querySelectorAll('" + query + "')].map(part => part.scrollWidth - part.clientWidth))", 0);
}
async function drive() {
  const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
  session = (await ask("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  await ask("Page.navigate", { url: "file://" + file });
  await is("document.readyState + location.protocol", "completefile:");
  const hasPlots = await value("document.getElementById('map') !== null");
  if (hasPlots) {
    await drivePlots();
    await printsLight();
  }
  await fits("html", 380, true);
  if (!hasPlots) await reach(".scroll"); // whose arrow keys move the table
  await ask("Emulation.setEmulatedMedia", { media: "print" });
  await fits("html, .scroll", 700, false);
}
drive().then(() => end(0), error => end(1, error.message));
