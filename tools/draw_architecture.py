"""Draws docs/architecture.svg: the folders of src/ in the order in which a program passes through them. The folders are those of
tools/layers.txt; one that is missing here, or unknown there, is an error. `tools/pictures.py` writes the file."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import svg  # noqa: E402

WIDTH = 960
LEFT, WIDE, GAP = 40, 178, 56  # of the columns: first x, width of a box, space for an arrow
ENTRY_TOP, TOPS, SHARED_TOP = 78, (212, 342, 472), 622  # of the rows; those in between are in the driver's frame
TALL, SHORT = 86, 64  # heights of boxes
ENTRY, STAGE, FORM, RUN, SHARED = "#dbe9f8", "#d9efe6", "#fbf0cc", "#fbe3cf", "#eceff2"  # fill colors by role
LEGEND = ((ENTRY, "entry point"), (STAGE, "stage of the compiler"), (FORM, "form of a program"), (RUN, "code and execution"), (SHARED, "reference and shared facts"))
EDGE = "#57606a"
FRAME = "driver"  # drawn around the stages: it calls them
FRAMED = {f"{FRAME}/{job}" for job in ("plugins", "compile", "report", "run", "measure", "rules", "testing")}
# folder: (column, y, height, fill, what it holds, files in it or beside src/ where to begin reading)
FOLDERS = {
    "pjrt": (0, ENTRY_TOP, SHORT, ENTRY, ("PJRT plugin for JAX",), ("api.cc", "python/jax_plugins/")),
    "cli": (1, ENTRY_TOP, SHORT, ENTRY, ("the command line",), ("cli.cc",)),
    "capi": (2, ENTRY_TOP, SHORT, ENTRY, ("C API; C++ headers over it",), ("include/tokamak/",)),
    "text": (0, TOPS[0], TALL, STAGE, ("readers and writers:", "StableHLO, VHLO, HLO"), ("read.cc",)),
    "passes": (1, TOPS[0], 41, STAGE, ("one rewrite per file; target/",), ()),
    "rewrite": (1, TOPS[0] + 45, 41, STAGE, ("pipelines, rule tables",), ()),
    "fusion": (2, TOPS[0], 41, STAGE, ("planner: what is one kernel",), ()),
    "xla_rules": (2, TOPS[0] + 45, 41, STAGE, ("XLA's rules, to compare",), ()),
    "lower": (3, TOPS[0], TALL, STAGE, ("order of steps, buffers;", "loops as one launch"), ("lower.cc", "memory.cc")),
    "interp": (0, TOPS[1], TALL, SHARED, ("reference interpreter:", "defines the values"), ("interp.h",)),
    "cost": (1, TOPS[1], TALL, STAGE, ("predicted time of a kernel,", "from measured rates"), ("estimate.cc", "machines/")),
    "gen": (2, TOPS[1], TALL, STAGE, ("generators: the loops of a", "region; gpu/, library/"), ("generator.cc",)),
    "kernel": (3, TOPS[1], TALL, FORM, ("kernel IR: the loops of one", "kernel; its simulator"), ("kernel.h", "prims.def")),
    "runtime": (1, TOPS[2], TALL, RUN, ("runs steps: buffers, events,", "threads, disk cache"), ("steps.cc",)),
    "backend/cuda": (2, TOPS[2], TALL, RUN, ("kernel IR to CUDA C++;", "NVRTC, cuBLASLt, cuDNN"), ("launch_source.cc",)),
    "backend/cpu": (3, TOPS[2], TALL, RUN, ("kernel IR to LLVM IR and", "machine code"), ("codegen.cc",)),
    "ir": (0, SHARED_TOP, TALL, FORM, ("module, ops, shapes;", "inference, verifier"), ("ir.h", "ops.def")),
    "analysis": (1, SHARED_TOP, TALL, SHARED, ("read-only facts: effects,", "loops, independence"), ("loops.h",)),
    "explain": (2, SHARED_TOP, TALL, SHARED, ("a record of each decision,", "with costs and reason"), ("rules.def",)),
    "support": (3, SHARED_TOP, TALL, SHARED, ("results, errors, hashing,", "limits"), ("result.h",)),
}  # fmt: skip


def layers(root):
    """The folders in tools/layers.txt."""
    rows = [row for row in (root / "tools/layers.txt").read_text().splitlines() if row and not row.startswith("#")]
    return {row.split(":")[0] for row in rows}


def mistakes(root):
    """How the table above differs from the tree, as messages."""
    drawn = {*FOLDERS, *FRAMED}
    found = [f"tools/layers.txt has the folder {name}, and the picture of the architecture has not" for name in sorted(layers(root) - drawn)]
    found += [f"the picture of the architecture has the folder {name}, and tools/layers.txt has not" for name in sorted(drawn - layers(root))]
    named = [(folder, name) for folder, (*_, files) in FOLDERS.items() for name in files]
    named.append((FRAME, "compile/compile.cc"))
    return found + [f"the picture of the architecture names {name} in {folder}, which does not exist" for folder, name in named
                    if not (root / "src" / folder / name).exists() and not (root / name).exists()]  # fmt: skip


def x_of(column):
    return LEFT + column * (WIDE + GAP)


def box(folder):
    column, y, height, fill, lines, files = FOLDERS[folder]
    x = x_of(column)
    parts = [svg.rect(x, y, WIDE, height, fill, EDGE, 5), svg.text(x + 10, y + 18, folder, 13, bold=True, mono=True)]
    parts += [svg.text(x + 10, y + 34 + 14 * number, words, 11) for number, words in enumerate(lines)]
    return parts + ([svg.text(x + 10, y + height - 9, ", ".join(files), 10, color=svg.SOFT, mono=True)] if files else [])


def arrow(points, words="", at=None, both=False):
    """A line through the points with a head at its end, or at both; words stand at a point, centered."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = points[0], points[1], points[-2], points[-1]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{EDGE}" stroke-width="1.6"/>', head((x2, y2), (x3, y3))]
    parts += [head((x1, y1), (x0, y0))] if both else []
    return parts + ([svg.text(*at, words, 11, "middle")] if words else [])


def head(begin, end):
    """The head of an arrow along an axis."""
    (x0, y0), (x1, y1) = begin, end
    dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
    corners = [(x1, y1), (x1 - 8 * dx + 4 * dy, y1 - 8 * dy + 4 * dx), (x1 - 8 * dx - 4 * dy, y1 - 8 * dy - 4 * dx)]
    return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}" fill="{EDGE}"/>'


def across(row, column, words, backwards=False, both=False):
    """An arrow from one column to the next one."""
    x, y = x_of(column) + WIDE, TOPS[row] + TALL / 2
    points = [(x + 3, y), (x + GAP - 3, y)]
    return arrow(points[::-1] if backwards else points, words, (x + GAP / 2, y - 8), both)


def down(row, column, words, both=False):
    """An arrow from one row of the stages to the next one."""
    x, y = x_of(column) + WIDE / 2, TOPS[row] + TALL
    return arrow([(x, y + 3), (x, TOPS[row + 1] - 3)], words, (x + 8 + svg.text_width(words, 11) / 2, y + 26), both)


def frame():
    """The driver around the stages, and how the entry points reach it."""
    top, x = TOPS[0] - 42, LEFT - 20
    parts = [svg.rect(x, top, WIDTH - 2 * x, TOPS[2] + TALL + 30 - top, "#f6f8fa", EDGE, 8), svg.text(LEFT, top + 24, FRAME, 13, bold=True, mono=True),
             svg.text(LEFT + 66, top + 24, "compile/compile.cc: Compile(module, target, options) calls the stages in this order; run/, report/ and others use the result", 11)]  # fmt: skip
    for column in range(3):
        parts += arrow([(x_of(column) + WIDE / 2, ENTRY_TOP + SHORT + 3), (x_of(column) + WIDE / 2, top - 3)])
    return parts


def legend():
    x, parts = x_of(3), []
    for number, (fill, words) in enumerate(LEGEND):
        y = ENTRY_TOP - 8 + 17 * number
        parts += [svg.rect(x, y, 14, 11, fill, EDGE, 2), svg.text(x + 21, y + 10, words, 11)]
    return parts


def flow():
    """What passes from stage to stage."""
    x, y = x_of(0), TOPS[2]
    parts = [*across(0, 0, "module"), *across(0, 1, "module"), *across(0, 2, "plan"), *down(0, 0, "module"), *down(0, 2, "regions", both=True), *down(0, 3, "kernels"),
             *across(1, 1, "cost", both=True), *across(1, 2, "loops"), *down(1, 3, "kernel IR"), *across(2, 1, "code", backwards=True),
             *across(2, 0, "values", backwards=True)]  # fmt: skip
    middle = y - (y - TOPS[1] - TALL) / 2
    parts += arrow([(x_of(3) + 30, TOPS[1] + TALL + 3), (x_of(3) + 30, middle), (x_of(2) + WIDE / 2, middle), (x_of(2) + WIDE / 2, y - 3)])
    low = y + TALL + 14
    parts += arrow([(x_of(3) + WIDE / 2, y + TALL + 3), (x_of(3) + WIDE / 2, low), (x_of(1) + WIDE / 2, low), (x_of(1) + WIDE / 2, y + TALL + 3)])
    parts += down(1, 0, "compared by tests", both=True)
    return parts + [f'<rect x="{x}" y="{y}" width="{WIDE}" height="{TALL}" rx="5" fill="#ffffff" stroke="{EDGE}" stroke-dasharray="4 3"/>',
                    svg.text(x + 10, y + 22, "results", 13, bold=True), svg.text(x + 10, y + 42, "in the caller's buffers,", 11), svg.text(x + 10, y + 56, "on the CPU or the GPU", 11)]  # fmt: skip


def draw():
    """The picture, as SVG text."""
    parts = [*frame(), *flow(), *legend()]
    for folder in FOLDERS:
        parts += box(folder)
    parts.append(svg.text(LEFT, SHARED_TOP - 12, "used by the stages above", 12, bold=True))
    caption = ["Names in bold are the folders of src/, as tools/layers.txt lists them; below each, files to begin with."]
    return svg.page(SHARED_TOP + TALL + 44, "From a program to kernels: the folders of src/", "Arrows are what passes from one stage to the next.", caption, parts, WIDTH)
