// Two plans side by side: `a` and `b` are the sides of the data.

const sideNames = {a: data.a.name, b: data.b.name};
if (sideNames.a === sideNames.b) Object.assign(sideNames, {a: `${sideNames.a} (first)`, b: `${sideNames.b} (second)`});
const stepsOf = {a: data.a.report.kernels, b: data.b.report.kernels};
const otherSide = {a: "b", b: "a"};
const pairOf = {a: new Map(data.pairs), b: new Map(data.pairs.map(([a, b]) => [b, a]))};
const kSameUs = 1e-9;  // relative: costs of equal kernels differ by rounding only

for (const side of ["a", "b"])
  stepsOf[side].forEach((step, number) => {
    setStepFields(step, number);
    step.side = side;
    step.id = `${side}-${number}`;
  });
const totalOf = side => stepsOf[side].reduce((sum, step) => sum + step.total, 0);
const stepOfId = id => { const match = /^([ab])-(\d+)$/.exec(id); return match ? stepsOf[match[1]][Number(match[2])] : null; };
const diffStepLink = step => idLink(step.id, `${step.number + 1} ${step.name}`);

// ---- which steps of the other side do the work of a step: the equal one, or those with its instructions, or with its lines

function indexOfWords(side, wordsOf) {
  const found = new Map();
  for (const step of stepsOf[side]) for (const word of new Set(wordsOf(step))) addTo(found, word, step);
  return found;
}
const byInstr = {a: indexOfWords("a", step => step.instrs), b: indexOfWords("b", step => step.instrs)};
const byLine = {a: indexOfWords("a", step => step.lines), b: indexOfWords("b", step => step.lines)};

function relatedSteps(step) {
  const other = otherSide[step.side], pair = pairOf[step.side].get(step.number);
  if (pair !== undefined) return [stepsOf[other][pair]];
  for (const [index, words] of [[byInstr, step.instrs], [byLine, step.lines]]) {
    const found = new Set(words.flatMap(word => index[other].get(word) || []));
    const own = [...found].filter(one => !pairOf[other].has(one.number));
    if (own.length) return own.sort((a, b) => a.number - b.number);
  }
  return [];
}

// ---- rows: a pair of equal steps, or a step that only one side has

function stepRows() {
  const rows = stepsOf.a.map(step => {
    const pair = pairOf.a.get(step.number);
    return {a: step, b: pair === undefined ? null : stepsOf.b[pair]};
  });
  for (const step of stepsOf.b) if (!pairOf.b.has(step.number)) rows.push({a: null, b: step});
  for (const row of rows) {
    row.step = row.a || row.b;
    row.us = {a: row.a ? row.a.total : null, b: row.b ? row.b.total : null};
    row.more = (row.us.b || 0) - (row.us.a || 0);
    const isSame = Math.abs(row.more) <= kSameUs * Math.max(row.us.a || 0, row.us.b || 0);
    row.kind = !row.b ? `only in ${sideNames.a}` : !row.a ? `only in ${sideNames.b}` : isSame ? "equal" : "equal, other cost";
    row.related = row.a && row.b ? [] : relatedSteps(row.step);
  }
  return rows;
}
const diffRows = stepRows();

function shownMore(us) {
  return signed(us, shownUs);
}

function stepsView() {
  const kinds = ["all steps", ...new Set(diffRows.map(row => row.kind))];
  const kind = element("select", {"aria-label": "Kind of steps", onchange: () => table.draw()}, kinds.map(name => element("option", {}, name)));
  const nameOf = side => row => row[side] ? diffStepLink(row[side]) : row.related.length ? ["in ", joined(row.related.map(diffStepLink), 3)] : "";
  const columns = [
    {name: "", of: row => row.kind},
    ...["a", "b"].map(side => ({name: sideNames[side], of: row => row[side] ? row[side].number : null, show: nameOf(side)})),
    {name: "kind", of: row => row.step.library || row.step.generator},
    {name: "phase", of: row => row.step.phase},
    ...["a", "b"].map(side => ({name: `us, ${sideNames[side]}`, of: row => row.us[side], show: row => shownUs(row.us[side]), isNumber: true})),
    {name: "difference", of: row => Math.abs(row.more), show: row => shownMore(row.more), isNumber: true,
      help: `${sideNames.b} minus ${sideNames.a}, all runs; the greatest change first`},
    {name: "bytes", of: row => row.step.bytes, show: row => shownBytes(row.step.bytes), isNumber: true, help: "of one run"},
    {name: "runs", of: row => row.step.calls, show: row => shownRuns(row.step), isNumber: true},
    {name: "source line", of: row => row.step.lines[0] || "", show: row => joined(row.step.lines.map(line => parsedLine(line).short), 2)},
  ];
  const table = sortedTable(columns, diffRows, {
    label: "steps", sortedBy: "difference", bar: [kind],
    isWanted: row => kind.value === "all steps" || kind.value === row.kind || !kind.value,
    wordsOf: row => [row.kind, ...[row.a, row.b].filter(Boolean).flatMap(step => [step.name, step.generator, ...step.lines, ...step.instrs])],
    sumOf: rows => `${shownMore(rows.reduce((sum, row) => sum + row.more, 0)) || "0 us"} in ${sideNames.b}`,
  });
  return table.node;
}

// ---- totals

const totalRows = [
  ["predicted", "predicted_us", shownUs], ["measured", "measured_us", shownUs], ["steps", "steps", String], ["kernels", "kernels", String],
  ["library calls", "library_calls", String], ["host steps", "host_steps", String], ["copies", "copies", String], ["bytes moved", "bytes", shownBytes],
  ["temporary memory", "temporary_bytes", shownBytes], ["peak memory", "peak_bytes", shownBytes], ["planning", "planning_ms", ms => `${Number(ms.toPrecision(3))} ms`],
];

function totalsTable() {
  const of = (side, field) => data[side].totals[field];
  const rows = totalRows.filter(([, field]) => of("a", field) !== null || of("b", field) !== null).map(([name, field, show]) => {
    const [a, b] = [of("a", field), of("b", field)];
    const part = a ? ` (${signed((b - a) / a, shownPercent)})` : "";
    return [name, a === null ? "" : show(a), b === null ? "" : show(b), a === null || b === null ? "" : a === b ? "equal" : signed(b - a, show) + part];
  });
  return tableOf(["", sideNames.a, sideNames.b, `${sideNames.b} minus ${sideNames.a}`], rows);
}

function verdictText() {
  const more = data.b_minus_a_us, a = data.a.totals.predicted_us;
  if (Math.abs(more) <= kSameUs * a) return "Both take the same predicted time.";
  const part = a ? ` (${signed(more / a, shownPercent)})` : "";
  return `${sideNames.b} is ${shownUs(Math.abs(more))} ${more > 0 ? "slower" : "faster"} than ${sideNames.a}${part}.`;
}

function changedSteps(most) {
  const rows = [...diffRows].filter(row => row.more !== 0).sort((a, b) => Math.abs(b.more) - Math.abs(a.more)).slice(0, most);
  return tableOf(["difference", "step", "", "became"], rows.map(row => [shownMore(row.more), diffStepLink(row.step), row.kind,
    row.a && row.b ? "" : joined(row.related.map(diffStepLink), 4)]));
}

function totalsView() {
  const sides = ["a", "b"].map(side => ({name: sideNames[side], blocks: stepsOf[side].map(step =>
    ({id: step.id, name: step.name, us: step.total, kind: pairOf[side].has(step.number) ? "same" : side === "a" ? "only-a" : "only-b"}))}));
  const bands = [...data.pairs];
  for (const row of diffRows) if (row.a && !row.b) for (const other of row.related) bands.push([row.a.number, other.number]);
  const only = side => counted(stepsOf[side].length - data.pairs.length, "step");
  return element("section", {},
    element("p", {class: "conclusion"}, verdictText()),
    element("p", {}, `${counted(data.pairs.length, "step")} equal, ${only("a")} only in ${sideNames.a}, ${only("b")} only in ${sideNames.b}.`),
    element("div", {class: "scroller"}, pairedTimelines(sides, bands)),
    element("p", {class: "hint"}, "Blocks are as wide as the time of a step; equal steps are grey. Bands join steps that do the same work."),
    totalsTable(), element("h2", {}, "Steps that change the time most"), changedSteps(15));
}

// ---- source lines and decisions

function linesView() {
  const rows = data.lines.map(row => ({...row, more: row.b - row.a}));
  return sortedTable([
    {name: "source line", of: row => row.line, show: row => element("span", {title: row.line}, row.line)},
    ...["a", "b"].map(side => ({name: sideNames[side], of: row => row[side], show: row => shownUs(row[side]), isNumber: true})),
    {name: "difference", of: row => Math.abs(row.more), show: row => shownMore(row.more), isNumber: true},
  ], rows, {label: "lines", sortedBy: "difference", wordsOf: row => [row.line], sumOf: list => shownMore(list.reduce((sum, row) => sum + row.more, 0))}).node;
}

function decisionKind(row) {
  if (!row.a || !row.b) return `only in ${sideNames[row.a ? "a" : "b"]}`;
  return row.a.verdict === row.b.verdict ? "other cost" : "other verdict";
}

function decisionsDiffView() {
  const kinds = ["all differences", ...new Set(data.decisions.map(decisionKind))];
  const kind = element("select", {"aria-label": "Kind of differences", onchange: () => table.draw()}, kinds.map(name => element("option", {}, name)));
  const verdictOf = one => {
    if (!one) return "-";
    return one.before_us || one.after_us ? `${one.verdict}, ${shownUs(one.before_us)} \u2192 ${shownUs(one.after_us)}` : one.verdict;
  };
  const reasons = row => {
    const [a, b] = [row.a ? row.a.because : "", row.b ? row.b.because : ""];
    return !a || !b || a === b ? a || b : `${sideNames.a}: ${a}; ${sideNames.b}: ${b}`;
  };
  const instrLink = name => { const at = (byInstr.a.get(name) || byInstr.b.get(name) || [])[0]; return at ? idLink(at.id, name) : name; };
  const columns = [
    {name: "", of: decisionKind},
    {name: "rule", of: row => row.rule, show: row => element("span", {title: row.pass}, row.rule)},
    {name: "producer", of: row => row.subject, show: row => instrLink(row.subject)},
    {name: "consumer", of: row => row.other, show: row => instrLink(row.other)},
    ...["a", "b"].map(side => ({name: sideNames[side], of: row => verdictOf(row[side])})),
    {name: "reason", of: reasons, wraps: true},
  ];
  const table = sortedTable(columns, data.decisions, {label: "decisions", sortedBy: "rule", bar: [kind],
    isWanted: row => !kind.value || kind.value === "all differences" || kind.value === decisionKind(row),
    wordsOf: row => [row.rule, row.subject, row.other, ...["a", "b"].flatMap(side => row[side] ? [row[side].because, row[side].verdict] : [])]});
  return table.node;
}

// ---- details

function diffDetails(id) {
  const step = stepOfId(id);
  if (!step) return null;
  const pair = pairOf[step.side].has(step.number), related = relatedSteps(step);
  const names = new Set(step.instrs);
  const about = data.decisions.filter(row => names.has(row.subject) || names.has(row.other));
  const of = one => definitions([
    ["kind", shownKind(one)], ["phase", one.phase], ["runs", shownRuns(one)],
    ["predicted", shownUs(one.predicted_us)], ["measured", shownUs(one.measured_us)], ["of the total", shownPercent(one.total / totalOf(one.side))],
    ["bound by", one.cost ? one.cost.binding : ""], ["reads", shownBytes(one.reads_bytes)], ["writes", shownBytes(one.writes_bytes)], ["schedule", one.schedule || ""],
    ["source lines", joined(one.lines)], ["instructions", joined(one.instrs, 40)]]);
  const title = pair ? "Equal step" : `Steps of ${sideNames[otherSide[step.side]]} with its work`;
  return [
    element("h2", {}, `${sideNames[step.side]}, step ${step.number + 1}: ${step.name}`), of(step),
    element("h2", {}, related.length ? title : `No step of ${sideNames[otherSide[step.side]]} has its work`),
    ...related.slice(0, 8).flatMap(other => [element("h3", {}, diffStepLink(other)), of(other)]),
    element("h3", {}, "Decisions that differ"),
    about.length ? tableOf(["rule", "producer", "consumer", sideNames.a, sideNames.b],
      about.slice(0, 100).map(row => [row.rule, row.subject, row.other, row.a ? row.a.verdict : "-", row.b ? row.b.verdict : "-"])) : "none",
  ];
}

const targetsText = data.a.report.target === data.b.report.target ? data.a.report.target : `${data.a.report.target} and ${data.b.report.target}`;
document.getElementById("heading").textContent =
  `${targetsText}; ${shownUs(data.a.totals.predicted_us)} and ${shownUs(data.b.totals.predicted_us)} predicted. Rates: ${data.a.report.machine.name}`;
startPage([{name: "Totals", make: totalsView}, {name: "Steps", make: stepsView}, {name: "Source lines", make: linesView},
  {name: "Decisions", make: decisionsDiffView}], diffDetails);
