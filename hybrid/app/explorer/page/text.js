// Elements, and numbers as people read them.

/** Make an element of HTML with attributes and children; texts become text, never HTML. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Make an element of SVG. */
function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const at = (id) => document.getElementById(id);

/** A count: digits in groups up to 10^15, powers of ten beyond. */
function countText(count) {
  if (count === null || count === undefined) return "–";
  return count < 1e15 ? count.toLocaleString("en-US") : count.toExponential(3).replace("e+", " × 10^");
}

/** A number of things. */
const countedText = (count, name) => `${countText(count)} ${name}${count === 1 ? "" : "s"}`;

/** A number with three digits and a unit. */
function scaled(value, units) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return `0 ${units[0][1]}`;
  const [factor, unit] = [...units].reverse().find(([least]) => value >= least * 0.9995) ?? units[0];
  const number = value / factor;
  return `${number >= 100 ? number.toFixed(0) : Number(number.toPrecision(3))} ${unit}`;
}

const bytesText = (value) =>
  scaled(value, [
    [1, "B"],
    [1e3, "kB"],
    [1e6, "MB"],
    [1e9, "GB"],
    [1e12, "TB"],
    [1e15, "PB"],
    [1e18, "EB"],
  ]);
const secondsText = (value) =>
  scaled(value, [
    [1e-9, "ns"],
    [1e-6, "µs"],
    [1e-3, "ms"],
    [1, "s"],
  ]);
const shortText = (value) =>
  value < 1e3
    ? String(value)
    : scaled(value, [
        [1, ""],
        [1e3, "k"],
        [1e6, "M"],
        [1e9, "G"],
        [1e12, "T"],
        [1e15, "P"],
        [1e18, "E"],
      ]).replace(" ", "");

/** A share of a whole in percent, without a false zero. */
function shareText(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}
