#!/usr/bin/env python3
"""Installs Tokamak, builds programs against it as a user would, and runs them in an environment without Python.

    cpp_test.py build-folder cmake ninja-or-make c-compiler c++-compiler"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADERS = {"builder.h", "c_api.h", "graph.h", "program.h", "tokamak.h", "tokamak_plugin.h", "types.h"}


def run(words, env, folder, expect=0):
    done = subprocess.run([str(word) for word in words], cwd=folder, env=env, text=True, capture_output=True, timeout=300)
    if done.returncode != expect:
        sys.exit(f"{' '.join(map(str, words))} gave {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def tools_without_python(folder, tools):
    """A folder of links to the tools that a build needs, and nothing else."""
    folder.mkdir()
    for tool in tools:
        found = shutil.which(tool)
        if found:
            (folder / pathlib.Path(tool).name).symlink_to(found)
    assert not shutil.which("python3", path=str(folder))
    return folder


def main():
    build, cmake, build_tool, c_compiler, compiler = sys.argv[1:6]
    build = pathlib.Path(build).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        prefix = scratch / "prefix"
        run([cmake, "--install", build, "--prefix", prefix], os.environ, scratch)
        installed = {path.name for path in (prefix / "include/tokamak").iterdir()}
        assert installed == HEADERS, installed
        tools = tools_without_python(scratch / "bin", [cmake, build_tool, c_compiler, compiler, "as", "ld", "ld.lld", "ar", "ranlib", "sh"])
        env = {"PATH": str(tools), "HOME": str(scratch), "TOKAMAK_CACHE": "off"}
        names = {ROOT / "examples/cpp": ["builder", "cartpole", "graph", "inference"], ROOT / "tests/cpp": ["errors", "graph_edits", "in_c"]}
        for source, programs in names.items():
            made = scratch / source.parent.name
            generator = "Ninja" if "ninja" in pathlib.Path(build_tool).name else "Unix Makefiles"
            run([cmake, "-S", source, "-B", made, "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix}",
                 f"-DCMAKE_MAKE_PROGRAM={tools / pathlib.Path(build_tool).name}", f"-DCMAKE_C_COMPILER={c_compiler}",
                 f"-DCMAKE_CXX_COMPILER={compiler}"], env, scratch)
            run([cmake, "--build", made, "-j2"], env, scratch)
            for program in programs:
                linked = subprocess.run(["readelf", "-d", made / program], capture_output=True, text=True).stdout
                assert "python" not in linked.lower(), linked
                for target in ("interp", "cpu") if source.parent.name == "examples" else ("",):
                    if target == "cpu" and not has_cpu(prefix):
                        print(f"{program} cpu: skipped, the backend is not built")
                        continue
                    words = [made / program] + ([target] if target else [])
                    alone = {"PATH": "/nowhere", "HOME": str(scratch), "TOKAMAK_CACHE": "off"}
                    print(f"{program} {target}:\n{run(words, alone, source)}", end="")
    return 0


def has_cpu(prefix):
    """Whether the installed command line has the backend."""
    program = "HloModule m\nENTRY main {\n  ROOT c = f32[] constant(1)\n}\n"
    done = subprocess.run([prefix / "bin/tokamak", "run", "-", "--backend", "cpu"], input=program, text=True, capture_output=True)
    return done.returncode != 3


if __name__ == "__main__":
    sys.exit(main())
