"use strict";
// What edits do to clusters, as far as a page can know it. No part of this sees the document.
//
// A state is { labels, names, live, next, unsure }: labels (n_points,) with NONE for no cluster; the name of each number;
// the numbers in use; the next new number; the numbers whose points only the model can tell.
// An edit is as in the file, but names places of points on this page, `points`, where the file has rows of the fit.
const Edits = (() => {
  const NONE = 65535, MOST_LETTERS = 100;
  // What Python's str.split takes for space. Other spaces, controls and marks of direction are not printable.
  const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;
  const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

  const listed = (values) => (values.length < 2 ? String(values[0]) : `${values.slice(0, -1).join(", ")} and ${values.at(-1)}`);
  const counted = (n) => (n === 1 ? "1 point" : `${n.toLocaleString("en")} points`);
  const tidy = (name) => name.split(SPACE).filter(Boolean).join(" ");
  const nameOf = (state, cluster) => state.names.get(cluster) || `cluster ${cluster}`;

  function sizes(state) {
    const counts = new Map(state.live.map((cluster) => [cluster, 0]));
    for (const label of state.labels) if (label !== NONE) counts.set(label, (counts.get(label) || 0) + 1);
    return counts;
  }

  // How many new numbers an edit opens: a split keeps the old number for its largest part.
  const opened = (edit) => (edit.edit !== "split" ? 0 : edit.points ? 1 : edit.into - 1);
  const clustersOf = (edit) => edit.clusters || [edit.cluster];

  function problemOfName(name, cluster, state) {
    const letters = [...name].length;
    if (!letters || letters > MOST_LETTERS || UNPRINTABLE.test(name)) return `A name has 1 to ${MOST_LETTERS} letters in one line.`;
    const other = state.live.find((each) => each !== cluster && nameOf(state, each) === name);
    return other === undefined ? "" : `Cluster ${other} has this name already.`;
  }

  // Why an edit cannot be made, or "".
  function problem(edit, state) {
    const gone = clustersOf(edit).find((cluster) => !state.live.includes(cluster));
    if (gone !== undefined) return `There is no cluster ${gone}.`;
    const { cluster, points } = edit;
    if (points && !points.length) return "No point is selected.";
    if (edit.edit === "merge" && new Set(edit.clusters).size < 2) return "Merging needs two clusters.";
    if (edit.edit === "drop" && state.live.length === 1) return "The only cluster cannot be dropped.";
    if (edit.edit === "rename") return problemOfName(edit.name, cluster, state);
    if (edit.edit !== "split") return "";
    const size = sizes(state).get(cluster);
    if (!points) return size < edit.into ? `Cluster ${cluster} has only ${counted(size)}.` : "";
    if (points.some((point) => state.labels[point] !== cluster)) return `Not all the points are in cluster ${cluster}.`;
    return points.length < size ? "" : `These are all points of cluster ${cluster}.`;
  }

  // The labels after a split that only the model can make: k-means of the points that have a place in the picture.
  function previewed(labels, { cluster, into }, next, picture) {
    const at = [];
    for (let i = 0; i < picture.x.length; i++) if (labels[picture.pointAt(i)] === cluster) at.push(i);
    const parts = Geometry.parts(Float64Array.from(at, (i) => picture.x[i]), Float64Array.from(at, (i) => picture.y[i]), into);
    parts.forEach((part, j) => { if (part) labels[picture.pointAt(at[j])] = next + part - 1; });
  }

  // The state after an edit, for which there must be no problem.
  function applied(state, edit, picture) {
    const labels = state.labels.slice(), names = new Map(state.names), unsure = new Set(state.unsure);
    let { live } = state;
    const { cluster, points } = edit, fresh = Array.from({ length: opened(edit) }, (_, i) => state.next + i);
    const move = (from, to) => {
      for (let i = 0; i < labels.length; i++) if (labels[i] === from) labels[i] = to;
      live = live.filter((each) => each !== from);
    };
    if (edit.edit === "merge") {
      const [first, ...others] = edit.clusters;
      for (const each of others) {
        move(each, first);
        if (unsure.has(each)) unsure.add(first);
      }
    } else if (edit.edit === "drop") {
      move(cluster, NONE);
    } else if (edit.edit === "rename") {
      names.set(cluster, edit.name);
    } else if (edit.edit === "pin") {
      for (const point of points) labels[point] = cluster;
    } else {
      if (points) for (const point of points) labels[point] = state.next;
      else previewed(labels, edit, state.next, picture);
      for (const each of [cluster, ...fresh]) unsure.add(each);
    }
    return { labels, names, unsure, live: [...live, ...fresh], next: state.next + fresh.length };
  }

  // The states after each edit, the first one included: (n_edits + 1,).
  function replay(start, edits, picture) {
    const states = [start];
    for (const edit of edits) states.push(applied(states.at(-1), edit, picture));
    return states;
  }

  // The edits that are left without one of them. Numbers that later splits open move up; edits of clusters that are then
  // not there go, too.
  function without(start, edits, place, picture) {
    const numbers = new Map(), left = [];                         // number before -> number now, null if it is gone
    let before = start.next, state = start;
    edits.forEach((edit, i) => {
      const now = { ...edit }, moved = (cluster) => (numbers.has(cluster) ? numbers.get(cluster) : cluster);
      if (edit.clusters) now.clusters = edit.clusters.map(moved);
      else now.cluster = moved(edit.cluster);
      const stays = i !== place && !problem(now, state);
      for (let j = 0; j < opened(edit); j++) numbers.set(before + j, stays ? state.next + j : null);
      before += opened(edit);
      if (!stays) return;
      left.push(now);
      state = applied(state, now, picture);
    });
    return left;
  }

  // An edit in words, given the states before and after it.
  function words(edit, before, after) {
    const { cluster, points } = edit;
    if (edit.edit === "merge") return `Merge ${listed(edit.clusters)} into ${edit.clusters[0]}`;
    if (edit.edit === "drop") return `Drop ${cluster}`;
    if (edit.edit === "rename") return `Rename ${cluster} to “${edit.name}”`;
    if (edit.edit === "pin") return `Pin ${counted(points.length)} to ${cluster}`;
    if (points) return `Split ${counted(points.length)} off ${cluster} as ${before.next}`;
    const now = sizes(after), fresh = Array.from({ length: edit.into - 1 }, (_, i) => before.next + i);
    const shares = [cluster, ...fresh].map((each) => now.get(each).toLocaleString("en"));
    return `Split ${cluster} into ${listed([cluster, ...fresh])}; preview: ${listed(shares)} points`;
  }

  // What `deccs edit RUN --from edits.json` reads.
  function file(edits, nRows, rowOf) {
    const told = edits.map(({ points, ...edit }) => {
      if (!points) return edit;
      const rows = Array.from(points, rowOf);
      return edit.edit === "pin" ? { edit: "pin", rows, cluster: edit.cluster } : { ...edit, rows };
    });
    return { format: "deccs edits", version: 1, n_rows: nRows, edits: told };
  }

  return { NONE, listed, counted, tidy, nameOf, sizes, problem, applied, replay, without, words, file };
})();
