// What else the compiler considered: schedules of a kernel, ways to compute a contraction, moves across an array.

// The schedules of a step, or of an equal one.
function schedulesOf(number) {
  const all = data.alternatives || {}, step = steps[number];
  if (all[number]) return all[number];
  const equal = Object.keys(all).find(other => steps[other].hash === step.hash);
  return equal === undefined ? null : all[equal];
}

function contractionsOf(step) {
  return (data.contractions || []).filter(one => one.name === step.name);
}

// "1.2 us, +8 %": a time beside the chosen one.
function besides(us, chosen) {
  if (us === null || us === undefined) return "";
  const more = chosen ? us / chosen - 1 : 0;
  return Math.abs(more) < 0.005 ? shownUs(us) : `${shownUs(us)}, ${more > 0 ? "+" : "\u2212"}${shownPercent(Math.abs(more))}`;
}

function marked(isChosen, text) {
  return isChosen ? element("strong", {}, text, " (chosen)") : text;
}

function schedulesTable(list) {
  const chosen = list.find(one => one.chosen), us = chosen && chosen.predicted_us;
  const sorted = [...list].sort((a, b) => (a.predicted_us ?? Infinity) - (b.predicted_us ?? Infinity));
  return tableOf(["predicted", "schedule", "place"], sorted.map(one => [one.rejected ? "" : besides(one.predicted_us, us),
    [marked(one.chosen, one.schedule), one.rejected ? `: ${one.rejected}` : ""].flat(), String(one.place)]));
}

function contractionTable(one) {
  const chosen = one.candidates.find(candidate => candidate.chosen), us = chosen && chosen.predicted_us;
  return [element("p", {class: "hint"}, `${one.shapes.join("; ")}: at best ${shownUs(one.bound_us)} (${one.bound_by})`),
    tableOf(["predicted", "measured", "of the roofline", "form"], one.candidates.map(candidate => [besides(candidate.predicted_us, us),
      candidate.measured_us === null ? candidate.not_measured || "" : shownUs(candidate.measured_us), shownPercent(candidate.roofline_share),
      marked(candidate.chosen, candidate.form)]))];
}

// Parts of a step's details: what its kernel could have been.
function stepAlternatives(number) {
  const schedules = schedulesOf(number), contractions = contractionsOf(steps[number]);
  return [
    schedules ? [element("h3", {}, `Schedules (${schedules.length})`), schedulesTable(schedules)] : [],
    contractions.flatMap(one => [element("h3", {}, "Ways to compute this contraction"), ...contractionTable(one)]),
  ].flat();
}

// A move that the compiler considered: what it would have cost, and what would make the compiler take it.
function moveItem(decision) {
  const {before_us: before, after_us: after} = decision, hasCosts = before > 0 || after > 0, saves = before - after;
  return element("li", {class: decision.verdict},
    element("div", {}, element("strong", {}, decision.rule), element("span", {class: "verdict"}, decision.verdict === "accepted" ? "taken" : "not taken")),
    element("div", {}, nameLink(decision.subject), decision.other ? [" \u2192 ", nameLink(decision.other)] : []),
    hasCosts ? element("div", {}, `before ${shownUs(before)}, after ${shownUs(after)} `,
      element("span", {class: saves > 0 ? "gain" : "loss"}, `${saves > 0 ? "\u2212" : "+"}${shownUs(Math.abs(saves))}`)) : null,
    element("div", {class: "hint"}, decision.because),
    decision.counterfactual ? element("div", {class: "wouldif"}, decision.counterfactual) : null);
}

function movesList(list) {
  return element("ul", {class: "moves"}, list.map(moveItem));
}

// The decisions about the ends of an array, and the others about the array itself: those with costs first, by gain.
function edgeAlternatives(edge) {
  const between = decisionsOfEdge(edge), value = graph.instrs[edge.value].name;
  const others = (decisionsByName.get(value) || []).filter(decision => decision.pass === "fuse" && !between.includes(decision));
  const gain = decision => decision.before_us || decision.after_us ? decision.before_us - decision.after_us : -Infinity;
  const byGain = list => [...list].sort((a, b) => gain(b) - gain(a)).slice(0, kDecisionsShown);
  return [
    element("h3", {}, "Moves across this array"),
    between.length ? movesList(byGain(between)) : element("p", {}, edge.from === null ? "It is in memory before the first step." :
      edge.to === null ? "A result is stored in any plan." : "No decision about these two steps was recorded."),
    others.length ? [element("h3", {}, "Other moves of the array"), movesList(byGain(others))] : [],
  ].flat();
}
