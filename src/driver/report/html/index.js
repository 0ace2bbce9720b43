// The index of a folder that TOKAMAK_EXPLAIN names: the programs of a run, in the order in which they were compiled.

const programs = [...data.programs].sort((a, b) => (a.time || 0) - (b.time || 0));
programs.forEach((program, number) => { program.number = number + 1; });
const sumOfPrograms = (rows, field) => rows.reduce((sum, program) => sum + (program[field] || 0), 0);

// A file beside the index. Names of files have no characters that a link could misread.
function fileLink(program, suffix, text) {
  return element("a", {href: encodeURIComponent(program.files + suffix)}, text);
}

function programName(program) {
  const name = program.name || program.files;
  return program.has_page ? fileLink(program, ".html", name) : name;
}

function programNote(program) {
  if (program.error) return `not compiled: ${program.error}`;
  return program.interpreted ? `interpreted: ${program.interpreted}` : "";
}

const programColumns = [
  {name: "#", of: program => program.number, isNumber: true},
  {name: "program", of: program => program.name || "", show: programName},
  {name: "target", of: program => program.target || ""},
  {name: "instructions", of: program => program.instructions ?? null, isNumber: true, help: "of the entry, after all passes"},
  {name: "kernels", of: program => program.kernels ?? null, isNumber: true},
  {name: "other steps", of: program => program.other_steps ?? null, isNumber: true, help: "library calls, host steps and copies"},
  {name: "predicted", of: program => program.predicted_us ?? null, show: program => shownUs(program.predicted_us), isNumber: true, help: "of one call"},
  {name: "compiled in", of: program => program.compile_ms ?? null, show: program => shownMs(program.compile_ms), isNumber: true},
  {name: "temporary memory", of: program => program.temporary_bytes ?? null, show: program => shownBytes(program.temporary_bytes), isNumber: true},
  {name: "process", of: program => program.process ?? null, isNumber: true},
  {name: "text", of: program => program.files, show: program => [fileLink(program, ".before_optimizations.txt", "before"),
    ...(program.error ? [] : [", ", fileLink(program, ".after_optimizations.txt", "after")])]},
  {name: "note", of: programNote},
];

document.getElementById("heading").textContent = `${counted(programs.length, "program")}, compiled in ${shownMs(sumOfPrograms(programs, "compile_ms"))} in all`;
startPage([{name: "Programs", make: () => sortedTable(programColumns, programs, {
  label: "programs", sortedBy: "#", isAscending: true, wordsOf: program => [program.name || "", program.target || "", programNote(program)],
  sumOf: rows => `${shownMs(sumOfPrograms(rows, "compile_ms"))} to compile`,
}).node}], null);
