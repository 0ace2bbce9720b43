// Runs the scripts of a page (`tokamak explain --html`) without a browser, for tests/page_test.py: node page_views.js PAGE
// Every view is made once, on elements that do nothing. Prints what the views derived from the report, as JSON.
"use strict";
const fs = require("fs");
const vm = require("vm");

class TestNode {
  constructor(tag) {
    Object.assign(this, {tag, children: [], attributes: {}, listeners: {}, dataset: {}, value: "", clientWidth: 1000, clientHeight: 600, scrollTop: 0});
    this.style = {setProperty() {}};
    this.classList = {add: name => this.classes.add(name), remove: name => this.classes.delete(name)};
    this.classes = new Set();
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  append(...children) {
    for (const child of children) this.children.push(typeof child === "string" ? Object.assign(new TestNode("#text"), {text: child}) : child);
  }
  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }
  get firstChild() { return this.children[0] || null; }
  get textContent() { return this.text ?? this.children.map(child => child.textContent).join(""); }
  set textContent(text) { this.replaceChildren(text); }
  all() { return [this, ...this.children.flatMap(child => child.all())]; }
  contains() { return false; }
  querySelector() { return null; }
  querySelectorAll() { return []; }
  focus() {}
  scrollIntoView() {}
  removeAttribute(name) { delete this.attributes[name]; }
  getAttribute(name) { return this.attributes[name] ?? null; }
  remove() {}
  getBoundingClientRect() { return {x: 0, y: 0, width: 10, height: 10}; }
}

const html = fs.readFileSync(process.argv[2], "utf8");
const scripts = [...html.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)];
const named = new Map(["heading", "tabs", "main", "top"].map(id => [id, new TestNode(id)]));
const report = new TestNode("script");
report.textContent = scripts.find(([, attributes]) => attributes.includes("json"))[2];
named.set("report", report);
const body = new TestNode("body");
const document = {getElementById: id => named.get(id), createElement: tag => new TestNode(tag), createElementNS: (_, tag) => new TestNode(tag),
  body, addEventListener() {}, activeElement: body, documentElement: new TestNode("html")};
const context = vm.createContext({document, location: {hash: ""}, performance, window: {addEventListener() {}}, console});
context.globalThis = context;

const code = scripts.filter(([, attributes]) => !attributes.includes("json")).map(([, , text]) => text).join("\n;\n");
const derived = vm.runInContext(`${code}
;(() => {
  const views = pageViews.map(({make}) => make());
  for (const view of views) if (view.shown) view.shown();
  for (const view of views) for (const step of steps.slice(0, 20)) view.select("step", step.number);
  const details = [steps.map((_, at) => stepDetails(at)), graph.instrs.map((_, at) => instrDetails(at)),
    graph.edges.map((_, at) => edgeDetails([at])), lines.map((_, at) => lineDetails(at))];
  const shape = node => ({kind: node.kind, label: node.label, children: node.children.map(shape)});
  const curve = memoryCurve();
  return {
    heading: headingOf(),
    total_us: totalUs,
    line_us: Object.fromEntries([...lineTimes.us].map(([line, us]) => [lines[line].text, us])),
    curve: curve && curve.bytes,
    fused: shape(fusedTree()),
    unfused_leaves: leavesOf(unfusedTree()).length,
    missed: missedEdges().map(group => group.edges.length),
    details: details.map(list => list.length),
    boxes: boxOf(linkedTree(true)),
    code: steps.slice(0, 20).map(({number}) => {
      const texts = textsOf(number), lineOf = lineFinder(number, texts);
      return texts.map(({name, text, why}) => text === undefined ? {name, why} : {name, rows: listing(text, name, lineOf).count,
        text: text.split("\\n").map(line => tokensOf(line, name).map(([piece]) => piece).join("")).join("\\n"),
        lines: [...new Set(text.split("\\n").map(lineOf).filter(line => line !== undefined).map(line => lines[line].text))]});
    }),
    roofline: rooflineDots().map(dot => ({step: dot.step.number, count: dot.count, intensity: dot.intensity, rate: dot.rate, total: dot.total})),
    profile: data.profile && barsOf(data.profile).map(({node, start, ms}) => ({name: node.name, start, ms})),
    passes: data.profile && passTotals(data.profile),
    groupings: Object.fromEntries(Object.keys(groupings).map(by => [by, stepsBelow(fusedTree(by))])),
    labels: Object.fromEntries(Object.keys(groupings).map(by => [by, JSON.stringify(shape(fusedTree(by)))])),
    schedules: steps.map(({number}) => (schedulesOf(number) || []).length),
    moves: graph.edges.map(edge => edgeAlternatives(edge).length),
    views: views.map(view => view.node.textContent.length),
  };
})()`, context);
// Every tab, with the panel that a click on it shows.
const tabs = named.get("tabs").children.map(tab => {
  tab.listeners.click();
  const [panel, ...others] = named.get("main").children;
  return {...tab.attributes, text: tab.textContent, panel: panel.attributes, length: panel.textContent.length, others: others.map(other => other.tag)};
});
process.stdout.write(JSON.stringify({...derived, tabs, ready: body.dataset.ready}));
