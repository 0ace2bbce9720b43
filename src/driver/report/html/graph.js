// The graph: groups that open to their members. Every opened group is laid out by itself, its members as boxes; an edge joins the
// members of the innermost group that has both of its ends.

const kNodeHeight = 38, kInstrHeight = 24, kHeaderHeight = 28, kPadding = 14, kCharWidth = 7;
const kMostForDagre = 600;  // boxes of a group, and rows that its edges cross; dagre takes about a millisecond for each

// For every group, the edges between its members: node.links = [{from, to, edges}], members by position.
function linkTree(root, pairs) {
  const pathOf = new Map();
  const visit = (node, path) => {
    node.links = [];
    node.linkIndex = new Map();
    node.children.forEach((child, at) => {
      const below = [...path, [node, at]];
      pathOf.set(child, below);
      child.parent = node;
      visit(child, below);
    });
  };
  visit(root, []);
  for (const {from, to, edge} of pairs) {
    const a = pathOf.get(from), b = pathOf.get(to);
    let depth = 0;
    while (depth < a.length && depth < b.length && a[depth][0] === b[depth][0] && a[depth][1] === b[depth][1]) ++depth;
    if (depth >= a.length || depth >= b.length) continue;
    const group = a[depth][0], key = `${a[depth][1]},${b[depth][1]}`;
    let link = group.linkIndex.get(key);
    if (!link) {
      link = {from: a[depth][1], to: b[depth][1], edges: []};
      group.linkIndex.set(key, link);
      group.links.push(link);
    }
    if (edge !== undefined) link.edges.push(edge);
  }
}

function leavesOf(node, leaves = []) {
  if (!node.children.length) leaves.push(node);
  node.children.forEach(child => leavesOf(child, leaves));
  return leaves;
}

function stepNodesOf(node, found = new Map()) {
  if (node.kind === "step") found.set(node.step, node);
  else node.children.forEach(child => stepNodesOf(child, found));
  return found;
}

function operandPairs(nodes) {
  const byId = new Map(nodes.map(node => [node.instr, node]));
  return nodes.flatMap(node => graph.instrs[node.instr].operands
    .filter(id => byId.has(id) && id !== node.instr).map(id => ({from: byId.get(id), to: node})));
}

function linkedTree(isFused, by) {
  const root = isFused ? fusedTree(by) : unfusedTree(by);
  if (!isFused) {
    linkTree(root, operandPairs(leavesOf(root)));
    return root;
  }
  const nodes = stepNodesOf(root);
  const pairs = graph.edges.filter(edge => edge.from !== null && edge.to !== null && edge.from !== edge.to)
    .map(edge => ({from: nodes.get(edge.from), to: nodes.get(edge.to), edge: edge.number}));
  const addOperands = node => {
    pairs.push(...operandPairs(node.children.filter(child => child.kind === "instr")));
    node.children.forEach(addOperands);
  };
  for (const node of nodes.values()) addOperands(node);
  linkTree(root, pairs);
  return root;
}

// ---- layout

function titleOf(node) {
  return node.kind === "step" ? `${node.step + 1} ${node.label}` : node.label;
}

function subtitleOf(node) {
  if (node.kind === "instr") return "";
  if (node.kind === "step") {
    const step = steps[node.step];
    const calls = step.runs === 1 ? "" : `, ${step.runs} times`;
    return `${step.library || step.generator}, ${shownUs(step.us)}${calls}`;
  }
  const below = stepsBelow(node);
  if (!below.length) return counted(leavesOf(node).length, "instruction");
  return `${counted(below.length, "step")}, ${shownUs(usOf(node))}`;
}

function usOf(node) {
  return stepsBelow(node).reduce((sum, step) => sum + steps[step].total, 0);
}

function closedSize(node) {
  const chars = Math.max(titleOf(node).length + (node.children.length ? 3 : 0), subtitleOf(node).length);
  return {width: Math.min(320, Math.max(70, chars * kCharWidth + 20)), height: node.kind === "instr" ? kInstrHeight : kNodeHeight};
}

// The row of each box: the length of the longest path to it.
function ranksOf(sizes, links) {
  const ranks = sizes.map(() => 0);
  for (const link of [...links].sort((a, b) => a.from - b.from))
    if (link.from < link.to) ranks[link.to] = Math.max(ranks[link.to], ranks[link.from] + 1);
  return ranks;
}

// What the time of dagre depends on: boxes, and one more for each row that an edge crosses.
function dagreSize(sizes, links) {
  const ranks = ranksOf(sizes, links);
  return links.reduce((sum, link) => sum + Math.max(0, ranks[link.to] - ranks[link.from] - 1), sizes.length);
}

// Positions of boxes by longest path, in rows that keep their order. For groups that are too large for dagre.
function layeredPositions(sizes, links) {
  const rows = [];
  ranksOf(sizes, links).forEach((row, at) => (rows[row] = rows[row] || []).push(at));
  const places = [];
  let y = 0;
  for (const row of rows.filter(Boolean)) {
    let x = 0;
    const height = Math.max(...row.map(at => sizes[at].height));
    for (const at of row) {
      places[at] = {x: x + sizes[at].width / 2, y: y + height / 2};
      x += sizes[at].width + 16;
    }
    y += height + 30;
  }
  return {places, routes: links.map(link => [bottomOf(places[link.from], sizes[link.from]), topOf(places[link.to], sizes[link.to])])};
}
const bottomOf = (place, size) => ({x: place.x, y: place.y + size.height / 2});
const topOf = (place, size) => ({x: place.x, y: place.y - size.height / 2});

function dagrePositions(sizes, links) {
  const boxes = new dagre.graphlib.Graph();
  boxes.setGraph({rankdir: "TB", nodesep: 18, ranksep: 30});
  boxes.setDefaultEdgeLabel(() => ({}));
  sizes.forEach((size, at) => boxes.setNode(String(at), {width: size.width, height: size.height}));
  links.forEach(link => boxes.setEdge(String(link.from), String(link.to)));
  dagre.layout(boxes);
  return {places: sizes.map((_, at) => boxes.node(String(at))),
    routes: links.map(link => boxes.edge(String(link.from), String(link.to)).points)};
}

// Size of a node, and positions of what an open node contains relative to its upper left corner. Kept until a node below changes.
function boxOf(node) {
  if (node.box) return node.box;
  if (!node.isOpen || !node.children.length) return (node.box = closedSize(node));
  const sizes = node.children.map(boxOf);
  const {places, routes} = (dagreSize(sizes, node.links) > kMostForDagre ? layeredPositions : dagrePositions)(sizes, node.links);
  const left = Math.min(...places.map((place, at) => place.x - sizes[at].width / 2), ...routes.flat().map(point => point.x));
  const right = Math.max(...places.map((place, at) => place.x + sizes[at].width / 2), ...routes.flat().map(point => point.x));
  const bottom = Math.max(...places.map((place, at) => place.y + sizes[at].height / 2));
  const dx = kPadding - left, dy = kHeaderHeight + kPadding;
  node.box = {
    width: Math.max(right - left + 2 * kPadding, closedSize(node).width),
    height: bottom + dy + kPadding,
    places: places.map((place, at) => ({x: place.x + dx - sizes[at].width / 2, y: place.y + dy - sizes[at].height / 2})),
    routes: routes.map(points => points.map(point => ({x: point.x + dx, y: point.y + dy}))),
  };
  return node.box;
}

function setOpen(node, isOpen) {
  node.isOpen = isOpen;
  for (let at = node; at; at = at.parent) at.box = null;
}

// ---- the view

function graphView() {
  const trees = {};
  let isFused = true, root = null, selected = null;
  const view = {x: 20, y: 20, scale: 1};
  const canvas = svgElement("g");
  const arrow = svgElement("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"},
    svgElement("path", {d: "M0,0 L8,4 L0,8 z", class: "arrowhead"}));
  const picture = svgElement("svg", {class: "graph", role: "tree", "aria-label": "Graph of the program"},
    svgElement("defs", {}, arrow), canvas);
  const search = element("input", {type: "search", placeholder: "Find a step, instruction or op ( / )", "aria-label": "Find in the graph",
    oninput: () => showMatches(), onkeydown: event => { if (event.key === "Enter") nextMatch(); }});
  const found = element("span", {role: "status"});
  const unfused = element("input", {type: "checkbox", onchange: () => { isFused = !unfused.checked; draw(); fit(); }});
  const grouping = element("select", {"aria-label": "Group the graph by", onchange: () => { draw(); fit(0.4); }},
    Object.entries(groupings).map(([name, {label}]) => element("option", {value: name}, label)));
  const bar = element("div", {class: "bar"}, search, found,
    element("label", {}, unfused, " before fusion"),
    element("label", {}, "group by ", grouping),
    element("button", {type: "button", onclick: () => zoom(1.25)}, "Zoom in"),
    element("button", {type: "button", onclick: () => zoom(0.8)}, "Zoom out"),
    element("button", {type: "button", onclick: () => fit()}, "Fit"),
    element("button", {type: "button", onclick: () => { closeAll(root); draw(); fit(); }}, "Close all"));
  let matches = [], match = -1;

  function place() {
    canvas.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
  }
  function zoom(factor, x = picture.clientWidth / 2, y = picture.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.02, view.scale * factor));
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    place();
  }
  // `least`: the smallest scale, for a readable picture where not all of it needs to be seen.
  function fit(least = 0.05) {
    const box = boxOf(root);
    view.scale = Math.min(1.2, Math.max(least, Math.min(picture.clientWidth / (box.width + 40), picture.clientHeight / (box.height + 40))));
    view.x = (picture.clientWidth - box.width * view.scale) / 2;
    view.y = 20;
    place();
  }
  function closeAll(node) {
    if (node !== root && node.isOpen) setOpen(node, false);
    node.children.forEach(closeAll);
  }
  function toggle(node) {
    if (!node.children.length || node === root) return;
    setOpen(node, !node.isOpen);
    draw();
    focusOn(node, false);
  }
  function select(node) {
    if (node.kind === "step") location.hash = `#step-${node.step}`;
    else if (node.instr !== undefined) location.hash = `#instr-${node.instr}`;
  }

  function drawLinks(node, group) {
    node.links.forEach((link, at) => {
      const points = node.box.routes[at];
      const path = `M${points.map(point => `${point.x.toFixed(1)},${point.y.toFixed(1)}`).join(" L")}`;
      const bytes = link.edges.reduce((sum, edge) => sum + graph.edges[edge].bytes, 0);
      const drawn = svgElement("g", {class: "edge"}, svgElement("path", {d: path, class: "line", "marker-end": "url(#arrow)"}));
      if (link.edges.length) {
        addChildren(drawn, [svgElement("path", {d: path, class: "target"}),
          svgElement("title", {}, `${shownBytes(bytes)} in ${counted(link.edges.length, "array")}; click for decisions`)]);
        drawn.addEventListener("click", event => { event.stopPropagation(); location.hash = `#edge-${link.edges.join(",")}`; });
        const middle = points[Math.floor(points.length / 2)];
        drawn.append(svgElement("text", {x: middle.x + 4, y: middle.y, class: "bytes"}, shownBytes(bytes)));
      }
      group.append(drawn);
    });
  }

  function drawNode(node, x, y, level) {
    const box = boxOf(node), isOpen = node.isOpen && node.children.length > 0, name = titleOf(node), subtitle = subtitleOf(node);
    const group = svgElement("g", {class: `node ${node.kind}${isOpen ? " open" : ""}`, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
      role: "treeitem", tabindex: node === root ? "0" : "-1", "aria-level": level,
      "aria-expanded": node.children.length ? String(isOpen) : null, "aria-label": `${name} ${subtitle}`});
    node.drawn = group;
    group.node = node;
    const heat = node.kind === "instr" || !totalUs ? 0 : usOf(node) / totalUs;
    const rect = svgElement("rect", {width: box.width, height: box.height, rx: 5});
    if (!isOpen && heat) rect.style.setProperty("--heat", Math.sqrt(heat).toFixed(3));
    group.append(rect);
    const sign = node.children.length && node !== root ? (isOpen ? "- " : "+ ") : "";
    const title = svgElement("text", {x: 9, y: 16, class: "title"}, shortened(sign + name, box.width));
    group.append(title, svgElement("title", {}, node.kind === "instr" ? graph.instrs[node.instr].shape : `${name}: ${subtitle}`));
    if (!isOpen && node.kind !== "instr") group.append(svgElement("text", {x: 9, y: 31, class: "subtitle"}, subtitle));
    group.addEventListener("click", event => { event.stopPropagation(); select(node); if (event.target === title || node.instr === undefined && node.kind !== "step") toggle(node); });
    group.addEventListener("dblclick", event => { event.stopPropagation(); toggle(node); });
    if (isOpen) {
      drawLinks(node, group);
      node.children.forEach((child, at) => group.append(drawNode(child, box.places[at].x, box.places[at].y, level + 1)));
    }
    return group;
  }
  function shortened(text, width) {
    const most = Math.floor((width - 18) / kCharWidth);
    return text.length > most ? `${text.slice(0, Math.max(1, most - 1))}\u2026` : text;
  }
  function draw() {
    const by = grouping.value || "layers", kind = `${isFused ? "fused" : "unfused"} ${by}`;
    root = trees[kind] = trees[kind] || linkedTree(isFused, by);
    canvas.replaceChildren(drawNode(root, 0, 0, 1));
    mark();
  }
  function mark() {
    for (const drawn of canvas.querySelectorAll(".selected, .match")) drawn.classList.remove("selected", "match");
    for (const node of matches) visibleOf(node).drawn.classList.add("match");
    const node = selected && nodeOf(selected.kind, selected.number);
    if (node) visibleOf(node).drawn.classList.add("selected");
  }

  // The node itself, or the closed group around it.
  function visibleOf(node) {
    let visible = node;
    for (let at = node.parent; at; at = at.parent) if (!at.isOpen) visible = at;
    return visible;
  }
  function nodeOf(kind, number) {
    if (kind === "step" && isFused) return stepNodesOf(root).get(number);
    const step = kind === "step" ? null : stepOfInstr(number);
    if (isFused && kind === "instr") {
      const inside = step === null ? null : stepNodesOf(root).get(step);
      return inside && (leavesOf(inside).find(leaf => leaf.instr === number) || inside);
    }
    return kind === "instr" ? leavesOf(root).find(leaf => leaf.instr === number) : null;
  }
  function focusOn(node, moves = true) {
    const drawn = visibleOf(node).drawn;
    drawn.focus({preventScroll: true});
    if (!moves) return;
    const box = drawn.getBoundingClientRect(), around = picture.getBoundingClientRect();
    view.x += around.x + around.width / 2 - (box.x + box.width / 2);
    view.y += around.y + around.height / 2 - (box.y + Math.min(box.height, around.height) / 2);
    place();
  }
  function reveal(node) {
    for (let at = node.parent; at; at = at.parent) if (!at.isOpen) setOpen(at, true);
    if (view.scale < 0.5) view.scale = 0.8;
    draw();
    focusOn(node);
  }
  function allNodes(node, all = []) {
    all.push(node);
    node.children.forEach(child => allNodes(child, all));
    return all;
  }
  function showMatches() {
    const text = search.value.trim().toLowerCase();
    const names = node => node.instr === undefined ? node.label : `${node.label} ${graph.instrs[node.instr].op}`;
    matches = text ? allNodes(root).filter(node => node !== root && names(node).toLowerCase().includes(text)) : [];
    match = -1;
    found.textContent = text ? `${matches.length} found` : "";
    mark();
  }
  function nextMatch() {
    if (!matches.length) return;
    match = (match + 1) % matches.length;
    found.textContent = `${match + 1} of ${matches.length}`;
    reveal(matches[match]);
    search.focus();
  }

  function onKey(event) {
    const drawn = document.activeElement, node = drawn && drawn.node;
    if (!node) return;
    const siblings = node.parent ? node.parent.children : [node], at = siblings.indexOf(node);
    const moves = {
      ArrowRight: () => { if (node.children.length && !node.isOpen) toggle(node); else if (node.children.length) focusOn(node.children[0]); },
      ArrowLeft: () => { if (node.isOpen && node !== root) toggle(node); else if (node.parent) focusOn(node.parent); },
      ArrowDown: () => focusOn(siblings[Math.min(at + 1, siblings.length - 1)]),
      ArrowUp: () => focusOn(siblings[Math.max(at - 1, 0)]),
      Enter: () => { select(node); if (node.kind !== "instr") toggle(node); },
      " ": () => toggle(node),
      "+": () => zoom(1.25), "-": () => zoom(0.8), "0": () => fit(),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
  picture.addEventListener("keydown", onKey);
  picture.addEventListener("wheel", event => {
    event.preventDefault();
    const box = picture.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.x, event.clientY - box.y);
  }, {passive: false});
  let drag = null;
  picture.addEventListener("pointerdown", event => { drag = {x: event.clientX - view.x, y: event.clientY - view.y}; });
  window.addEventListener("pointermove", event => {
    if (!drag || !(event.buttons & 1)) { drag = null; return; }
    view.x = event.clientX - drag.x;
    view.y = event.clientY - drag.y;
    place();
  });

  draw();
  let isFitted = false;
  return {
    node: element("section", {class: "fill"}, bar, picture,
      element("p", {class: "hint"}, "Click selects, a click on a title opens. Keys: arrows move, open and close; Enter selects; + - 0 zoom; / finds.")),
    shown: () => { if (!isFitted) fit(0.6); isFitted = true; },
    select: (kind, number) => {
      selected = kind === "step" || kind === "instr" ? {kind, number} : null;
      mark();
    },
    reveal: (kind, number) => {
      const node = nodeOf(kind, number);
      if (node) reveal(node);
    },
  };
}
