// The roofline of the machine with a dot per kernel: operations per byte of its arrays, and operations per second that it reaches.
// Roofs and operations are those of the cost model.

const kRoofWidth = 620, kRoofHeight = 300, kRoofMargin = {left: 58, right: 26, top: 12, bottom: 36};

// Equal steps are one dot: {step, count, total, intensity, rate, predicted}, rates in operations per nanosecond.
function rooflineDots() {
  const dots = new Map();
  for (const step of steps) {
    const resource = step.resource;
    if (!resource || !resource.ops || !step.bytes || !step.us) continue;
    const dot = dots.get(step.hash);
    if (dot) {
      dot.count += 1;
      dot.total += step.total;
      continue;
    }
    dots.set(step.hash, {step, count: 1, total: step.total, intensity: resource.ops / step.bytes, rate: resource.ops / (step.us * 1e3),
      predicted: step.measured_us !== null && step.predicted_us ? resource.ops / (step.predicted_us * 1e3) : null});
  }
  return [...dots.values()].sort((a, b) => b.total - a.total);
}

// "40", "1.5 k", "2 M": a power of ten on an axis.
function shownScale(value) {
  const units = ["", "k", "M", "G", "T", "P"];
  let unit = 0;
  while (value >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return `${Number(value.toPrecision(3))}${units[unit] ? ` ${units[unit]}` : ""}`;
}
const shownRate = opsPerNs => `${shownScale(opsPerNs * 1e9)}op/s`;

function rooflineScales(dots, {compute, memory}) {
  const roofs = compute.map(roof => roof.ops_ns), rates = dots.map(dot => dot.rate);
  const most = Math.max(...roofs, ...rates), least = Math.min(...rates, Math.min(...roofs) / 100);
  const knees = compute.flatMap(roof => memory.map(slope => roof.ops_ns / slope.bytes_ns));
  const inside = dots.map(dot => dot.intensity);
  const low = 10 ** Math.floor(Math.log10(Math.min(...inside, ...knees) / 1.5)), high = 10 ** Math.ceil(Math.log10(Math.max(...inside, ...knees) * 1.5));
  const bottom = 10 ** Math.floor(Math.log10(least)), top = 10 ** Math.ceil(Math.log10(most * 1.2));
  const {left, right, top: above, bottom: below} = kRoofMargin;
  const along = (value, from, to) => (Math.log10(value) - Math.log10(from)) / (Math.log10(to) - Math.log10(from));
  return {low, high, bottom, top,
    x: value => left + along(value, low, high) * (kRoofWidth - left - right),
    y: value => kRoofHeight - below - along(Math.max(value, bottom), bottom, top) * (kRoofHeight - above - below)};
}

function rooflineAxes(scales, picture) {
  const {x, y, low, high, bottom, top} = scales;
  for (let value = low; value <= high * 1.001; value *= 10) {
    picture.append(svgElement("line", {x1: x(value), x2: x(value), y1: y(bottom), y2: y(top), class: "grid"}),
      svgElement("text", {x: x(value), y: y(bottom) + 15, class: "tick", "text-anchor": "middle"}, String(Number(value.toPrecision(1)))));
  }
  for (let value = bottom; value <= top * 1.001; value *= 10) {
    picture.append(svgElement("line", {x1: x(low), x2: x(high), y1: y(value), y2: y(value), class: "grid"}),
      svgElement("text", {x: x(low) - 5, y: y(value) + 4, class: "tick", "text-anchor": "end"}, shownScale(value * 1e9)));
  }
  picture.append(svgElement("text", {x: (x(low) + x(high)) / 2, y: kRoofHeight - 4, class: "tick", "text-anchor": "middle"}, "operations per byte"),
    svgElement("text", {x: 0, y: 0, class: "tick", "text-anchor": "middle", transform: `translate(11,${(y(bottom) + y(top)) / 2}) rotate(-90)`}, "operations per second"));
}

function rooflineRoofs(scales, {compute, memory}, picture) {
  const {x, y, low, high, bottom, top} = scales, highest = Math.max(...compute.map(roof => roof.ops_ns));
  const sorted = [...compute].sort((a, b) => b.ops_ns - a.ops_ns);
  sorted.forEach((roof, number) => {
    const from = Math.max(low, roof.ops_ns / Math.max(...memory.map(slope => slope.bytes_ns)));
    const isClose = number > 0 && y(roof.ops_ns) - y(sorted[number - 1].ops_ns) < 14;  // then its label is below the line
    picture.append(svgElement("line", {x1: x(from), x2: x(high), y1: y(roof.ops_ns), y2: y(roof.ops_ns), class: "roof"}),
      svgElement("text", {x: x(high) - 4, y: y(roof.ops_ns) + (isClose ? 12 : -4), class: "tick", "text-anchor": "end"}, `${roof.name}: ${shownRate(roof.ops_ns)}`));
  });
  memory.forEach((slope, number) => {
    const from = Math.max(low, bottom / slope.bytes_ns), to = Math.min(high, highest / slope.bytes_ns, top / slope.bytes_ns);
    if (to <= from) return;
    const angle = -Math.atan2(y(from * slope.bytes_ns) - y(to * slope.bytes_ns), x(to) - x(from)) * 180 / Math.PI;
    const at = from * (to / from) ** 0.3;
    picture.append(svgElement("line", {x1: x(from), x2: x(to), y1: y(from * slope.bytes_ns), y2: y(to * slope.bytes_ns), class: `roof memory${number}`}),
      svgElement("text", {x: 0, y: number ? -5 : 13, class: "tick", "text-anchor": "middle", transform: `translate(${x(at)},${y(at * slope.bytes_ns)}) rotate(${angle})`},
        `${slope.name}: ${shownBytes(slope.bytes_ns * 1e9)}/s`));
  });
}

function dotText({step, count, total, intensity, rate}) {
  return `${step.number + 1} ${step.name}${count > 1 ? ` and ${count - 1} equal` : ""}: ${Number(intensity.toPrecision(3))} op/byte, ${shownRate(rate)}, ` +
    `${shownUs(total)} (${shownPercent(total / totalUs)}), bound by ${step.cost.binding}`;
}

// The chart; `select` marks the dot of a step.
function rooflineChart() {
  const dots = rooflineDots();
  if (!dots.length || !data.resources.compute.length) return null;
  const scales = rooflineScales(dots, data.resources), {x, y} = scales;
  let at = -1;
  const picture = svgElement("svg", {viewBox: `0 0 ${kRoofWidth} ${kRoofHeight}`, class: "roofline", tabindex: 0, role: "group",
    "aria-label": `Roofline of ${counted(dots.length, "kernel")}; arrow keys go through them by time`, onkeydown: event => {
      const move = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (!move) return;
      event.preventDefault();
      at = Math.min(dots.length - 1, Math.max(0, at + move));
      location.hash = `#step-${dots[at].step.number}`;
    }});
  rooflineAxes(scales, picture);
  rooflineRoofs(scales, data.resources, picture);
  const drawn = dots.map(dot => {
    const radius = 3 + 9 * Math.sqrt(dot.total / (totalUs || 1));
    const mark = svgElement("g", {class: `dot ${dot.step.cost.binding}`, role: "img", "aria-label": dotText(dot), onclick: () => { location.hash = `#step-${dot.step.number}`; }});
    if (dot.predicted !== null)
      mark.append(svgElement("line", {x1: x(dot.intensity), x2: x(dot.intensity), y1: y(dot.predicted), y2: y(dot.rate), class: "apart"}),
        svgElement("circle", {cx: x(dot.intensity), cy: y(dot.predicted), r: 2.5, class: "predicted"}));
    mark.append(svgElement("circle", {cx: x(dot.intensity), cy: y(dot.rate), r: radius}), svgElement("title", {}, dotText(dot)));
    return mark;
  });
  picture.append(...drawn);  // the slowest first: smaller dots are drawn on top of larger ones
  return {node: picture, count: dots.length, select: number => {
    const hash = number === null ? null : steps[number].hash;
    dots.forEach((dot, place) => {
      if (dot.step.hash === hash) {
        drawn[place].classList.add("selected");
        at = place;
      } else drawn[place].classList.remove("selected");
    });
  }};
}
