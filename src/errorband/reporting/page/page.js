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

  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("beforeprint", () => { root.dataset.theme = "print"; draw({ width: 620 }); });
  addEventListener("afterprint", () => { delete root.dataset.theme; draw(); });
  root.dataset.drawn = "yes";
})();
