// What is known of one level, and of all of them, as tables.

/** The model in a line. */
function modelText(sheet) {
  const choices = sheet.choices === null ? "" : `${countText(sheet.choices)} choices, `;
  return (
    `${sheet.type}${sheet.label ? ` with ${sheet.label}` : ""}: ${countText(sheet.states)} states, ${choices}${countText(sheet.transitions)} transitions; ` +
    `${countText(sheet.nodes)} MTBDD nodes, ${countText(sheet.terminals)} terminals; vectors (MemB) ${bytesText(sheet.base_bytes)}`
  );
}

/** Where the numbers of a model come from. */
function sourceText(sheet) {
  const where =
    { cpu: "on this processor", gpu: "on a device", reference: "in plain NumPy" }[sheet.backend] ??
    sheet.backend;
  const constants = Object.entries(sheet.constants)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
  const order = sheet.own_order
    ? " Rows and columns are in the order of the diagram, which is not that of the text."
    : "";
  const form = sheet.form ? ` Counts are ${sheet.form}.` : "";
  return `${sheet.file}${constants ? ` with ${constants}` : ""}. Times and bytes are those of the backend ${sheet.backend}, ${where}.${form}${order}`;
}

/** Whether products were timed; if not, tables have no column for it. */
const wasMeasured = (sheet) =>
  sheet.representations.some((one) => one.measured.some((time) => time !== null));

/** Counts of a level, then bytes and times of both representations. */
function factsOf(sheet, level) {
  const own = sheet.levels;
  const counts = element(
    "table",
    {},
    row("th", ["nodes", "paths", "entries stored", "instances ≤"]),
    row("td", [own.nodes[level], own.paths[level], own.entries[level], own.instances[level]].map(countText)),
  );
  const [types] = sheet.representations;
  const grouped =
    types.row_types[level] === null
      ? "There are too many row types to list."
      : `${countedText(types.row_types[level], "row type")} in ${countedText(types.groups[level], "group")}.`;
  const isMeasured = wasMeasured(sheet);
  const lines = sheet.representations.map((one) =>
    row("td", [
      one.title,
      bytesText(one.bytes[level]),
      bytesText(one.held[level]),
      secondsText(one.predicted[level]),
      ...(isMeasured ? [secondsText(one.measured[level])] : []),
    ]),
  );
  const costs = element(
    "table",
    {},
    row("th", ["held as", "counted", "held", "predicted", ...(isMeasured ? ["measured"] : [])]),
    ...lines,
  );
  return [counts, costs, element("p", { class: "note" }, grouped)];
}

/** Why a level is one of the two that are marked; a list of texts and elements. */
function verdictOf(representation, level) {
  const found = [
    ["min-memory", representation.min_memory],
    ["min-time", representation.min_time],
  ].filter(([, choice]) => choice?.level === level);
  if (!found.length) {
    const places = [
      ["least memory", representation.min_memory],
      ["least time", representation.min_time],
    ].filter(([, choice]) => choice);
    return [
      `In ${representation.title}: ${places.map(([name, choice]) => `${name} at level ${choice.level}`).join(", ") || "no level can be used here"}.`,
    ];
  }
  return found.flatMap(([name, choice]) => [element("b", {}, `${name}: `), `${choice.reason}. `]);
}

/** All levels; a row is chosen by a click. */
function fillTable(table, sheet, choose) {
  const [types, tasks] = sheet.representations;
  const times = wasMeasured(sheet) ? ["predicted", "measured"] : ["predicted"];
  const head = row("th", [
    "level",
    "nodes",
    "paths",
    "entries",
    "instances ≤",
    "tasks ≤",
    "row types",
    "row types held",
    ...["row types", "tasks"].flatMap((name) => times.map((time) => `${name}, ${time}`)),
  ]);
  const lines = sheet.levels.nodes.map((nodes, level) => {
    const own = sheet.levels;
    const line = row("td", [
      level,
      countText(nodes),
      countText(own.paths[level]),
      countText(own.entries[level]),
      countText(own.instances[level]),
      bytesText(tasks.bytes[level]),
      bytesText(types.bytes[level]),
      bytesText(types.held[level]),
      ...[types, tasks].flatMap((one) => times.map((time) => secondsText(one[time][level]))),
    ]);
    line.addEventListener("click", () => choose(level));
    return line;
  });
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...lines));
}

function row(kind, texts) {
  return element(
    "tr",
    {},
    ...texts.map((text) => element(kind, kind === "th" ? { scope: "col" } : {}, String(text))),
  );
}
