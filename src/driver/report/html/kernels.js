// The table of steps, sorted by any column, filtered by text, and the roofline above it.

function ratioOf(step) {
  return step.measured_us !== null && step.predicted_us ? step.measured_us / step.predicted_us : null;
}

const kernelColumns = [
  {name: "#", of: step => step.number, show: step => String(step.number + 1), isNumber: true},
  {name: "step", of: step => step.name, show: step => stepLink(step.number)},
  {name: "kind", of: step => step.library || step.generator},
  {name: "phase", of: step => step.phase},
  {name: "runs", of: step => step.runs, show: shownRuns, isNumber: true},
  {name: "predicted", of: step => step.predicted_us, show: step => shownUs(step.predicted_us), isNumber: true},
  {name: "measured", of: step => step.measured_us, show: step => shownUs(step.measured_us), isNumber: true, isShown: isMeasured},
  {name: "measured / predicted", of: ratioOf, show: step => ratioOf(step) === null ? "" : ratioOf(step).toFixed(2), isNumber: true, isShown: isMeasured},
  {name: "of the total", of: step => step.total, show: step => shownPercent(step.total / totalUs), isNumber: true},
  {name: "bytes", of: step => step.bytes, show: step => shownBytes(step.bytes), isNumber: true},
  {name: "bound by", of: step => step.cost ? step.cost.binding : ""},
  {name: "roofline", of: step => step.roofline, show: step => shownPercent(step.roofline), isNumber: true,
    help: "the greater of the times that memory and arithmetic alone take, as a part of the step's time"},
  {name: "registers", of: step => step.registers ?? null, show: step => step.registers === undefined ? "" : String(Math.round(step.registers)), isNumber: true},
  {name: "shared", of: step => step.shared_bytes ?? null, show: step => step.shared_bytes ? shownBytes(step.shared_bytes) : "", isNumber: true},
  {name: "occupancy", of: step => step.occupancy ? step.occupancy.threads : null, isNumber: true, isShown: steps.some(step => step.occupancy),
    show: step => step.occupancy ? element("span", {title: occupancyText(step.occupancy)}, shownPercent(step.occupancy.threads)) : "",
    help: "threads of the blocks that an SM holds at once, of those that it can hold: from registers, shared memory and threads"},
  {name: "limited by", of: step => step.occupancy ? step.occupancy.limit : "", isShown: steps.some(step => step.occupancy),
    help: "what allows no further block on an SM"},
  {name: "ops", of: step => step.ops, isNumber: true},
  {name: "source line", of: step => step.lines[0] || "", show: step => joined(step.graph.lines.map(lineLink), 2)},
].filter(column => column.isShown !== false);

// Microseconds of the steps that each resource binds.
function bindings() {
  const us = new Map(["memory", "compute", "launch"].map(name => [name, 0]));
  for (const step of steps) if (step.cost) us.set(step.cost.binding, us.get(step.cost.binding) + step.total);
  return [...us].filter(([, time]) => time > 0);
}

const kRowsAtOnce = 200;  // of the table; more follow when the last is near

function kernelsView() {
  let sortedBy = 0, isDescending = false, selected = null, wanted = [], drawn = 0;
  const body = element("tbody"), end = element("div", {class: "end"});
  const heads = sortingHeads(kernelColumns, at => {
    isDescending = sortedBy === at ? !isDescending : Boolean(kernelColumns[at].isNumber) && at > 0;
    sortedBy = at;
    draw();
  });
  const filter = element("input", {type: "search", placeholder: "Filter by name, kind, line or instruction", "aria-label": "Filter the steps", oninput: () => draw()});
  const count = element("span", {role: "status"});

  function isWanted(step) {
    const text = filter.value.trim().toLowerCase();
    return !text || [step.name, step.generator, step.library || "", ...step.lines, ...step.instrs].some(word => word.toLowerCase().includes(text));
  }
  function rowOf(step) {
    return element("tr", {class: step.number === selected ? "selected" : null, id: `row-${step.number}`},
      kernelColumns.map(({of, show, isNumber}) => element("td", {class: isNumber ? "number" : null}, show ? show(step) : String(of(step)))));
  }
  function drawMore() {
    body.append(...wanted.slice(drawn, drawn + kRowsAtOnce).map(rowOf));
    drawn = Math.min(drawn + kRowsAtOnce, wanted.length);
  }
  function draw() {
    const {of} = kernelColumns[sortedBy];
    wanted = steps.filter(isWanted).sort((a, b) => (isDescending ? -1 : 1) * compareCells(of(a), of(b)) || a.number - b.number);
    markSorted(heads, sortedBy, isDescending);
    body.replaceChildren();
    drawn = 0;
    drawMore();
    count.textContent = `${wanted.length} of ${counted(steps.length, "step")}, ${shownUs(wanted.reduce((sum, step) => sum + step.total, 0))}`;
  }

  draw();
  if (typeof IntersectionObserver === "undefined") while (drawn < wanted.length) drawMore();
  else new IntersectionObserver(entries => { if (entries.some(entry => entry.isIntersecting)) drawMore(); }, {rootMargin: "800px"}).observe(end);
  const roofline = data.resources ? rooflineChart() : null;
  const about = "One dot per kernel, equal ones together; its area is its share of the time. A dot on a roof uses what the machine has." +
    (isMeasured ? " Small circles: predicted." : "");
  return {
    node: element("section", {},
      roofline ? element("details", {open: ""}, element("summary", {}, `Roofline of ${data.machine.name}`), element("p", {class: "hint"}, about), roofline.node,
        element("p", {class: "legend"}, bindings().map(([name, us]) => element("span", {class: name}, `bound by ${name}: ${shownUs(us)}, ${shownPercent(us / totalUs)}`)))) : null,
      element("div", {class: "bar"}, filter, count),
      element("div", {class: "scroller"}, element("table", {class: "steps"}, tableHead(heads), body)), end),
    select: (kind, number) => {
      selected = kind === "step" ? number : null;
      for (const row of body.querySelectorAll(".selected")) row.classList.remove("selected");
      const place = wanted.findIndex(step => step.number === selected);
      while (drawn <= place && drawn < wanted.length) drawMore();
      const row = selected === null ? null : body.querySelector(`#row-${selected}`);
      if (row) row.classList.add("selected");
      if (roofline) roofline.select(selected);
    },
  };
}
