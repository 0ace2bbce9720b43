// The plan of an XLA dump beside ours: its kernels, and the boundaries between them with their causes and costs.

const xlaKernels = data.given.kernels, boundaries = data.given.boundaries, ourSteps = data.tokamak.kernels || [];
xlaKernels.forEach((kernel, number) => Object.assign(kernel, {number, id: `xla-${number}`, ours: [], ourUs: 0, bytes: kernel.reads_bytes + kernel.writes_bytes}));
ourSteps.forEach((step, number) => {
  setStepFields(step, number);
  step.id = `step-${number}`;
  // The time of a step is divided among the kernels in proportion to its instructions from each.
  const all = step.given.reduce((sum, [, count]) => sum + count, 0);
  for (const [kernel, count] of step.given) {
    xlaKernels[kernel].ours.push(step);
    xlaKernels[kernel].ourUs += step.total * count / all;
  }
});
// XLA's kernels as steps of ours: the same division into kernels, compiled by Tokamak. Without it, their times by instructions.
const asGiven = Array.isArray(data.xla_steps) ? data.xla_steps : null;
for (const kernel of xlaKernels) kernel.givenUs = asGiven ? 0 : kernel.predicted_us;
for (const step of asGiven || []) {
  const all = step.given.reduce((sum, [, count]) => sum + count, 0);
  for (const [kernel, count] of step.given) xlaKernels[kernel].givenUs += step.us * count / all;
}
boundaries.forEach((boundary, number) => {
  boundary.number = number;
  boundary.saves = boundary.fused_us === null ? null : boundary.apart_us - boundary.fused_us;
});
const xlaUs = asGiven ? asGiven.reduce((sum, step) => sum + step.us, 0) : xlaKernels.reduce((sum, kernel) => sum + (kernel.predicted_us || 0), 0);
const ourUs = ourSteps.reduce((sum, step) => sum + step.total, 0);
const xlaLink = number => idLink(xlaKernels[number].id, xlaKernels[number].name);
const ourLink = step => idLink(step.id, `${step.number + 1} ${step.name}`);
const shortLines = lines => joined(lines.map(line => element("span", {title: line}, parsedLine(line).short)), 2);

function planTotals() {
  const ours = data.tokamak.fused;
  const bytes = rows => rows.reduce((sum, row) => sum + row.bytes * (row.calls ?? 1), 0);
  const rows = [
    ["kernels", xlaKernels.length - data.given.library, ours ? ours.kernels : ""], ["library calls", data.given.library, ours ? ours.library_calls : ""],
    ["host steps and copies", "", ours ? ours.host_steps + ours.copies : ""],
    ["bytes read and written", shownBytes(bytes(xlaKernels)), shownBytes(bytes(ourSteps))], ["predicted", shownUs(xlaUs), shownUs(ourUs)],
  ];
  return tableOf(["", "XLA", "Tokamak"], rows.map(row => row.map(String)));
}

// Boundaries by cause, the most expensive first.
function causesTable() {
  const byCause = new Map();
  for (const boundary of boundaries) addTo(byCause, boundary.cause, boundary);
  const rows = [...byCause].map(([cause, list]) => ({cause, list, bytes: list.reduce((sum, one) => sum + one.bytes, 0),
    saves: list.reduce((sum, one) => sum + Math.max(0, one.saves || 0), 0), fused: list.filter(one => one.ours === "fused").length}));
  rows.sort((a, b) => b.saves - a.saves || b.bytes - a.bytes);
  return tableOf(["cause", "boundaries", "bytes", "fusing each saves, in all", "fused by Tokamak"],
    rows.map(row => [row.cause, String(row.list.length), shownBytes(row.bytes), shownUs(row.saves), String(row.fused)]));
}

function overview() {
  const xlaBlocks = xlaKernels.map(kernel => ({id: kernel.id, name: kernel.name, us: kernel.givenUs || 0, kind: kernel.kind === "library" ? "same" : "only-a"}));
  const ourBlocks = ourSteps.map(step => ({id: step.id, name: step.name, us: step.total, kind: step.library ? "same" : "only-b"}));
  const bands = ourSteps.flatMap(step => step.given.map(([kernel]) => [kernel, step.number]));
  const interpreted = data.tokamak.interpreted;
  return element("section", {},
    interpreted ? element("p", {}, `Tokamak interprets the whole program: ${interpreted}`)
      : element("p", {class: "conclusion"}, `XLA: ${counted(xlaKernels.length, "kernel")}, ${shownUs(xlaUs)}. Tokamak: ${counted(ourSteps.length, "step")}, ${shownUs(ourUs)}.`),
    element("div", {class: "scroller"}, pairedTimelines([{name: "XLA", blocks: xlaBlocks}, {name: "Tokamak", blocks: ourBlocks}], bands)),
    element("p", {class: "hint"}, "Blocks are as wide as their predicted time; library calls are grey. Bands join each kernel of XLA with the steps that do its work. ",
      asGiven ? "The time of XLA's plan is that of its division into kernels, with Tokamak's kernels and passes."
        : `The times of XLA's kernels are estimated from their instructions and arrays, for one run of each, because Tokamak does not compile them as they are: ${data.xla_steps}`),
    planTotals(), element("h2", {}, "Boundaries by cause"), causesTable());
}

const oursText = {fused: "fused", stored: "stored"};
const noteOfOurs = boundary => boundary.why ? `${boundary.why.rule}: ${boundary.why.because}` : "";

function boundariesView() {
  const columns = [
    {name: "#", of: row => row.number, show: row => idLink(`boundary-${row.number}`, String(row.number + 1)), isNumber: true},
    {name: "from", of: row => row.from, show: row => xlaLink(row.producer)},
    {name: "to", of: row => row.to, show: row => row.consumer === null ? row.to : xlaLink(row.consumer)},
    {name: "bytes", of: row => row.bytes, show: row => shownBytes(row.bytes), isNumber: true},
    {name: "apart", of: row => row.apart_us, show: row => shownUs(row.apart_us), isNumber: true, help: "predicted time of both kernels"},
    {name: "as one", of: row => row.fused_us, show: row => shownUs(row.fused_us), isNumber: true,
      help: "predicted time of one kernel with the work of both, every element computed once"},
    {name: "fusing saves", of: row => row.saves, show: row => signed(row.saves, shownUs), isNumber: true},
    {name: "in Tokamak", of: row => oursText[row.ours] || ""},
    {name: "cause", of: row => row.cause},
    {name: "XLA's rule", of: row => row.rule, show: row => element("span", {title: (data.rules || {})[row.rule]}, row.rule)},
    {name: "numbers", of: row => row.because, wraps: true},
    {name: "Tokamak's reason", of: noteOfOurs, wraps: true},
  ];
  return sortedTable(columns, boundaries, {label: "boundaries", sortedBy: "fusing saves",
    wordsOf: row => [row.from, row.to, row.cause, row.rule, row.because, row.ours || "", noteOfOurs(row)],
    sumOf: rows => `${rows.filter(row => row.ours === "fused").length} fused by Tokamak`}).node;
}

function xlaKernelsView() {
  const columns = [
    {name: "#", of: row => row.number, show: row => String(row.number + 1), isNumber: true},
    {name: "XLA's kernel", of: row => row.name, show: row => xlaLink(row.number)},
    {name: "kind", of: row => row.kind},
    {name: "ops", of: row => row.ops, isNumber: true},
    {name: "bytes", of: row => row.bytes, show: row => shownBytes(row.bytes), isNumber: true},
    {name: "as given", of: row => row.givenUs, show: row => shownUs(row.givenUs), isNumber: true, help: "this division into kernels, with kernels of Tokamak; all runs"},
    {name: "estimate", of: row => row.predicted_us, show: row => shownUs(row.predicted_us), isNumber: true, help: "by its instructions and arrays, one run"},
    {name: "Tokamak's steps", of: row => row.ours.length, show: row => joined(row.ours.map(ourLink), 3)},
    {name: "their time", of: row => row.ourUs, show: row => shownUs(row.ourUs), isNumber: true, help: "the part that belongs to this kernel's instructions"},
    {name: "computation", of: row => row.computation},
    {name: "source line", of: row => row.lines[0] || "", show: row => shortLines(row.lines)},
  ];
  return sortedTable(columns, xlaKernels, {label: "kernels", sortedBy: "#", isAscending: true, wordsOf: row => [row.name, row.kind, row.computation, ...row.lines],
    sumOf: rows => `${shownUs(rows.reduce((sum, row) => sum + (row.givenUs || 0), 0))} as given`}).node;
}

function ourStepsView() {
  const columns = [
    {name: "#", of: row => row.number, show: row => String(row.number + 1), isNumber: true},
    {name: "Tokamak's step", of: row => row.name, show: row => ourLink(row)},
    {name: "kind", of: row => row.library || row.generator},
    {name: "ops", of: row => row.ops, isNumber: true},
    {name: "bytes", of: row => row.bytes, show: row => shownBytes(row.bytes), isNumber: true},
    {name: "runs", of: row => row.calls, show: shownRuns, isNumber: true},
    {name: "predicted", of: row => row.total, show: row => shownUs(row.total), isNumber: true},
    {name: "XLA's kernels", of: row => row.given.length, show: row => joined(row.given.map(([kernel]) => xlaLink(kernel)), 4)},
    {name: "source line", of: row => row.lines[0] || "", show: row => shortLines(row.lines)},
  ];
  return sortedTable(columns, ourSteps, {label: "steps", sortedBy: "#", isAscending: true, wordsOf: row => [row.name, row.generator, ...row.lines, ...row.instrs],
    sumOf: rows => `${shownUs(rows.reduce((sum, row) => sum + row.total, 0))} predicted`}).node;
}

// ---- details

function kernelDetails(kernel) {
  const at = list => list.length ? tableOf(["boundary", "cause", "bytes", "fusing saves", "in Tokamak"], list.map(row => [
    idLink(`boundary-${row.number}`, `${row.from} \u2192 ${row.to}`), row.cause, shownBytes(row.bytes), signed(row.saves, shownUs), oursText[row.ours] || ""])) : "none";
  return [element("h2", {}, `XLA: ${kernel.name}`),
    definitions([["kind", kernel.kind], ["computation", kernel.computation], ["ops", String(kernel.ops)], ["as given", shownUs(kernel.givenUs)], ["estimate by instructions", shownUs(kernel.predicted_us)],
      ["reads", shownBytes(kernel.reads_bytes)], ["writes", shownBytes(kernel.writes_bytes)], ["source lines", joined(kernel.lines)],
      ["Tokamak's steps", kernel.ours.length ? joined(kernel.ours.map(ourLink)) : "none: a rewrite removed its work"], ["their time for it", shownUs(kernel.ourUs)]]),
    element("h3", {}, "Its values"), at(boundaries.filter(row => row.producer === kernel.number)),
    element("h3", {}, "What it reads"), at(boundaries.filter(row => row.consumer === kernel.number))];
}

function ourDetails(step) {
  return [element("h2", {}, `Tokamak: step ${step.number + 1}, ${step.name}`),
    definitions([["kind", shownKind(step)], ["runs", shownRuns(step)],
      ["predicted", shownUs(step.total)], ["bound by", step.cost ? step.cost.binding : ""], ["reads", shownBytes(step.reads_bytes)],
      ["writes", shownBytes(step.writes_bytes)], ["schedule", step.schedule || ""], ["why on the host", step.why || ""], ["source lines", joined(step.lines)],
      ["XLA's kernels", joined(step.given.map(([kernel]) => xlaLink(kernel)), 40)], ["instructions", joined(step.instrs, 40)]])];
}

function boundaryDetails(row) {
  const rule = (data.rules || {})[row.rule];
  return [element("h2", {}, `Boundary ${row.from} \u2192 ${row.to}`),
    definitions([["cause", row.cause], ["XLA's rule", row.rule], ["its meaning", rule || ""], ["numbers", row.because], ["bytes", shownBytes(row.bytes)],
      ["apart", shownUs(row.apart_us)], ["as one kernel", shownUs(row.fused_us)], ["fusing saves", signed(row.saves, shownUs)],
      ["from", xlaLink(row.producer)], ["to", row.consumer === null ? row.to : xlaLink(row.consumer)], ["in Tokamak", oursText[row.ours] || ""]]),
    ...(row.why ? [element("h3", {}, "Tokamak's decision"), definitions([["rule", row.why.rule], ["reason", row.why.because],
      ["apart", shownUs(row.why.before_us)], ["as one kernel", shownUs(row.why.after_us)]])] : [])];
}

function xlaDetails(id) {
  const match = /^(xla|step|boundary)-(\d+)$/.exec(id), number = match && Number(match[2]);
  if (!match) return null;
  const [list, show] = {xla: [xlaKernels, kernelDetails], step: [ourSteps, ourDetails], boundary: [boundaries, boundaryDetails]}[match[1]];
  return number < list.length ? show(list[number]) : null;
}

const machineName = data.tokamak.machine ? `. Rates: ${data.tokamak.machine.name}` : "";
document.getElementById("heading").textContent = `XLA's plan beside Tokamak's, ${data.tokamak.target}${machineName}`;
startPage([{name: "Overview", make: overview}, {name: "Boundaries", make: boundariesView}, {name: "XLA's kernels", make: xlaKernelsView},
  {name: "Tokamak's steps", make: ourStepsView}], xlaDetails);
