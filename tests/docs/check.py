"""Checks one page: every command, program and option that it shows."""
import re

from docs import commands, outputs, pages, programs

EXIT_CODE = re.compile(r"#.*\bexit code (\d+)\b")  # a comment behind a command that is shown to fail
STALE = "the output differs (tests/docs_test.py --update writes it)"


class Page:
    """A page with what was found wrong in it, and the outputs that replace stale ones."""

    def __init__(self, name, text, reader):
        self.name, self.text, self.reader = name, text, reader
        self.blocks = pages.blocks(text)
        self.findings, self.edits = [], []  # edits: (first line, number of lines, indentation, new lines)

    def report(self, line, what):
        self.findings.append(f"{self.name}:{line}: {what}")

    def check(self):
        """All but Python."""
        for above, block in zip([None, *self.blocks], self.blocks):
            if block.language == "output" and not (above and above.language in ("python", "cpp")):
                self.report(block.line - 1, "an output that is not below a program")
            elif block.language not in pages.LANGUAGES:
                self.report(block.line - 1, f"a block of the language '{block.language}', which nothing checks")
            elif block.language in ("sh", "console"):
                for command in pages.commands(block):
                    self.check_command(block, command)
            elif block.language in ("", "cmake"):
                for number, line in enumerate(block.lines, block.line):
                    if line.startswith("$ ") or pages.is_command(line):
                        self.report(number, "a command in a block that is not marked `sh` or `console`")
            elif block.language == "cpp":
                self.check_program(block, *programs.run_cpp(self.reader, self.name, block))
            elif block.language == "hlo":
                self.check_program(block, *programs.run_text_test(self.reader, block))
            elif block.language == "kernel":
                self.check_program(block, *programs.run_kernel(self.reader, block))
        self.check_spans()
        return self

    def check_program(self, block, error, lines):
        """Compares what a program printed with the block `output` below it."""
        shown = self.output_below(block)
        if error:
            self.report(block.line, error)
        elif shown:
            self.compare(shown.line - 1, shown.indent, shown.lines, lines)

    def output_below(self, block):
        below = self.blocks[self.blocks.index(block) + 1 :]
        return below[0] if below and below[0].language == "output" else None

    def check_command(self, block, command):
        if any(re.match(pattern, command.text) for pattern, _ in commands.NOT_RUN):
            if command.output:
                self.report(command.line, f"output of a command that no test runs: {command.text}")
            for wrong in commands.stale_options(self.reader, command.text):
                self.report(command.line, wrong)
            return
        text = command.text
        for pattern, replacement in commands.RUN_AS:
            text = re.sub(pattern, replacement, text)
        if command.output is not None and text != command.text:
            self.report(command.line, f"output of a command that the test runs as `{text}`")
            return
        expected = int(found[1]) if (found := EXIT_CODE.search(command.text)) else 0
        status, lines = self.reader.run(text)
        if status != expected:
            self.report(command.line, f"exit code {status} of `{text}`:\n" + "\n".join(lines[-20:]))
        elif command.output is not None:
            self.compare(command.line, block.indent, command.output, lines)

    def compare(self, line, indent, shown, lines):
        """Compares the lines below `line` with what was printed."""
        while lines and not lines[-1].strip():
            lines = lines[:-1]
        foreign = next((text for text in lines if text.startswith("rates: ") and "h200.json" not in text), None)
        if foreign:
            self.report(line, f"predictions that depend on the machine ({foreign}): use --target h200")
        elif not outputs.matches(shown, lines):
            self.report(line, STALE + ":\n" + outputs.difference(shown, lines))
            self.edits.append((line + 1, len(shown), indent, outputs.refreshed(shown, lines)))

    def commands(self):
        return [command for block in self.blocks if block.language in ("sh", "console") for command in pages.commands(block)]

    def check_spans(self):
        """Commands in running text run if they name a file; of others, and of options by themselves, the names are checked."""
        for line, text in pages.spans(self.text):
            if text.startswith("--"):
                for option in commands.option_names(text.split()):
                    if option not in commands.OTHERS_OPTIONS and not any(commands.mentions(help, option) for help in self.helps(line)):
                        self.report(line, f"no program that the page names has the option {option}")
            elif pages.is_command(text):
                self.check_mentioned(line, text)

    def helps(self, line):
        """What `tokamak`, then the other programs of the page, the nearest first, say of their options."""
        shown = [(command.line, command.text) for command in self.commands()]
        mentioned = [(number, text) for number, text in pages.spans(self.text) if pages.is_command(text) and not commands.PLACEHOLDER.search(text)]
        near = sorted(shown + mentioned, key=lambda command: abs(command[0] - line))
        named = [tuple(commands.program_of(words)) for _, text in near for words in commands.simple_commands(text)]
        for program in [*commands.TOKAMAK_COMMANDS, *named]:
            if program[-1] not in commands.READERS_FILES:
                yield self.reader.help(" ".join(program))[1]

    def check_mentioned(self, line, text):
        runs = re.match(r"(build/bin/)?tokamak ", text) and not commands.PLACEHOLDER.search(text)
        if runs and any("/" in word and (self.reader.folder / word).is_file() for word in text.split()):
            status, lines = self.reader.run(text)
            if status != 0:
                self.report(line, f"exit code {status} of `{text}`:\n" + "\n".join(lines[-20:]))
            return
        for wrong in commands.stale_options(self.reader, text):
            self.report(line, wrong)

    def python(self):
        """The Python programs, which run for all pages in one process."""
        return [block for block in self.blocks if block.language == "python"]

    def check_python(self, results):
        for block, (error, lines) in zip(self.python(), results):
            self.check_program(block, error and f"the program fails:\n{error}", lines)

    def not_updated(self):
        """The findings that an update leaves."""
        return [finding for finding in self.findings if STALE not in finding]

    def updated(self):
        """The text of the page with the outputs of today."""
        lines = self.text.splitlines()
        for first, count, indent, new in sorted(self.edits, reverse=True):
            lines[first - 1 : first - 1 + count] = [" " * indent + line if line else "" for line in new]
        return "\n".join(lines) + "\n"
