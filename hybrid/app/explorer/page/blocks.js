// Where the submatrices of a level lie: cells that hold entries, and the outlines of blocks larger than a cell.

const SIDE = 4096; // units of outlines

class BlockPicture {
  /** @param {HTMLCanvasElement} canvas  @param {HTMLElement} under  tells what is under the pointer */
  constructor(canvas, under) {
    Object.assign(this, { canvas, under, picture: null, level: 0, colours: [] });
    canvas.addEventListener("pointermove", (event) => this.tell(event));
    canvas.addEventListener("pointerdown", (event) => this.tell(event));
    canvas.addEventListener("pointerleave", () => this.hint());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  show(picture, level) {
    Object.assign(this, { picture, level });
    this.canvas.hidden = !picture;
    if (!picture) return;
    const { rows, columns, blocks } = this.words();
    this.canvas.setAttribute(
      "aria-label",
      `The matrix of ${rows} rows and ${columns} columns at level ${level}: ${blocks}`,
    );
    this.draw();
    this.hint();
  }

  words() {
    const own = this.picture.levels[this.level],
      [rows, columns] = this.picture.shape.map(countText);
    const others = own.kinds.includes(String(own.shown.length)) ? " and others" : "";
    return { rows, columns, blocks: `${own.shown.length} submatrices${others} in colours of their own` };
  }

  hint() {
    const [rows, columns] = this.picture.shape.map(countText);
    const own = this.picture.levels[this.level];
    const outlined =
      own.outlines === null
        ? "; the outlines of its blocks are too many to be drawn"
        : own.outlines.length
          ? "; outlines are blocks"
          : "; its blocks are smaller than a cell";
    this.under.textContent = `${rows} × ${columns}, drawn on ${this.picture.grid.join(" × ")} cells. One colour is one submatrix${outlined}.`;
  }

  /** Read the colours of the theme again. */
  recolour() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    this.colours = Array.from({ length: 9 }, (_, kind) => read(`--kind-${kind}`));
    this.ground = read("--card");
    this.draw();
  }

  /** The colour of a kind at the level: the last one is that of all others. */
  colour(kind) {
    return this.colours[kind < this.picture.levels[this.level].shown.length ? kind : 8];
  }

  draw() {
    if (!this.picture || !this.colours.length) return;
    const side = Math.max(1, Math.round(this.canvas.clientWidth * (window.devicePixelRatio || 1)));
    if (this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    const paint = this.canvas.getContext("2d"),
      own = this.picture.levels[this.level];
    paint.globalAlpha = 1;
    paint.fillStyle = this.ground;
    paint.fillRect(0, 0, side, side);
    const blocks = (own.outlines ?? []).map(([row, column, rows, columns, kind]) => [
      (column * side) / SIDE,
      (row * side) / SIDE,
      (columns * side) / SIDE,
      (rows * side) / SIDE,
      this.colour(kind),
    ]);
    paint.globalAlpha = 0.16;
    for (const [x, y, width, height, colour] of blocks) {
      paint.fillStyle = colour;
      paint.fillRect(x, y, width, height);
    }
    paint.globalAlpha = 1;
    const [rows, columns] = this.picture.grid;
    this.picture.cells.forEach((cell, place) => {
      const row = Math.floor(cell / columns),
        column = cell % columns;
      // From whole pixel to whole pixel: neighbouring cells leave no seam, and none vanishes.
      const left = Math.floor((column * side) / columns),
        top = Math.floor((row * side) / rows);
      paint.fillStyle = this.colour(Number(own.kinds[place]));
      paint.fillRect(
        left,
        top,
        Math.max(2, Math.floor(((column + 1) * side) / columns) - left),
        Math.max(2, Math.floor(((row + 1) * side) / rows) - top),
      );
    });
    paint.lineWidth = Math.max(1, side / 600);
    for (const [x, y, width, height, colour] of blocks) {
      paint.strokeStyle = colour;
      paint.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), Math.max(1, height - 1));
    }
  }

  tell(event) {
    if (!this.picture) return;
    const box = this.canvas.getBoundingClientRect(),
      [rows, columns] = this.picture.grid;
    const place = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    const row = place((event.clientY - box.top) / box.height, rows),
      column = place((event.clientX - box.left) / box.width, columns);
    const span = (index, count, size) =>
      `${countText(Math.ceil((index * size) / count))}–${countText(Math.ceil(((index + 1) * size) / count) - 1)}`;
    const where = `rows ${span(row, rows, this.picture.shape[0])}, columns ${span(column, columns, this.picture.shape[1])}`;
    const found = this.picture.cells.indexOf(row * columns + column);
    if (found < 0) {
      this.under.textContent = `${where}: no entries`;
      return;
    }
    const own = this.picture.levels[this.level],
      kind = Number(own.kinds[found]);
    const name = kind < own.shown.length ? `submatrix ${kind + 1}` : "other submatrices";
    this.under.textContent = `${where}: ${countText(this.picture.entries[found])} entries, most of them in ${name}`;
  }

  /** The submatrices of the level that have a colour, as a table. */
  legend() {
    const own = this.picture.levels[this.level],
      total = this.picture.entries.reduce((sum, count) => sum + count, 0);
    const head = element(
      "tr",
      {},
      ...["submatrix", "sides", "entries", "occurs", "share"].map((name) =>
        element("th", { scope: "col" }, name),
      ),
    );
    const body = own.shown.map(([rows, columns, entries, paths], kind) =>
      this.row(kind, String(kind + 1), [
        `${countText(rows)} × ${countText(columns)}`,
        countText(entries),
        countText(paths),
        shareText((entries * paths) / total),
      ]),
    );
    const left = total - own.shown.reduce((sum, [, , entries, paths]) => sum + entries * paths, 0);
    if (left > total * 1e-12) body.push(this.row(8, "others", ["", "", "", shareText(left / total)]));
    return element("table", {}, head, ...body);
  }

  row(kind, name, texts) {
    const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = `var(--kind-${kind})`;
    return element(
      "tr",
      {},
      element("td", {}, swatch, ` ${name}`),
      ...texts.map((text) => element("td", {}, text)),
    );
  }
}
