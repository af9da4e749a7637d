/* The three things that marimo's elements do not do: disabled options, a sphere to turn, the address. */
"use strict";

/* <mdl-options data-disabled='["A"]'> disables options of the list beside it; the reasons stand below as text. */
customElements.define("mdl-options", class extends HTMLElement {
  static observedAttributes = ["data-disabled"];
  connectedCallback() { this.apply(40); }
  disconnectedCallback() { clearTimeout(this.timer); if (this.observer) this.observer.disconnect(); }
  attributeChangedCallback() { this.apply(40); }
  apply(tries) {
    clearTimeout(this.timer);
    const list = this.parentElement?.querySelector("marimo-dropdown")?.shadowRoot;
    const select = list?.querySelector("select");
    if (!select) { if (tries > 0) this.timer = setTimeout(() => this.apply(tries - 1), 50); return; }
    if (this.root !== list) {
      this.observer?.disconnect();
      this.root = list;
      this.observer = new MutationObserver(() => this.mark());
      this.observer.observe(list, { childList: true, subtree: true });
    }
    this.mark();
  }
  mark() {
    const disabled = JSON.parse(this.dataset.disabled || "[]");
    for (const option of this.root.querySelectorAll("option")) {
      const off = disabled.includes(option.value) && !option.selected;
      if (option.disabled !== off) option.disabled = off;
    }
  }
});

/* <mdl-address data-query="m=3"> keeps the settings in the address of the page. */
customElements.define("mdl-address", class extends HTMLElement {
  static observedAttributes = ["data-query"];
  connectedCallback() { this.write(); }
  attributeChangedCallback() { this.write(); }
  write() {
    const query = this.dataset.query;
    const address = location.pathname + (query ? "?" + query : "");
    if (location.pathname + location.search !== address) history.replaceState(history.state, "", address);
  }
});

/* <mdl-copy data-text="..."> is a button that copies a text, or the address of the page. */
customElements.define("mdl-copy", class extends HTMLElement {
  connectedCallback() {
    if (this.shadowRoot) return;
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = `<style>
      button { font: inherit; font-size: 13px; color: var(--mdl-ink); background: var(--mdl-raised); cursor: pointer;
        border: 1px solid var(--mdl-line); border-radius: 6px; padding: 4px 10px; }
      button:hover { border-color: var(--mdl-accent); } button:focus-visible { outline: 2px solid var(--mdl-accent); }
    </style><button type="button"></button>`;
    const button = root.querySelector("button");
    button.textContent = this.dataset.label;
    button.addEventListener("click", async () => {
      const text = this.dataset.address ? location.href : this.dataset.text;
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
      catch { button.textContent = "Not allowed to copy: select the text"; }
      setTimeout(() => { button.textContent = this.dataset.label; }, 1500);
    });
  }
});

/* <mdl-sphere data-paths='{"paths": [...], "truth": [...]}'>: drag it, or use the arrow keys, to turn it. */
const view = { turn: 0.6, tilt: 0.35 };  // kept when the page draws the element anew
customElements.define("mdl-sphere", class extends HTMLElement {
  static observedAttributes = ["data-paths"];
  connectedCallback() {
    if (!this.canvas) this.build();
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this);
    this.theme = new MutationObserver(() => this.draw());
    this.theme.observe(document.body, { attributes: true });
    this.draw();
  }
  disconnectedCallback() { this.resize?.disconnect(); this.theme?.disconnect(); }
  attributeChangedCallback() { if (this.canvas) this.draw(); }
  build() {
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = "<style>:host { display: block; } canvas { display: block; width: 100%; touch-action: none; cursor: grab; }</style><canvas></canvas>";
    this.canvas = root.querySelector("canvas");
    this.addEventListener("pointerdown", (event) => { this.last = [event.clientX, event.clientY]; this.setPointerCapture(event.pointerId); });
    this.addEventListener("pointermove", (event) => {
      if (!this.last) return;
      this.turnBy((event.clientX - this.last[0]) / 120, (event.clientY - this.last[1]) / 120);
      this.last = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) this.addEventListener(name, () => { this.last = null; });
    this.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] }[event.key];
      if (by) { event.preventDefault(); this.turnBy(...by); }
    });
  }
  turnBy(turn, tilt) {
    view.turn += turn;
    view.tilt = Math.max(-1.5, Math.min(1.5, view.tilt + tilt));
    this.draw();
  }
  project([x, y, z]) {
    const a = Math.cos(view.turn) * x + Math.sin(view.turn) * y, b = Math.cos(view.turn) * y - Math.sin(view.turn) * x;
    return [b, Math.cos(view.tilt) * z - Math.sin(view.tilt) * a, Math.cos(view.tilt) * a + Math.sin(view.tilt) * z];
  }
  onSphere(path) {  // steps of unit atoms follow great circles
    const norm = (p) => Math.hypot(...p), points = [path[0]];
    for (let k = 1; k < path.length; k++) {
      const [p, q] = [path[k - 1], path[k]], unit = Math.abs(norm(p) - 1) < 1e-3 && Math.abs(norm(q) - 1) < 1e-3;
      for (let j = 1; j <= (unit ? 8 : 1); j++) {
        const r = unit ? p.map((x, i) => x + (q[i] - x) * j / 8) : q, length = unit ? norm(r) || 1 : 1;
        points.push(r.map((x) => x / length));
      }
    }
    return points;
  }
  draw() {
    const data = JSON.parse(this.dataset.paths || '{"paths": [], "truth": []}');
    const width = this.clientWidth || 320, height = Math.min(Math.max(0.66 * width, 220), 340), ratio = window.devicePixelRatio || 1;
    this.canvas.width = width * ratio; this.canvas.height = height * ratio; this.canvas.style.height = height + "px";
    const pen = this.canvas.getContext("2d"), style = getComputedStyle(this), colour = (name) => style.getPropertyValue(name).trim();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const radius = height / 2 - 14, at = (p) => [width / 2 + radius * p[0], height / 2 - radius * p[1]];
    const shade = pen.createRadialGradient(width / 2 - radius / 3, height / 2 - radius / 3, radius / 8, width / 2, height / 2, radius);
    shade.addColorStop(0, colour("--mdl-sphere-light")); shade.addColorStop(1, colour("--mdl-sphere-dark"));
    pen.fillStyle = shade; pen.beginPath(); pen.arc(width / 2, height / 2, radius, 0, 2 * Math.PI); pen.fill();
    pen.strokeStyle = colour("--mdl-line"); pen.lineWidth = 1; pen.stroke();
    const stroke = (points, front, back) => {
      for (let k = 1; k < points.length; k++) {
        const p = this.project(points[k - 1]), q = this.project(points[k]);
        pen.globalAlpha = p[2] + q[2] >= 0 ? front : back;
        pen.beginPath(); pen.moveTo(...at(p)); pen.lineTo(...at(q)); pen.stroke();
      }
      pen.globalAlpha = 1;
    };
    const circle = (f) => Array.from({ length: 73 }, (_, k) => f(k * Math.PI / 36));
    pen.strokeStyle = colour("--mdl-grid");
    for (let k = 0; k < 6; k++) stroke(circle((s) => [Math.cos(s) * Math.cos(k * Math.PI / 6), Math.cos(s) * Math.sin(k * Math.PI / 6), Math.sin(s)]), 0.9, 0.25);
    for (const z of [-0.7, 0, 0.7]) stroke(circle((s) => [Math.sqrt(1 - z * z) * Math.cos(s), Math.sqrt(1 - z * z) * Math.sin(s), z]), 0.9, 0.25);
    data.truth.forEach((point) => {
      for (const sign of [1, -1]) {
        const p = this.project(point.map((x) => sign * x)), [x, y] = at(p);
        pen.strokeStyle = colour("--mdl-ink"); pen.globalAlpha = p[2] >= 0 ? 0.9 : 0.25; pen.lineWidth = 1.5;
        pen.beginPath(); pen.moveTo(x - 5, y - 5); pen.lineTo(x + 5, y + 5); pen.moveTo(x - 5, y + 5); pen.lineTo(x + 5, y - 5); pen.stroke();
      }
    });
    pen.globalAlpha = 1;
    data.paths.forEach((path, k) => {
      pen.strokeStyle = pen.fillStyle = colour("--mdl-run-" + k % 6); pen.lineWidth = 2;
      stroke(this.onSphere(path), 1, 0.3);
      for (const point of path) {
        const p = this.project(point);
        pen.globalAlpha = p[2] >= 0 ? 1 : 0.35; pen.beginPath(); pen.arc(...at(p), 2.2, 0, 2 * Math.PI); pen.fill();
      }
      const p = this.project(path[path.length - 1]);
      pen.globalAlpha = p[2] >= 0 ? 1 : 0.35; pen.beginPath(); pen.arc(...at(p), 5, 0, 2 * Math.PI); pen.fill(); pen.globalAlpha = 1;
    });
    this.dataset.drawn = data.paths.length + " " + view.turn.toFixed(3) + " " + view.tilt.toFixed(3);
  }
});
