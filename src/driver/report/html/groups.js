// The tree that the graph shows. A node is a step, an instruction, or a group of nodes: a loop or branch, equal layers, a phase, or
// so many consecutive steps. Steps are listed in execution order, so that edges between groups form no cycles.

const kMostOpened = 40;  // boxes of a grouping that are seen at first
const kMostSiblings = 60;  // nodes of a group; more are divided into groups, since a larger picture is not readable

function groupNode(kind, label, children) {
  return {kind, label, children, isOpen: false};
}

// What makes two steps alike: operations and shapes of results. Layers are alike whose constants differ (the keys of dropout).
function alikeKey(step) {
  const ops = step.graph.instrs.map(id => graph.instrs[id].op).sort().join(" ");
  return [step.generator, step.library || "", step.bytes, ops, ...step.graph.made.map(id => graph.instrs[id].shape)].join("|");
}

const keyNumbers = new Map();  // a key of any length -> a small number, which is quick to compare
function numberOf(key) {
  if (!keyNumbers.has(key)) keyNumbers.set(key, keyNumbers.size);
  return keyNumbers.get(key);
}

// Equal for nodes whose steps are alike, in order.
function keyOf(node) {
  if (node.key === undefined) node.key = numberOf(node.kind === "step" ? alikeKey(steps[node.step]) : node.children.map(keyOf).join(","));
  return node.key;
}

// The longest repetition: nodes[first, first + period * count) are `count` equal runs. Null if there is none of two steps or more.
function longestRepeat(keys) {
  let best = null;
  for (let period = 1; period <= keys.length / 2; ++period) {
    let equal = 0;
    for (let i = 0; i + period <= keys.length; ++i) {
      if (i + period < keys.length && keys[i] === keys[i + period]) {
        ++equal;
        continue;
      }
      const count = Math.floor(equal / period) + 1;
      if (count > 1 && period * count > 3 && (!best || period * (count - 1) > best.period * (best.count - 1)))
        best = {first: i - equal, period, count};
      equal = 0;
    }
  }
  return best;
}

// Collapses equal layers: runs of steps that are alike, one after the other.
function withRepeats(nodes) {
  const found = longestRepeat(nodes.map(keyOf));
  if (!found) return nodes;
  const {first, period, count} = found;
  const layers = [];
  for (let i = 0; i < count; ++i) {
    const members = nodes.slice(first + i * period, first + (i + 1) * period);
    layers.push(period === 1 ? members[0] : groupNode("layer", `layer ${i + 1}`, withRepeats(members)));
  }
  const what = period === 1 ? `${count} equal steps` : `${count} equal layers of ${period} steps`;
  return [...withRepeats(nodes.slice(0, first)), groupNode("repeat", what, layers), ...withRepeats(nodes.slice(first + period * count))];
}

function stepsBelow(node) {
  if (node.kind === "step") return [node.step];
  return node.kind === "instr" ? [] : node.children.flatMap(stepsBelow);
}

// Divides too many siblings into runs of one phase, then into runs of kMostSiblings.
function divided(nodes) {
  if (nodes.length <= kMostSiblings) return nodes;
  const phaseOf = node => steps[stepsBelow(node)[0]].phase;
  const runs = [];
  for (const node of nodes) {
    const last = runs[runs.length - 1];
    if (last && phaseOf(last[0]) === phaseOf(node)) last.push(node);
    else runs.push([node]);
  }
  const cut = run => run.length <= kMostSiblings ? run : chunksOf(run, nodes => {
    const numbers = nodes.flatMap(stepsBelow);
    return `steps ${numbers[0] + 1} to ${numbers[numbers.length - 1] + 1}`;
  });
  if (runs.length === 1 || runs.length > kMostSiblings) return cut(nodes);
  return runs.map(run => run.length === 1 ? run[0] : groupNode("phase", phaseOf(run[0]), cut(run)));
}

function chunksOf(nodes, labelOf) {
  const chunks = [];
  const size = Math.max(kMostSiblings, Math.ceil(nodes.length / kMostSiblings));
  for (let i = 0; i < nodes.length; i += size) {
    const members = nodes.slice(i, i + size);
    chunks.push(groupNode("chunk", labelOf(members), members));
  }
  return chunks;
}

// Instructions that call the computation of a step, outermost first.
function callersOf(step) {
  const id = step.graph.instrs[0] ?? step.graph.made[0];
  const callers = [];
  if (id === undefined) return null;
  let caller = graph.computations[graph.instrs[id].computation].caller;
  while (caller !== null) {
    callers.unshift(caller);
    caller = graph.computations[graph.instrs[caller].computation].caller;
  }
  return callers;
}

function instrNodes(ids) {
  const present = new Set(ids);
  return [...present].map(id => ({kind: "instr", instr: id, label: graph.instrs[id].name, children: []}));
}

// The instructions of a step, as one group per kernel where a launch has several.
function nodesInside(step) {
  if (!step.graph.parts.length) return instrNodes(step.graph.instrs);
  const kernels = step.graph.parts.map(part => groupNode("kernel", part.name, instrNodes(part.instrs)));
  return kernels.length > kMostSiblings ? chunksOf(kernels, members => `${members[0].label} to ${members[members.length - 1].label}`) : kernels;
}

// What the steps of the graph can be grouped by, besides equal layers: the value is in a run of consecutive steps one group.
const groupings = {
  layers: {label: "layers and loops"},
  phase: {label: "phase", of: step => step.phase},
  scope: {label: "scope", of: step => mostOf(step, instr => instr.scope)},
  function: {label: "source function", of: step => mostOf(step, functionOf)},
};

function functionOf(instr) {
  return instr.line === undefined ? "" : lines[instr.line].scope;
}

// The value that most instructions of a step have; that of its results if none has one.
function mostOf(step, valueOf) {
  const counts = new Map();
  for (const id of [...step.graph.instrs, ...step.graph.made]) {
    const value = valueOf(graph.instrs[id]);
    if (value) counts.set(value, (counts.get(value) || 0) + 1);
  }
  let best = "";
  for (const [value, count] of counts) if (best === "" || count > counts.get(best)) best = value;
  return best;
}

// Runs of consecutive nodes with the same path ("a/b") become groups, one for each part of the path.
function grouped(nodes, pathOf, depth = 0) {
  const runs = [];
  for (const node of nodes) {
    const part = pathOf(node)[depth], last = runs[runs.length - 1];
    if (last && part !== undefined && last.part === part) last.nodes.push(node);
    else runs.push({part, nodes: [node]});
  }
  return runs.flatMap(({part, nodes: run}) => {
    if (part === undefined || run.length === 1) return run;
    const inner = grouped(run, pathOf, depth + 1);
    if (inner.length === 1 && inner[0].kind === "scope") {
      inner[0].label = `${part}/${inner[0].label}`;
      return inner;
    }
    return [groupNode("scope", part, divided(withRepeats(inner)))];
  });
}

// As `finished`, by a grouping of steps.
function finishedBy(node, of) {
  const paths = new Map();
  const pathOf = child => {
    const step = stepsBelow(child)[0];
    if (!paths.has(step)) paths.set(step, of(steps[step]).split("/").filter(Boolean));
    return paths.get(step);
  };
  const children = node.children.map(child => child.kind === "loop" ? finishedBy(child, of) : child);
  node.children = divided(grouped(children, pathOf));
  return node;
}

function finished(node) {
  node.children = divided(withRepeats(node.children.map(child => child.kind === "loop" ? finished(child) : child)));
  return node;
}

// Opens the groups that take most of the time, as long as few boxes are seen.
function openLargest(root) {
  const seen = root.children.filter(child => child.kind !== "step");
  let boxes = root.children.length;
  while (seen.length) {
    seen.sort((a, b) => usOf(b) - usOf(a));
    const node = seen.shift();
    if (boxes + node.children.length > kMostOpened) break;
    node.isOpen = true;
    boxes += node.children.length;
    seen.push(...node.children.filter(child => child.kind !== "step" && child.children.length));
  }
}

// The program as it runs. `by`: a key of `groupings`.
function fusedTree(by = "layers") {
  const root = groupNode("root", data.program || "program", []);
  let callers = [];
  for (const step of steps) {
    callers = callersOf(step) || callers;  // a copy belongs where the previous step is
    let group = root;
    for (const caller of callers) {
      let inner = group.children[group.children.length - 1];
      if (!inner || inner.kind !== "loop" || inner.instr !== caller) {
        inner = groupNode("loop", `${graph.instrs[caller].op} ${graph.instrs[caller].name}`, []);
        inner.instr = caller;
        group.children.push(inner);
      }
      group = inner;
    }
    const node = {kind: "step", step: step.number, label: step.name, children: [], isOpen: false};
    node.children = nodesInside(step);
    group.children.push(node);
  }
  const {of} = groupings[by];
  (of ? finishedBy(root, of) : finished(root)).isOpen = true;
  if (of) openLargest(root);
  return root;
}

const kOtherFunctions = "no source line";
const kArguments = "arguments and constants";

// The scope of an instruction in the source. Arguments and constants without one are together.
function scopeOf(instr) {
  return instr.scope || (/^(parameter|constant|iota)$/.test(instr.op) ? kArguments : "");
}

// The program before fusion: instructions in the scopes of the source (jit, vmap, named_scope), or in its functions, in runs of
// kMostSiblings.
function unfusedTree(by = "scope") {
  const root = groupNode("root", data.program || "program", []);
  const groups = new Map([["", root]]);
  const groupOf = scope => {
    if (groups.has(scope)) return groups.get(scope);
    const slash = scope.lastIndexOf("/");
    const group = groupNode("scope", scope.slice(slash + 1), []);
    groups.set(scope, group);
    groupOf(slash < 0 ? "" : scope.slice(0, slash)).children.push(group);
    return group;
  };
  for (const instr of graph.instrs)
    groupOf(by === "function" ? functionOf(instr) || kOtherFunctions : scopeOf(instr)).children.push({kind: "instr", instr: instr.id, label: instr.name, children: []});
  const finish = node => {
    if (node.kind === "instr") return node;
    node.children = node.children.map(finish);
    if (node.children.length === 1 && node.children[0].kind === "scope" && node !== root) {
      node.label += `/${node.children[0].label}`;
      node.children = node.children[0].children;
    }
    if (node.children.length > kMostSiblings)
      node.children = chunksOf(node.children, members => `${members[0].label} to ${members[members.length - 1].label}`);
    return node;
  };
  finish(root).isOpen = true;
  // Scopes around everything are open.
  const innerOf = node => node.children.filter(child => child.label !== kArguments);
  for (let inner = innerOf(root); inner.length === 1 && inner[0].children.length; inner = innerOf(inner[0])) inner[0].isOpen = true;
  return root;
}
