"use strict";
// Points in the plane: which of them a line goes around, and into which parts they fall.
const Geometry = (() => {
  const BANDS = 128, MOST_STEPS = 50;

  // (n,) of 0 and 1: whether the closed line, [[x, y], ...], goes around a point, in whichever direction and how often.
  // Each edge lies in some of the horizontal bands, so that a point is compared with a few edges only.
  function inside(line, x, y) {
    const found = new Uint8Array(x.length);
    const across = line.map(([px]) => px), along = line.map(([, py]) => py);
    const left = Math.min(...across), right = Math.max(...across), low = Math.min(...along), high = Math.max(...along);
    if (!(high > low)) return found;
    const bandOf = (py) => Math.min(BANDS - 1, Math.floor((py - low) / (high - low) * BANDS));
    const bands = Array.from({ length: BANDS }, () => []);
    line.forEach(([x0, y0], i) => {
      const [x1, y1] = line[(i + 1) % line.length];
      const first = bandOf(Math.min(y0, y1)), last = bandOf(Math.max(y0, y1));
      for (let band = first; band <= last; band++) bands[band].push([x0, y0, x1, y1]);
    });
    for (let i = 0; i < x.length; i++) {
      const px = x[i], py = y[i];
      if (px < left || px > right || py < low || py > high) continue;
      let turns = 0;
      for (const [x0, y0, x1, y1] of bands[bandOf(py)]) {
        if ((y0 <= py) === (y1 <= py)) continue;
        if (x0 + (py - y0) / (y1 - y0) * (x1 - x0) > px) turns += y1 > y0 ? 1 : -1;
      }
      if (turns) found[i] = 1;
    }
    return found;
  }

  // Sums over each part: [number of points, sum of x, sum of y].
  function sums(x, y, part, k) {
    const totals = Array.from({ length: k }, () => [0, 0, 0]);
    for (let i = 0; i < x.length; i++) {
      const total = totals[part[i]];
      total[0]++;
      total[1] += x[i];
      total[2] += y[i];
    }
    return totals;
  }

  // Cut the part that is spread most at its mean, across its main axis; the far half becomes part `made`.
  function cut(x, y, part, made) {
    const means = sums(x, y, part, made).map(([n, sx, sy]) => [sx / n, sy / n]);
    const spread = means.map(() => [0, 0, 0]);                    // sums of dx dx, dx dy, dy dy
    for (let i = 0; i < x.length; i++) {
      const dx = x[i] - means[part[i]][0], dy = y[i] - means[part[i]][1], of = spread[part[i]];
      of[0] += dx * dx;
      of[1] += dx * dy;
      of[2] += dy * dy;
    }
    const sizes = spread.map(([xx, , yy]) => xx + yy), widest = sizes.indexOf(Math.max(...sizes));
    const [xx, xy, yy] = spread[widest], angle = Math.atan2(2 * xy, xx - yy) / 2;
    for (let i = 0; i < x.length; i++) {
      if (part[i] !== widest) continue;
      const dx = x[i] - means[widest][0], dy = y[i] - means[widest][1];
      if (dx * Math.cos(angle) + dy * Math.sin(angle) > 0) part[i] = made;
    }
  }

  // k-means: (n,) numbers of k parts, the largest first. It draws no lots: the same points give the same parts.
  function parts(x, y, k) {
    const part = new Uint8Array(x.length);
    for (let made = 1; made < k; made++) cut(x, y, part, made);
    for (let step = 0, moved = true; moved && step < MOST_STEPS; step++) {
      const means = sums(x, y, part, k).map(([n, sx, sy]) => [sx / n, sy / n]);
      moved = false;
      for (let i = 0; i < x.length; i++) {
        let best = part[i], least = Infinity;
        for (let j = 0; j < k; j++) {
          const d = (x[i] - means[j][0]) ** 2 + (y[i] - means[j][1]) ** 2;
          if (d < least) { least = d; best = j; }
        }
        if (best !== part[i]) { part[i] = best; moved = true; }
      }
    }
    const sizes = sums(x, y, part, k).map(([n]) => n);
    const order = sizes.map((_, j) => j).sort((a, b) => sizes[b] - sizes[a]);
    return part.map((j) => order.indexOf(j));
  }

  return { inside, parts };
})();
