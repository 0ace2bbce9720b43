"""The findings of a run: those of each program times its calls, and those that only calls show."""

import dataclasses

from tokamak import _lint, _lint_jax, _lint_source
from tokamak._lint_result import Lint, Lints, is_same_rule, number, position

HOT_CALLS = 8  # calls from one line that make its loop hot (chosen: fewer is often a warm-up)
RETRACES = 5  # compilations of one function that are too many (chosen: train and eval, and a last partial batch, are 3)
DISPATCH_US = 5.0  # microseconds of a call from Python whose program is not estimated (docs/results/dispatch.md)
_MAX_ESTIMATED = 200  # programs that are estimated, the most called first (chosen: bounds the time)


def _text(at):
    return f"{at[0]}:{at[1]} ({at[2]})"


@dataclasses.dataclass
class Loop:
    file: str
    line: int  # of its header
    at: tuple  # (file, line, function) of the line in it
    node: object


def loop_of(stack):
    """The innermost Python loop around a stack of lines, or None."""
    for at in stack:
        node = _lint_source.loop_around(at[0], at[1])
        if node is not None:
            return Loop(at[0], node.lineno, at, node)
    return None


class _Estimates:
    """Findings and microseconds per call of each program."""

    def __init__(self, recorder, target, options):
        self.found, self.call_us, self.suppressed, self.failed = {}, {}, 0, []
        by_text = {}
        order = sorted((p for p in recorder.programs if p.calls), key=lambda p: (p.is_eager, -p.calls))
        for program in order[:_MAX_ESTIMATED]:
            key = (program.text, program.is_eager)
            if key not in by_text:
                by_text[key] = self._estimate(program, target, options)
            self.found[program.number], self.call_us[program.number], suppressed = by_text[key]
            self.suppressed += suppressed

    def _estimate(self, program, target, options):
        try:
            return _lint.of_program(program.text, program.function, target, options, None if program.is_eager else program.jaxpr)
        except (ValueError, OSError) as error:
            self.failed.append(f"{program.function}: {str(error).splitlines()[0]}")
            return [], DISPATCH_US, 0

    def us(self, program):
        return self.call_us.get(program, DISPATCH_US)

    def dispatch(self, program):
        """The finding that a call takes longer than its computation, or None."""
        return next((lint for lint in self.found.get(program, ()) if is_same_rule(lint.rule, "dispatch-bound")), None)


class _Run:
    def __init__(self, recorder, target, options):
        self.recorder, self.estimates = recorder, _Estimates(recorder, target, options)
        self.loops = {key: loop_of(site.stack) for key, site in recorder.sites.items()}
        self.lints = []

    def program(self, site):
        return self.recorder.programs[site.program]

    # ---- findings of each program

    def of_programs(self):
        merged = {}
        for program in self.recorder.programs:
            if program.is_eager:
                continue
            for lint in self.estimates.found.get(program.number, ()):
                if is_same_rule(lint.rule, "dispatch-bound"):
                    continue  # matters in loops only: of_loops
                lint = dataclasses.replace(lint, us=lint.us * program.calls, saved_us=lint.saved_us * program.calls, calls=program.calls,
                                           lines=list(lint.lines), more=dict(lint.more))  # fmt: skip
                if is_same_rule(lint.rule, "missing-donation"):
                    self.with_evidence(lint, program)
                if not lint.lines:
                    lint.lines = [f"{program.file}:{program.line} ({program.function})"] if program.file else []
                lint.more.setdefault("definition", [program.function, program.file, program.line])
                known = merged.setdefault((lint.rule, lint.severity, tuple(lint.lines)), lint)
                if known is not lint:
                    known.us, known.saved_us, known.calls = known.us + lint.us, known.saved_us + lint.saved_us, known.calls + lint.calls
        self.lints += merged.values()

    def with_evidence(self, lint, program):
        """Whether the run passed earlier results in the arguments that could be donated. If not, the caller may need them."""
        numbers = self.donatable(lint, program)
        fed = [i for i in numbers if program.fed_back.get(i)]
        lint.more["fed_back"] = [program.arguments[i] for i in fed if i < len(program.arguments)]
        if not fed and program.calls > 1:
            lint.severity = "note"
            lint.text += "; in this run the argument is never an earlier result, and the caller may use it again"

    @staticmethod
    def donatable(lint, program):
        numbers = (lint.fix or {}).get("donate_argnums") or range(len(program.arguments))
        return [int(i) for i in numbers]

    def of_donation(self):
        """State that is passed back without being donated, where the compiler did not see it."""
        seen = {tuple(lint.more["definition"]) for lint in self.lints if is_same_rule(lint.rule, "missing-donation")}
        for program in self.recorder.programs:
            definition = (program.function, program.file, program.line)
            if program.is_eager or program.calls < HOT_CALLS or definition in seen:
                continue
            free = list(program.result_types)
            state = []
            for i, count in sorted(program.fed_back.items()):
                kind = program.types[i].rstrip("~")
                if count >= HOT_CALLS - 1 and not program.donated[i : i + 1] == [True] and kind in free:
                    free.remove(kind)
                    state.append(i)
            size = sum(program.bytes[i] for i in state)
            if not state or size < DONATION_BYTES:
                continue
            names = [program.arguments[i] if i < len(program.arguments) else str(i) for i in state]
            text = (f"{number(size)} bytes of arguments ({', '.join(names[:4])}{' ...' if len(names) > 4 else ''}) are results of the"
                    f" previous call: donate them, and the new values take their memory")  # fmt: skip
            self.lints.append(Lint("lint.missing-donation", "warning", [f"{program.file}:{program.line} ({program.function})"], 0.0, text,
                                   calls=program.calls, program=program.function,
                                   more={"definition": list(definition), "fed_back": names, "numbers": state}))  # fmt: skip

    # ---- findings of loops

    def of_loops(self):
        eager = {}
        for key, site in self.recorder.sites.items():
            loop = self.loops[key]
            if loop is None or site.calls < HOT_CALLS:
                continue
            if site.repeated >= HOT_CALLS and 2 * site.repeated >= site.calls and self.is_assigned(loop):
                self.add_invariant(site, loop)
            elif site.is_eager:
                if not isinstance(loop.node, _lint_source.LOOPS):
                    continue  # a comprehension: mostly a setup
                eager.setdefault((loop.at[0], loop.at[1]), []).append((site, loop))
            else:
                self.add_call_loop(site, loop)
        for sites in eager.values():
            self.add_op_by_op(sites)

    @staticmethod
    def is_assigned(loop):
        """Whether the line in the loop assigns its value to a name, so that computing it before the loop is the same."""
        source = _lint_source.source_of(loop.file)
        return bool(source and _lint_source.invariant_statement(source, loop.node, loop.at[1]))

    def add_invariant(self, site, loop):
        us = sum(self.estimates.us(p) for p in site.programs) / len(site.programs) * site.repeated
        text = f"`{site.function}` is called {site.repeated} times with the same arrays in the loop at line {loop.line}: compute it once, before"
        self.lints.append(Lint("lint.loop-invariant", "warning", [_text(loop.at)], us, text, calls=site.calls, program=site.function,
                               more={"loop": f"{loop.file}:{loop.line}"}))  # fmt: skip

    def add_call_loop(self, site, loop):
        bound = self.estimates.dispatch(site.program)
        if bound is None:
            return
        us = bound.us * site.calls
        where = f"{site.calls} times from the loop at line {loop.line}"
        more = {"loop": f"{loop.file}:{loop.line}", "fed_back": site.fed_back}
        if 2 * site.fed_back >= site.calls - 1:
            text = (f"`{site.function}` is called {where} with its own results; {bound.text.split(':')[0]}: jax.lax.fori_loop or scan"
                    " runs the whole loop in one call")  # fmt: skip
            rule = "lint.call-loop"
        else:
            rule, text = "lint.dispatch-bound", f"`{site.function}` is called {where}; {bound.text}"
        self.lints.append(Lint(rule, "warning", [_text(loop.at)], us, text, calls=site.calls, program=site.function, more=more))

    def add_op_by_op(self, sites):
        calls, loop = sum(site.calls for site, _ in sites), sites[0][1]
        us, total = 0.0, self.called_us()
        for site, _ in sites:
            bound = self.estimates.dispatch(site.program)
            us += (bound.us if bound else DISPATCH_US) * site.calls
        ops = sorted({site.function for site, _ in sites})
        shown = ", ".join(ops[:4]) + (" ..." if len(ops) > 4 else "")
        text = (f"{calls} calls of operations outside of jit ({shown}) in the loop at line {loop.line}: each is dispatched by itself and"
                " stores its result; put the body of the loop into a function and jit it")  # fmt: skip
        severity = "warning" if us >= WORTH * total else "note"
        self.lints.append(Lint("lint.op-by-op", severity, [_text(loop.at)], us, text, calls=calls, more={"loop": f"{loop.file}:{loop.line}"}))

    # ---- compilations

    def of_compilations(self):
        groups = {}
        for program in self.recorder.programs:
            if not program.is_eager and program.file:
                groups.setdefault((program.function, program.file, program.line), []).append(program)
        for (function, file, line), programs in groups.items():
            if len(programs) < RETRACES:
                continue
            kinds = {tuple(program.types) for program in programs}
            us = 1e6 * (sum(p.compile_seconds for p in programs) - max(p.compile_seconds for p in programs))
            calls = sum(program.calls for program in programs)
            if len(kinds) < RETRACES:
                self.add_jit_in_loop(programs, us, calls)
                continue
            text = f"`{function}` is compiled {len(programs)} times, for {changing(programs)}: {advice(programs)}"
            self.lints.append(Lint("lint.retrace", "warning", [f"{file}:{line} ({function})"], us, text, calls=calls, program=function))

    def of_growing_arrays(self):
        """Operations outside of jit that a loop runs with ever other types: each is a compilation."""
        seen = set()
        for key, site in self.recorder.sites.items():
            loop = self.loops[key]
            programs = [self.recorder.programs[number] for number in sorted(site.programs)]
            if not site.is_eager or loop is None or len({tuple(p.types) for p in programs}) < RETRACES:
                continue
            at, function, line = loop.at, site.function, loop.line
            if (at, function) in seen:
                continue
            seen.add((at, function))
            us = 1e6 * (sum(p.compile_seconds for p in programs) - max(p.compile_seconds for p in programs))
            text = (f"`{function}` is compiled {len(programs)} times in the loop at line {line}, for {changing(programs)}: collect the"
                    " parts in a list and join them after the loop, or write into an array of the full size")  # fmt: skip
            self.lints.append(Lint("lint.retrace", "warning", [_text(at)], us, text, calls=sum(p.calls for p in programs), program=function,
                                   more={"loop": f"{at[0]}:{line}"}))  # fmt: skip

    def add_jit_in_loop(self, programs, us, calls):
        numbers = {program.number for program in programs}
        loops = [self.loops[key] for key, site in self.recorder.sites.items() if site.programs & numbers and self.loops[key]]
        program = programs[0]
        lines = [f"{program.file}:{program.line} ({program.function})"]
        more = {}
        if loops:
            more["loop"] = f"{loops[0].file}:{loops[0].line}"
            if (loops[0].at[0], loops[0].at[1]) != (program.file, program.line):
                lines.insert(0, _text(loops[0].at))
        text = (f"`{program.function}` is compiled {len(programs)} times for the same types, because a new function is jitted each time:"
                " define and jit it once, before the loop")  # fmt: skip
        self.lints.append(Lint("lint.jit-in-loop", "warning", lines, us, text, calls=calls, program=program.function, more=more))

    # ---- the host

    def of_reads(self):
        hot = {(loop.file, loop.line) for loop in self.loops.values() if loop}
        by_line = {}
        for read in self.recorder.reads.values():
            loop = loop_of(read.stack)
            if loop and (loop.file, loop.line) in hot:
                by_line.setdefault(loop.at, []).append((read, loop))
        for at, reads in by_line.items():
            count, seconds = sum(r.count for r, _ in reads), sum(r.seconds for r, _ in reads)
            if count < HOT_CALLS:
                continue
            text = (f"arrays are copied to the host {count} times in the loop at line {reads[0][1].line}: Python waits for each before it"
                    f" can start the next step ({number(1e6 * seconds)} us measured); keep them on the device and read them after the loop")  # fmt: skip
            self.lints.append(Lint("lint.host-round-trip", "warning", [_text(at)], 1e6 * seconds, text, calls=count,
                                   more={"loop": f"{at[0]}:{reads[0][1].line}"}))  # fmt: skip

    def of_keys(self):
        seen = {position(line) for lint in self.lints if is_same_rule(lint.rule, "key-reuse") for line in lint.lines}
        for reuse in self.recorder.key_reuses.values():
            if not reuse.second or reuse.second[0][:2] in seen:
                continue
            first = f"at line {reuse.first[0][1]}" if reuse.first and reuse.first[0][:2] != reuse.second[0][:2] else "at this line"
            text = (f"{'a random draw' if reuse.is_library else f'`{reuse.function}`'} gets a key that was already used {first} ({reuse.count} times in this run): both give the"
                    " same, or correlated, numbers; split the key, or fold a number in")  # fmt: skip
            lines = [_text(reuse.second[0])]
            if reuse.first and reuse.first[0] != reuse.second[0]:
                lines.append(_text(reuse.first[0]))
            self.lints.append(Lint("lint.key-reuse", "warning", lines, 0.0, text, program=reuse.function))

    def called_us(self):
        return sum(self.estimates.us(p.number) * p.calls for p in self.recorder.programs)

    def run_us(self):
        """Predicted microseconds of all calls, and measured ones of compiling and of waiting for the device."""
        measured = sum(p.compile_seconds for p in self.recorder.programs) + sum(r.seconds for r in self.recorder.reads.values())
        return self.called_us() + 1e6 * measured


WORTH = 0.1  # of the predicted time of all calls: operations outside of jit that cost less are often those of a setup (chosen)
DONATION_BYTES = 1 << 16  # smaller state is not worth a finding (chosen: 64 KiB stay in a cache)


def changing(programs):
    """Which argument differs between compilations of a function, in words."""
    for i in range(len(programs[0].types)):
        kinds = list(dict.fromkeys(p.types[i] if i < len(p.types) else "-" for p in programs))
        if len(kinds) > 1:
            name = programs[0].arguments[i] if i < len(programs[0].arguments) else f"argument {i}"
            shown = ", ".join(kind.replace("~", " (weak)") for kind in kinds[:3])
            return f"{len(kinds)} types of `{name}` ({shown}{' ...' if len(kinds) > 3 else ''})"
    return "other structures of its arguments"


def advice(programs):
    kinds = {tuple(kind.rstrip("~") for kind in p.types) for p in programs}
    if len(kinds) == 1:
        return "pass arrays, or always Python numbers: they are weakly typed, which is another type"
    return "pad to a few sizes, or move the changing extent into a loop or a mask"


def findings(recorder, target="host", options=None):
    """The Lints of everything that a Recorder saw. Microseconds are per run."""
    run = _Run(recorder, target, options or {})
    run.of_programs()
    run.of_donation()
    run.of_loops()
    run.of_compilations()
    run.of_growing_arrays()
    run.of_reads()
    run.of_keys()
    users = [lint for lint in run.lints if not lint.lines or any(at and _lint_jax.is_users(at[0]) for at in map(position, lint.lines))]
    notes = {"failed": run.estimates.failed} if run.estimates.failed else {}
    return Lints(users, run.run_us(), target, "run", more_suppressed=run.estimates.suppressed, predicted_us=run.called_us(), **notes)
