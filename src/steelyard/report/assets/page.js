"use strict";
// One page: light and dark, tabs, tables to copy, joints to hide, and plots that are drawn when they come into view.
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const root = document.documentElement;
  root.classList.add("js");

  // --- light and dark -------------------------------------------------------------------------------------------
  const system = matchMedia("(prefers-color-scheme: dark)");
  const memory = {
    get() { try { return localStorage.getItem("steelyard-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("steelyard-theme", value); } catch { /* a file may not remember */ } },
  };
  let chosen = memory.get();
  const button = document.querySelector(".theme");
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  function paint(forced) {
    const theme = forced || chosen || (system.matches ? "dark" : "light");
    root.dataset.theme = theme;
    if (button) button.textContent = theme === "dark" ? "☀ Light" : "☾ Dark";
    for (const element of all(".plot.drawn")) Plotly.relayout(element, inked(element.layout)).then(() => neutral(element));
  }
  function inked(layout) {
    const ink = css("--ink"), grid = css("--grid"), line = css("--line"), soft = css("--soft");
    const change = { "font.color": ink, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      "hoverlabel.bgcolor": css("--card"), "hoverlabel.bordercolor": line, "hoverlabel.font.color": ink,
      "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": soft, "modebar.activecolor": ink };
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(key)) {
        change[key + ".gridcolor"] = grid; change[key + ".zerolinecolor"] = line; change[key + ".linecolor"] = line;
      } else if (/^scene\d*$/.test(key)) {
        for (const axis of ["xaxis", "yaxis", "zaxis"]) {
          change[`${key}.${axis}.gridcolor`] = line; change[`${key}.${axis}.zerolinecolor`] = line;
          change[`${key}.${axis}.color`] = soft;
        }
      }
    }
    return change;
  }
  // Traces whose role is "neutral" take the page's own grey or ink.
  function neutral(element) {
    const which = [], colours = [];
    element.data.forEach((trace, k) => {
      if (trace.meta && trace.meta.ink) { which.push(k); colours.push(css("--" + trace.meta.ink)); }
    });
    if (which.length) Plotly.restyle(element, { "line.color": colours, "marker.color": colours }, which);
  }
  if (button) button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    memory.set(chosen); paint();
  });
  system.addEventListener("change", () => paint());

  // --- numbers that came as base64 ------------------------------------------------------------------------------
  function numbers(packed) {
    if (!packed || packed.bdata === undefined) return packed;
    const bytes = Uint8Array.from(atob(packed.bdata), (letter) => letter.charCodeAt(0));
    return packed.dtype === "f4" ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
  }
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const shared = {};
  function axis(id) { return shared[id] || (shared[id] = numbers(json(id))); }

  // Lowest and highest value of each of so many pieces between two abscissae, so that no peak is lost on the screen.
  function thinned(x, y, from, to, most) {
    let a = 0, b = x.length;
    if (from !== undefined) {
      const find = (value) => { let low = 0, high = x.length; while (low < high) { const mid = (low + high) >> 1; if (x[mid] < value) low = mid + 1; else high = mid; } return low; };
      a = Math.max(0, find(from) - 1); b = Math.min(x.length, find(to) + 2);
    }
    const size = Math.ceil((b - a) / most);
    if (size <= 2) return { x: Array.from(x.subarray(a, b)), y: Array.from(y.subarray(a, b), (v) => (Number.isNaN(v) ? null : v)) };
    const outX = [], outY = [];
    for (let start = a; start < b; start += size) {
      let low = -1, high = -1;
      for (let k = start; k < Math.min(b, start + size); k++) {
        const value = y[k];
        if (Number.isNaN(value)) continue;
        if (low < 0 || value < y[low]) low = k;
        if (high < 0 || value > y[high]) high = k;
      }
      if (low < 0) { outX.push(x[start]); outY.push(null); continue; }
      for (const k of low < high ? [low, high] : [high, low]) { outX.push(x[k]); outY.push(y[k]); }
    }
    return { x: outX, y: outY };
  }
  const MOST = 900;
  function fill(element, from, to) {
    const xs = [], ys = [], which = [];
    element.long.forEach((line, k) => {
      if (!line) return;
      const part = thinned(line.x, line.y, from, to, MOST);
      xs.push(part.x); ys.push(part.y); which.push(k);
    });
    return Plotly.restyle(element, { x: xs, y: ys }, which);
  }

  // --- plots ----------------------------------------------------------------------------------------------------
  const hidden = new Set();
  const shows = (trace) => !(trace.meta && hidden.has(trace.meta.joint));
  const config = { responsive: true, displaylogo: false, displayModeBar: "hover" };
  const BUTTONS = [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"], ["toImage"]];
  const BUTTONS_3D = [["orbitRotation", "pan3d", "resetCameraDefault3d"], ["toImage"]];
  const touched = matchMedia("(pointer: coarse)").matches;
  function draw(element) {
    if (element.classList.contains("drawn")) return;
    element.classList.add("drawn");
    const spec = json(element.dataset.spec);
    element.long = spec.data.map((trace) => {
      if (!(trace.meta && trace.meta.x)) return null;
      const line = { x: axis(trace.meta.x), y: numbers(trace.y) };
      Object.assign(trace, thinned(line.x, line.y, undefined, undefined, MOST));
      return line;
    });
    for (const trace of spec.data) {
      if (!shows(trace)) trace.visible = false;
      if (trace.meta && trace.meta.ink) {
        const colour = css("--" + trace.meta.ink);
        if (trace.line) trace.line.color = colour;
        if (trace.marker) trace.marker.color = colour;
      }
    }
    const solid = Boolean(spec.layout.scene);
    // A finger that scrolls the page must not zoom a plot: there the buttons zoom.
    if (touched && !solid) spec.layout.dragmode = false;
    const shownBar = touched && !solid ? true : config.displayModeBar;
    Plotly.newPlot(element, spec.data, spec.layout,
      { ...config, displayModeBar: shownBar, modeBarButtons: solid ? BUTTONS_3D : BUTTONS });
    Plotly.relayout(element, inked(element.layout));
    if (element.long.some(Boolean)) element.on("plotly_relayout", (event) => {
      const keys = Object.keys(event);
      if (!keys.some((key) => /^xaxis\d*\.(range|autorange)/.test(key))) return;
      const whole = keys.some((key) => /^xaxis\d*\.autorange/.test(key));
      const range = element.layout.xaxis.range;
      fill(element, whole ? undefined : +range[0], whole ? undefined : +range[1]);
    });
    if (window.playScene && element.dataset.scene) window.playScene(element, json(element.dataset.scene), numbers);
  }
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "500px 0px" });

  // --- joints ---------------------------------------------------------------------------------------------------
  function showJoint(joint, yes) {
    if (yes) hidden.delete(joint); else hidden.add(joint);
    for (const chip of all(".chip[data-joint]")) chip.setAttribute("aria-pressed", String(!hidden.has(+chip.dataset.joint)));
    for (const element of all("[data-joint]:not(.chip)")) element.hidden = hidden.has(+element.dataset.joint);
    for (const element of all(".plot.drawn")) {
      const which = [];
      element.data.forEach((trace, k) => { if (trace.meta && trace.meta.joint === joint) which.push(k); });
      if (which.length) Plotly.restyle(element, { visible: yes }, which);
    }
  }
  for (const chip of all(".chip[data-joint]")) {
    const joint = +chip.dataset.joint;
    chip.addEventListener("click", () => showJoint(joint, hidden.has(joint)));
    chip.addEventListener("dblclick", () => {
      const every = all(".chip[data-joint]").map((other) => +other.dataset.joint);
      for (const other of every) showJoint(other, other === joint || hidden.size === every.length - 1);
    });
  }

  // --- tabs -----------------------------------------------------------------------------------------------------
  for (const group of all(".tabs")) {
    const tabs = all("button", group);
    const choose = (tab) => {
      for (const other of tabs) {
        const on = other === tab;
        other.setAttribute("aria-selected", String(on));
        other.tabIndex = on ? 0 : -1;
        const panel = document.getElementById(other.getAttribute("aria-controls"));
        panel.classList.toggle("on", on);
        if (on) for (const element of all(".plot.drawn", panel)) Plotly.Plots.resize(element);
      }
    };
    tabs.forEach((tab, k) => {
      tab.addEventListener("click", () => choose(tab));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = tabs[(k + step + tabs.length) % tabs.length];
        choose(next); next.focus();
      });
    });
  }

  // --- tables to copy -------------------------------------------------------------------------------------------
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (element) => quoted(element.dataset.v !== undefined ? element.dataset.v : element.textContent.trim());
  window.tableAsCsv = (table) => all("tr", table).map((row) => all("th,td", row).map(cell).join(",")).join("\n") + "\n";
  async function copied(text) {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* files opened from disk may not */ }
    const area = document.createElement("textarea");
    area.value = text; document.body.append(area); area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
  for (const copy of all(".copy")) copy.addEventListener("click", async () => {
    const done = await copied(window.tableAsCsv(copy.closest(".table").querySelector("table")));
    const before = copy.textContent;
    copy.textContent = done ? "Copied" : "Not allowed here";
    setTimeout(() => { copy.textContent = before; }, 1500);
  });

  // --- paper ----------------------------------------------------------------------------------------------------
  const PAPER = 690;
  addEventListener("beforeprint", () => {
    paint("light");
    for (const panel of all(".panel:not(.on)")) panel.classList.add("on", "for-print");
    for (const element of all(".plot")) {
      if (element.closest("[hidden]")) continue;
      draw(element);
      Plotly.relayout(element, { width: PAPER, autosize: false });
    }
  });
  addEventListener("afterprint", () => {
    for (const panel of all(".panel.for-print")) panel.classList.remove("on", "for-print");
    for (const element of all(".plot.drawn")) Plotly.relayout(element, { width: null, autosize: true });
    paint();
  });

  // --- where we are ---------------------------------------------------------------------------------------------
  const links = all(".bar nav a");
  const spot = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) {
      for (const link of links) link.classList.toggle("here", link.hash === "#" + entry.target.id);
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const link of links) { const target = document.getElementById(link.hash.slice(1)); if (target) spot.observe(target); }

  paint();
  for (const element of all(".plot")) near.observe(element);
})();
