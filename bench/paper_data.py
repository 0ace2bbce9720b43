"""The measurements of bench/paper, as paper.json (a GPU) and paper_cpu.json hold them: what its page and its plots are made of."""
import json
import re

STEPS = 1000
RUNGS = [("E0", "cartpole_scan", "the plain program: threefry, concatenate, lax.scan", 1.0), ("E1", "cartpole_scan_prerng", "random numbers precomputed", 1.87),
         ("E3", "cartpole_scan_prerng_noconcat", "and no concatenate", 3.41), ("E4", "cartpole_best_prerng", "and unrolled by 10", 10.5)]  # fmt: skip
# Short names of the manual changes, in the order in which the paper makes them; each includes those before it.
CHANGES = ("the plain program", "random numbers precomputed", "and no concatenate", "and unrolled by 10")
WITHOUT_DRAWS = "Where random numbers are precomputed, drawing them is not in the time."
COLUMNS = [("xla", "XLA"), ("flags", "XLA, best flags"), ("rules", "Tokamak `rules`"), ("tokamak", "Tokamak")]
FILES = (("paper.json", ""), ("paper_cpu.json", "_cpu"))


class Results:
    """The measurements of one run of bench/paper."""

    def __init__(self, data):
        self.data, self.n = data, data["n"]
        self.cuda = data["device"] == "cuda"
        for record in data["records"]:  # the few events that are seen belong to the code around the loop
            if record.get("flags", "").startswith("command buffers"):
                for key in ("device_ms", "device_kernels", "device_copies"):
                    record.pop(key, None)
                record["device_why"] = "the profiler does not see kernels that command buffers launch"

    def all(self, *experiments):
        return [r for r in self.data["records"] if r["experiment"] in experiments]

    def get(self, experiment, program, side):
        label = program if ":" in program else f"{program}:{self.n}"
        return next((r for r in self.all(experiment) if (r["program"], r["side"]) == (label, side)), None)

    def cell(self, program, column):
        """The record of a rung in a column."""
        if column != "flags":
            return self.get("ladder", program, column)
        tried = [r for r in self.all("flags") if r["program"] == f"{program}:{self.n}"]
        plain = [r for r in [self.get("ladder", program, "xla")] if r and tried]  # running without any flag may be best
        return min((r for r in tried + plain if "ms" in r), key=lambda r: r["ms"], default=tried[0] if tried else None)

    def ms(self, program, column, key="ms"):
        return (self.cell(program, column) or {}).get(key)

    def peers(self):
        return self.data.get("peers", [])


def kernels(record):
    """Kernels and copies per step; 0.001 is one launch for all steps."""
    if record is None or "ms" not in record:
        return None
    if "device_kernels" in record:
        return record["device_kernels"] + record["device_copies"]
    if "launches" in record:
        return record["launches"] / record["steps"]
    inside = record.get("instructions")
    return None if not inside else inside[1] if record["steps"] > 1 else sum(inside)


def has_ladder(report):
    """Whether there is a rung to show: a run of some experiments alone has none."""
    return any("ms" in record for record in report.all("ladder"))


def in_which(report):
    """Peers are measured with E6: if only other experiments were measured again, theirs are from the previous run."""
    only = re.search(r"--only (\S+)", report.data["command"])
    return ", in the run before" if report.data.get("added_to") and only and "E6" not in only[1] else ""


def machine(report):
    """What was measured on, for people."""
    kinds = sorted({kind for kind in report.data["devices"].values() if kind != "cpu"})
    return ", ".join(kinds) or f"{report.data['cpu']}, {report.data['cores']} cores"


def where(report):
    return f"{machine(report)}; JAX {report.data['jax']}; {report.data['date']}"


def measured(report, records):
    """The line that says where, when and with what version the drawn records were measured."""
    days = sorted({record.get("when", report.data["date"]).split()[0] for record in records if record})
    when = "" if not days else f", {days[0]}" if days[0] == days[-1] else f", {days[0]} to {days[-1]}"
    return f"Measured by bench/paper on {machine(report)}{when}, with JAX {report.data['jax']}"


def shown(side, report=None):
    """The display name of a side; with a report also its device, where it is not the only one."""
    return side.replace("xla", "XLA").replace("tokamak", "Tokamak") + (", GPU" if report and report.cuda and "," not in side else "")


def unroll_factors(report):
    """E4: {(kind of program, steps per iteration): {side: record}}"""
    found = {}
    for record in report.all("E4"):
        program = record["program"].split(":")[0]
        kind, _, factor = program.rpartition("_u")
        if program.startswith("cartpole_unrolled"):
            kind, factor = "a Python loop, all steps written out", program.removeprefix("cartpole_unrolled")
        found.setdefault((kind, int(factor)), {})[record["side"]] = record
    for factor, program in ((1, "cartpole_scan_prerng_noconcat"), (10, "cartpole_best_prerng")):
        for side in ("xla", "tokamak"):
            if report.cell(program, side):
                found.setdefault(("cartpole_scan_prerng_noconcat", factor), {}).setdefault(side, report.cell(program, side))
    return found


def sizes(report):
    """E5: the plain program: {side: {number of simulations: ms}}"""
    series = {}
    for record in report.all("E5", "sizes"):
        program, size = record["program"].split(":")
        if program == "cartpole_scan" and "ms" in record:
            series.setdefault(record["side"], {})[int(size)] = record["ms"]
    for side in ("xla", "tokamak"):
        if report.ms(RUNGS[0][1], side):
            series.setdefault(side, {})[report.n] = report.ms(RUNGS[0][1], side)
    for row in report.peers():
        if "ms" in row and "JAX's own draws, keys in" in row["peer"]:  # the better of its two variants at each size
            by_hand = series.setdefault("CUDA by hand, the same draws", {})
            by_hand[row["n"]] = min(row["ms"], by_hand.get(row["n"], row["ms"]))
    return series


def load(folder):
    """The results in a folder, each with the ending of its plots' names."""
    return [(Results(json.loads((folder / name).read_text())), suffix) for name, suffix in FILES if (folder / name).is_file()]
