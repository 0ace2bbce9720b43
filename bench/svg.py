"""Pictures as SVG text: shapes, grouped bars, and lines over logarithmic axes. Uses only the standard library, so that pages have plots
wherever they are generated. Every picture has a background of its own, so that it is readable on light and on dark pages."""
import math
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH = 880  # of every plot, in pixels: about the width of a page
MARGIN = 20
INK, SOFT, GRID = "#1f2328", "#59636e", "#dfe3e8"  # words and lines; secondary words; grid lines
# One color per side, the same in all plots; the lighter shade is a variant of the side.
XLA, XLA_VARIANT, TOKAMAK, TOKAMAK_VARIANT, BY_HAND, BY_HAND_VARIANT = "#6e7781", "#b9c0c8", "#0f7b5f", "#8fcab6", "#d9822b", "#f0c79d"
LIGHTER = {XLA: XLA_VARIANT, TOKAMAK: TOKAMAK_VARIANT, BY_HAND: BY_HAND_VARIANT, XLA_VARIANT: "#dfe3e8", TOKAMAK_VARIANT: "#d3ebe2"}
SERIES = (XLA, "#c9a227", "#3f7fb5", "#c0475a", TOKAMAK, "#7b4f9d", INK, BY_HAND)  # where lines differ by something else than their side
FONTS = {False: "Helvetica, Arial, sans-serif", True: "Menlo, Consolas, monospace"}


def text(x, y, words, size=12, anchor="start", color=INK, bold=False, mono=False, turned=False):
    """Words with their baseline at y. anchor: start, middle or end. turned: upwards, as the title of a vertical axis."""
    more = ' font-weight="bold"' * bold + f' transform="rotate(-90 {x:.1f} {y:.1f})"' * turned
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" font-family="{FONTS[mono]}"{more}>{escape(str(words))}</text>'


def text_width(words, size=12):
    """An upper bound for the fonts that are usual for sans-serif."""
    return 0.63 * size * len(words)


def rect(x, y, width, height, fill, line=None, radius=0.0):
    stroke = f' stroke="{line}"' if line else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}" fill="{fill}"{stroke}/>'


def line(x1, y1, x2, y2, color=GRID, width=1.0, dashed=False):
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width:g}"{dashes}/>'


def page(height, title, subtitle, caption, parts, width=WIDTH):
    """A whole picture: the title and what is shown above the parts, and below them the lines of the caption, which end at height."""
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" viewBox="0 0 {width} {height:.0f}" role="img">',
            f"<title>{escape(title)}</title>", rect(0.5, 0.5, width - 1, round(height) - 1, "#ffffff", "#d0d7de", 6),
            text(MARGIN, 32, title, 17, bold=True), text(MARGIN, 52, subtitle, 12, color=SOFT)]  # fmt: skip
    below = [text(MARGIN, height - 16 - 16 * (len(caption) - 1 - number), words, 11, color=SOFT) for number, words in enumerate(caption)]
    return "\n".join([*head, *parts, *below, "</svg>"]) + "\n"


def shown(value):
    """Three digits, and all of those before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _nothing(title):
    return page(80, title, "nothing was measured", [], [])


def _linear_ticks(high):
    """At most seven numbers from zero to high, a round step apart."""
    step = next(s for s in (f * 10.0**e for e in range(-6, 12) for f in (1, 2, 5)) if high / s <= 6)
    return [number * step for number in range(int(high / step + 1e-9) + 1)]


class Bar(NamedTuple):
    """One bar. value: None where nothing was measured. inner: how far the bar has its full color; the rest is light. extra: words at the right."""

    label: str
    value: float | None
    color: str
    inner: float | None = None
    extra: str = ""


def bars(title, subtitle, groups, axis, caption, extra=None):
    """Horizontal bars over a linear axis that begins at zero. groups: [(heading, [Bar])]. axis: its title with the unit, and the unit's
    short form, which stands behind each value. extra: the heading of a column at the right."""
    values = [bar.value for _, of in groups for bar in of if bar.value]
    if not values:
        return _nothing(title)
    axis_title, unit = axis
    left, right = 252, WIDTH - MARGIN - 72 - (text_width(extra, 11) if extra else 0)  # a value stands behind its bar
    top, pitch, heading = 74, 22, 26
    bottom = top + sum(heading + pitch * len(of) for _, of in groups) + 4 * (len(groups) - 1)
    to_x = lambda value: left + max(2, (right - left) * value / max(values)) if value else left  # noqa: E731
    ticks = _linear_ticks(max(values))
    parts = [text(to_x(tick), bottom + 20, shown(tick), 11, "middle", SOFT) for tick in ticks]
    parts += [text((left + right) / 2, bottom + 40, axis_title, 12, "middle")]
    parts += [text(WIDTH - MARGIN, top + 14, extra, 11, "end", SOFT)] if extra else []
    y = top
    for name, of in groups:
        parts.append(text(MARGIN, y + 14, name, 12, bold=True))
        y += heading
        parts += [line(to_x(tick), y - 3, to_x(tick), y + pitch * len(of) - 1, SOFT if tick == 0 else GRID) for tick in ticks]
        for bar in of:
            parts += [text(left - 10, y + 13, bar.label, 12, "end"), *_bar(bar, (left, y), to_x, unit)]
            parts += [text(WIDTH - MARGIN, y + 13, bar.extra, 12, "end")] if bar.extra else []
            y += pitch
        y += 4
    return page(bottom + 62 + 16 * len(caption), title, subtitle, caption, parts)


def _bar(bar, corner, to_x, unit):
    left, y = corner
    words = f"{shown(bar.value)} {unit}" if bar.value else "not measured"
    end = to_x(bar.value)
    parts = [rect(end + 3, y, text_width(words), 17, "#ffffff"), text(end + 7, y + 13, words, 12, color=INK if bar.value else SOFT)]
    if bar.value:
        inner = to_x(min(bar.inner or bar.value, bar.value))
        parts += [rect(left, y, end - left, 17, LIGHTER[bar.color]), rect(left, y, inner - left, 17, bar.color)]
    return parts


class _LogAxis:
    """Maps numbers to positions, logarithmically."""

    def __init__(self, low, high, begin, end):
        self.low, self.high = math.log10(low), math.log10(high if high > low else low * 10)
        self.begin, self.end = begin, end

    def __call__(self, value):
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        """Powers of ten; over few of them also their doubles and fivefolds."""
        factors = (1,) if self.high - self.low > 2.5 else (1, 2, 5)
        every = [f * 10.0**e for e in range(math.floor(self.low), math.ceil(self.high) + 1) for f in factors]
        return [tick for tick in every if self.low - 1e-9 <= math.log10(tick) <= self.high + 1e-9]


def _legend(looks, y):
    """One row of names if they fit, else columns of equal width; where only one would fit, rows one after the other. Returns the parts and the
    last baseline."""
    sample, right = 32, WIDTH - MARGIN  # a piece of the line and a gap
    widths = [sample + text_width(name) + 12 for name in looks]
    columns = int((right - MARGIN) // max(widths))
    if columns > 1 and sum(widths) > right - MARGIN:
        widths = [(right - MARGIN) / columns] * len(widths)
    parts, x = [], MARGIN
    for wide, (name, (color, dashed)) in zip(widths, looks.items()):
        if x > MARGIN and x + wide > right + 1:
            x, y = MARGIN, y + 20
        parts += [line(x, y - 4, x + sample - 8, y - 4, color, 3, dashed), text(x + sample, y, name, 12)]
        x += wide
    return parts, y


def lines(title, subtitle, panels, across, caption, looks, height=440):
    """Lines over two logarithmic axes. panels: [(title of the vertical axis with its unit, {name: [(x, y)]})], side by side, one unit each.
    looks: {name: (color, dashed)}, in the order of the legend."""
    panels = [(unit, {name: sorted((x, y) for x, y in series.get(name, []) if x and y) for name in looks}) for unit, series in panels]
    looks = {name: look for name, look in looks.items() if any(series[name] for _, series in panels)}
    if not looks:
        return _nothing(title)
    parts, y = _legend(looks, 78)
    top, bottom = y + 22, height - 62 - 16 * len(caption)
    wide = (WIDTH - 2 * MARGIN - 30 * (len(panels) - 1)) / len(panels)
    for number, (unit, series) in enumerate(panels):
        begin = MARGIN + number * (wide + 30)
        parts += _panel(unit, across, {name: series[name] for name in looks if series[name]}, looks, (begin, begin + wide, top, bottom))
    return page(height, title, subtitle, caption, parts)


def _panel(unit, across, series, looks, area):
    begin, end, top, bottom = area
    left, right = begin + 62, end - 30
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    if not ys:
        return []
    ax, ay = _LogAxis(xs[0], xs[-1], left, right), _LogAxis(min(ys) / 1.4, max(ys) * 1.4, bottom, top)
    parts = [text(begin + 14, (top + bottom) / 2, unit, 12, "middle", turned=True), text((left + right) / 2, bottom + 40, across, 12, "middle")]
    for tick in ay.ticks():
        if bottom - ay(tick) > 4:  # else it would double the axis
            parts.append(line(left, ay(tick), right, ay(tick)))
        parts += [text(left - 8, ay(tick) + 4, shown(tick), 11, "end", SOFT)]
    last = -math.inf
    for x in xs:
        parts.append(line(ax(x), bottom, ax(x), bottom + 5, SOFT))
        if ax(x) - text_width(shown(x), 11) / 2 > last + 6:  # else it would run into the label before
            last = ax(x) + text_width(shown(x), 11) / 2
            parts.append(text(ax(x), bottom + 20, shown(x), 11, "middle", SOFT))
    parts.append(line(left, bottom, right, bottom, SOFT))
    for name, points in series.items():
        color, dashed = looks[name]
        dashes = ' stroke-dasharray="6 4"' if dashed else ""
        path = " ".join(f"{ax(x):.1f},{ay(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.4" stroke-linejoin="round"{dashes}/>')
        parts += [f'<circle cx="{ax(x):.1f}" cy="{ay(y):.1f}" r="3.4" fill="{color}" stroke="#ffffff"/>' for x, y in points]
    return parts
