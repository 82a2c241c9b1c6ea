// A chart over the levels: curves on a logarithmic axis, marks, and a cursor that follows the pointer.

const MARGIN = { left: 62, right: 14, top: 10, bottom: 34 };
const MARK = 16; // a mark is a little less wide
const BESIDE = 22; // from mark to mark, with a point of a curve between them
const DASHES = { solid: "", dotted: "1.5 4", dashed: "7 4" };

class LevelChart {
  /**
   * @param {HTMLElement} place
   * @param {string} title
   * @param {(value: number) => string} text  how a value is written
   * @param {number} height
   * @param {(level: number) => void} choose  is told the level under the pointer
   */
  constructor(place, title, text, height, choose) {
    Object.assign(this, { title, text, height, choose, curves: [], marks: [], count: 1, level: 0 });
    this.svg = drawn("svg", { role: "img", height });
    this.key = element("div", { class: "key" });
    place.replaceChildren(element("div", { class: "caption" }, title), this.key, this.svg);
    const follow = (event) => this.follow(event);
    this.svg.addEventListener("pointerdown", follow);
    this.svg.addEventListener("pointermove", follow);
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /**
   * Take other curves.
   * @param {{name: string, colour: string, values: (number|null)[], dash?: string, points?: boolean, shape?: string}[]} curves
   * @param {{name: string, colour: string, level: number, value: number, up: boolean}[]} marks
   */
  show(curves, marks) {
    this.curves = curves.filter((curve) => curve.values.some((value) => value > 0));
    this.marks = marks.filter((mark) => mark.value > 0);
    this.count = Math.max(1, ...curves.map((curve) => curve.values.length));
    this.key.replaceChildren(
      ...this.curves.map((curve) => this.entry(curve)),
      ...this.marks.map((mark) => this.entry({ ...mark, name: `${mark.name} at ${mark.level}` })),
    );
    this.draw();
  }

  /** Move the cursor. */
  move(level) {
    this.level = level;
    const x = this.x(level);
    this.cursor?.setAttribute("x1", x);
    this.cursor?.setAttribute("x2", x);
    for (const [curve, dot] of this.dots ?? []) {
      const value = curve.values[level];
      dot.setAttribute("visibility", value > 0 ? "visible" : "hidden");
      if (value > 0) dot.setAttribute("transform", `translate(${x} ${this.y(value)})`);
    }
    const own = this.curves.map((curve) => `${curve.name} ${this.text(curve.values[level])}`);
    this.svg.setAttribute("aria-label", `${this.title}. At level ${level}: ${own.join(", ")}`);
  }

  x(level) {
    return MARGIN.left + (level * (this.width - MARGIN.left - MARGIN.right)) / Math.max(1, this.count - 1);
  }

  y(value) {
    const share = (Math.log10(value) - this.low) / (this.high - this.low);
    return this.height - MARGIN.bottom - share * (this.height - MARGIN.top - MARGIN.bottom);
  }

  draw() {
    this.width = Math.max(240, this.svg.parentElement.clientWidth);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    const values = this.curves.flatMap((curve) => curve.values.filter((value) => value > 0));
    this.low = Math.floor(Math.log10(Math.min(...values, 1e300)) + 1e-9);
    this.high = Math.ceil(Math.log10(Math.max(...values, 1e-300)) - 1e-9);
    if (!values.length) [this.low, this.high] = [0, 1];
    if (this.high === this.low) this.high += 1;
    this.dots = this.curves.map((curve) => [
      curve,
      drawn("circle", { r: 4, class: `mark f-${curve.colour}` }),
    ]);
    this.cursor = drawn("line", { class: "cursor", y1: MARGIN.top, y2: this.height - MARGIN.bottom });
    this.svg.replaceChildren(
      ...this.axes(),
      ...this.curves.flatMap((curve) => this.line(curve)),
      this.cursor,
      ...this.dots.map(([, dot]) => dot),
      ...this.places().map(([mark, x, y]) => this.mark(mark, x, y)),
    );
    this.move(Math.min(this.level, this.count - 1));
  }

  /** Rules at powers of ten, as many as there is room for, and whole levels. */
  axes() {
    const made = [];
    const right = this.width - MARGIN.right,
      bottom = this.height - MARGIN.bottom;
    const every = Math.ceil((this.high - this.low) / Math.max(1, Math.floor((bottom - MARGIN.top) / 26)));
    for (let power = this.low; power <= this.high; power += every) {
      const y = this.y(10 ** power);
      made.push(drawn("line", { class: "rule", x1: MARGIN.left, x2: right, y1: y, y2: y }));
      made.push(
        drawn("text", { x: MARGIN.left - 7, y: y + 4, "text-anchor": "end" }, this.text(10 ** power)),
      );
    }
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
    const step = steps.find((size) => (this.count - 1) / size <= (right - MARGIN.left) / 40) ?? 5000;
    for (let level = 0; level < this.count; level += step) {
      const x = this.x(level);
      made.push(drawn("line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
      made.push(drawn("text", { x, y: bottom + 16, "text-anchor": "middle" }, String(level)));
    }
    made.push(drawn("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }));
    made.push(drawn("text", { x: right, y: this.height - 4, "text-anchor": "end" }, "injection level"));
    return made;
  }

  /** A curve with gaps where there is no value; points instead, or in addition where a value stands alone. */
  line(curve) {
    const made = [],
      attributes = { class: `curve s-${curve.colour}`, "stroke-dasharray": DASHES[curve.dash ?? "solid"] };
    let run = [];
    const end = () => {
      if (run.length > 1) made.push(drawn("polyline", { points: run.join(" "), ...attributes }));
      run = [];
    };
    curve.values.forEach((value, level) => {
      if (!(value > 0)) return end();
      const alone = !(curve.values[level - 1] > 0) && !(curve.values[level + 1] > 0);
      if (curve.points || alone) made.push(this.point(curve, this.x(level), this.y(value)));
      if (!curve.points) run.push(`${this.x(level)},${this.y(value)}`);
    });
    end();
    return made;
  }

  point(curve, x, y) {
    const side = 3;
    return curve.shape === "square"
      ? drawn("rect", {
          x: x - side,
          y: y - side,
          width: 2 * side,
          height: 2 * side,
          class: `f-${curve.colour}`,
        })
      : drawn("circle", { cx: x, cy: y, r: side, class: `f-${curve.colour}` });
  }

  /** Where the marks stand: side by side where one would cover the other. */
  places() {
    const found = this.marks.map((mark) => [mark, this.x(mark.level), this.y(mark.value)]);
    if (found.length < 2) return found;
    const [first, second] = found.sort((one, other) => one[1] - other[1]);
    if (second[1] - first[1] < MARK && Math.abs(second[2] - first[2]) < MARK) {
      const middle = Math.min((first[1] + second[1]) / 2, this.width - (BESIDE + MARK) / 2);
      [first[1], second[1]] = [middle - BESIDE / 2, middle + BESIDE / 2];
    }
    return found;
  }

  mark(mark, x, y) {
    const tip = mark.up ? `M0 -8 L7 5 L-7 5 Z` : `M0 8 L7 -5 L-7 -5 Z`;
    return drawn("path", { d: tip, class: `mark f-${mark.colour}`, transform: `translate(${x} ${y})` });
  }

  /** An entry of the key. */
  entry(shown) {
    const svg = drawn("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" });
    if (shown.level !== undefined) svg.append(this.mark(shown, 13, 6));
    else if (shown.points) svg.append(this.point(shown, 13, 6));
    else
      svg.append(
        drawn("line", {
          x1: 1,
          x2: 25,
          y1: 6,
          y2: 6,
          class: `curve s-${shown.colour}`,
          "stroke-dasharray": DASHES[shown.dash ?? "solid"],
        }),
      );
    return element("span", {}, svg, shown.name);
  }

  follow(event) {
    if (event.pointerType !== "mouse" && event.type === "pointermove" && !event.buttons) return;
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * this.width) / box.width;
    const level = Math.round(
      ((x - MARGIN.left) * (this.count - 1)) / (this.width - MARGIN.left - MARGIN.right),
    );
    this.choose(Math.min(this.count - 1, Math.max(0, level)));
  }
}
