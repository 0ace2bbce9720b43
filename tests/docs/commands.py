"""Runs the commands of pages as a reader would, from the root of a clone with the build's programs on the PATH. If a command
needs more than a test has, it checks that the program exists and still has the options."""
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Commands of blocks that do not run, by their beginning, with the reason.
NOT_RUN = (
    (r"scripts/(demo|test|nightly)\b", "installs packages, builds and runs all tests"),
    (r"(cmake|ctest) ", "configures, builds or installs; the test `cpp` installs, and this test is run by ctest"),
    (r"pip install\b", "builds a wheel for minutes; python/tests/test_wheel.py does it"),
    (r"tools/(corpus|check_passes)\.py", "needs the corpora; the tests corpus and corpus.passes run it"),
    (r"tools/jax_tests\.py", "needs a clone of JAX and hours; python/tests/test_jax_tests.py runs parts"),
    (r"tests/docs_test\.py", "this test"),
    (r"bench/", "measures for minutes on an idle machine"),
)  # fmt: skip
# Commands that run with less work, or on a simulated device, than the page asks for.
RUN_AS = (
    (r"--backend cuda\b", "--backend sim-cuda"),
    (r"\bTOKAMAK_DEVICE=cuda\b", "TOKAMAK_DEVICE=sim-cuda"),
    (r"--seeds 0\.\.\d+", "--seeds 0..10"),
    (r"--jobs \d+", "--jobs 1"),
)  # fmt: skip
# Files of the reader that commands name, and what stands for them.
READERS_FILES = {"train.py": "tests/docs/train.py"}
# Options of other programs that pages mention without them.
OTHERS_OPTIONS = {"--xla_dump_to", "--x64", "--tokamak-lint", "--tokamak-lint-cost", "--tokamak-lint-ignore", "--tokamak-lint-target"}
PLACEHOLDER = re.compile(r"\b[A-Z][A-Z_]+\b|\bA\.\.B\b|[\[\]{}<>…]|\.\.\.")
# Programs whose options pages mention by themselves.
TOKAMAK_COMMANDS = [("tokamak", name) for name in "run check convert ops reduce opt bisect kernels explain lint calibrate bench".split()]
# Programs that tell of their options in several texts.
HELP_OF = {"cmake": "cmake --help; cmake --build; cmake --install; cmake --workflow --help; true"}
SECONDS = 300  # of one command, on a machine that does much else
HELPS = {}  # what programs say of themselves, for all pages
OPERATORS = {"&&", "||", "|", ";", "&"}


class Reader:
    """A folder as a reader has it: the clone, with files of one's own beside it."""

    def __init__(self, build, folder):
        self.build, self.folder = Path(build).resolve(), Path(folder)
        for path in ROOT.iterdir():
            if path.name not in ("build", ".git"):
                (self.folder / path.name).symlink_to(path)
        (self.folder / "build").symlink_to(self.build)
        for name, source in READERS_FILES.items():
            (self.folder / name).symlink_to(ROOT / source)
        # Of this process, nothing that changes what programs do: no cache, no machine file, no device.
        self.env = {name: value for name, value in os.environ.items() if not re.match(r"(TOKAMAK|JAX|XLA|PJRT|PYTHON)_?", name)}
        self.env |= {"PATH": f"{self.build / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python"),
                     "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        if self.build != ROOT / "build":  # where the package looks
            self.env["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"tokamak:{self.build}/lib/libtokamak.so"

    def run(self, command):
        """(exit code, lines of output and errors in the order in which they came: by line, as on a terminal)"""
        words = ["timeout", str(SECONDS), "stdbuf", "-oL", "bash", "-c", command]
        done = subprocess.run(words, cwd=self.folder, env=self.env, text=True, errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip
        took_longer = [f"it takes longer than {SECONDS} s"] if done.returncode == 124 else []
        return done.returncode, done.stdout.splitlines() + took_longer

    def help(self, program):
        """(exit code, text) of what a program says of its options. `program`: its words, with the subcommand."""
        if program not in HELPS:
            script = self.folder / program.split()[-1]
            source = script.read_text() if script.is_file() and not script.is_relative_to(self.folder / "build") else None
            if source is not None and "argparse" not in source and "--help" not in source:
                HELPS[program] = 0, source  # it would not print a help, but run
            else:
                status, lines = self.run(HELP_OF.get(program, f"{program} --help"))
                HELPS[program] = status, "\n".join(lines)
        return HELPS[program]


def simple_commands(text):
    """The words of each command of a line, without variables that it sets."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    commands = [[]]
    for word in lexer:
        if word in OPERATORS:
            commands.append([])
        elif commands[-1] or not re.match(r"[A-Z_]+=", word):
            commands[-1].append(word)
    return [command for command in commands if command]


def program_of(words):
    """The words that name the program: with a subcommand, or with the script of an interpreter."""
    name, first = words[0], words[1] if len(words) > 1 else "-"
    takes_subcommand = re.search(r"(^|/)(tokamak|pip|jax_tests\.py)$", name) and re.fullmatch(r"[a-z]+", first)
    if takes_subcommand or re.search(r"(^|/)python3?$", name) and first.endswith(".py"):
        return words[:2]
    return words[:1]


def option_names(words):
    """The names of the options among words: `--seeds`, `-j`."""
    for word in words:
        if re.match(r"--\w", word):
            yield word.split("=")[0]
        elif re.match(r"-[A-Za-z]", word):
            yield word[:2]


def stale_options(reader, command):
    """Why a command that does not run cannot be right: its program does not exist, or has no such option."""
    if re.match(r"\S+$", command) and PLACEHOLDER.search(command):
        return  # the form of a path
    for words in simple_commands(command):
        program = program_of(words)
        script = program[-1]
        if "/" in script and not script.startswith(("build/", "/")) and not (reader.folder / script).exists():
            yield f"there is no {script}"
            continue
        options = list(option_names(words[len(program) :]))
        if not options:
            continue
        code, text = reader.help(shlex.join(program))
        if code != 0:
            yield f"`{shlex.join(program)} --help` fails:\n{text}"
            continue
        for option in options:
            if not mentions(text, option):
                yield f"{shlex.join(program)} has no option {option}"
        for preset in [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--preset"]:
            if f'"name": "{preset}"' not in (ROOT / "CMakePresets.json").read_text():
                yield f"there is no preset {preset}"


def mentions(text, option):
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None
