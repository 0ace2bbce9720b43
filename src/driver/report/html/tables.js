// What the pages besides the report share: tabs, and tables that are sorted by any column and filtered by text.

// `columns`: {name, of: row => value, show: row => content, isNumber, wraps, help}. `options`: {label, sortedBy: name of a column,
// wordsOf: row => words to search, isWanted: row => bool, bar: elements, sumOf: rows => text, isAscending}.
function sortedTable(columns, rows, options) {
  let sortedBy = Math.max(0, columns.findIndex(column => column.name === options.sortedBy));
  let isDescending = Boolean(columns[sortedBy].isNumber) && !options.isAscending;
  const body = element("tbody");
  const heads = sortingHeads(columns, at => {
    isDescending = sortedBy === at ? !isDescending : Boolean(columns[at].isNumber);
    sortedBy = at;
    draw();
  });
  const filter = element("input", {type: "search", placeholder: `Filter ${options.label} ( / )`, "aria-label": `Filter ${options.label}`, oninput: () => draw()});
  const count = element("span", {role: "status"});
  const contentOf = (column, row) => {
    const content = column.show ? column.show(row) : column.of(row);
    return [content].flat(Infinity).map(part => part === null || part === undefined ? "" : typeof part === "number" ? String(part) : part);
  };
  function draw() {
    const text = filter.value.trim().toLowerCase(), {of} = columns[sortedBy];
    const wanted = rows.filter(row => (!options.isWanted || options.isWanted(row)) &&
      (!text || options.wordsOf(row).some(word => String(word).toLowerCase().includes(text))));
    const sorted = wanted.map((row, at) => [row, at]).sort(([a, i], [b, j]) => (isDescending ? -1 : 1) * compareCells(of(a), of(b)) || i - j);
    markSorted(heads, sortedBy, isDescending);
    const shown = sorted.slice(0, kMostRows);
    body.replaceChildren(...shown.map(([row]) => element("tr", {},
      columns.map(column => element("td", {class: column.isNumber ? "number" : column.wraps ? "wraps" : null}, contentOf(column, row))))));
    const more = sorted.length > shown.length ? `, the first ${shown.length} shown` : "";
    count.textContent = `${wanted.length} of ${rows.length}${more}${options.sumOf ? `; ${options.sumOf(wanted)}` : ""}`;
  }
  draw();
  const node = element("section", {}, element("div", {class: "bar"}, filter, options.bar || [], count),
    element("div", {class: "scroller"}, element("table", {class: "steps"}, tableHead(heads), body)));
  return {node, draw};
}
const kMostRows = 2000;  // a browser draws as many in a tenth of a second

// Shows one of `views` ({name, make: () => node}) at a time in `stage`. A view is made when it is first shown.
function makeTabs(tabs, stage, views) {
  const nodes = views.map(() => null);
  let current = 0;
  const buttons = views.map(({name}, at) => element("button", {type: "button", role: "tab", onclick: () => show(at)}, name));
  function show(at) {
    current = at;
    nodes[at] = nodes[at] || views[at].make();
    buttons.forEach((button, number) => {
      button.setAttribute("aria-selected", String(number === at));
      button.tabIndex = number === at ? 0 : -1;
    });
    stage.setAttribute("aria-label", views[at].name);
    stage.replaceChildren(nodes[at]);
  }
  tabs.append(...buttons);
  tabs.addEventListener("keydown", event => {
    const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!move) return;
    show((current + move + views.length) % views.length);
    buttons[current].focus();
  });
  document.addEventListener("keydown", event => {
    const search = stage.querySelector("input[type=search]");
    if (event.key !== "/" || !search || /^(INPUT|SELECT)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    search.focus();
  });
  show(0);
  return show;
}

// A page of tabs beside a panel of details. `detailsOf`: id of a selected row, the fragment of the address -> content or null.
function startPage(views, detailsOf) {
  const panel = element("aside", {"aria-label": "Details", "aria-live": "polite"}, element("p", {class: "hint"}, "Select a name for its details."));
  const stage = element("div", {class: "stage", role: "tabpanel"});
  document.getElementById("top").append(themeButton());
  document.getElementById("main").replaceChildren(stage, ...(detailsOf ? [panel] : []));
  makeTabs(document.getElementById("tabs"), stage, views);
  const route = () => {
    const found = detailsOf && location.hash ? detailsOf(location.hash.slice(1)) : null;
    for (const marked of document.querySelectorAll(".selected")) marked.classList.remove("selected");
    if (!found) return;
    panel.replaceChildren();
    addChildren(panel, found);
    panel.scrollTop = 0;
    for (const same of document.querySelectorAll(`[data-of="${location.hash.slice(1)}"]`)) same.classList.add("selected");
  };
  window.addEventListener("hashchange", route);
  route();
  document.body.dataset.ready = String(Math.round(performance.now()));  // milliseconds from the start of loading
}

// "+1.5 us", "-2 us": a difference of microseconds or of bytes.
function signed(value, show) {
  return value === null || value === undefined || !isFinite(value) ? "" : value > 0 ? `+${show(value)}` : value < 0 ? `-${show(-value)}` : "0";
}

// Two rows of blocks, as wide as their times, on one scale; a band joins blocks that belong together.
// `sides`: [{name, blocks: [{id, name, us, kind}]}], `bands`: [[block of the first side, block of the second side]].
function pairedTimelines(sides, bands) {
  const kWidth = 1000, kLabel = 90, kRow = 30, kGap = 60;
  const most = Math.max(...sides.map(side => side.blocks.reduce((sum, block) => sum + block.us, 0)), 1e-9);
  const height = 2 * kRow + kGap + 8;
  const extents = sides.map(side => {
    let at = kLabel;
    return side.blocks.map(block => {
      const extent = {x: at, width: block.us / most * (kWidth - kLabel - 4)};
      at += extent.width;
      return extent;
    });
  });
  const rowY = [4, 4 + kRow + kGap];
  const drawnBands = bands.map(([a, b]) => {
    const p = extents[0][a], q = extents[1][b], top = rowY[0] + kRow, bottom = rowY[1];
    const d = `M${p.x},${top} L${p.x + Math.max(0.5, p.width)},${top} L${q.x + Math.max(0.5, q.width)},${bottom} L${q.x},${bottom} z`;
    return svgElement("path", {d, class: "band"}, svgElement("title", {}, `${sides[0].blocks[a].name} - ${sides[1].blocks[b].name}`));
  });
  const rows = sides.flatMap((side, number) => [
    svgElement("text", {x: 2, y: rowY[number] + 20, class: "title"}, side.name.length > 12 ? `${side.name.slice(0, 11)}\u2026` : side.name),
    ...side.blocks.map((block, at) => {
      const extent = extents[number][at];
      const group = svgElement("g", {class: `block ${block.kind}`, "data-of": block.id, onclick: () => { location.hash = `#${block.id}`; }},
        svgElement("rect", {x: extent.x, y: rowY[number], width: Math.max(0.5, extent.width - 0.8), height: kRow}),
        svgElement("title", {}, `${block.name}: ${shownUs(block.us)}`));
      if (extent.width > 50) group.append(svgElement("text", {x: extent.x + 4, y: rowY[number] + 20}, block.name.slice(0, Math.floor((extent.width - 6) / 7))));
      return group;
    })]);
  return svgElement("svg", {viewBox: `0 0 ${kWidth} ${height}`, class: "timeline pair", role: "img",
    "aria-label": sides.map(side => `${side.name}: ${counted(side.blocks.length, "step")}`).join("; ")}, drawnBands, rows);
}
