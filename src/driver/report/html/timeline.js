// Time and memory: the steps one after the other, predicted and measured, and below them the bytes that are allocated.

const kRowHeight = 26, kCurveHeight = 130, kLabelWidth = 86;

// Bytes of the temporary arrays that are live in each step; `around`: of what is allocated throughout.
function memoryCurve() {
  const memory = data.memory;
  if (!memory || !memory.arena_bytes) return null;
  const changes = new Array(steps.length + 1).fill(0);
  for (const life of memory.lives) {
    changes[life.first] += life.bytes;
    changes[life.last + 1] -= life.bytes;
  }
  let live = 0, peak = 0;
  const bytes = changes.slice(0, steps.length).map(change => (live += change));
  bytes.forEach((value, step) => { if (value > bytes[peak]) peak = step; });
  const around = memory.arguments_bytes + memory.results_bytes + memory.constants_bytes;
  return {bytes, peak, around, allocated: memory.arena_bytes};
}

// The arrays that are live in a step, by source line.
function ownersAt(step) {
  const owners = new Map();
  for (const life of data.memory.lives) if (life.first <= step && step <= life.last) addTo(owners, life.line || "", life);
  return [...owners].map(([line, lives]) => ({line, lives, bytes: lives.reduce((sum, life) => sum + life.bytes, 0)}))
    .sort((a, b) => b.bytes - a.bytes);
}

function ownersTable(step) {
  const rows = ownersAt(step).map(({line, lives, bytes}) => {
    const number = lineNumbers.get(line);
    const names = lives.sort((a, b) => b.bytes - a.bytes).map(life => `${life.name} ${shownBytes(life.bytes)}`);
    return [element("span", {class: "nowrap"}, shownBytes(bytes)), number === undefined ? line || "-" : lineLink(number), joined(names, 4)];
  });
  return tableOf(["bytes", "source line", "arrays"], rows);
}

function timelineView() {
  const curve = memoryCurve();
  const rows = [{label: "predicted", usOf: step => (step.predicted_us || 0) * step.runs}];
  if (isMeasured) rows.push({label: "measured", usOf: step => (step.measured_us || 0) * step.runs});
  const owners = element("div");
  let zoomed = 1, selected = null;
  const scroller = element("div", {class: "scroller"});
  const range = element("input", {type: "range", min: 0, max: 6, step: 0.1, value: 0, "aria-label": "Zoom of the timeline",
    oninput: () => { zoomed = 2 ** Number(range.value); draw(); }});

  function startsOf(row, width) {
    const sum = steps.reduce((us, step) => us + row.usOf(step), 0) || 1;
    let at = 0;
    return steps.map(step => {
      const start = at / sum * width;
      at += row.usOf(step);
      return {x: kLabelWidth + start, width: at / sum * width - start};
    });
  }

  function drawRow(row, number, width, picture) {
    const y = 4 + number * (kRowHeight + 6);
    picture.append(svgElement("text", {x: 2, y: y + 17, class: "title"}, row.label));
    const places = startsOf(row, width);
    steps.forEach((step, at) => {
      const place = places[at];
      const group = svgElement("g", {class: `block ${step.phase}${selected === at ? " selected" : ""}`, onclick: () => { location.hash = `#step-${at}`; }},
        svgElement("rect", {x: place.x, y, width: Math.max(0.4, place.width - 0.5), height: kRowHeight}),
        svgElement("title", {}, `${at + 1} ${step.name}: ${shownUs(row.usOf(step))}`));
      if (place.width > 40) group.append(svgElement("text", {x: place.x + 4, y: y + 17}, step.name.slice(0, Math.floor((place.width - 6) / kCharWidth))));
      picture.append(group);
    });
    return places;
  }

  function drawCurve(places, y, picture) {
    const most = Math.max(curve.allocated, curve.bytes[curve.peak]), bottom = y + kCurveHeight;
    const up = bytes => bottom - bytes / most * kCurveHeight;
    const left = places[0].x, last = places[places.length - 1], right = last.x + last.width;
    const path = places.map((place, at) => ` L${place.x},${up(curve.bytes[at])} L${place.x + place.width},${up(curve.bytes[at])}`).join("");
    const peak = places[curve.peak];
    const label = `peak in step ${curve.peak + 1}, ${steps[curve.peak].name}: ${shownBytes(curve.bytes[curve.peak])}`;
    const title = `Temporary memory: ${shownBytes(curve.allocated)} allocated, gaps included; arguments, results and constants take another ${shownBytes(curve.around)}`;
    picture.append(svgElement("text", {x: 2, y: y + 14, class: "title"}, "memory"), svgElement("text", {x: 2, y: y + 30}, shownBytes(most)),
      svgElement("path", {d: `M${left},${bottom}${path} L${right},${bottom} z`, class: "curve"}, svgElement("title", {}, title)),
      svgElement("line", {x1: left, x2: right, y1: up(curve.allocated), y2: up(curve.allocated), class: "allocated"}),
      svgElement("line", {x1: peak.x, x2: peak.x, y1: y, y2: bottom, class: "peak"}),
      svgElement("text", {x: left + 4, y: bottom - 5}, title),
      svgElement("text", {x: Math.max(left + 4, Math.min(peak.x + 4, right - label.length * kCharWidth)), y: bottom - 22}, label));
  }

  function draw() {
    const width = Math.max(300, (scroller.clientWidth || 900) - kLabelWidth - 10) * zoomed;
    const height = rows.length * (kRowHeight + 6) + 10 + (curve ? kCurveHeight + 10 : 0);
    const picture = svgElement("svg", {width: width + kLabelWidth + 6, height, class: "timeline", tabindex: 0, role: "img",
      "aria-label": `Timeline of ${counted(steps.length, "step")}, ${shownUs(totalUs)}; arrow keys select steps`, onkeydown: onKey});
    let places = null;
    rows.forEach((row, number) => { places = drawRow(row, number, width, picture); });
    if (curve) drawCurve(places, rows.length * (kRowHeight + 6) + 14, picture);
    scroller.replaceChildren(picture);
    drawOwners();
  }
  function onKey(event) {
    const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!move) return;
    event.preventDefault();
    location.hash = `#step-${Math.min(steps.length - 1, Math.max(0, (selected ?? -1) + move))}`;
  }
  function drawOwners() {
    if (!curve) return owners.replaceChildren(element("p", {}, "The program needs no temporary memory."));
    const step = selected ?? curve.peak;
    owners.replaceChildren(
      element("h2", {}, `Temporary arrays in step ${step + 1}, ${steps[step].name}${step === curve.peak ? " (the peak)" : ""}: ${shownBytes(curve.bytes[step])}`),
      ownersTable(step));
  }

  return {
    node: element("section", {}, element("div", {class: "bar"}, element("label", {}, "Zoom ", range)), scroller, owners),
    shown: draw,
    resized: draw,
    select: (kind, number) => {
      selected = kind === "step" ? number : null;
      const focused = scroller.contains(document.activeElement);
      if (scroller.firstChild) draw();
      if (focused) scroller.firstChild.focus();
    },
  };
}
