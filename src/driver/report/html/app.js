// Tabs, the details panel, and selection. The selection is the fragment of the address: #step-3, #instr-12, #edge-5, #line-2.

function definition(pairs) {
  return element("dl", {}, pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function listed(items, most = 200) {
  const shown = items.slice(0, most).flatMap((item, at) => at ? [", ", item] : [item]);
  return items.length > most ? [...shown, ` and ${items.length - most} more`] : shown;
}

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
  const part = (title, ...content) => element("details", {}, element("summary", {}, title), content);
  return [
    element("h2", {}, `Step ${number + 1}: ${step.name}`),
    definition([
      ["kind", step.library ? `${step.generator}, ${step.library}` : step.generator], ["phase", [step.phase, ...step.also_phases].join(", also ")],
      ["runs", step.calls === null ? "data-dependent" : step.runs === 1 ? "" : `${step.runs} times`],
      ["predicted", shownUs(step.predicted_us)], ["measured", shownUs(step.measured_us)],
      ["of the total", shownPercent(step.total / totalUs)],
      ["bound by", step.cost ? `${step.cost.binding} (memory ${shownUs(step.cost.memory)}, compute ${shownUs(step.cost.compute)}, launch ${shownUs(step.cost.launch)})` : ""],
      ["roofline", shownPercent(step.roofline)], ["reads", shownBytes(step.reads_bytes)], ["writes", shownBytes(step.writes_bytes)],
      ["registers", step.registers === undefined ? "" : String(Math.round(step.registers))], ["shared memory", step.shared_bytes ? shownBytes(step.shared_bytes) : ""],
      ["schedule", step.schedule || ""], ["why on the host", step.why || ""],
    ]),
    element("h3", {}, "Source lines"), element("p", {}, step.graph.lines.length ? listed(step.graph.lines.map(lineLink), 30) : "none"),
    element("h3", {}, "Instructions"), element("p", {}, listed([...new Set(step.graph.instrs)].map(id => linkTo("instr", id, graph.instrs[id].name)))),
    element("h3", {}, "Arrays read"), arraysTable(edgesTo.get(number), "from"),
    element("h3", {}, "Arrays stored"), arraysTable(edgesFrom.get(number), "to"),
    part(`Decisions (${about.size})`, decisionsTable([...about].slice(0, kDecisionsShown))),
    form ? part("Kernel IR", element("pre", {}, form)) : null,
  ];
}

function instrDetails(id) {
  const instr = graph.instrs[id];
  return [
    element("h2", {}, instr.name),
    definition([
      ["op", instr.op], ["shape", instr.shape], ["scope", instr.scope || ""],
      ["operands", listed(instr.operands.filter(one => one !== null).map(one => linkTo("instr", one, graph.instrs[one].name)))],
      ["source line", instr.line === undefined ? "" : lineLink(instr.line)],
      ["steps", instr.steps.length ? listed([...new Set(instr.steps)].map(stepLink)) : "none: a parameter, constant, view or control flow"],
    ]),
    element("h3", {}, "Decisions"), decisionsTable((decisionsByName.get(instr.name) || []).slice(0, kDecisionsShown)),
  ];
}

function edgeDetails(numbers) {
  return numbers.flatMap(number => {
    const edge = graph.edges[number], found = decisionsOfEdge(edge);
    return [
      element("h2", {}, `Array ${graph.instrs[edge.value].name}`),
      definition([
        ["from", edge.from === null ? "an argument, constant or loop value" : stepLink(edge.from)], ["to", edge.to === null ? "a result" : stepLink(edge.to)],
        ["shape", graph.instrs[edge.value].shape], ["bytes", shownBytes(edge.bytes)],
        ["traffic", edge.us ? `${shownUs(edge.us)} of the predicted memory time of both steps` : ""],
        ["instruction", linkTo("instr", edge.value, graph.instrs[edge.value].name)],
      ]),
      found.length ? decisionsTable(found) : element("p", {}, "No decision about these two steps was recorded."),
    ];
  });
}

function lineDetails(number) {
  const us = lineTimes.us.get(number) || 0, own = lineTimes.stepsOf.get(number) || [];
  const rows = [...own].sort((a, b) => steps[b].total - steps[a].total).map(step => [stepLink(step), shownUs(steps[step].total)]);
  return [
    element("h2", {}, lines[number].text),
    definition([["time", us ? `${shownUs(us)}, ${shownPercent(us / totalUs)} of the total` : ""]]),
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

function start() {
  document.getElementById("heading").textContent = headingOf();
  const main = document.getElementById("main"), tabs = document.getElementById("tabs");
  if (!steps.length) return;
  const makers = [graphView, timelineView, kernelsView, sourceView, decisionsView, missedView];
  const names = ["Graph", "Timeline", "Kernels", "Source", "Decisions", "Missed chances"];
  const views = makers.map(() => null);
  const panel = element("aside", {"aria-label": "Details", "aria-live": "polite"}, element("p", {class: "hint"}, "Select a step, an edge or a line."));
  const stage = element("div", {class: "stage", role: "tabpanel"});
  let current = -1, selection = null;

  function show(number) {
    current = number;
    views[number] = views[number] || makers[number]();  // a view is made when it is first shown
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === number));
      button.tabIndex = at === number ? 0 : -1;
    });
    stage.setAttribute("aria-label", names[number]);
    stage.replaceChildren(views[number].node);
    if (views[number].shown) views[number].shown();
    if (selection) views[number].select(selection.kind, selection.numbers[0]);
  }
  const detailsOf = {step: numbers => stepDetails(numbers[0]), instr: numbers => instrDetails(numbers[0]), edge: edgeDetails, line: numbers => lineDetails(numbers[0])};
  function showInGraph() {
    show(0);
    views[0].reveal(selection.kind, selection.numbers[0]);
  }
  function route() {
    selection = selectionOf(location.hash);
    if (!selection) return;
    const {kind, numbers} = selection;
    panel.replaceChildren();
    if (kind === "step" || kind === "instr") panel.append(element("button", {type: "button", onclick: showInGraph}, "Show in the graph"));
    if (kind === "line") panel.append(element("button", {type: "button", onclick: () => show(3)}, "Show in the source"));
    addChildren(panel, detailsOf[kind](numbers));
    panel.scrollTop = 0;
    views[current].select(kind, numbers[0]);
  }

  const buttons = names.map((name, at) => element("button", {type: "button", role: "tab", onclick: () => show(at)}, name));
  tabs.append(...buttons);
  tabs.addEventListener("keydown", event => {
    const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!move) return;
    show((current + move + views.length) % views.length);
    buttons[current].focus();
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || /^(INPUT|SELECT)$/.test(document.activeElement.tagName)) return;
    const search = stage.querySelector("input[type=search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
  });
  window.addEventListener("hashchange", route);
  main.replaceChildren(stage, panel);
  show(0);
  route();
  document.body.dataset.ready = String(Math.round(performance.now()));  // milliseconds from the start of loading
}

start();
