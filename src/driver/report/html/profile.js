// Where the time of the compilation went: a flame chart of its stages, and tables of the stages and passes.

const kFlameRow = 24, kLeastFlameWidth = 0.5;  // pixels

function depthOf(node) {
  return 1 + Math.max(0, ...node.children.map(depthOf));
}

// Bars of a node and what is below it: {node, depth, start, ms} in milliseconds from the start of the node.
function barsOf(node, depth = 0, start = 0, bars = []) {
  bars.push({node, depth, start, ms: node.ms});
  let at = start;
  for (const child of node.children) {
    barsOf(child, depth + 1, at, bars);
    at += child.ms;
  }
  return bars;
}

// Passes by name: they run several times.
function passTotals(profile) {
  const totals = new Map();
  const visit = node => {
    if (node.pass) {
      const total = totals.get(node.name) || {name: node.name, ms: 0, runs: 0, changes: 0};
      total.ms += node.ms;
      total.runs += 1;
      total.changes += Number((/(\d+) changes/.exec(node.note) || [0, 0])[1]);
      totals.set(node.name, total);
    }
    node.children.forEach(visit);
  };
  visit(profile);
  return [...totals.values()].sort((a, b) => b.ms - a.ms);
}

// A chart of one tree; a click, or Enter, shows what is below a bar, and on the widest bar what is around it.
function flameChart(tree, label) {
  const scroller = element("div", {class: "scroller"}), path = element("p", {class: "hint", role: "status"});
  let root = tree, focused = 0;
  const parents = new Map();
  const link = node => node.children.forEach(child => { parents.set(child, node); link(child); });
  link(tree);

  function open(node) {
    root = node === root ? parents.get(node) || tree : node;
    focused = 0;
    draw();
  }
  function draw() {
    const width = Math.max(300, (scroller.clientWidth || 900) - 4), scale = width / (root.ms || 1);
    const bars = barsOf(root).filter(bar => bar.ms * scale >= kLeastFlameWidth);
    const names = [];
    for (let at = root; at; at = parents.get(at)) names.unshift(at.name);
    const picture = svgElement("svg", {width, height: depthOf(root) * kFlameRow + 2, class: "flame", tabindex: 0, role: "group",
      "aria-label": `${label}, ${shownMs(tree.ms)}: arrow keys move, Enter opens`, onkeydown: event => onKey(event, bars)});
    bars.forEach((bar, number) => {
      const {node, depth, start, ms} = bar, text = `${node.name} ${shownMs(ms)}`;
      const group = svgElement("g", {class: `bar depth${depth % 4}${number === focused ? " focused" : ""}`, onclick: () => open(node)},
        svgElement("rect", {x: start * scale, y: depth * kFlameRow, width: Math.max(kLeastFlameWidth, ms * scale - 1), height: kFlameRow - 2, rx: 2}),
        svgElement("title", {}, `${node.name}: ${shownMs(ms)}, ${shownPercent(ms / tree.ms)}${node.note ? `\n${node.note}` : ""}`));
      const most = Math.floor((ms * scale - 8) / kCharWidth);
      if (most > 3) group.append(svgElement("text", {x: start * scale + 4, y: depth * kFlameRow + 15}, text.length > most ? `${text.slice(0, most - 1)}\u2026` : text));
      picture.append(group);
    });
    scroller.replaceChildren(picture);
    const {node} = bars[focused] || bars[0] || {node: root};
    path.textContent = `${names.join(" \u203a ")}${node === root ? "" : `: ${node.name}`}, ${shownMs(node.ms)}${node.note ? ` \u00b7 ${node.note}` : ""}`;
  }
  function onKey(event, bars) {
    const move = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.key !== "Enter" && event.key !== "Escape" && !move) return;
    event.preventDefault();
    if (event.key === "Escape") open(root);
    else if (event.key === "Enter") open(bars[focused].node);
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") focused = Math.min(bars.length - 1, Math.max(0, focused + move));
    else focused = nearestBar(bars, focused, move);
    if (move) draw();
    scroller.firstChild.focus();
  }
  return {node: element("div", {}, path, scroller), draw};
}

// The bar one row further that is above or below the start of a bar.
function nearestBar(bars, from, rows) {
  const {depth, start} = bars[from];
  const found = bars.findIndex(bar => bar.depth === depth + rows && bar.start <= start + 1e-9 && start < bar.start + bar.ms + 1e-9);
  return found < 0 ? from : found;
}

function stageRows(node, all, depth = 0) {
  if (depth > 4 || node.pass) return [];
  const own = depth === 0 ? [] : [[element("span", {style: `padding-left: ${depth - 1}em`}, node.name), shownMs(node.ms), shownPercent(node.ms / all), node.note]];
  return [...own, ...node.children.flatMap(child => stageRows(child, all, depth + 1))];
}

function profileView() {
  const {profile} = data;
  if (!profile) return {node: element("section", {}, element("p", {}, "This report has no times of its compilation.")), select: () => {}};
  const chart = flameChart(profile, "Stages of the compilation"), passes = passTotals(profile);
  const page = profile.page && profile.page.children.length ? flameChart(profile.page, "Code for this page") : null;
  const draw = () => {
    chart.draw();
    if (page) page.draw();
  };
  const stages = tableOf(["stage", "time", "share", ""], stageRows(profile, profile.ms));
  const byPass = tableOf(["pass", "time", "runs", "changes"], passes.map(pass => [pass.name, shownMs(pass.ms), String(pass.runs), String(pass.changes)]));
  return {
    node: element("section", {class: "profile"},
      element("h2", {}, `Compilation: ${shownMs(profile.ms)}`), chart.node,
      element("p", {class: "hint"}, "Times of this compilation. Planning counts the time of its thread; other stages, the time that passed. A click on a bar opens it."),
      element("div", {class: "columns"}, element("div", {}, element("h3", {}, "Stages"), stages), element("div", {}, element("h3", {}, "Passes, by time"), byPass)),
      page ? [element("h2", {}, `Code for this page: ${shownMs(profile.page.ms)}`),
        element("p", {class: "hint"}, "What the code view shows was generated and compiled kernel by kernel, after the compilation."), page.node] : null),
    shown: draw,
    resized: draw,
    select: () => {},
  };
}
