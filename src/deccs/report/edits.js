"use strict";
// What edits do to clusters, as far as a page can know it. No part of this sees the document.
//
// A state is { labels, names, live, unsure }: labels (n_points,) with NONE for no cluster; the name of each number ever
// given; the numbers in use; the numbers whose points only the model can tell.
// An edit is as in the file, but names places of points on this page, `points`, where the file has rows of the fit.
const Edits = (() => {
  const NONE = 65535, MOST_LETTERS = 100;
  // What Python's str.split takes for space. Other spaces, controls and marks of direction are not printable.
  const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;
  const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;

  const listed = (values) => (values.length < 2 ? String(values[0]) : `${values.slice(0, -1).join(", ")} and ${values.at(-1)}`);
  const counted = (n) => (n === 1 ? "1 point" : `${n.toLocaleString("en")} points`);
  const tidy = (name) => name.split(SPACE).filter(Boolean).join(" ");
  const unnamed = (cluster) => `cluster ${cluster}`;

  function sizes(state) {
    const counts = new Map(state.live.map((cluster) => [cluster, 0]));
    for (const label of state.labels) if (label !== NONE) counts.set(label, (counts.get(label) || 0) + 1);
    return counts;
  }

  // How many new numbers an edit opens: a split keeps the old number for its largest part.
  const opened = (edit) => (edit.edit !== "split" ? 0 : edit.points ? 1 : edit.into - 1);
  const opens = (edit, state) => Array.from({ length: opened(edit) }, (_, i) => state.names.length + i);
  const clustersOf = (edit) => edit.clusters || [edit.cluster];

  function problemOfName(name, cluster, state) {
    const letters = [...name].length;
    if (!letters || letters > MOST_LETTERS || UNPRINTABLE.test(name)) return `A name has 1 to ${MOST_LETTERS} letters in one line.`;
    const other = state.live.find((each) => each !== cluster && state.names[each] === name);
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
    const size = sizes(state).get(cluster), parts = points ? 2 : edit.into;
    if (size < 2 * parts) return `Cluster ${cluster} has ${counted(size)}, too few to be split into ${parts}.`;
    if (!points) return "";
    if (points.some((point) => state.labels[point] !== cluster)) return `Not all the points are in cluster ${cluster}.`;
    return points.length < size ? "" : `These are all points of cluster ${cluster}.`;
  }

  // The name of each number after an edit, as `names_after` in deccs/edits/editing.py has it.
  function namesAfter(edit, state) {
    const names = [...state.names], { cluster, name } = edit, fresh = opens(edit, state);
    if (edit.edit === "rename") names[cluster] = name;
    else if (edit.edit === "merge") {
      const [first, ...others] = edit.clusters, joined = edit.clusters.map((each) => names[each]).join(" / ");
      if ([...joined].length <= MOST_LETTERS && !joined.startsWith("cluster ")) names[first] = joined;
      for (const other of others) names[other] = `cluster ${other}, merged into ${first}`;
    } else if (edit.edit === "drop") names[cluster] = `cluster ${cluster}, dropped`;
    else if (edit.edit === "split") {
      const whole = [...names[cluster]].slice(0, MOST_LETTERS - 10).join("");
      const hasName = names[cluster] !== unnamed(cluster);
      names.push(...fresh.map(unnamed));
      if (hasName) [cluster, ...fresh].forEach((number, i) => { names[number] = `${whole}, part ${i + 1}`; });
    }
    return unique(names);
  }
  function unique(names) {
    const found = new Set();
    for (const name of names) {
      let free = name;
      for (let number = 2; found.has(free); number++) free = `${name} (${number})`;
      found.add(free);
    }
    return [...found];
  }

  // The labels after a split that only the model can make: k-means of the points that have a place in the picture.
  function previewed(labels, { cluster, into }, next, picture) {
    const at = [];
    for (let i = 0; i < picture.x.length; i++) if (labels[picture.pointAt(i)] === cluster) at.push(i);
    const parts = Geometry.parts(Float64Array.from(at, (i) => picture.x[i]), Float64Array.from(at, (i) => picture.y[i]), into);
    parts.forEach((part, j) => { if (part) labels[picture.pointAt(at[j])] = next + part - 1; });
  }

  // The smaller part gets the new number, be it the points named or the others.
  function splitOff(labels, { cluster, points }, fresh) {
    const size = labels.reduce((n, label) => n + (label === cluster ? 1 : 0), 0);
    const [named, others] = 2 * points.length > size ? [cluster, fresh] : [fresh, cluster];
    for (let i = 0; i < labels.length; i++) if (labels[i] === cluster) labels[i] = others;
    for (const point of points) labels[point] = named;
  }

  // The state after an edit, for which there must be no problem.
  function applied(state, edit, picture) {
    const labels = state.labels.slice(), unsure = new Set(state.unsure);
    let { live } = state;
    const { cluster, points } = edit, fresh = opens(edit, state);
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
    } else if (edit.edit === "pin") {
      for (const point of points) labels[point] = cluster;
    } else if (edit.edit === "split") {
      if (points) splitOff(labels, edit, fresh[0]);
      else previewed(labels, edit, fresh[0], picture);
      for (const each of [cluster, ...fresh]) unsure.add(each);
    }
    return { labels, unsure, live: [...live, ...fresh], names: namesAfter(edit, state) };
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
    let before = start.names.length, state = start;
    edits.forEach((edit, i) => {
      const now = { ...edit }, moved = (cluster) => (numbers.has(cluster) ? numbers.get(cluster) : cluster);
      if (edit.clusters) now.clusters = edit.clusters.map(moved);
      else now.cluster = moved(edit.cluster);
      const stays = i !== place && !problem(now, state);
      for (let j = 0; j < opened(edit); j++) numbers.set(before + j, stays ? state.names.length + j : null);
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
    if (points) {
      const [fresh] = opens(edit, before), isLarge = after.labels[points[0]] === cluster;
      return `Split ${counted(points.length)} off ${cluster}: ${isLarge ? "the others" : "they"} are ${fresh} now`;
    }
    const now = sizes(after), parts = [cluster, ...opens(edit, before)];
    return `Split ${cluster} into ${listed(parts)}; preview: ${listed(parts.map((each) => now.get(each).toLocaleString("en")))} points`;
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

  return { NONE, listed, counted, tidy, unnamed, sizes, problem, applied, replay, without, words, file };
})();
