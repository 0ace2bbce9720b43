// The code of a step: kernel IR, what the backend generates from it (CUDA C++, LLVM IR) and the machine code (PTX, assembly), two of
// them side by side, with the lines of the user's source that the step computes.

const codes = data.codes || {steps: {}, left_out: {kernels: 0, because: ""}, language: "", listing: "", compiler: "", why_no_listing: ""};

function codeEntryOf(number) {
  const entry = codes.steps[number];
  return typeof entry === "number" ? codes.steps[entry] : entry;
}

// Every text of a step: {name, text, why}, `why` where there is none.
function textsOf(number) {
  const entry = codeEntryOf(number), form = formOf(number);
  const isKernel = (steps[number].graph.arguments || []).length > 0;
  const none = isKernel ? codes.left_out.because : `${steps[number].library || steps[number].generator} steps have no kernel`;
  const left = name => entry && entry[`${name}_lines_left_out`];
  return [
    {name: "kernel IR", text: form, why: none},
    {name: codes.language, text: entry && entry.code, left: left("code"), why: entry ? entry.why_not : none},
    {name: codes.listing, text: entry && entry.listing, left: left("listing"),
      why: entry ? entry.why_not || entry.why_no_listing || codes.why_no_listing : none},
  ].filter(one => one.name);
}

// Names of arrays in the code of a step -> the instruction in the array. The kernel IR lists them in the order of graph.steps, and so
// do the parameters of a CUDA kernel.
function arraysOfCode(number, texts) {
  const names = new Map(), ids = steps[number].graph.arguments || [];
  const add = (name, at) => {
    const instr = ids[at] === undefined || ids[at] === null ? null : graph.instrs[ids[at]];
    names.set(name, names.has(name) && names.get(name) !== instr ? null : instr);  // null: of several kernels, or unknown
  };
  [...(texts[0].text || "").matchAll(/^\s*argument ([\w.$-]+):/gm)].forEach((match, at) => add(match[1], at));
  if (steps[number].graph.parts.length) return names;  // its kernels are functions with parameters of their own
  const kernel = /__global__ void[^(]*(?:\([^)]*\)\s*)?[\w$]+\(([^{]*)\)\s*\{/.exec((texts[1] || {}).text || "");
  if (kernel) kernel[1].split(",").forEach((parameter, at) => add(parameter.trim().split(/[\s*]+/).pop(), at));
  return names;
}

// Which line of the user's source a line of code comes from: that of the array which it loads or stores, or which its note names.
function lineFinder(number, texts) {
  const arrays = arraysOfCode(number, texts);
  const ofNote = new Map(lines.map(line => [`${line.file}:${line.line}`, lineNumbers.get(line.text)]));
  return text => {
    const note = /(?:note "|\/\/ )([^" ]+:\d+)/.exec(text);
    if (note && ofNote.has(note[1])) return ofNote.get(note[1]);
    for (const word of text.match(/[A-Za-z_][\w$]*/g) || []) if (arrays.get(word)) return arrays.get(word).line;
    return undefined;
  };
}

function sourceTextOf(line) {
  const {file, line: number} = lines[line];
  const row = ((data.sources || {})[file] || []).find(one => one[0] === number);
  return row ? row[1].trim() : "";
}

// The user's lines of a step, with its instructions from each.
function sourceRows(number, onLine) {
  const byLine = new Map();
  for (const line of steps[number].graph.lines) byLine.set(line, []);
  for (const id of new Set(steps[number].graph.instrs)) if (graph.instrs[id].line !== undefined) addTo(byLine, graph.instrs[id].line, id);
  if (!byLine.size) return [element("p", {class: "hint"}, "The program names no source lines for this step.")];
  return [...byLine].sort(([a], [b]) => lines[a].file.localeCompare(lines[b].file) || lines[a].line - lines[b].line).map(([line, ids]) => {
    const ops = [...new Set(ids.map(id => graph.instrs[id].op))];
    return element("div", {class: "origin", "data-line": line},
      element("div", {}, element("button", {type: "button", class: "plain", onclick: () => onLine(line), title: "Mark the code that reads or writes its arrays"}, lines[line].short)),
      sourceTextOf(line) ? element("code", {}, colouredNodes(sourceTextOf(line), lines[line].file.endsWith(".py") ? "Python" : "")) : null,
      ops.length ? element("div", {class: "hint"}, `${counted(ids.length, "instruction")}: ${ops.slice(0, 8).join(", ")}${ops.length > 8 ? " \u2026" : ""}`) : null);
  });
}

function codeView() {
  const order = steps.filter(step => codeEntryOf(step.number) || formOf(step.number)).sort((a, b) => b.total - a.total || a.number - b.number);
  if (!order.length) return {node: element("section", {}, element("p", {}, "No step of this program is a kernel.")), select: () => {}};
  let current = order[0].number, panes = [], chosen = [0, 2], shownLine = null;
  const picker = element("select", {"aria-label": "Step", onchange: () => { location.hash = `#step-${picker.value}`; }},
    order.map(step => element("option", {value: step.number}, `${step.number + 1} ${step.name} \u00b7 ${shownUs(step.total)}`)));
  const search = element("input", {type: "search", placeholder: "Find in the code ( / )", "aria-label": "Find in the code",
    oninput: () => find(), onkeydown: event => { if (event.key === "Enter") next(); }});
  const found = element("span", {role: "status"});
  const move = by => { location.hash = `#step-${order[(order.findIndex(step => step.number === current) + by + order.length) % order.length].number}`; };
  const facts = element("p", {class: "hint"}), origins = element("div", {class: "origins", role: "region", tabindex: 0, "aria-label": "Source lines of the step"});
  const frames = [0, 1].map(() => element("div", {class: "pane"}));

  function paneOf(side, texts, lineOf) {
    const which = Math.min(chosen[side], texts.length - 1), {name, text, why, left} = texts[which];
    const choose = element("select", {"aria-label": side ? "Code on the right" : "Code on the left", onchange: () => { chosen[side] = Number(choose.value); draw(); }},
      texts.map((one, at) => element("option", {value: at, selected: at === which ? "" : null}, one.name)));
    choose.value = String(which);
    const said = element("span", {role: "status", class: "hint"});
    const copy = element("button", {type: "button", disabled: text ? null : "", onclick: () => copyText(text, said)}, "Copy");
    const shown = text ? listing(text, name, lineOf) : null;
    frames[side].replaceChildren(element("div", {class: "bar"}, choose, copy, said,
      element("span", {class: "hint"}, shown ? `${counted(shown.count, "line")}${left ? `, ${left} more left out` : ""}` : "")),
    shown ? shown.node : element("p", {class: "why"}, `No ${name}: ${why || "it was not generated"}`));
    return shown;
  }
  function factsOf(entry) {
    if (!entry) return "";
    const parts = [];
    if (entry.generate_ms !== undefined) parts.push(`${codes.language} in ${shownMs(entry.generate_ms)}`);
    if (entry.compile_ms !== undefined) parts.push(`${codes.listing} by ${codes.compiler} in ${shownMs(entry.compile_ms)}`);
    if (entry.registers) parts.push(`${entry.registers} registers a thread${steps[current].registers ? ` (${Math.round(steps[current].registers)} estimated)` : ""}${entry.spilled_bytes ? `, ${shownBytes(entry.spilled_bytes)} spilled` : ""}`);
    return parts.join(" \u00b7 ");
  }
  function draw() {
    const texts = textsOf(current), lineOf = lineFinder(current, texts);
    picker.value = String(current);
    facts.textContent = factsOf(codeEntryOf(current));
    panes = [0, 1].map(side => paneOf(side, texts, lineOf)).filter(Boolean);
    origins.replaceChildren(element("h3", {}, "Source lines"), ...sourceRows(current, showLine));
    shownLine = null;
    if (search.value) find();
  }
  function showLine(line) {
    shownLine = shownLine === line ? null : line;
    const hits = panes.map(pane => pane.showLine(shownLine));
    for (const row of origins.children) {
      if (shownLine !== null && row.getAttribute("data-line") === String(shownLine)) row.classList.add("selected");
      else row.classList.remove("selected");
    }
    found.textContent = shownLine !== null && !hits.some(Boolean) ? "no array of this line is read or written here" : "";
  }
  function find() {
    const text = search.value.trim().toLowerCase();
    const count = panes.reduce((sum, pane) => sum + pane.find(text), 0);
    found.textContent = text ? counted(count, "line") : "";
  }
  function next() {
    for (const pane of panes) pane.next();
  }

  const left = codes.left_out.kernels;
  return {
    node: element("section", {class: "fill code"},
      element("div", {class: "bar"}, picker, element("button", {type: "button", "aria-label": "Previous step", onclick: () => move(-1)}, "\u2190"),
        element("button", {type: "button", "aria-label": "Next step", onclick: () => move(1)}, "\u2192"), search, found),
      facts, element("div", {class: "panes"}, origins, frames),
      left ? element("p", {class: "hint"}, `${counted(left, "kernel")} without ${codes.language}: ${codes.left_out.because}.`) : null),
    shown: () => { if (!panes.length) draw(); },
    select: (kind, number) => {
      if (kind === "step" && order.some(step => step.number === number) && number !== current) {
        current = number;
        draw();
      } else if (kind === "line" && shownLine !== number) {
        showLine(number);
      }
    },
  };
}

// The clipboard may be closed to a page that is a file: then the old way, a selection.
function copyText(text, said) {
  const done = () => { said.textContent = "copied"; };
  const byHand = () => {
    const area = element("textarea", {class: "copied", "aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    said.textContent = document.execCommand("copy") ? "copied" : "not allowed here";
    area.remove();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
  else byHand();
}
