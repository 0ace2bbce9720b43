// One text with line numbers, in blocks of lines that are drawn in colours when they come near the window: a page opens a text of
// 4,000 lines at once.

const kBlockLines = 100;

// `lineOf(text)`: the number of the user's line that a line of code is known to come from, or undefined.
function listing(text, language, lineOf) {
  const rows = text.replace(/\n$/, "").split("\n");
  const node = element("div", {class: "listing", role: "region", tabindex: 0, "aria-label": `${language}, ${counted(rows.length, "line")}`});
  const blocks = [];
  let found = [], at = -1, marked = null;

  function coloured(number) {
    const known = lineOf(rows[number]);
    const row = element("span", {class: "row", "data-n": number + 1, "data-line": known === undefined ? null : known,
      title: known === undefined ? null : lines[known].text});
    addChildren(row, [...colouredNodes(rows[number], language), "\n"]);
    return row;
  }
  function colour(block) {
    if (block.rows) return;
    const {first, end} = block;
    block.rows = [];
    for (let number = first; number < end; ++number) block.rows.push(coloured(number));
    block.node.replaceChildren(...block.rows);
    mark(block);
  }
  function mark(block) {
    const matching = new Set(found);
    block.rows.forEach((row, number) => {
      const line = block.first + number;
      for (const [name, isSet] of [["match", matching.has(line)], ["current", found[at] === line],
        ["from", marked !== null && row.getAttribute("data-line") === String(marked)]])
        if (isSet) row.classList.add(name);
        else row.classList.remove(name);
    });
  }
  function markAll() {
    for (const block of blocks) if (block.rows) mark(block);
  }
  function rowOf(number) {
    const block = blocks[Math.floor(number / kBlockLines)];
    colour(block);
    return block.rows[number - block.first];
  }

  const watcher = typeof IntersectionObserver === "undefined" ? null : new IntersectionObserver(entries => {
    for (const entry of entries) if (entry.isIntersecting) colour(blocks[Number(entry.target.dataset.block)]);
  }, {root: node, rootMargin: "600px"});
  for (let first = 0; first < rows.length; first += kBlockLines) {
    const end = Math.min(first + kBlockLines, rows.length);
    const block = {first, end, node: element("code", {class: "block", "data-block": blocks.length}, rows.slice(first, end).join("\n") + "\n")};
    blocks.push(block);
    node.append(block.node);
    if (blocks.length === 1) colour(block);
    else if (watcher) watcher.observe(block.node);
  }

  return {
    node,
    count: rows.length,
    // Marks the lines that contain a text; the number of them.
    find: wanted => {
      found = wanted ? rows.map((row, number) => row.toLowerCase().includes(wanted) ? number : -1).filter(number => number >= 0) : [];
      at = -1;
      markAll();
      return found.length;
    },
    // Shows the next line that `find` found; its place among them, from 0.
    next: () => {
      if (!found.length) return -1;
      at = (at + 1) % found.length;
      const row = rowOf(found[at]);
      markAll();
      row.scrollIntoView({block: "center"});
      return at;
    },
    // Marks the lines that come from a line of the user's; shows the first.
    showLine: number => {
      marked = number;
      const first = number === null ? -1 : rows.findIndex(row => lineOf(row) === number);
      if (first >= 0) rowOf(first).scrollIntoView({block: "center"});
      markAll();
      return first >= 0;
    },
  };
}
