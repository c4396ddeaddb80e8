// Draws the plots in the colours of the theme, and again when the theme or the medium changes.
(function () {
  "use strict";
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const touch = matchMedia("(pointer: coarse)");
  const config = { responsive: true, displayModeBar: false, doubleClick: "reset" };

  function colour(token, style) {
    const found = /^@([a-z]+)(?:\/([\d.]+))?$/.exec(token);
    if (!found) return token;
    const value = style.getPropertyValue("--" + found[1]).trim();
    if (found[2] === undefined) return value;
    const parts = [1, 3, 5].map((i) => parseInt(value.slice(i, i + 2), 16));
    return "rgba(" + parts.join(",") + "," + found[2] + ")";
  }

  // A copy in which the strings under keys that speak of colour are looked up.
  function paint(value, key, style) {
    if (Array.isArray(value)) return /color/.test(key) ? value.map((v) => paint(v, key, style)) : value;
    if (value !== null && typeof value === "object") {
      const copy = {};
      for (const name of Object.keys(value)) copy[name] = paint(value[name], name, style);
      return copy;
    }
    return typeof value === "string" && /color/.test(key) ? colour(value, style) : value;
  }

  function draw(options) {
    const style = getComputedStyle(root);
    for (const id of Object.keys(figures)) {
      const place = document.getElementById(id);
      const data = figures[id].data.map((trace) => paint(trace, "", style));
      const layout = paint(figures[id].layout, "", style);
      layout.autosize = true;
      layout.dragmode = touch.matches ? false : "zoom";
      const narrow = place.clientWidth < 480;
      if (narrow) {
        layout.margin = Object.assign({}, layout.margin, { l: 48, r: 8 });
        layout.font = Object.assign({}, layout.font, { size: 12 });
      }
      if (options && options.width) {
        layout.autosize = false;
        layout.width = place.parentElement.parentElement.classList.contains("grid") ? options.width / 2 : options.width;
        layout.height = place.clientHeight;
      }
      Plotly.react(place, data, layout, config);
    }
  }

  // Costs in, the threshold and what it does to the held-out rows out.
  function choose() {
    const form = document.getElementById("chooser");
    if (!form) return;
    const held = JSON.parse(form.dataset.rows);
    const cost = ["chooser-miss", "chooser-alarm"].map((id) => document.getElementById(id));
    const answer = document.getElementById("chooser-answer");
    function update() {
      const [miss, alarm] = cost.map((field) => Math.max(0, parseFloat(field.value) || 0));
      if (miss + alarm === 0) { answer.textContent = "Give a cost above 0."; return; }
      const threshold = alarm / (miss + alarm);
      let found = 0, missed = 0, alarms = 0;
      held.p.forEach((p, i) => {
        if (p > threshold) { if (held.y[i]) found += 1; else alarms += 1; } else if (held.y[i]) missed += 1;
      });
      const total = miss * missed + alarm * alarms;
      answer.textContent = "Say " + held.name + " above " + (100 * threshold).toFixed(1) + "\u202f%: of " + held.p.length +
        " held-out rows it finds " + found + " of " + (found + missed) + " " + held.name + ", with " + alarms +
        " false " + (alarms === 1 ? "alarm" : "alarms") + ", at a cost of " + (total / held.p.length).toPrecision(3) +
        " per row.";
    }
    cost.forEach((field) => field.addEventListener("input", update));
    form.addEventListener("submit", (event) => event.preventDefault());
    update();
  }

  draw();
  choose();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("beforeprint", () => { root.dataset.theme = "print"; draw({ width: 620 }); });
  addEventListener("afterprint", () => { delete root.dataset.theme; draw(); });
  root.dataset.drawn = "yes";
})();
