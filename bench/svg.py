"""Plots as SVG text: grouped bars, and lines over logarithmic axes. Uses only the standard library, so that pages have plots wherever they
are generated; a white background keeps them readable on dark pages."""
import math
from xml.sax.saxutils import escape

COLORS = ("#8c8c8c", "#c9a227", "#5b8db8", "#d1495b", "#2e7d5b", "#7b4f9d", "#222222", "#e08e45")
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def _text(x, y, words, size=12, anchor="start", color="#222", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" {FONT} {more}>{escape(str(words))}</text>'


def _shown(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _ticks(low, high):
    return [10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


class _Axis:
    """Maps numbers to positions, logarithmically."""

    def __init__(self, values, begin, end):
        low, high = min(values), max(values)
        self.low, self.high = math.log10(low), math.log10(high if high > low else low * 10)
        self.begin, self.end = begin, end

    def __call__(self, value):
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.begin)


def _page(width, height, title, note, parts):
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>", f'<rect width="{width}" height="{height}" fill="#ffffff"/>', _text(16, 26, title, 16, more='font-weight="bold"')]  # fmt: skip
    if note:
        head.append(_text(16, 44, note, 11, color="#666"))
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _legend(names, colors, x, y, width):
    parts = []
    for name, color in zip(names, colors):
        wide = 30 + 6.8 * len(name)
        if x + wide > width:
            x, y = 16, y + 18
        parts += [f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{color}"/>', _text(x + 17, y, name, 12)]
        x += wide
    return parts, y


def rows(title, groups, unit, note="", width=860):
    """Horizontal bars: groups is [(name, [(label, value or None, color's number)])]; a missing value is labelled."""
    values = [v for _, of in groups for _, v, _ in of if v]
    if not values:
        return _page(width, 80, title, "nothing was measured", [])
    left, right = 250, width - 80
    parts, y = [], 62
    bottom = y + sum(24 + 21 * len(of) for _, of in groups)
    step = 10.0 ** math.floor(math.log10(max(values)))
    step = step if max(values) / step > 3 else step / 2 if max(values) / step > 1.5 else step / 5
    to_x = lambda value: left + (right - left) * value / max(values)  # noqa: E731
    for number in range(int(max(values) / step) + 1):
        x = to_x(number * step)
        parts += [f'<line x1="{x:.1f}" y1="{y - 6}" x2="{x:.1f}" y2="{bottom}" stroke="#e4e4e4"/>', _text(x, bottom + 15, _shown(number * step), 11, "middle", "#666")]
    for name, of in groups:
        parts.append(_text(16, y + 10, name, 12, more='font-weight="bold"'))
        y += 18
        for label, value, color in of:
            parts.append(_text(240, y + 12, label, 12, "end"))
            if value:
                parts += [f'<rect x="{left}" y="{y + 1}" width="{max(2, to_x(value) - left):.1f}" height="15" rx="2" fill="{COLORS[color % len(COLORS)]}"/>',
                          _text(to_x(value) + 6, y + 13, _shown(value), 12)]  # fmt: skip
            else:
                parts.append(_text(256, y + 12, "not measured", 11, color="#999"))
            y += 21
        y += 6
    parts.append(_text(width - 16, bottom + 15, unit, 11, "end", "#666"))
    return _page(width, int(bottom + 30), title, note, parts)


def lines(title, series, across, unit, note="", width=860, height=420, looks=None):
    """Lines over two logarithmic axes: series is {name: [(x, y)]}; looks gives some a color's number, and whether they are dashed."""
    series = {name: sorted((x, y) for x, y in points if x and y) for name, points in series.items()}
    series = {name: points for name, points in series.items() if points}
    if not series:
        return _page(width, 80, title, "nothing was measured", [])
    looks = {name: (looks or {}).get(name, (number, False)) for number, name in enumerate(series)}
    colors = [COLORS[looks[name][0] % len(COLORS)] for name in series]
    legend, top = _legend([name + (" (dashed)" if looks[name][1] else "") for name in series], colors, 16, 66, width)
    top += 18
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    ax, ay = _Axis(xs, 70, width - 30), _Axis([min(ys) / 1.3, max(ys) * 1.3], height - 50, top)
    parts = list(legend)
    for tick in _ticks(min(ys) / 1.3, max(ys) * 1.3):
        if ay.low <= math.log10(tick) <= ay.high:
            parts += [f'<line x1="70" y1="{ay(tick):.1f}" x2="{width - 30}" y2="{ay(tick):.1f}" stroke="#e4e4e4"/>',
                      _text(64, ay(tick) + 4, _shown(tick), 11, "end", "#666")]  # fmt: skip
    last = -99.0
    for x in xs:
        if ax(x) - last > 34:
            last = ax(x)
            parts += [f'<line x1="{last:.1f}" y1="{top}" x2="{last:.1f}" y2="{height - 50}" stroke="#f2f2f2"/>',
                      _text(last, height - 34, _shown(x), 11, "middle", "#666")]  # fmt: skip
    for (name, points), color in zip(series.items(), colors):
        dashes = ' stroke-dasharray="6 4"' if looks[name][1] else ""
        path = " ".join(f"{ax(x):.1f},{ay(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.2"{dashes}/>')
        parts += [f'<circle cx="{ax(x):.1f}" cy="{ay(y):.1f}" r="3.2" fill="{color}"/>' for x, y in points]
    parts += [_text((width + 40) / 2, height - 14, across, 12, "middle", "#444"), _text(16, top - 4, unit, 11, color="#666")]
    return _page(width, height, title, note, parts)
