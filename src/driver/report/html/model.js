// The report as the views use it: steps, instructions, edges and lines by number, with the indices between them.

const data = JSON.parse(document.getElementById("report").textContent);
const graph = data.graph || {instrs: [], computations: [], lines: [], steps: [], edges: []};
const steps = data.kernels || [];
const decisions = data.decisions || [];
const isMeasured = steps.some(step => step.measured_us !== null);

// Adds `value` to the list at `key` of a map.
function addTo(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

// "src/train.py:12 (loss)" as {file, line, text, short, scope}; `short` has no folder, `scope` is the function in its file.
function parsedLine(text) {
  const match = /^(.*):(\d+)(?: \((.*)\))?$/.exec(text);
  if (!match) return {file: "", line: 0, text, short: text, scope: ""};
  const name = match[1].slice(match[1].lastIndexOf("/") + 1);
  return {file: match[1], line: Number(match[2]), text, short: text.slice(match[1].lastIndexOf("/") + 1), scope: match[3] ? `${name}/${match[3]}` : name};
}

const lines = graph.lines.map(parsedLine);
const lineNumbers = new Map(graph.lines.map((text, number) => [text, number]));
const instrsByName = new Map(), edgesFrom = new Map(), edgesTo = new Map(), decisionsByName = new Map();

// What every page derives for a step: its number, runs (1 where they are data-dependent), time of one run and of all, and bytes.
function setStepFields(step, number) {
  const us = step.measured_us ?? step.predicted_us ?? 0, runs = step.calls ?? 1;
  Object.assign(step, {number, runs, us, total: us * runs, bytes: step.reads_bytes + step.writes_bytes});
}

function indexReport() {
  steps.forEach((step, number) => {
    setStepFields(step, number);
    step.graph = graph.steps[number] || {instrs: [], parts: [], lines: [], made: []};
    step.roofline = rooflineOf(step);
    step.resource = data.resources ? data.resources.steps[number] : null;
    step.occupancy = step.resource && step.resource.occupancy ? step.resource.occupancy : null;
  });
  graph.instrs.forEach((instr, id) => {
    instr.id = id;
    addTo(instrsByName, instr.name, instr);
  });
  graph.edges.forEach((edge, number) => {
    edge.number = number;
    if (edge.from !== null) addTo(edgesFrom, edge.from, edge);
    if (edge.to !== null) addTo(edgesTo, edge.to, edge);
  });
  decisions.forEach(decision => {
    addTo(decisionsByName, decision.subject, decision);
    if (decision.other && decision.other !== decision.subject) addTo(decisionsByName, decision.other, decision);
  });
}

// The greater of the times that memory and arithmetic alone take, as a part of the step's time; null without an estimate.
function rooflineOf(step) {
  if (!step.cost || !step.us) return null;
  return Math.min(1, Math.max(step.cost.memory, step.cost.compute) / step.us);
}

indexReport();
const totalUs = steps.reduce((sum, step) => sum + step.total, 0);

// The step that computes an instruction for the first time; null if no step does.
function stepOfInstr(id) {
  const instr = graph.instrs[id];
  return instr && instr.steps.length ? instr.steps[0] : null;
}

// Microseconds of every line. The time of a step is divided among its lines in proportion to its instructions from each.
function timeOfLines() {
  const us = new Map(), stepsOf = new Map();
  for (const step of steps) {
    const counts = new Map();
    for (const id of step.graph.instrs) {
      const line = graph.instrs[id].line;
      if (line !== undefined) counts.set(line, (counts.get(line) || 0) + 1);
    }
    if (!counts.size) for (const line of step.graph.lines) counts.set(line, 1);
    const all = [...counts.values()].reduce((a, b) => a + b, 0);
    for (const [line, count] of counts) {
      us.set(line, (us.get(line) || 0) + step.total * count / all);
      addTo(stepsOf, line, step.number);
    }
  }
  return {us, stepsOf};
}
const lineTimes = timeOfLines();

// Decisions between two steps: one end is an instruction of the producer, the other one of the consumer; or the value itself.
function decisionsOfEdge(edge) {
  const value = graph.instrs[edge.value].name;
  if (edge.to === null) return decisionsByName.get(value) || [];
  const to = new Set(steps[edge.to].instrs);
  const from = new Set(edge.from === null ? [value] : steps[edge.from].instrs);
  const found = new Set();
  for (const name of from)
    for (const decision of decisionsByName.get(name) || [])
      if ((from.has(decision.subject) && to.has(decision.other)) || (to.has(decision.subject) && from.has(decision.other)) ||
          (decision.subject === value && !decision.other))
        found.add(decision);
  return [...found];
}

// ---- text

function shownUs(us) {
  if (us === null || us === undefined) return "";
  if (us === 0) return "0 us";
  if (us >= 1e6) return `${(us / 1e6).toPrecision(3)} s`;
  if (us >= 1e4) return `${(us / 1e3).toPrecision(3)} ms`;
  return `${Number(us.toPrecision(3))} us`;
}

function shownMs(ms) {
  if (ms === null || ms === undefined) return "";
  return ms >= 1e4 ? `${(ms / 1e3).toPrecision(3)} s` : `${Number(ms.toPrecision(3))} ms`;
}

function shownBytes(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit + 1 < units.length) {
    bytes /= 1000;
    ++unit;
  }
  return `${Number(bytes.toPrecision(3))} ${units[unit]}`;
}

function shownPercent(part) {
  return part === null || !isFinite(part) ? "" : `${Number((100 * part).toPrecision(2))} %`;
}

// "62 % of an SM's threads: 3 blocks at once, limited by registers, of 8448".
function occupancyText({threads, blocks, limit, grid}) {
  return `${shownPercent(threads)} of an SM's threads: ${counted(blocks, "block")} at once, limited by ${limit}, of ${grid}`;
}

function shownRuns(step) {
  return step.calls === null ? "data-dependent" : String(step.calls);
}

// "contract", "library, cuBLASLt".
function shownKind(step) {
  return step.library ? `${step.generator}, ${step.library}` : step.generator;
}

// "1 step", "3 steps".
function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

// ---- elements. Text of the program only ever becomes text nodes and attribute values.

function addChildren(node, children) {
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  return node;
}

function element(tag, attributes, ...children) {
  return addChildren(setAttributes(document.createElement(tag), attributes), children);
}

function svgElement(tag, attributes, ...children) {
  return addChildren(setAttributes(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes), children);
}

// Links select what they name: the details panel shows it, and so do the views.
function idLink(id, text, title) {
  const hash = `#${id}`;
  // In a page inside another one (a notebook), a link would lead to a fragment of the outer page.
  const onclick = event => {
    event.preventDefault();
    location.hash = hash;
  };
  return element("a", {href: hash, title, onclick}, text);
}
const linkTo = (kind, number, text, title) => idLink(`${kind}-${number}`, text, title);
const stepLink = number => linkTo("step", number, steps[number].name);
const lineLink = number => linkTo("line", number, lines[number].short, lines[number].text);

// A list of names and values, without those that have no value.
function definitions(pairs) {
  return element("dl", {}, pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// "a, b, c and 2 more".
function joined(items, most = 12) {
  const shown = items.slice(0, most).flatMap((item, at) => at ? [", ", item] : [item]);
  return items.length > most ? [...shown, ` and ${items.length - most} more`] : shown;
}

// ---- tables

// `heads`: names of columns, or their elements.
function tableHead(heads) {
  return element("thead", {}, element("tr", {}, heads.map(head => typeof head === "string" ? element("th", {scope: "col"}, head) : head)));
}

function tableOf(heads, rows) {
  return element("table", {}, tableHead(heads),
    element("tbody", {}, rows.map(cells => element("tr", {}, cells.map(cell => element("td", {}, cell))))));
}

// Heads that are buttons: `sortBy` gets the number of a column.
function sortingHeads(columns, sortBy) {
  return columns.map((column, at) => element("th", {scope: "col", title: column.help || null},
    element("button", {type: "button", onclick: () => sortBy(at)}, column.name)));
}

function markSorted(heads, sortedBy, isDescending) {
  heads.forEach((head, at) => head.setAttribute("aria-sort", at === sortedBy ? (isDescending ? "descending" : "ascending") : "none"));
}

// The order of two cells of a column; those without a value are the least.
function compareCells(a, b) {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
