# SPDX-License-Identifier: MIT
"""Plots with logarithmic axes, as SVG, readable on white and on black. growth.py draws with it."""

import math
from html import escape

WIDTH, HEIGHT = 440, 350
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 98, 52

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #444c56; }
  .title { font-size: 14px; font-weight: 600; }
  .axis { stroke: #768390; fill: none; }
  .grid { stroke: #768390; stroke-opacity: 0.25; fill: none; }
  .line { fill: none; stroke-width: 2; }
  .s0 { stroke: #0072b2; color: #0072b2; } .s1 { stroke: #d55e00; color: #d55e00; }
  .s2 { stroke: #009e73; color: #009e73; } .s3 { stroke: #b0609a; color: #b0609a; }
  .mark { fill: currentColor; }
  @media (prefers-color-scheme: dark) {
    text { fill: #adbac7; }
    .s0 { stroke: #56b4e9; color: #56b4e9; } .s1 { stroke: #f0883e; color: #f0883e; }
    .s2 { stroke: #2fc79b; color: #2fc79b; } .s3 { stroke: #d795c2; color: #d795c2; }
  }
"""

DASHES = ["", "7 3", "2 3", "9 3 2 3"]


def number(value):
    if value >= 1000:
        for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
            if value >= size:
                return f"{value / size:g}{unit}"
    return f"{value:g}"


class Panel:
    """One plot: `series` is a list of (name, [(x, y), …]), at most four; `ticks` are (x, label)."""

    def __init__(self, title, x_label, y_label, ticks, series):
        self.title, self.x_label, self.y_label, self.ticks, self.series = title, x_label, y_label, ticks, series
        xs = [x for _, points in series for x, _ in points]
        ys = [y for _, points in series for _, y in points]
        self.x_range = (math.log10(min(xs)), math.log10(max(xs)))
        floor = math.floor(math.log10(min(ys)))
        self.y_range = (floor, max(math.ceil(math.log10(max(ys))), floor + 1))

    def x(self, value):
        low, high = self.x_range
        return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        low, high = self.y_range
        return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
        for power in range(self.y_range[0], self.y_range[1] + 1):
            y = self.y(10.0**power)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(10.0**power)}</text>'
        for value, label in self.ticks:
            x = self.x(value)
            yield f'<path class="axis" d="M{x:.1f} {floor}v5"/>'
            yield f'<text x="{x:.1f}" y="{floor + 19}" text-anchor="middle">{escape(label)}</text>'
        yield f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{right}"/>'
        yield f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(self.x_label)}</text>'
        middle = (TOP + floor) / 2
        turned = f'x="16" y="{middle}" transform="rotate(-90 16 {middle})"'
        yield f'<text {turned} text-anchor="middle">{escape(self.y_label)}</text>'

    def legend(self, index, name):
        x, y = LEFT + index % 2 * 176, 48 + index // 2 * 20
        yield f'<path class="line s{index}" stroke-dasharray="{DASHES[index]}" d="M{x} {y - 4}h26"/>'
        yield f'<text x="{x + 32}" y="{y}">{escape(name)}</text>'

    def draw(self):
        yield f'<text class="title" x="{LEFT}" y="20">{escape(self.title)}</text>'
        yield from self.axes()
        for index, (name, points) in enumerate(self.series):
            places = [(self.x(x), self.y(y)) for x, y in points]
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            yield f'<path class="line s{index}" stroke-dasharray="{DASHES[index]}" d="M{path}"/>'
            yield from (f'<circle class="mark s{index}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places)
            yield from self.legend(index, name)


def write(path, description, panels):
    """The panels side by side."""
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}" '
             f'width="{WIDTH * len(panels)}" height="{HEIGHT}" role="img">',
             f"<title>{escape(description)}</title>", f"<style>{STYLE}</style>"]
    for i, panel in enumerate(panels):
        lines += [f'<g transform="translate({i * WIDTH} 0)">', *panel.draw(), "</g>"]
    path.write_text("\n".join(lines + ["</svg>", ""]))
