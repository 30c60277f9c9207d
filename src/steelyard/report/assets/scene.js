"use strict";
// The robot that moves: poses of its bodies at so many moments turn and shift what is fixed in each body.
window.playScene = (element, scene, numbers) => {
  const poses = numbers(scene.poses), times = numbers(scene.times), frames = times.length, bodies = scene.bodies;
  const parts = scene.parts.map((part) => ({ trace: part.trace, points: numbers(part.points), body: part.body }));
  const player = element.closest("figure").querySelector(".player");
  const play = player.querySelector("button"), slider = player.querySelector("input"), said = player.querySelector("output");
  slider.max = frames - 1;
  function show(frame) {
    const x = [], y = [], z = [], which = [];
    for (const part of parts) {
      const count = part.body.length, px = new Array(count), py = new Array(count), pz = new Array(count);
      for (let k = 0; k < count; k++) {
        const body = part.body[k];
        if (body === -2) { px[k] = py[k] = pz[k] = null; continue; } // a gap in a line
        const u = part.points[3 * k], v = part.points[3 * k + 1], w = part.points[3 * k + 2];
        if (body === -1) { px[k] = u; py[k] = v; pz[k] = w; continue; } // fixed in the world
        const p = 12 * (frame * bodies + body);
        px[k] = poses[p] * u + poses[p + 1] * v + poses[p + 2] * w + poses[p + 9];
        py[k] = poses[p + 3] * u + poses[p + 4] * v + poses[p + 5] * w + poses[p + 10];
        pz[k] = poses[p + 6] * u + poses[p + 7] * v + poses[p + 8] * w + poses[p + 11];
      }
      x.push(px); y.push(py); z.push(pz); which.push(part.trace);
    }
    said.textContent = times[frame].toFixed(2) + " s";
    return Plotly.restyle(element, { x, y, z }, which);
  }
  let timer = null;
  function stop() { clearTimeout(timer); timer = null; play.textContent = "▶ Play"; }
  function step() {
    const begun = performance.now(), frame = (+slider.value + 1) % frames;
    slider.value = frame;
    show(frame).then(() => {
      if (timer === null) return;
      const wait = frame > 0 ? 1000 * (times[frame] - times[frame - 1]) : 300;
      timer = setTimeout(step, Math.max(0, Math.min(wait, 200) - (performance.now() - begun)));
    });
  }
  play.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    play.textContent = "❚❚ Pause"; timer = setTimeout(step, 0);
  });
  slider.addEventListener("input", () => { stop(); show(+slider.value); });
  show(0);
};
