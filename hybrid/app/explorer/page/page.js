// The page: which model, which representation, which level; everything else follows from these.

const sheets = JSON.parse(at("data").textContent);
const state = { sheet: 0, representation: 0, layer: 0, level: 0, theme: "auto" };
const charts = {
  memory: new LevelChart(at("memory"), "Memory of the matrix", bytesText, 250, choose),
  time: new LevelChart(at("time"), "Time of a product", secondsText, 210, choose),
  counts: new LevelChart(at("counts"), "Nodes, paths and instances", shortText, 190, choose),
};
const blocks = new BlockPicture(at("picture"), at("under"));
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const sheet = () => sheets[state.sheet];
const representation = () => sheet().representations[state.representation];
const last = () => sheet().levels.nodes.length - 1;

/** Buttons of which one is pressed. */
function buttons(place, names, pressed, press) {
  place.hidden = names.length < 2;
  place.replaceChildren(
    ...names.map((name, index) => {
      const made = element("button", { type: "button", "aria-pressed": String(index === pressed) }, name);
      made.addEventListener("click", () => {
        press(index);
        for (const [other, button] of [...place.children].entries())
          button.setAttribute("aria-pressed", String(other === index));
      });
      return made;
    }),
  );
}

/** Show another model, at the level of least time. */
function openSheet(index) {
  Object.assign(state, { sheet: index, layer: 0 });
  at("model").textContent = modelText(sheet());
  at("level").max = last();
  fillTable(at("table"), sheet(), choose);
  buttons(
    at("layers"),
    sheet().pictures.map((picture) => picture.name),
    0,
    (layer) => {
      state.layer = layer;
      showLevel();
    },
  );
  at("source").textContent = sourceText(sheet());
  openRepresentation(state.representation);
}

/** Take the marks and the reasons of another representation. */
function openRepresentation(index) {
  state.representation = index;
  drawCurves();
  choose(representation().min_time?.level ?? representation().min_memory?.level ?? 0);
}

function drawCurves() {
  const own = sheet(),
    flat = own.levels.nodes.map(() => own.base_bytes);
  const curves = (key, dash, suffix, points) =>
    own.representations.map((one) => ({
      name: one.title + suffix,
      colour: one.name,
      values: one[key],
      dash,
      points,
      shape: one.name === "tasks" ? "square" : "circle",
    }));
  const usual = representation(),
    marks = (values) =>
      [
        ["min-memory", "memory", false],
        ["min-time", "time", true],
      ].flatMap(([name, colour, up]) => {
        const choice = usual[name.replace("-", "_")];
        return choice ? [{ name, colour, up, level: choice.level, value: values(choice.level) }] : [];
      });
  charts.memory.show(
    [
      ...curves("bytes", "solid", ", counted"),
      ...curves("held", "solid", ", held", true),
      { name: "vectors (MemB)", colour: "vectors", values: flat, dash: "dashed" },
    ],
    marks((level) => usual.held[level] ?? usual.bytes[level]),
  );
  charts.time.show(
    [...curves("predicted", "dotted", ", predicted"), ...curves("measured", "solid", ", measured", true)],
    marks((level) => usual.measured[level] ?? usual.predicted[level]),
  );
  charts.counts.show(
    [
      { name: "nodes", colour: "third", values: own.levels.nodes },
      { name: "paths", colour: "row-types", values: own.levels.paths, dash: "dashed" },
      { name: "instances, at most", colour: "tasks", values: own.levels.instances, dash: "dotted" },
    ],
    [],
  );
}

/** Take a level. */
function choose(level) {
  state.level = Math.min(last(), Math.max(0, level));
  showLevel();
}

function showLevel() {
  const { level } = state,
    own = sheet();
  at("level").value = level;
  at("level").setAttribute("aria-valuetext", `level ${level} of ${last()}`);
  at("number").textContent = `${level} of ${last()}`;
  at("level-title").textContent = `Level ${level}`;
  at("verdict").replaceChildren(...verdictOf(representation(), level));
  at("facts").replaceChildren(...factsOf(own, level));
  for (const chart of Object.values(charts)) chart.move(level);
  for (const [place, choice] of [
    ["to-memory", representation().min_memory],
    ["to-time", representation().min_time],
  ]) {
    at(place).disabled = !choice;
    at(place).setAttribute("aria-pressed", String(choice?.level === level));
  }
  for (const line of at("table").tBodies[0].rows) line.toggleAttribute("aria-current", false);
  at("table").tBodies[0].rows[level].setAttribute("aria-current", "true");
  const picture = own.pictures[state.layer] ?? null;
  blocks.show(picture, level);
  if (picture) at("legend").replaceChildren(blocks.legend());
  else {
    at("legend").replaceChildren();
    at("under").textContent = "The diagram has too many nodes for a picture of its blocks.";
  }
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.id === "level") return;
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -5, PageDown: 5, Home: -Infinity, End: Infinity };
  const named = { m: representation().min_memory, t: representation().min_time };
  if (event.key in steps) choose(state.level + steps[event.key]);
  else if (named[event.key]) choose(named[event.key].level);
  else return;
  event.preventDefault();
}

function showTheme() {
  const words = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" };
  const spoken = { auto: "as the system has them", light: "light", dark: "dark" };
  document.documentElement.dataset.theme =
    state.theme === "auto" ? (dark.matches ? "dark" : "light") : state.theme;
  at("theme").textContent = words[state.theme];
  at("theme").setAttribute("aria-label", `Colours: ${spoken[state.theme]}`);
  blocks.recolour();
}

at("theme").addEventListener("click", () => {
  const order = ["auto", "light", "dark"];
  state.theme = order[(order.indexOf(state.theme) + 1) % 3];
  showTheme();
});
dark.addEventListener("change", showTheme);
at("level").addEventListener("input", (event) => choose(Number(event.target.value)));
at("level").addEventListener("keydown", (event) => {
  if (event.key === "m" || event.key === "t")
    onKey({ key: event.key, target: document.body, preventDefault: () => event.preventDefault() });
});
at("to-memory").addEventListener("click", () => choose(representation().min_memory.level));
at("to-time").addEventListener("click", () => choose(representation().min_time.level));
document.addEventListener("keydown", onKey);
buttons(
  at("sizes"),
  sheets.map((one) => one.label || one.file),
  0,
  openSheet,
);
buttons(
  at("representations"),
  sheets[0].representations.map((one) => one.title),
  0,
  openRepresentation,
);
showTheme();
openSheet(0);
