"use strict";
// The picture, its legend and its sliders. editing.js gets at them by what is returned at the end.
const Page = (() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const night = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const MISSING_NAME = "no label";

  // ---- data: binary arrays as base64; the highest number of a type means "none"
  function unpack(array) {
    const text = atob(array.data), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return array.type === "u1" ? bytes : new (array.type === "u2" ? Uint16Array : Uint32Array)(bytes.buffer);
  }
  const once = (make) => { let value; return () => (value === undefined ? (value = make()) : value); };
  const lazily = (array) => once(() => unpack(array));
  const none = (values) => (values.BYTES_PER_ELEMENT === 1 ? 255 : 65535);

  const rows = data.rows && unpack(data.rows);
  const confidence = data.confidence && unpack(data.confidence.values);
  const members = data.members.map((member) => ({ name: member.name, labels: lazily(member.labels) }));
  const columns = data.columns.map((column) => ({ ...column, codes: lazily(column.labels || column.values) }));
  const number = (scale, code) => scale.low + (scale.high - scale.low) * code / 65534;
  const numbered = (code) => {
    const name = clusters.names[code], text = name === Edits.unnamed(code) ? name : `${code} · ${name}`;
    return clusters.unsure.has(code) ? `${text} (preview)` : text;
  };
  const nameOf = (point) => (data.ids ? String(data.ids[point]) : `row ${rows ? rows[point] : point}`);

  const frames = data.frames.map((frame) => ({
    ...frame,
    places: frame.places && lazily(frame.places),
    flat: once(() => {
      const steps = unpack(frame.xy), n = steps.length / 2;
      const x = new Float32Array(n), y = new Float32Array(n);
      let wide = 0, high = 0;
      for (let i = 0; i < n; i++) {
        x[i] = steps[2 * i] / 65535;
        y[i] = steps[2 * i + 1] / 65535;
        if (x[i] > wide) wide = x[i];
        if (y[i] > high) high = y[i];
      }
      return { n, x, y, wide, high };
    }),
  }));

  // The clusters of the fit, and as edited so far; edits.js tells what is in a state.
  const editing = data.editing, packed = unpack(data.labels), without = none(packed);
  const fitted = {
    labels: Uint16Array.from(packed, (label) => (label === without ? Edits.NONE : label)),
    names: Array.from({ length: editing.next }, (_, cluster) => (data.names && data.names[cluster]) || Edits.unnamed(cluster)),
    live: editing.clusters,
    unsure: new Set(),
  };
  let clusters = fitted;
  const ofFit = editing.rows && unpack(editing.rows);        // numbers of rows, where a fit has more than the page

  // For each number of clusters a short table: from the combination of labels a point has to its label.
  const ks = data.ks && { answer: data.ks.answer, steps: data.ks.steps.map((step) => ({
    ...step,
    labels: once(() => {
      const table = unpack(step.labels), codes = unpack(data.ks.codes), made = new table.constructor(codes.length);
      for (let i = 0; i < made.length; i++) made[i] = table[codes[i]];
      return made;
    }),
  })) };

  // ---- what is looked at
  const view = { x: 0, y: 0, zoom: 1 };
  let frame = frames.at(-1), choice = "cluster", coloring = null, focus = -1;
  const only = new Set();         // codes of the groups picked in the legend
  let mask = null;                // (n_points,) of 0 and 1: the points selected
  let tool = null, changed = () => {};      // of editing.js: what dragging does, and who is told of what is picked
  let step = ks ? ks.answer : 0;
  const atAnswer = () => !ks || step === ks.answer;
  const labelsNow = () => (atAnswer() ? clusters.labels : ks.steps[step].labels());

  const pointAt = (i) => (frame.places ? frame.places()[i] : i);
  function pick(values) {
    if (!frame.places) return values;
    const places = frame.places(), picked = new values.constructor(places.length);
    for (let i = 0; i < places.length; i++) picked[i] = values[places[i]];
    return picked;
  }

  // ---- colors: groups (clusters, categories) or a scale (numbers), for the points of this frame
  function groups(codes, name) {
    const counts = new Map(), without = none(codes);
    for (const code of codes) counts.set(code, (counts.get(code) || 0) + 1);
    const list = [...counts.keys()].sort((a, b) => a - b).map((code) => ({
      code, count: counts.get(code), name: code === without ? MISSING_NAME : name(code), missing: code === without }));
    return { codes, list };
  }
  function color() {
    const [kind, place] = choice.split(":");
    // Names are those of the answer; for another k a number may stand for another cluster.
    if (kind === "cluster") return groups(pick(labelsNow()), (code) => (atAnswer() ? numbered(code) : `cluster ${code}`));
    if (kind === "confidence") return { codes: pick(confidence), scale: data.confidence, ramp: ["low", "middle", "high"] };
    if (kind === "member") {
      const member = members[place];
      if (!frame.members) return groups(pick(member.labels()), (code) => `cluster ${code}`);
      const then = frame.members[member.name];
      return groups(then ? unpack(then) : new Uint8Array(frame.flat().n).fill(255), (code) => `cluster ${code}`);
    }
    const column = columns[place];
    if (column.kind === "categories") return groups(pick(column.codes()), (code) => column.names[code]);
    return { codes: pick(column.codes()), scale: column, ramp: ["r0", "r1", "r2", "r3"] };
  }

  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  function rgb(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color.match(/\d+(\.\d+)?/g).slice(0, 3).map(Number);
  }
  function inks() {
    if (coloring.list) return coloring.list.map((group) => (group.missing ? rgb("none") : rgb(`c${group.code % data.colors}`)));
    const stops = coloring.ramp.map(rgb), last = stops.length - 1, steps = [];
    for (let step = 0; step < 64; step++) {
      const at = step / 63 * last, left = Math.min(Math.floor(at), last - 1), share = at - left;
      steps.push(stops[left].map((value, i) => Math.round(value + (stops[left + 1][i] - value) * share)));
    }
    return [...steps, rgb("none")];
  }
  const shapeOf = (group) => (group.missing ? 0 : Math.floor(group.code / data.colors) % data.shapes.length);

  // ---- drawing: each point is a small stamp put into the picture's pixels, which is fast for 100,000 of them
  const canvas = byId("points"), over = byId("over"), plot = byId("plot"), tip = byId("tip");
  const paper = canvas.getContext("2d", { alpha: false }), film = over.getContext("2d");
  const stampsMade = new Map();
  function stampOf(shape, radius) {
    const key = `${shape}:${radius}`;
    if (!stampsMade.has(key)) {
      const side = 2 * Math.ceil(radius * 1.25) + 1, small = document.createElement("canvas");
      small.width = small.height = side;
      const pen = small.getContext("2d", { willReadFrequently: true });
      pen.translate(side / 2, side / 2);
      pen.scale(radius, radius);
      pen.fill(new Path2D(data.shapes[shape]));
      const pixels = pen.getImageData(0, 0, side, side).data, alpha = new Uint8Array(side * side);
      for (let i = 0; i < alpha.length; i++) alpha[i] = pixels[4 * i + 3];
      stampsMade.set(key, { side, alpha });
    }
    return stampsMade.get(key);
  }

  let image = null;
  const density = () => canvas.width / Math.max(plot.clientWidth, 1);
  function toScreen() {
    const { wide, high } = frame.flat(), pad = 0.94;
    const fit = Math.min(canvas.width / (wide || 1e-9), canvas.height / (high || 1e-9), 4 * canvas.width) * pad * view.zoom;
    const left = canvas.width / 2 - (wide / 2 + view.x) * fit, bottom = canvas.height / 2 + (high / 2 + view.y) * fit;
    return { fit, left, bottom };
  }
  function radius() {
    const n = frame.flat().n, base = Math.min(4.5, Math.max(1.1, 170 / Math.sqrt(n)));
    return Math.round(Math.min(9, base * Math.pow(view.zoom, 0.4)) * density() * 2) / 2;
  }
  const gcd = (a, b) => (b ? gcd(b, a % b) : a);

  // How strongly points are drawn, (n,), where some are picked and others are not.
  const STRONG = 225, BEHIND = 70, FAINT = 26;
  const isSeen = (i) => !only.size || !coloring.list || only.has(coloring.codes[i]);
  function strengths() {
    if (!mask && !(only.size && coloring.list)) return null;
    const strong = new Uint8Array(frame.flat().n);
    for (let i = 0; i < strong.length; i++) strong[i] = !isSeen(i) ? FAINT : mask && !mask[pointAt(i)] ? BEHIND : STRONG;
    return strong;
  }

  function draw() {
    if (!canvas.width || !canvas.height) return;
    const { n, x, y } = frame.flat(), { fit, left, bottom } = toScreen(), width = canvas.width, height = canvas.height;
    if (!image || image.width !== width || image.height !== height) image = paper.createImageData(width, height);
    const out = image.data, ground = rgb("ground"), size = radius();
    new Uint32Array(out.buffer).fill((255 << 24) | (ground[2] << 16) | (ground[1] << 8) | ground[0]);

    const ink = inks(), { codes, list } = coloring;
    const place = list && new Map(list.map((group, i) => [group.code, i]));
    const slots = list ? Array.from({ length: Math.max(...list.map((group) => group.code)) + 1 }, (_, code) => place.get(code)) : null;
    const stamps = list ? list.map((group) => stampOf(shapeOf(group), size)) : ink.map(() => stampOf(0, size));
    const strength = strengths();
    // Points in a mixed order, or the last cluster would lie on top; those picked come last.
    let stride = Math.max(1, Math.floor(n * 0.6180339887));
    while (gcd(stride, n) !== 1) stride++;
    for (const late of strength ? [false, true] : [null]) {
      for (let step = 0, i = 0; step < n; step++, i = (i + stride) % n) {
        const slot = slots ? slots[codes[i]] : codes[i] === 65535 ? 64 : (codes[i] * 63 / 65534 + 0.5) | 0;
        if (late !== null && (strength[i] === STRONG) !== late) continue;
        const stamp = stamps[slot], side = stamp.side, half = (side - 1) / 2;
        const px = Math.round(left + x[i] * fit) - half, py = Math.round(bottom - y[i] * fit) - half;
        if (px < -side || py < -side || px >= width || py >= height) continue;
        const [red, green, blue] = ink[slot], strong = strength ? strength[i] : STRONG;
        for (let row = 0, k = 0; row < side; row++) {
          const line = py + row;
          if (line < 0 || line >= height) { k += side; continue; }
          for (let column = 0; column < side; column++, k++) {
            const across = px + column, a = stamp.alpha[k] * strong >> 8;
            if (!a || across < 0 || across >= width) continue;
            const at = 4 * (line * width + across);
            out[at] += (red - out[at]) * a >> 8;
            out[at + 1] += (green - out[at + 1]) * a >> 8;
            out[at + 2] += (blue - out[at + 2]) * a >> 8;
          }
        }
      }
    }
    paper.putImageData(image, 0, 0);
    drawOver();
  }

  // A number at a point of each cluster that is near its middle: clusters are told apart without colors too.
  function middles() {
    const { n, x, y } = frame.flat(), { codes, list } = coloring, found = [];
    if (!list || list.length > 60 || choice.startsWith("column")) return found;
    const middle = (values) => values.sort()[values.length >> 1];
    for (const group of list) {
      if (group.missing) continue;
      const xs = new Float32Array(group.count), ys = new Float32Array(group.count);
      for (let i = 0, k = 0; i < n; i++) if (codes[i] === group.code) { xs[k] = x[i]; ys[k++] = y[i]; }
      const mx = middle(xs), my = middle(ys);
      let best = -1, least = Infinity;
      for (let i = 0; i < n; i++) {
        if (codes[i] !== group.code) continue;
        const d = (x[i] - mx) ** 2 + (y[i] - my) ** 2;
        if (d < least) { least = d; best = i; }
      }
      found.push([best, group.code]);
    }
    return found;
  }
  function drawOver() {
    const { x, y } = frame.flat(), { fit, left, bottom } = toScreen(), scale = density();
    const ground = `rgb(${rgb("ground")})`, ink = `rgb(${rgb("ink")})`;
    film.clearRect(0, 0, over.width, over.height);
    film.font = `700 ${16 * scale}px system-ui, sans-serif`;
    film.textAlign = "center";
    film.textBaseline = "middle";
    film.lineJoin = "round";
    for (const [i, code] of coloring.middles()) {
      if (only.size && !only.has(code)) continue;
      film.lineWidth = 4 * scale;
      film.strokeStyle = ground;
      film.fillStyle = ink;
      film.strokeText(code, left + x[i] * fit, bottom - y[i] * fit);
      film.fillText(code, left + x[i] * fit, bottom - y[i] * fit);
    }
    if (tool) tool.paint(film, ([ax, ay]) => [left + ax * fit, bottom - ay * fit], scale);
    if (focus < 0) return;
    for (const [line, style] of [[5, ground], [2.5, ink]]) {
      film.lineWidth = line * scale;
      film.strokeStyle = style;
      film.beginPath();
      film.arc(left + x[focus] * fit, bottom - y[focus] * fit, radius() + 4 * scale, 0, 7);
      film.stroke();
    }
  }

  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  // ---- legend
  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }
  function sign(group) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "-1.3 -1.3 2.6 2.6");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("class", `mark ${group.missing ? "none" : `c${group.code % data.colors}`}`);
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", data.shapes[shapeOf(group)]);
    svg.append(path);
    return svg;
  }
  const short = (value) => String(Number(value.toPrecision(4)));
  function legend() {
    const box = byId("legend"), place = [...box.children].indexOf(document.activeElement);
    box.replaceChildren();
    if (coloring.list) {
      for (const group of coloring.list) {
        const button = element("button");
        button.type = "button";
        button.setAttribute("aria-pressed", only.has(group.code));
        button.append(sign(group), element("span", group.name), element("span", group.count.toLocaleString("en"), "count"));
        button.onclick = () => {
          if (!only.delete(group.code)) only.add(group.code);
          button.setAttribute("aria-pressed", only.has(group.code));
          draw();
          changed();
        };
        box.append(button);
      }
      if (place >= 0) box.children[Math.min(place, box.children.length - 1)].focus();
      return;
    }
    const bar = element("div", undefined, "ramp"), ends = element("div", undefined, "ends"), whole = element("div");
    bar.style.background = `linear-gradient(to right, ${coloring.ramp.map((name) => `var(--${name})`).join(", ")})`;
    ends.append(element("span", short(coloring.scale.low)), element("span", short(coloring.scale.high)));
    whole.append(bar, ends);
    if (coloring.codes.includes(65535)) {
      const line = element("div");
      line.append(sign({ missing: true, code: 0 }), " no value");
      whole.append(line);
    }
    box.append(whole);
  }

  // ---- one point
  function tell(i) {
    const point = pointAt(i), label = clusters.labels[point];
    const parts = [nameOf(point), label === Edits.NONE ? MISSING_NAME : numbered(label)];
    if (!atAnswer()) {
      const other = labelsNow()[point], missing = other === none(labelsNow());
      parts.push(`with ${ks.steps[step].k} clusters: ${missing ? MISSING_NAME : other}`);
    }
    if (confidence) parts.push(`confidence ${number(data.confidence, confidence[point]).toFixed(2)}`);
    const [kind, place] = choice.split(":"), code = coloring.codes[i];
    if (kind === "member") parts.push(`${members[place].name}: ${code === none(coloring.codes) ? MISSING_NAME : code}`);
    if (kind === "column") {
      const column = columns[place], missing = code === none(coloring.codes);
      parts.push(`${column.name}: ${missing ? "no value" : column.names ? column.names[code] : short(number(column, code))}`);
    }
    if (mask && mask[point]) parts.push("selected");
    return parts;
  }
  function look(i) {
    if (i === focus) return;
    focus = i;
    tip.hidden = i < 0;
    byId("description").textContent = i < 0 ? "" : tell(i).join(", ");
    if (i >= 0) {
      tip.replaceChildren(...tell(i).map((text) => element("div", text)));
      const { fit, left, bottom } = toScreen(), { x, y } = frame.flat(), scale = density();
      const px = (left + x[i] * fit) / scale, py = (bottom - y[i] * fit) / scale;
      tip.style.left = `${Math.max(4, px + tip.offsetWidth + 18 > plot.clientWidth ? px - tip.offsetWidth - 12 : px + 12)}px`;
      tip.style.top = `${Math.max(4, Math.min(py + 10, plot.clientHeight - tip.offsetHeight - 4))}px`;
    }
    drawOver();
  }
  // The point nearest to a place of the canvas, in the direction asked for if one is.
  function nearest(px, py, reach, dx = 0, dy = 0) {
    const { n, x, y } = frame.flat(), { fit, left, bottom } = toScreen(), step = 5 * density();
    let best = -1, least = reach;
    for (let i = 0; i < n; i++) {
      const sx = left + x[i] * fit - px, sy = bottom - y[i] * fit - py;
      let cost = Math.hypot(sx, sy);
      if (dx || dy) {
        const along = sx * dx + sy * dy, across = Math.abs(sx * dy) + Math.abs(sy * dx);
        if (along < step || across > along) continue;
        cost = along + 2 * across;
      }
      if (cost < least && isSeen(i)) { least = cost; best = i; }
    }
    return best;
  }
  function walk(dx, dy) {
    const { x, y } = frame.flat(), { fit, left, bottom } = toScreen();
    const next = focus < 0 ? nearest(canvas.width / 2, canvas.height / 2, Infinity)
      : nearest(left + x[focus] * fit, bottom - y[focus] * fit, Infinity, dx, dy);
    if (next >= 0) { look(next); bring(next); }
  }
  // Into the middle, if it is outside the picture.
  function bring(i, always = false) {
    const { x, y, wide, high } = frame.flat(), { fit, left, bottom } = toScreen();
    const px = left + x[i] * fit, py = bottom - y[i] * fit;
    if (!always && px > 0 && py > 0 && px < canvas.width && py < canvas.height) return;
    view.x = x[i] - wide / 2;
    view.y = y[i] - high / 2;
    moved();
  }
  function moved() {
    const seen = focus;
    draw();
    focus = -1;
    look(seen);
  }
  function go(point) {
    if (frame !== frames.at(-1)) { byId("round").value = frames.length - 1; show(); }
    const i = frame.places ? frame.places().indexOf(point) : point;
    if (i < 0) return;
    only.clear();
    changed();
    legend();
    view.zoom = Math.max(view.zoom, 3);
    bring(i, true);
    look(i);
    plot.scrollIntoView({ block: "center", behavior: still.matches ? "auto" : "smooth" });
    over.focus({ preventScroll: true });
  }

  // ---- controls
  let colored = "";
  function recolor() {
    coloring = color();
    coloring.middles = once(middles);
    // Groups stay picked while they are the same: another round, or clusters after an edit.
    const by = `${choice} ${step}`, codes = new Set((coloring.list || []).map((group) => group.code));
    for (const code of only) if (by !== colored || !codes.has(code)) only.delete(code);
    colored = by;
    changed();
    legend();
    const seen = focus;
    focus = -1;
    draw();
    look(seen);
  }
  function show() {
    const slider = byId("round");
    frame = frames[slider.value];
    const text = frame.agreement === null ? frame.name : `${frame.name}: a sample, agreement ${frame.agreement.toFixed(3)}`;
    const member = choice.startsWith("member") && members[choice.split(":")[1]].name;
    const left = member && frame.members && !frame.members[member] ? `, ${member} was left out` : "";
    byId("frame").textContent = `${text} (${frame.flat().n.toLocaleString("en")} points)${left}`;
    slider.setAttribute("aria-valuetext", frame.name);
    focus = -1;
    tip.hidden = true;
    byId("description").textContent = "";
    recolor();
  }
  // ---- the number of clusters
  const kClusters = (k) => (k === 1 ? "1 cluster" : `${k} clusters`);
  function sizesText(sizes) {
    const most = 12, large = [...sizes].sort((a, b) => b[1] - a[1]).slice(0, most).sort((a, b) => a[0] - b[0]);
    const rest = sizes.length > most ? ` and ${sizes.length - most} smaller ones` : "";
    return `Sizes: ${large.map(([number, size]) => `${number}: ${size.toLocaleString("en")}`).join(", ")}${rest}.`;
  }
  const sizesNow = () => [...Edits.sizes(clusters)].sort((a, b) => a[0] - b[0]);
  function sizesBar(box, sizes, name) {
    box.replaceChildren(...sizes.map(([number, size]) => {
      const part = element("i", undefined, `c${number % data.colors}`);
      part.style.flexGrow = size;
      part.title = `${name(number)}: ${size.toLocaleString("en")}`;
      return part;
    }));
  }
  function tellK() {
    const { k, change } = ks.steps[step], slider = byId("k"), isEdited = atAnswer() && clusters !== fitted;
    const sizes = isEdited ? sizesNow() : ks.steps[step].sizes;
    const edited = `the answer; ${clusters.live.length} after your edits`;
    const what = isEdited ? edited : atAnswer() ? "the answer" : change ? `against the answer, it ${change}` : "not the answer";
    slider.setAttribute("aria-valuetext", `${kClusters(k)}: ${what}`);
    byId("k-value").textContent = k;
    byId("k-home").disabled = atAnswer();
    const tables = atAnswer() ? "" : " The tables below are for the answer.";
    byId("k-text").textContent = `${kClusters(k)}: ${what}. ${sizesText(sizes)}${tables}`;
    sizesBar(byId("k-sizes"), sizes, (number) => (atAnswer() ? numbered(number) : `cluster ${number}`));
  }
  function showK() {
    step = Number(byId("k").value);
    choice = byId("color").value = "cluster";
    tellK();
    recolor();
  }
  function answerK() {
    byId("k").value = ks.answer;
    showK();
  }
  function zoom(by, px = canvas.width / 2, py = canvas.height / 2) {
    const before = toScreen(), zoomed = Math.min(500, Math.max(0.5, view.zoom * by));
    const fit = before.fit * zoomed / view.zoom;
    // What lies under the pointer stays there.
    view.x += (px - canvas.width / 2) * (1 / before.fit - 1 / fit);
    view.y -= (py - canvas.height / 2) * (1 / before.fit - 1 / fit);
    view.zoom = zoomed;
    later();
    look(-1);
  }
  function shift(dx, dy) {
    const { fit } = toScreen();
    view.x -= dx / fit;
    view.y += dy / fit;
    later();
    look(-1);
  }
  function whole() {
    Object.assign(view, { x: 0, y: 0, zoom: 1 });
    look(-1);
    draw();
  }

  byId("color").onchange = (event) => { choice = event.target.value; show(); };
  byId("round").oninput = show;
  if (ks) {
    byId("k").oninput = showK;
    byId("k").onkeydown = (event) => {
      if (event.key !== "Home") return;
      event.preventDefault();
      answerK();
    };
    byId("k-home").onclick = () => { answerK(); byId("k").focus(); };
  }
  byId("in").onclick = () => zoom(1.5);
  byId("out").onclick = () => zoom(1 / 1.5);
  byId("all").onclick = whole;
  byId("find").onsubmit = (event) => {
    event.preventDefault();
    const query = byId("query").value.trim();
    let found = -1;
    for (let point = 0; point < data.points && found < 0; point++) {
      const name = nameOf(point);
      if (name === query || (!data.ids && name === `row ${query}`)) found = point;
    }
    if (found < 0 || (frames.at(-1).places && !frames.at(-1).places().includes(found))) {
      byId("description").textContent = `No point drawn is called ${query}.`;
    } else go(found);
  };
  for (const button of document.querySelectorAll(".go")) button.onclick = () => go(Number(button.dataset.point));

  let playing = 0;
  byId("play").onclick = () => {
    const slider = byId("round"), button = byId("play");
    const stop = () => { clearInterval(playing); playing = 0; button.textContent = "Play"; };
    if (playing) return stop();
    if (Number(slider.value) === frames.length - 1) { slider.value = 0; show(); }
    button.textContent = "Stop";
    playing = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) === frames.length - 1) stop();
    }, still.matches ? 2500 : 1200);
  };

  function paint() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : night.matches;
    byId("theme").setAttribute("aria-pressed", dark);
    if (coloring) draw();
  }
  byId("theme").onclick = () => {
    root.dataset.theme = byId("theme").getAttribute("aria-pressed") === "true" ? "light" : "dark";
    paint();
  };
  night.addEventListener("change", paint);

  // ---- pointer: hover looks, drag moves or is the tool's, two fingers or the wheel zoom
  const inFrame = (px, py) => {
    const { fit, left, bottom } = toScreen();
    return [(px - left) / fit, (bottom - py) / fit];
  };
  const place = (event) => {
    const box = over.getBoundingClientRect();
    return [(event.clientX - box.left) * density(), (event.clientY - box.top) * density()];
  };
  const down = new Map();
  let dragged = false;
  over.onpointerdown = (event) => {
    down.set(event.pointerId, place(event));
    dragged = false;
    over.setPointerCapture(event.pointerId);
    if (tool) tool.begin(inFrame(...place(event)), down.size > 1);
  };
  over.onpointermove = (event) => {
    const [px, py] = place(event), before = down.get(event.pointerId);
    if (!before) return look(nearest(px, py, 14 * density()));
    if (down.size === 1) {
      if (!dragged && Math.hypot(px - before[0], py - before[1]) < 5 * density()) return undefined;
      dragged = true;
      if (!tool || !tool.drag(inFrame(px, py))) shift(px - before[0], py - before[1]);
      else look(-1);
    } else {
      const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const by = Math.hypot(px - other[0], py - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1]));
      dragged = true;
      zoom(by, (px + other[0]) / 2, (py + other[1]) / 2);
      shift((px - before[0]) / 2, (py - before[1]) / 2);
    }
    down.set(event.pointerId, [px, py]);
    return undefined;
  };
  over.onpointerup = (event) => {
    if (!down.delete(event.pointerId)) return;
    if (!dragged) look(nearest(...place(event), 22 * density()));
    if (tool) tool.end(event, dragged);
  };
  over.onpointercancel = (event) => {
    down.delete(event.pointerId);
    if (tool) tool.begin(null, true);
  };
  over.onpointerleave = () => { if (document.activeElement !== over) look(-1); };
  over.addEventListener("wheel", (event) => {
    if (document.activeElement !== over && !event.ctrlKey) return;      // the page scrolls until the picture is clicked
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), ...place(event));
  }, { passive: false });

  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  over.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey) return;
    if (tool && tool.key(event)) return event.preventDefault();
    if (event.altKey) return;
    const way = ways[event.key];
    if (way && event.shiftKey) shift(-way[0] * canvas.width / 8, -way[1] * canvas.height / 8);
    else if (way) walk(...way);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") whole();
    else if (event.key === "Escape") look(-1);
    else return;
    event.preventDefault();
  };
  over.onblur = () => look(-1);

  // ---- begin
  function fitCanvas() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.round(plot.clientWidth * scale), height = Math.round(plot.clientHeight * scale);
    if (width === canvas.width && height === canvas.height) return false;
    for (const each of [canvas, over]) { each.width = width; each.height = height; }
    return true;
  }
  fitCanvas();
  paint();
  if (ks) tellK();
  show();
  new ResizeObserver(() => { if (fitCanvas()) later(); }).observe(plot);
  root.dataset.ready = Math.round(performance.now());

  return {
    byId, element, data, editing, fitted, numbered, sizesBar, sizesText, sizesNow, atAnswer,
    use(newTool, listener) { tool = newTool; changed = listener; },
    // Clusters of a state instead of those before; nothing is picked any more.
    show(state) {
      clusters = state;
      mask = null;
      only.clear();
      if (ks) tellK();
      recolor();
    },
    get mask() { return mask; },
    select(points) {
      mask = points;
      later();
      if (focus >= 0) byId("description").textContent = tell(focus).join(", ");
    },
    // The clusters picked in the legend, if it is one of clusters.
    picked: () => (choice === "cluster" && atAnswer() ? [...only].filter((code) => code !== Edits.NONE) : []),
    pickNone() {
      if (!only.size) return;
      only.clear();
      legend();
      later();
    },
    // The points drawn, and which of them the legend leaves in sight.
    drawn: () => ({ ...frame.flat(), pointAt, isSeen }),
    // The result's points: a preview looks the same in every round.
    picture: () => {
      const { x, y } = frames.at(-1).flat(), places = frames.at(-1).places;
      return { x, y, pointAt: places ? (i) => places()[i] : (i) => i };
    },
    focused: () => focus,
    middle: () => inFrame(canvas.width / 2, canvas.height / 2),
    pixel: () => density() / toScreen().fit,
    rowOf: (point) => (ofFit ? ofFit[point] : rows ? rows[point] : point),
    repaint: drawOver,
    accent: () => `rgb(${rgb("accent")})`,
    answer: answerK,
    nOfAnswer: () => ks.steps[ks.answer].k,
  };
})();
