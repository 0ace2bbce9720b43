"""The first microseconds of one call of CartPole on a GPU, as a timeline: each manual change on XLA, and the plain program on Tokamak.

Of each row bench/paper measured the wall time of a call, and with JAX's profiler the sum of all kernels' and copies' times and their number.
Single kernels were not recorded: each is drawn with the mean duration, and each gap with the mean gap."""
import math

import svg
from paper_data import CHANGES, RUNGS, STEPS, WITHOUT_DRAWS, measured

LEFT, RIGHT = 224, svg.WIDTH - svg.MARGIN - 148  # of the axis
TOP, PITCH, HEIGHT = 104, 62, 26  # of the first row; from row to row; of a kernel
STEPS_SHOWN = 5  # of the plain program on XLA
UNROLLED = {RUNGS[3][1]: 10}  # steps in one iteration of the loop, where it is not one


class Lane:
    """One row: iterations of a loop, and in each the same kernels and copies."""

    def __init__(self, side, label, record, unrolled=1):
        self.side, self.label = side, label
        self.call_ms = record["ms"]
        self.launches = round((record["device_kernels"] + record["device_copies"]) * STEPS)
        self.steps = unrolled if self.launches >= STEPS / unrolled else STEPS  # of one iteration of the loop on the host
        self.kernels, self.copies = (round(record[key] * self.steps) for key in ("device_kernels", "device_copies"))
        self.step_us = record["ms"] * 1e3 / STEPS
        self.busy_us = min(record["device_ms"] * 1e3 / STEPS, self.step_us)

    def events(self, until):
        """(begin and end in us, whether it is a copy), as far as until."""
        count = self.kernels + self.copies
        busy, pitch = (us * self.steps / count for us in (self.busy_us, self.step_us))
        for number in range(math.ceil(until / pitch)):
            yield number * pitch, min(number * pitch + busy, until), number % count >= self.kernels

    def iterations(self, until):
        """(begin and end in us, which steps), as far as until."""
        length = self.step_us * self.steps
        for number in range(math.ceil(until / length)):
            first = number * self.steps + 1
            yield number * length, min((number + 1) * length, until), f"step {first}" if self.steps == 1 else f"steps {first:,} to {first + self.steps - 1:,}"


def lanes(report):
    """Every row for which the device's work is known; none without the plain program on both sides."""
    found = []
    for side, column, rungs in (("XLA", "xla", RUNGS), ("Tokamak", "tokamak", RUNGS[:1])):
        for label, (_, program, _, _) in zip(CHANGES, rungs):
            record = report.cell(program, column) or {}
            if "device_ms" in record:
                found.append((program, record, Lane(side, label, record, UNROLLED.get(program, 1))))
    both = {lane.side for program, _, lane in found if program == RUNGS[0][1]} == {"XLA", "Tokamak"}
    return [(record, lane) for _, record, lane in found] if both else []


def draw(report):
    """The picture, or None where the device's work was not measured."""
    rows = lanes(report)
    if not rows:
        return None
    before, after = rows[0][1], rows[-1][1]
    until = 5 * math.ceil(STEPS_SHOWN * before.step_us / 5)
    to_x = lambda us: LEFT + (RIGHT - LEFT) * us / until  # noqa: E731
    bottom = TOP + PITCH * len(rows)
    columns = ((svg.WIDTH - svg.MARGIN - 78, "launches"), (svg.WIDTH - svg.MARGIN, "time"))
    parts = [part for x, words in columns for part in (svg.text(x, 74, words, 11, "end", svg.SOFT), svg.text(x, 88, "per call", 11, "end", svg.SOFT))]
    for us in range(0, until + 1, 5):
        parts += [svg.line(to_x(us), TOP - 8, to_x(us), bottom - 8), svg.text(to_x(us), bottom + 10, us, 11, "middle", svg.SOFT)]
    parts.append(svg.text((LEFT + RIGHT) / 2, bottom + 30, "microseconds since the loop began", 12, "middle"))
    for number, (_, lane) in enumerate(rows):
        parts += _row(lane, TOP + PITCH * number, until, to_x)
    title = "CartPole on the GPU, before and after: "
    title += f"{before.launches / STEPS:.0f} launches per step, or one for all steps" if after.launches == 1 else "launches per step"
    subtitle = (f"The first {until} µs of one call ({report.n:,} simulations, {STEPS:,} steps): {until / before.step_us:.0f} steps of the plain program on XLA, "
                f"{until / after.step_us:.0f} on Tokamak.")  # fmt: skip
    caption = ["Dark: kernels. Light: copies. Between them the GPU waits. " + WITHOUT_DRAWS,
               "Drawn from the wall time of a call, and from the number and total time of its kernels and copies (profiler): each has its row's mean.",
               measured(report, [record for record, _ in rows]) + "."]  # fmt: skip
    return svg.page(bottom + 54 + 16 * len(caption), title, subtitle, caption, parts)


def _row(lane, y, until, to_x):
    color, copy = (svg.TOKAMAK, svg.TOKAMAK_VARIANT) if lane.side == "Tokamak" else (svg.XLA, svg.XLA_VARIANT)
    bar = y + 16
    parts = [svg.text(svg.MARGIN, bar + 8, lane.side, 13, bold=True), svg.text(svg.MARGIN, bar + 24, lane.label, 12)]
    parts += [svg.text(svg.WIDTH - svg.MARGIN - 78, bar + 18, f"{lane.launches:,}", 12, "end"), svg.text(svg.WIDTH - svg.MARGIN, bar + 18, f"{svg.shown(lane.call_ms)} ms", 12, "end")]
    parts.append(svg.line(LEFT, bar + HEIGHT / 2, RIGHT, bar + HEIGHT / 2, svg.GRID, 2))
    for begin, end, is_copy in lane.events(until):
        parts.append(svg.rect(to_x(begin), bar, to_x(end) - to_x(begin), HEIGHT, copy if is_copy else color, "#ffffff"))
    if lane.launches == 1:  # the steps inside of the only kernel
        parts += [svg.line(to_x(step * lane.step_us), bar + 6, to_x(step * lane.step_us), bar + HEIGHT - 6, copy) for step in range(1, math.ceil(until / lane.step_us))]
    for begin, end, words in lane.iterations(until):
        words = f"one kernel: {words}" if lane.launches == 1 else words
        parts.append(svg.line(to_x(begin) + 1, y + 12, to_x(end) - 1, y + 12, svg.SOFT))
        middle, width = (to_x(begin) + to_x(end)) / 2, svg.text_width(words, 10)
        if to_x(end) - to_x(begin) > width:
            parts += [svg.rect(middle - width / 2, y - 2, width, 12, "#ffffff"), svg.text(middle, y + 8, words, 10, "middle", svg.SOFT)]
    return parts
