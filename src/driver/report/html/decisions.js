// Decisions of the compiler, and the chances that they missed.

const kDecisionsShown = 300;

function nameLink(name) {
  const instrs = instrsByName.get(name);
  return instrs ? linkTo("instr", instrs[0].id, name) : name;
}

function decisionRow(decision) {
  const costs = decision.before_us || decision.after_us ? `${shownUs(decision.before_us)} \u2192 ${shownUs(decision.after_us)}` : "";
  const why = decision.counterfactual ? `${decision.because}; ${decision.counterfactual}` : decision.because;
  return element("tr", {class: decision.verdict},
    element("td", {}, decision.verdict), element("td", {}, decision.rule),
    element("td", {}, nameLink(decision.subject), decision.other ? [" \u2192 ", nameLink(decision.other)] : []),
    element("td", {class: "number"}, costs), element("td", {}, why));
}

function decisionsTable(list) {
  if (!list.length) return element("p", {}, "None.");
  return element("table", {},
    tableHead(["verdict", "rule", "values", "cost", "because"]),
    element("tbody", {}, list.map(decisionRow)));
}

function decisionsView() {
  const rest = element("p"), table = element("div", {class: "scroller"});
  const chosen = (label, values) => element("select", {"aria-label": label, onchange: () => draw()},
    element("option", {value: ""}, `all ${label}`), values.map(value => element("option", {value}, value)));
  const verdict = chosen("verdicts", ["accepted", "rejected"]);
  const pass = chosen("passes", [...new Set(decisions.map(decision => decision.pass))].sort());
  const rule = chosen("rules", [...new Set(decisions.map(decision => decision.rule))].sort());
  const search = element("input", {type: "search", placeholder: "Filter by instruction or reason", "aria-label": "Filter the decisions", oninput: () => draw()});
  function draw() {
    const text = search.value.trim().toLowerCase();
    const wanted = decisions.filter(decision => (!verdict.value || decision.verdict === verdict.value) && (!pass.value || decision.pass === pass.value) &&
      (!rule.value || decision.rule === rule.value) &&
      (!text || [decision.subject, decision.other, decision.because].some(word => word.toLowerCase().includes(text))));
    table.replaceChildren(decisionsTable(wanted.slice(0, kDecisionsShown)));
    rest.textContent = `${Math.min(wanted.length, kDecisionsShown)} of ${wanted.length} decisions${wanted.length > kDecisionsShown ? "; filter for the others" : ""}`;
  }
  return {node: element("section", {}, element("div", {class: "bar"}, search, verdict, pass, rule, rest), table), shown: draw, select: () => {}};
}

// ---- missed chances

// Arrays between two steps that a rejected decision keeps in memory, with the time of their traffic; equal ones together.
function missedEdges() {
  const groups = new Map();
  for (const edge of graph.edges) {
    if (edge.from === null || edge.to === null || edge.from === edge.to || !edge.us) continue;
    const rejected = decisionsOfEdge(edge).filter(decision => decision.verdict === "rejected" && decision.pass === "fuse");
    if (!rejected.length) continue;
    const decision = rejected.find(one => one.counterfactual) || rejected[0];
    const key = [steps[edge.from].hash, steps[edge.to].hash, edge.bytes, decision.rule].join(" ");
    if (!groups.has(key)) groups.set(key, {edges: [], us: 0, decision});
    const group = groups.get(key);
    group.edges.push(edge);
    group.us += edge.us * steps[edge.to].runs;
  }
  return [...groups.values()];
}

function missedView() {
  const fromEdges = missedEdges().map(({edges, us, decision}) => {
    const {from, to, bytes, value} = edges[0];
    const times = edges.length > 1 ? ` (and ${edges.length - 1} equal)` : "";
    return {us, rule: decision.rule, where: [stepLink(from), " \u2192 ", stepLink(to), times],
      text: [linkTo("edge", edges[0].number, `${graph.instrs[value].name} (${shownBytes(bytes)})`), " is stored and read again: ",
        decision.because, decision.counterfactual ? `; ${decision.counterfactual}` : ""]};
  });
  const warnings = (data.lints || []).filter(lint => lint.severity === "warning");
  const fromLints = warnings.map(lint => ({us: lint.us, rule: lint.rule, text: [lint.text],
    where: lint.lines.length ? joined(lint.lines.slice(0, 3).map(({text: line}) => {
      const number = lineNumbers.get(line);
      return number === undefined ? line : lineLink(number);
    })) : ["the program"]}));
  const all = [...fromEdges, ...fromLints].sort((a, b) => b.us - a.us);
  const rows = all.map(({us, rule, where, text}) => element("tr", {}, element("td", {class: "number"}, shownUs(us)),
    element("td", {}, where), element("td", {}, rule), element("td", {}, text)));
  return {
    node: element("section", {}, element("p", {class: "hint"},
      "Ordered by the time that each costs per call. For an array between two steps that is the part of their predicted memory time that its traffic takes: ",
      "the most that fusing them could save."),
    element("div", {class: "scroller"}, all.length ? element("table", {},
      tableHead(["at most", "where", "rule", "why"]),
      element("tbody", {}, rows)) : element("p", {}, "None."))),
    select: () => {},
  };
}
