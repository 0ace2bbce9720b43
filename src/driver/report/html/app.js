// Tabs, the details panel, and selection. The selection is the fragment of the address: #step-3, #instr-12, #edge-5, #line-2.
//
// What tests and other pages may rely on: nav#tabs has a [role=tab] per view, with the view's label as text, data-view="NAME" and
// id="tab-NAME"; the tab that is selected controls div.stage#panel-NAME[role=tabpanel][data-view=NAME], the only panel of the page,
// which is filled when it is first shown. The details are in aside#details; button#theme changes the colours; body[data-ready] has
// the milliseconds until the first view was there.

// {name, label, make}: a view is {node, select(kind, number)} and, where wanted, shown(), resized() and reveal(kind, number).
const pageViews = [
  {name: "graph", label: "Graph", make: graphView}, {name: "timeline", label: "Timeline", make: timelineView},
  {name: "kernels", label: "Kernels", make: kernelsView}, {name: "code", label: "Code", make: codeView},
  {name: "source", label: "Source", make: sourceView}, {name: "decisions", label: "Decisions", make: decisionsView},
  {name: "missed", label: "Missed chances", make: missedView}, {name: "profile", label: "Compile time", make: profileView},
];

const kNamesShown = 200;  // of a list in the details

function formOf(number) {
  const form = (data.forms || {})[number];
  return typeof form === "number" ? data.forms[form] : form;
}

function arraysTable(edges, other) {
  if (!edges || !edges.length) return "none";
  const rows = [...edges].sort((a, b) => b.bytes - a.bytes).map(edge => [linkTo("edge", edge.number, graph.instrs[edge.value].name), shownBytes(edge.bytes),
    edge[other] === null ? (other === "from" ? "an argument, constant or loop value" : "result") : stepLink(edge[other])]);
  return tableOf(["array", "bytes", other], rows);
}

function stepDetails(number) {
  const step = steps[number], form = formOf(number);
  const about = new Set(step.instrs.flatMap(name => decisionsByName.get(name) || []));
  const part = (title, content) => {  // made when it is opened
    const details = element("details", {ontoggle: () => { if (details.children.length < 2) details.append(content()); }}, element("summary", {}, title));
    return details;
  };
  return [
    element("h2", {}, `Step ${number + 1}: ${step.name}`),
    definitions([
      ["kind", shownKind(step)], ["phase", [step.phase, ...step.also_phases].join(", also ")],
      ["runs", step.calls === null ? "data-dependent" : step.runs === 1 ? "" : `${step.runs} times`],
      ["predicted", shownUs(step.predicted_us)], ["measured", shownUs(step.measured_us)],
      ["of the total", shownPercent(step.total / totalUs)],
      ["bound by", step.cost ? `${step.cost.binding} (memory ${shownUs(step.cost.memory)}, compute ${shownUs(step.cost.compute)}, launch ${shownUs(step.cost.launch)})` : ""],
      ["roofline", shownPercent(step.roofline)], ["reads", shownBytes(step.reads_bytes)], ["writes", shownBytes(step.writes_bytes)],
      ["registers", step.registers === undefined ? "" : String(Math.round(step.registers))], ["shared memory", step.shared_bytes ? shownBytes(step.shared_bytes) : ""],
      ["occupancy", step.occupancy ? occupancyText(step.occupancy) : ""],
      ["schedule", step.schedule || ""], ["why on the host", step.why || ""],
    ]),
    element("h3", {}, "Source lines"), element("p", {}, step.graph.lines.length ? joined(step.graph.lines.map(lineLink), 30) : "none"),
    element("h3", {}, "Instructions"), element("p", {}, joined([...new Set(step.graph.instrs)].map(id => linkTo("instr", id, graph.instrs[id].name)), kNamesShown)),
    element("h3", {}, "Arrays read"), arraysTable(edgesTo.get(number), "from"),
    element("h3", {}, "Arrays stored"), arraysTable(edgesFrom.get(number), "to"),
    ...stepAlternatives(number),
    part(`Decisions (${about.size})`, () => decisionsTable([...about].slice(0, kDecisionsShown))),
    form ? part("Kernel IR", () => element("pre", {}, form)) : null,
  ];
}

function instrDetails(id) {
  const instr = graph.instrs[id];
  return [
    element("h2", {}, instr.name),
    definitions([
      ["op", instr.op], ["shape", instr.shape], ["scope", instr.scope || ""],
      ["operands", joined(instr.operands.filter(one => one !== null).map(one => linkTo("instr", one, graph.instrs[one].name)), kNamesShown)],
      ["source line", instr.line === undefined ? "" : lineLink(instr.line)],
      ["steps", instr.steps.length ? joined([...new Set(instr.steps)].map(stepLink), kNamesShown) : "none: a parameter, constant, view or control flow"],
    ]),
    element("h3", {}, "Decisions"), decisionsTable((decisionsByName.get(instr.name) || []).slice(0, kDecisionsShown)),
  ];
}

function edgeDetails(numbers) {
  return numbers.flatMap(number => {
    const edge = graph.edges[number];
    return [
      element("h2", {}, `Array ${graph.instrs[edge.value].name}`),
      definitions([
        ["from", edge.from === null ? "an argument, constant or loop value" : stepLink(edge.from)], ["to", edge.to === null ? "a result" : stepLink(edge.to)],
        ["shape", graph.instrs[edge.value].shape], ["bytes", shownBytes(edge.bytes)],
        ["traffic", edge.us ? `${shownUs(edge.us)} of the predicted memory time of both steps` : ""],
        ["instruction", linkTo("instr", edge.value, graph.instrs[edge.value].name)],
      ]),
      ...edgeAlternatives(edge),
    ];
  });
}

function lineDetails(number) {
  const us = lineTimes.us.get(number) || 0, own = lineTimes.stepsOf.get(number) || [];
  const rows = [...own].sort((a, b) => steps[b].total - steps[a].total).map(step => [stepLink(step), shownUs(steps[step].total)]);
  return [
    element("h2", {}, lines[number].text),
    definitions([["time", us ? `${shownUs(us)}, ${shownPercent(us / totalUs)} of the total` : ""]]),
    element("h3", {}, "Steps"), rows.length ? tableOf(["step", "time of the step"], rows) : "none",
  ];
}

function headingOf() {
  if (data.interpreted) return `The whole program is interpreted: ${data.interpreted}`;
  const {fused, unfused} = data;
  const parts = [data.machine ? data.machine.name : data.target, `${counted(fused.steps, "step")} (${counted(fused.kernels, "kernel")}, ${counted(fused.library_calls, "library call")}, ${counted(fused.host_steps, "host step")}, ${fused.copies === 1 ? "1 copy" : `${fused.copies} copies`})`,
    `${shownUs(fused.predicted_us)} predicted`];
  if (fused.measured_us !== null) parts.push(`${shownUs(fused.measured_us)} measured`);
  if (unfused) parts.push(`unfused ${counted(unfused.steps, "step")}, ${shownUs(unfused.predicted_us)}`);
  parts.push(`${shownBytes(fused.bytes)} moved`, `${shownBytes(fused.peak_bytes)} peak memory`);
  return parts.join(" \u00b7 ");
}

function selectionOf(fragment) {
  const match = /^#(step|instr|edge|line)-([\d,]+)$/.exec(fragment);
  if (!match) return null;
  const numbers = match[2].split(",").map(Number);
  const all = {step: steps, instr: graph.instrs, edge: graph.edges, line: lines}[match[1]];
  return numbers.every(number => number < all.length) ? {kind: match[1], numbers} : null;
}

// A tab and the panel that it controls.
function tabOf({name, label}, onclick) {
  const button = element("button", {type: "button", role: "tab", id: `tab-${name}`, "data-view": name, onclick}, label);
  const panel = element("div", {class: "stage", role: "tabpanel", id: `panel-${name}`, "data-view": name, "aria-label": label});
  return {button, panel};
}

function start() {
  document.getElementById("heading").textContent = headingOf();
  document.getElementById("top").append(themeButton());
  const main = document.getElementById("main"), tabs = document.getElementById("tabs");
  if (!steps.length) return;
  const parts = pageViews.map((_, at) => tabOf(pageViews[at], () => show(at)));
  const views = pageViews.map(() => null);
  const details = element("aside", {id: "details", "aria-label": "Details", "aria-live": "polite", tabindex: 0}, element("p", {class: "hint"}, "Select a step, an edge or a line."));
  let current = -1, selection = null;

  function show(number) {
    current = number;
    const {panel} = parts[number];
    parts.forEach(({button}, at) => {
      button.setAttribute("aria-selected", String(at === number));
      button.tabIndex = at === number ? 0 : -1;
      if (at !== number) button.removeAttribute("aria-controls");
    });
    parts[number].button.setAttribute("aria-controls", `panel-${pageViews[number].name}`);
    main.replaceChildren(panel, details);
    if (!views[number]) {  // a view is made when it is first shown
      views[number] = pageViews[number].make();
      panel.append(views[number].node);
    }
    if (views[number].shown) views[number].shown();
    if (selection) views[number].select(selection.kind, selection.numbers[0]);
  }
  const showNamed = name => show(pageViews.findIndex(view => view.name === name));
  const detailsOf = {step: numbers => stepDetails(numbers[0]), instr: numbers => instrDetails(numbers[0]), edge: edgeDetails, line: numbers => lineDetails(numbers[0])};
  function showInGraph() {
    showNamed("graph");
    views[current].reveal(selection.kind, selection.numbers[0]);
  }
  const buttonTo = (text, onclick) => element("button", {type: "button", onclick}, text);
  function route() {
    selection = selectionOf(location.hash);
    if (!selection) return;
    const {kind, numbers} = selection;
    details.replaceChildren();
    if (kind === "step" || kind === "instr") details.append(buttonTo("Show in the graph", showInGraph));
    if (kind === "step") details.append(" ", buttonTo("Show the code", () => showNamed("code")));
    if (kind === "line") details.append(buttonTo("Show in the source", () => showNamed("source")));
    addChildren(details, detailsOf[kind](numbers));
    details.scrollTop = 0;
    views[current].select(kind, numbers[0]);
  }

  tabs.append(...parts.map(part => part.button));
  tabs.addEventListener("keydown", event => {
    const to = {ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: views.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show((to + views.length) % views.length);
    parts[current].button.focus();
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    const search = parts[current].panel.querySelector("input[type=search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
  });
  window.addEventListener("hashchange", route);
  window.addEventListener("resize", () => { if (views[current].resized) views[current].resized(); });
  show(0);
  route();
  document.body.dataset.ready = String(Math.round(performance.now()));  // milliseconds from the start of loading
}

start();
