// The user's source with the time of every line in the margin, where the files could be read; a table of lines otherwise.

function sourceView() {
  const rows = new Map();  // by number of the line in the report
  const files = new Map();
  lines.forEach((line, id) => addTo(files, line.file || line.text, {...line, id}));
  const timeOf = list => list.reduce((us, line) => us + (lineTimes.us.get(line.id) || 0), 0);
  const most = Math.max(0, ...lineTimes.us.values()) || 1;

  function margin(list) {
    const us = timeOf(list), steps = list.flatMap(line => lineTimes.stepsOf.get(line.id) || []);
    const cell = element("td", {class: "number heat", title: us ? `${counted(steps.length, "step")}, ${shownPercent(us / totalUs)} of the total` : null}, us ? shownUs(us) : "");
    cell.style.setProperty("--heat", (us / most).toFixed(3));
    return cell;
  }
  function row(list, number, text, isPython) {
    const drawn = element("tr", {}, margin(list),
      element("td", {class: "number"}, list.length ? linkTo("line", list[0].id, String(number)) : String(number)),
      element("td", {}, element("code", {}, isPython ? colouredNodes(text, "Python") : text)));
    for (const line of list) rows.set(line.id, drawn);
    return drawn;
  }
  function sectionOf(file, list) {
    const text = (data.sources || {})[file], body = element("tbody");
    if (text) {
      let last = 0;
      for (const [number, code] of text) {
        if (last && number !== last + 1) body.append(element("tr", {class: "gap"}, element("td", {colspan: 3}, "\u22ef")));
        body.append(row(list.filter(line => line.line === number), number, code, file.endsWith(".py")));
        last = number;
      }
    } else {
      for (const line of [...list].sort((a, b) => a.line - b.line)) body.append(row([line], line.line, line.text));
    }
    return element("details", {open: ""},
      element("summary", {}, `${file}: ${shownUs(timeOf(list))}${text ? "" : " (the file was not read)"}`),
      element("table", {class: "source"}, tableHead(["time", "line", "source"]), body));
  }

  const sections = [...files].sort((a, b) => timeOf(b[1]) - timeOf(a[1])).map(([file, list]) => sectionOf(file, list));
  return {
    node: element("section", {}, element("p", {class: "hint"},
      "The time of a step is divided among its source lines in proportion to its instructions from each."), sections),
    select: (kind, number) => {
      for (const row of rows.values()) row.classList.remove("selected");
      const wanted = kind === "line" ? [number] : kind === "step" ? steps[number].graph.lines : kind === "instr" ? [graph.instrs[number].line] : [];
      for (const line of wanted) if (rows.has(line)) rows.get(line).classList.add("selected");
      if (kind === "line" && rows.has(number)) rows.get(number).scrollIntoView({block: "center"});
    },
  };
}
