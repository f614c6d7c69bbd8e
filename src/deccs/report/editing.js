"use strict";
// Selecting points and clusters, and editing the clusters. Nothing leaves the page but by the download.
(() => {
  const { byId, element, editing, fitted } = Page, panel = byId("edit"), bar = byId("edit-bar"), toggle = byId("edit-on");
  const { listed, counted } = Edits, COMMAND = "deccs edit RUN --from edits.json";
  toggle.hidden = false;
  const isSample = editing.n_rows > Page.data.points;

  // ---- the edits made, and those undone: lists that are never changed
  const history = [[]];
  let at = 0, states = [fitted], saved = history[0];
  const edits = () => history[at];
  const state = () => states.at(-1);

  function go(place, said) {
    at = place;
    states = Edits.replay(fitted, edits(), Page.picture());
    Page.show(state());
    list();
    update(said);
  }
  function commit(list, said) {
    history.splice(at + 1);
    history.push(list);
    go(at + 1, said);
  }
  const undo = () => (at ? go(at - 1, "The last change is undone.") : update("There is nothing to undo."));
  const redo = () => (at < history.length - 1 ? go(at + 1, "The change is made again.") : update("There is nothing to redo."));

  // ---- what is selected: points, or whole clusters picked in the legend
  function selection() {
    const { labels } = state(), picked = Page.picked().sort((a, b) => a - b), { mask } = Page;
    if (!mask) {
      const sizes = Edits.sizes(state());
      return { points: null, clusters: picked, sizes, n: picked.reduce((n, each) => n + sizes.get(each), 0) };
    }
    const points = [], inside = new Map();
    for (let point = 0; point < mask.length; point++) {
      if (!mask[point] || (picked.length && !picked.includes(labels[point]))) continue;
      points.push(point);
      inside.set(labels[point], (inside.get(labels[point]) || 0) + 1);
    }
    const clusters = [...inside.keys()].filter((label) => label !== Edits.NONE).sort((a, b) => a - b);
    return { points, clusters, sizes: inside, n: points.length };
  }
  const many = (clusters) => `cluster${clusters.length === 1 ? "" : "s"} ${listed(clusters)}`;
  // The clusters that have most of the points, in words.
  const MOST_TOLD = 4;
  function told({ points, clusters, sizes, n }) {
    if (!points && !clusters.length) return "Draw around points, or pick clusters in the legend.";
    if (!points) return `${counted(n)} in ${many(clusters)}`;
    if (sizes.size < 2 && clusters.length) return `${counted(n)} selected in cluster ${clusters[0]}`;
    const shares = [...sizes].sort((a, b) => b[1] - a[1]).map(([label, size]) => (
      `${size.toLocaleString("en")} ${label === Edits.NONE ? "without a cluster" : `in ${label}`}`));
    const more = shares.length - MOST_TOLD;
    const parts = more > 1 ? [...shares.slice(0, MOST_TOLD), `others in ${more} more`] : shares;
    return `${counted(n)} selected: ${listed(parts)}`;
  }

  // ---- what can be done with a selection: the edits it leads to, or why there are none
  const nothing = { why: "Select something first: draw around points, or pick clusters in the legend." };
  const made = (...edits) => ({ edits });
  // An edit of one cluster, or why it is not one.
  const ofOne = ({ clusters }, edit) => {
    if (clusters.length === 1) return made(edit(clusters[0]));
    const why = `This needs one cluster, not ${clusters.length}. Pick one of them in the legend.`;
    return clusters.length ? { why } : nothing;
  };
  const actions = {
    merge({ clusters }) {
      if (clusters.length > 1) return made({ edit: "merge", clusters });
      return { why: "Merging needs two clusters. Pick them in the legend, or draw around points of both." };
    },
    split: (now) => ofOne(now, (cluster) => ({ edit: "split", cluster, into: Number(byId("into").value) })),
    off(now) {
      if (!now.points) return { why: "Draw around the points that are to be a cluster of their own." };
      const { labels } = state();
      return ofOne(now, (cluster) => ({ edit: "split", cluster, points: now.points.filter((point) => labels[point] === cluster) }));
    },
    drop: ({ clusters }) => (clusters.length ? made(...clusters.map((cluster) => ({ edit: "drop", cluster }))) : nothing),
    rename: (now) => ofOne(now, (cluster) => ({ edit: "rename", cluster, name: Edits.tidy(byId("name").value) })),
    pin({ points, n }) {
      if (points && n) return made({ edit: "pin", points, cluster: Number(byId("pin-to").value) });
      return { why: "Draw around the points that belong to another cluster." };
    },
  };
  const blocked = () => (Page.atAnswer() ? ""
    : `Edits are for the ${Page.nOfAnswer()} clusters of the fit, not for other numbers of clusters.`);

  function act(name) {
    if (blocked()) return update(blocked());
    const { edits: wanted, why } = actions[name](selection());
    if (why) return update(why);
    let reached = state();
    for (const edit of wanted) {
      const problem = Edits.problem(edit, reached);
      if (problem) {
        if (name === "rename") byId("name").setAttribute("aria-invalid", "true");
        return update(problem);
      }
      reached = Edits.applied(reached, edit, Page.picture());
    }
    byId("name").value = "";
    const before = states.length;
    commit([...edits(), ...wanted], "");
    return update(`Done: ${wanted.map((edit, i) => sentence(before - 1 + i)).join(". ")}.`);
  }
  const sentence = (place) => Edits.words(edits()[place], states[place], states[place + 1]);

  // ---- the bar
  let announced = "";
  function update(said) {
    const now = selection(), off = blocked();
    byId("edit-home").hidden = !off;
    bar.classList.toggle("off", Boolean(off));
    byId("plot").classList.toggle("lasso", isLasso());
    for (const button of bar.querySelectorAll("[data-act]")) {
      button.setAttribute("aria-disabled", Boolean(off || actions[button.dataset.act](now).why));
    }
    const isEmpty = !now.points && !now.clusters.length;
    byId("clear").hidden = isEmpty;
    byId("name").placeholder = now.clusters.length === 1 ? state().names[now.clusters[0]] : "New name";
    const text = off || said || told(now);
    if (text !== announced) byId("edit-status").textContent = announced = text;
  }
  function pinTargets() {
    const chosen = byId("pin-to").value;
    byId("pin-to").replaceChildren(...state().live.map((cluster) => {
      const option = element("option", Page.numbered(cluster));
      option.value = cluster;
      option.selected = String(cluster) === chosen;
      return option;
    }));
  }

  // ---- the list of edits, the sizes and the file
  function list() {
    const made = edits(), place = [...byId("edit-list").querySelectorAll("button")].indexOf(document.activeElement);
    byId("edits").hidden = history.length === 1;
    byId("edit-list").replaceChildren(...made.map((_, i) => {
      const item = element("li"), remove = element("button", "×");
      remove.type = "button";
      remove.title = "Remove";
      remove.setAttribute("aria-label", `Remove: ${sentence(i)}`);
      remove.onclick = () => removed(i);
      item.append(element("span", sentence(i)), remove);
      return item;
    }));
    byId("edit-count").textContent = made.length === 1 ? "1 edit" : `${made.length} edits`;
    byId("undo").setAttribute("aria-disabled", at === 0);
    byId("redo").setAttribute("aria-disabled", at === history.length - 1);
    byId("take").hidden = !made.length;
    const sizes = Page.sizesNow();
    Page.sizesBar(byId("edit-sizes"), sizes, Page.numbered);
    byId("edit-sizes-text").textContent = `${Page.sizesText(sizes)}${isSample ? " These are the points on this page." : ""}`;
    pinTargets();
    if (place >= 0) (byId("edit-list").querySelectorAll("button")[Math.min(place, made.length - 1)] || byId("undo")).focus();
  }
  function removed(place) {
    const what = sentence(place), left = Edits.without(fitted, edits(), place, Page.picture());
    const others = edits().length - 1 - left.length;
    const more = others ? `, and ${others === 1 ? "an edit" : `${others} edits`} that made no sense without it` : "";
    commit(left, `Removed “${what}”${more}.`);
  }
  function download() {
    const text = JSON.stringify(Edits.file(edits(), editing.n_rows, Page.rowOf));
    const link = element("a"), address = URL.createObjectURL(new Blob([`${text}\n`], { type: "application/json" }));
    link.href = address;
    link.download = "edits.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    saved = edits();
    update(`edits.json is downloaded. Apply it with: ${COMMAND}`);
  }
  async function copy() {
    const range = document.createRange();
    range.selectNodeContents(byId("command"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);                  // and if nothing else works, it can be copied by hand
    try { await navigator.clipboard.writeText(COMMAND); } catch { document.execCommand("copy"); }
    update("The command is copied.");
  }

  // ---- the lasso: a line in the coordinates of the frame; by keyboard a rectangle
  const mode = () => bar.querySelector("input[name=drag]:checked").value;
  const isLasso = () => !panel.hidden && !blocked() && mode() !== "move";
  let line = null, rectangle = null;
  const corners = ({ from: [ax, ay], to: [bx, by] }) => [[ax, ay], [bx, ay], [bx, by], [ax, by]];

  // The points drawn and in sight that a line goes around, as places of points.
  function around(shape) {
    const { x, y, pointAt, isSeen } = Page.drawn(), inside = Geometry.inside(shape, x, y), points = [];
    for (let i = 0; i < inside.length; i++) if (inside[i] && isSeen(i)) points.push(pointAt(i));
    return points;
  }
  function select(points, how) {
    const mask = how === "new" || !Page.mask ? new Uint8Array(Page.data.points) : Page.mask.slice();
    for (const point of points) mask[point] = how === "remove" ? 0 : 1;
    Page.select(mask.includes(1) ? mask : null);
    update();
  }
  const howOf = (event) => (event.shiftKey ? "add" : event.altKey ? "remove" : mode());
  function clear() {
    line = rectangle = null;
    Page.select(null);
    Page.pickNone();
    update();
  }
  function size(event) {
    const step = (event.shiftKey ? 60 : 12) * Page.pixel();
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    rectangle.to = [rectangle.to[0] + dx * step, rectangle.to[1] + dy * step];
    tellRectangle();
  }
  function tellRectangle() {
    Page.repaint();
    update(`Rectangle around ${counted(around(corners(rectangle)).length)}. Arrows size it, Enter selects.`);
  }
  function key(event) {
    if (panel.hidden || blocked()) return false;
    const focus = Page.focused();
    if (rectangle && event.key.startsWith("Arrow")) size(event);
    else if (rectangle && event.key === "Enter") {
      const points = around(corners(rectangle));
      rectangle = null;
      select(points, howOf(event) === "move" ? "new" : howOf(event));
      Page.repaint();
    } else if (event.key === "Escape") {
      if (!rectangle && !line && !Page.mask && !Page.picked().length) return false;
      if (rectangle || line) {
        rectangle = line = null;
        Page.repaint();
        update();
      } else clear();
    } else if (event.key.toLowerCase() === "r") {
      const { x, y } = Page.drawn(), from = focus < 0 ? Page.middle() : [x[focus], y[focus]], side = 48 * Page.pixel();
      rectangle = { from: [from[0] - side / 8, from[1] + side / 8], to: [from[0] + side, from[1] - side] };
      tellRectangle();
    } else if (event.key === " " && focus >= 0) {
      const point = Page.drawn().pointAt(focus);
      select([point], Page.mask && Page.mask[point] ? "remove" : "add");
    } else return false;
    return true;
  }

  const tool = {
    begin(start, isOther) {
      if (line && isOther) { line = null; Page.repaint(); } else line = !isOther && isLasso() ? [start] : null;
    },
    drag(to) {
      if (!line) return false;
      const [x, y] = line.at(-1), least = 3 * Page.pixel();
      if (Math.hypot(to[0] - x, to[1] - y) >= least) line.push(to);
      Page.repaint();
      return true;
    },
    end(event, dragged) {
      const drawn = line;
      line = null;
      if (!drawn) return;
      const how = howOf(event), focus = Page.focused();
      if (dragged) select(around(drawn), how);
      else if (how !== "new" && focus >= 0) select([Page.drawn().pointAt(focus)], how);
      Page.repaint();
    },
    key,
    paint(film, place, scale) {
      const shape = line || (rectangle && corners(rectangle));
      if (!shape) return;
      film.save();
      film.beginPath();
      for (const each of shape) film.lineTo(...place(each));
      film.closePath();
      film.fillStyle = film.strokeStyle = Page.accent();
      film.globalAlpha = 0.12;
      film.fill();
      film.globalAlpha = 1;
      film.lineWidth = 2 * scale;
      film.setLineDash([6 * scale, 4 * scale]);
      film.stroke();
      film.restore();
    },
  };

  // ---- controls
  function open(isOpen) {
    panel.hidden = bar.hidden = !isOpen;
    toggle.setAttribute("aria-pressed", isOpen);
    toggle.setAttribute("aria-expanded", isOpen);
    byId("over").setAttribute("aria-describedby", isOpen ? "edit-keys keys" : "keys");
    if (!isOpen) clear();
    update();
  }
  toggle.onclick = () => open(panel.hidden);
  for (const each of bar.querySelectorAll("input[name=drag]")) each.onchange = () => update();
  for (const button of bar.querySelectorAll("button[data-act]")) button.onclick = () => act(button.dataset.act);
  byId("name").onkeydown = (event) => { if (event.key === "Enter") act("rename"); };
  byId("name").oninput = () => { byId("name").removeAttribute("aria-invalid"); };
  byId("clear").onclick = () => { clear(); byId("over").focus({ preventScroll: true }); };
  byId("edit-home").onclick = () => { Page.answer(); byId("over").focus({ preventScroll: true }); };
  byId("undo").onclick = undo;
  byId("redo").onclick = redo;
  byId("download").onclick = download;
  byId("copy").onclick = copy;
  byId("command").textContent = COMMAND;
  byId("into").append(...["2", "3", "4", "5"].map((parts) => element("option", parts)));
  document.addEventListener("keydown", (event) => {
    if (panel.hidden || !(event.ctrlKey || event.metaKey) || event.target.matches("input[type=text]")) return;
    const pressed = event.key.toLowerCase();
    if (pressed === "z" && !event.shiftKey) undo();
    else if (pressed === "y" || pressed === "z") redo();
    else return;
    event.preventDefault();
  });
  bar.parentElement.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden && event.target.id !== "over") clear();
  });
  addEventListener("beforeunload", (event) => { if (edits().length && edits() !== saved) event.preventDefault(); });

  Page.use(tool, () => { if (!panel.hidden) update(); });
  list();
  update();
})();
