"use strict";
(() => {
  const values = JSON.parse(document.getElementById("values").textContent);
  const columns = values.columns, d = columns.length, sizes = columns.map((c) => c.edges.length - 1);
  const cells = sizes.reduce((a, b) => a * b, 1);
  const strides = sizes.map((_, j) => sizes.slice(j + 1).reduce((a, b) => a * b, 1));

  function unpack(packed) {
    const text = atob(packed.values), found = new Float64Array(text.length / 2);
    for (let k = 0; k < found.length; k += 1) {
      const step = text.charCodeAt(2 * k) + 256 * text.charCodeAt(2 * k + 1);
      found[k] = step === values.nothing ? 0 : packed.top * Math.exp(-step / values.scale);
    }
    return found;
  }
  const estimate = unpack(values.estimate), draws = unpack(values.posterior);

  const by = (id) => document.getElementById(id);
  const state = { column: d - 1, ranges: columns.map(() => null), quantile: 0.5, level: 0.95, show: "density", smooth: 2 };
  by("explore").hidden = false;

  // -- sums over cells ------------------------------------------------------------------------------------
  function weights() {
    return columns.map((column, j) => {
      const range = j === state.column ? null : state.ranges[j], found = new Float64Array(sizes[j]).fill(1);
      if (range) for (let k = 0; k < sizes[j]; k += 1) {
        const low = column.edges[k], high = column.edges[k + 1];
        found[k] = Math.max(0, Math.min(high, range[1]) - Math.max(low, range[0])) / (high - low);
      }
      return found;
    });
  }
  function margin(masses, offset, weight, column) {
    const found = new Float64Array(sizes[column]);
    for (let cell = 0; cell < cells; cell += 1) {
      let mass = masses[offset + cell];
      if (mass === 0) continue;
      for (let j = 0; j < d; j += 1) if (j !== column) mass *= weight[j][Math.floor(cell / strides[j]) % sizes[j]];
      found[Math.floor(cell / strides[column]) % sizes[column]] += mass;
    }
    return found;
  }
  const total = (list) => list.reduce((a, b) => a + b, 0);
  function shares(list) { const all = total(list); return all > 0 ? list.map((m) => m / all) : list; }
  function smoothed(list, edges) {
    // heaps, single values with a share of their own, are set aside while their neighbours are smoothed
    const heaps = columns[state.column].heaps.map((k) => [k, list[k]]);
    let found = ground(Array.from(list), edges);
    const rest = total(found);
    found = flattened(found, edges);
    const scale = rest > 0 ? rest / (total(found) || 1) : 1;
    found = found.map((m) => m * scale);
    for (const [k, whole] of heaps) found[k] += Math.max(0, whole - ground(Array.from(list), edges)[k]);
    return shares(found);
  }
  // the list with each heap at the level of its neighbours
  function ground(list, edges) {
    const width = (k) => edges[k + 1] - edges[k], own = columns[state.column].heaps;
    for (const k of own) {
      const near = [k - 1, k + 1].filter((j) => j >= 0 && j < list.length && !own.includes(j)).map((j) => list[j] / width(j));
      if (near.length) list[k] = Math.min(list[k], width(k) * near.reduce((a, b) => a + b, 0) / near.length);
    }
    return list;
  }
  function flattened(list, edges) {
    let found = list;
    for (let turn = 0; turn < state.smooth; turn += 1) {
      const dense = found.map((m, k) => m / (edges[k + 1] - edges[k]));
      found = dense.map((_, k) => {
        const near = [dense[Math.max(k - 1, 0)], dense[k], dense[Math.min(k + 1, dense.length - 1)]];
        return (0.25 * near[0] + 0.5 * near[1] + 0.25 * near[2]) * (edges[k + 1] - edges[k]);
      });
    }
    return found;
  }
  // where in its cell a quantile lies: in a heap at its value, else by the part of the cell's mass below it
  function quantile(list, edges, q) {
    const { heaps, heap_values: named } = columns[state.column];
    const [k, part] = cellOf(list, q);
    return heaps.includes(k) ? named[heaps.indexOf(k)] : edges[k] + (edges[k + 1] - edges[k]) * part;
  }
  function cellOf(list, q) {
    let below = 0;
    for (let k = 0; k < list.length; k += 1) {
      if (below + list[k] >= q && list[k] > 0) return [k, (q - below) / list[k]];
      below += list[k];
    }
    return [list.length - 1, 1];
  }
  const middle = (edges, k) => (edges[k] + edges[k + 1]) / 2;
  const mean = (list, edges) => list.reduce((sum, m, k) => sum + m * middle(edges, k), 0);
  function interval(numbers) {
    const sorted = Array.from(numbers).sort((a, b) => a - b), tail = (1 - state.level) / 2;
    const at = (p) => { const x = p * (sorted.length - 1), k = Math.floor(x); return sorted[k] + (x - k) * ((sorted[k + 1] ?? sorted[k]) - sorted[k]); };
    return [at(tail), at(1 - tail)];
  }
  // no surer than the release: draws of a mean may be too few for tails, and nobody knows where in a cell a quantile is
  const NORMAL = { 0.5: 0.6745, 0.8: 1.2816, 0.95: 1.96 };
  function meanOf(found) {
    const own = mean(found.own, found.edges), drawn = found.drawn.map((list) => mean(list, found.edges));
    const [low, high] = interval(drawn), column = columns[state.column];
    const reach = NORMAL[state.level] * Math.sqrt(drawn.reduce((sum, x) => sum + (x - own) ** 2, 0) / drawn.length);
    return [own, [Math.max(Math.min(low, own - reach), column.low), Math.min(Math.max(high, own + reach), column.high)]];
  }
  function quantileOf(found, q) {
    const own = quantile(found.own, found.edges, q), places = found.drawn.map((list) => cellOf(list, q)[0]);
    const [low, high] = interval(places);
    return [own, [Math.min(found.edges[Math.floor(low)], own), Math.max(found.edges[Math.ceil(high) + 1], own)]];
  }
  // numbers of a whole column are the release's own
  function whole() {
    return state.ranges.every((range, j) => range === null || j === state.column) ? columns[state.column].whole[state.level] : null;
  }
  const asRow = ([value, low, high]) => [value, [low, high]];
  function read() {
    const weight = weights(), edges = columns[state.column].edges;
    const own = margin(estimate, 0, weight, state.column), drawn = [];
    const inside = [];
    for (let k = 0; k < values.draws; k += 1) {
      const one = margin(draws, k * cells, weight, state.column);
      inside.push(total(one));
      drawn.push(shares(Array.from(one)));
    }
    const all = columns.map((_, j) => new Float64Array(sizes[j]).fill(1));
    return { edges, share: total(own), shareDraws: inside, own: shares(Array.from(own)), drawn,
      everyone: shares(Array.from(margin(estimate, 0, all, state.column))) };
  }
  function heights(list, edges) {
    if (state.show === "density") return ground(smoothed(list, edges), edges).map((m, k) => m / (edges[k + 1] - edges[k]));
    let below = 0;
    return list.map((m) => (below += m));
  }

  // -- drawing --------------------------------------------------------------------------------------------
  const SVG = "http://www.w3.org/2000/svg";
  function element(tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function written(x) {
    const size = Math.abs(x);
    if (size !== 0 && (size >= 1e6 || size < 1e-3)) return x.toExponential(2).replace("-", "−");
    return Number(x.toPrecision(3)).toString().replace("-", "−");
  }
  function ticks(low, high, wanted) {
    const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9); k += 1) found.push(Number((k * step).toPrecision(12)));
    return found;
  }
  function draw(found) {
    const column = columns[state.column], phone = matchMedia("(max-width: 600px)").matches;
    const width = phone ? 360 : 880, height = phone ? 320 : 400, left = 62, right = 16, top = 12, bottom = 52;
    const edges = found.edges, at = edges.slice(1).map((_, k) => state.show === "density" ? middle(edges, k) : edges[k + 1]);
    const own = heights(found.own, edges), drawn = found.drawn.map((one) => heights(one, edges));
    const bands = own.map((_, k) => interval(drawn.map((one) => one[k])));
    const beside = by("everyone") && by("everyone").checked && state.ranges.some((range, j) => range && j !== state.column) ? heights(found.everyone, edges) : null;
    const peak = Math.max(...own, ...(beside || [0]));
    const high = state.show === "below" ? 1 : Math.min(Math.max(...bands.map((b) => b[1]), peak), 1.5 * peak) * 1.06 || 1;
    const X = (x) => left + (x - column.low) / (column.high - column.low) * (width - left - right);
    const Y = (y) => top + (1 - Math.min(y, high) / high) * (height - top - bottom);
    const label = `${state.show === "density" ? "Density" : "Distribution function"} of ${column.name} with its ${100 * state.level}% interval`;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "figure" });
    const add = (...args) => svg.appendChild(element(...args));
    add("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom, class: "paper" });
    const line = (list) => "M" + list.map((y, k) => `${X(at[k]).toFixed(1)} ${Y(y).toFixed(1)}`).join("L");
    const ring = bands.map((b, k) => `${X(at[k]).toFixed(1)} ${Y(b[1]).toFixed(1)}`).concat(bands.map((b, k) => `${X(at[k]).toFixed(1)} ${Y(b[0]).toFixed(1)}`).reverse());
    add("path", { d: "M" + ring.join("L") + "Z", class: "area" });
    if (beside) add("path", { d: line(beside), class: "beside" });
    add("path", { d: line(own), class: "curve" });
    if (state.show === "density") {
      const level = ground(Array.from(found.own), edges), extra = column.heaps.map((k) => found.own[k] - level[k]), most = Math.max(...extra, 1e-12);
      column.heaps.forEach((k, n) => {
        if (extra[n] < 0.001) return;
        const x = X(Math.min(Math.max(middle(edges, k), column.low), column.high)), y = Y(0.8 * high * extra[n] / most);
        add("line", { x1: x, x2: x, y1: height - bottom, y2: y, class: "heap" });
        add("text", { x: Math.max(x, left + 22), y: y - 7, class: "atom-label middle" }, `${written(100 * extra[n])}%`);
      });
    }
    const q = quantile(found.own, edges, state.quantile);
    add("line", { x1: X(q), x2: X(q), y1: top, y2: height - bottom, class: "reader" });
    add("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom, class: "frame" });
    for (const value of ticks(column.low, column.high, phone ? 4 : 7)) {
      add("line", { x1: X(value), x2: X(value), y1: height - bottom, y2: height - bottom + 5, class: "tick" });
      add("text", { x: X(value), y: height - bottom + 18, class: "tick-label middle" }, written(value));
    }
    for (const value of ticks(0, high, 5)) add("text", { x: left - 8, y: Y(value) + 4, class: "tick-label end" }, written(value));
    add("text", { x: (left + width - right) / 2, y: height - 12, class: "axis-name middle" }, column.name + (column.unit ? ` (${column.unit})` : ""));
    by("drawing").replaceChildren(svg);
  }

  // -- words ----------------------------------------------------------------------------------------------
  function where() {
    const told = columns.map((c, j) => state.ranges[j] && j !== state.column ? `${c.name} is ${written(state.ranges[j][0])} to ${written(state.ranges[j][1])}` : "").filter(Boolean);
    return told.join(" and ");
  }
  function tell(found) {
    const column = columns[state.column], edges = found.edges, unit = column.unit ? ` ${column.unit}` : "";
    const known = whole();
    const at = (q) => known ? asRow(known.quantiles[Math.round(100 * q) - 1]) : quantileOf(found, q);
    const rows = [["share of the population", [found.share, interval(found.shareDraws)], (x) => `${written(100 * x)}%`],
      ["mean", known ? asRow(known.mean) : meanOf(found), written]];
    for (const q of [0.05, 0.25, 0.5, 0.75, 0.95]) rows.push([q === 0.5 ? "median" : `${100 * q}% quantile`, at(q), written]);
    by("numbers").tBodies[0].replaceChildren(...rows.map(([name, [value, [low, high]], say]) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row"; head.className = "plain"; head.textContent = name;
      row.append(head, ...[say(value), `${say(low)} to ${say(high)}`].map((text) => Object.assign(document.createElement("td"), { className: "num", textContent: text })));
      return row;
    }));
    const [value, [low, high]] = at(state.quantile);
    const slice = where();
    by("quantile-told").textContent = `${Math.round(100 * state.quantile)}%`;
    const small = found.share < 0.01 ? " Few people lie in this slice: the interval says how little is known." : "";
    by("told").textContent = `${slice ? `Where ${slice}: ` : ""}${Math.round(100 * state.quantile)}% have a ${column.name} of at most ${written(value)}${unit} (${100 * state.level}% interval ${written(low)} to ${written(high)}).${small}`;
  }

  let planned = 0;
  function renew() {
    cancelAnimationFrame(planned);
    planned = requestAnimationFrame(() => { const found = read(); draw(found); tell(found); });
  }

  // -- controls -------------------------------------------------------------------------------------------
  function slices() {
    const parts = columns.map((column, j) => {
      if (j === state.column) return null;
      const part = document.createElement("div"), name = document.createElement("b"), told = document.createElement("output");
      part.className = "slice"; name.textContent = `Only ${column.name}`;
      const count = column.step ? Math.min(200, Math.round((column.high - column.low) / column.step)) : 100;
      const value = (k) => column.low + (column.high - column.low) * k / count;
      const ends = [0, 1].map((end) => Object.assign(document.createElement("input"), { type: "range", min: 0, max: count, step: 1, value: end * count }));
      const range = state.ranges[j];
      if (range) ends.forEach((input, end) => { input.value = Math.round((range[end] - column.low) / (column.high - column.low) * count); });
      function changed(end) {
        if (Number(ends[0].value) >= Number(ends[1].value)) ends[end].value = end ? Number(ends[0].value) + 1 : Number(ends[1].value) - 1;
        const [low, high] = ends.map((input) => Number(input.value));
        state.ranges[j] = low === 0 && high === count ? null : [value(low), value(high)];
        say(); renew();
      }
      function say() {
        told.textContent = state.ranges[j] ? `${written(state.ranges[j][0])} to ${written(state.ranges[j][1])}` : "all";
        ends.forEach((input) => input.setAttribute("aria-valuetext", written(value(Number(input.value))) + (column.unit ? ` ${column.unit}` : "")));
      }
      const labels = ends.map((input, end) => {
        input.addEventListener("input", () => changed(end));
        const label = document.createElement("label");
        label.append(end ? "to" : "from", input);
        input.setAttribute("aria-label", `${column.name} ${end ? "to" : "from"}`);
        return label;
      });
      say();
      part.append(name, ...labels, told);
      return part;
    });
    by("slices").replaceChildren(...parts.filter(Boolean));
  }
  const listen = (id, event, change) => { const control = by(id); if (control) control.addEventListener(event, () => { change(control); renew(); }); };
  listen("column", "change", (control) => { state.column = Number(control.value); slices(); });
  listen("show", "change", (control) => { state.show = control.value; });
  listen("level", "change", (control) => { state.level = Number(control.value); });
  listen("smooth", "input", (control) => { state.smooth = Number(control.value); });
  listen("quantile", "input", (control) => { state.quantile = Number(control.value) / 100; });
  listen("everyone", "change", () => {});
  listen("reset", "click", () => {
    state.ranges = columns.map(() => null); state.quantile = 0.5; state.smooth = 2; state.level = 0.95; state.show = "density";
    by("quantile").value = 50; by("smooth").value = 2; by("level").value = "0.95"; by("show").value = "density";
    slices();
  });
  addEventListener("resize", renew);
  slices();
  renew();
})();
