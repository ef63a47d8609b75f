// The record of the page, made readable again: what points share is written once, see page_points.py.

const record = JSON.parse(document.getElementById('data').textContent);
const byId = (name) => document.getElementById(name);

// Text becomes text nodes alone: nothing of the record is ever read as markup.
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children.flat());
  return node;
}

function glyph(name) {
  return svg('svg', { class: 'glyph', 'aria-hidden': 'true' }, svg('use', { href: `#g-${name}` }));
}

function number(value, digits = 0) {
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}

function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}

const FIELD = Object.fromEntries(record.fields.map((name, index) => [name, index]));

// [field, value], or [field, start, end, middle] of the text that the other row has there.
function applied(row, changes) {
  const made = row.slice();
  for (const change of changes) {
    if (!Array.isArray(change)) continue;
    const [field, first, end, middle] = change;
    const text = row[field];
    made[field] = change.length === 2 ? first : text.slice(0, first) + middle + text.slice(text.length - end);
  }
  return made;
}

const bases = [];
for (const [parent, shape, top, entry, line, nodes, gpus, variant, commands, golden, changes] of record.bases) {
  const row = applied(parent < 0 ? [] : bases[parent].row, changes);
  bases.push({ row, shape: record.shapes[shape], top, entry, line, nodes, gpus, variant, commands, golden });
}

// A throughput run that is evaluated has an accuracy run of its own beside it.
const KINDS = ['throughput', 'throughput', 'accuracy'];

const configs = record.configs.map(([key, model, prefix, precision, framework, image]) => ({
  key, model, prefix, precision, framework, image,
}));

const lines = record.lines.map(([config, scenario, topology, spec, offload, runner], index) => ({
  index, config, scenario, topology, spec, offload, runner, points: [],
}));

const points = record.points.map(([number_, concs, kind, hours, basis, ...changes], index) => {
  const base = bases[number_];
  const line = lines[base.line];
  const own = changes.filter((change) => Array.isArray(change) && change[0] === FIELD.id);
  const id = applied(base.row, own)[FIELD.id];
  const config = configs[line.config];
  const recipe = base.row[FIELD.recipe] ?? '';
  const words = [id, config.model, config.image, config.framework, config.precision, line.runner, line.scenario,
    line.spec, line.offload, recipe];
  const point = {
    index, id, base, line, config, kind, hours, basis: record['bases-of-length'][basis], changes,
    concs: Array.isArray(concs) ? concs : [concs],
    words: words.join('\n').toLowerCase(),
  };
  line.points.push(point);
  return point;
});

for (const line of lines) {
  line.points.sort((one, other) => one.concs[0] - other.concs[0] || one.kind - other.kind || one.index - other.index);
}

const pointOf = new Map(points.map((point) => [point.id, point]));
const columns = [...new Set(points.flatMap((point) => point.concs))].sort((one, other) => one - other);
const columnOf = new Map(columns.map((conc, index) => [conc, index + 1]));

// Every field of a point's row: name, value, and where that stands.
function rowOf(point) {
  const row = applied(point.base.row, point.changes);
  const last = point.changes[point.changes.length - 1];
  const found = [];
  for (let at = 0; at < point.base.shape.length; at += 2) {
    const field = point.base.shape[at];
    const moved = field === FIELD.conc && typeof last === 'number';
    found.push([record.fields[field], row[field], placeOf(moved ? last : point.base.shape[at + 1], point.base)]);
  }
  return found;
}

// A place is a note, or lines counted from the file, from the config, or from the entry.
function placeOf(index, base) {
  const place = record.places[index];
  if (typeof place === 'string') return place;
  const note = place.find((part) => typeof part === 'string');
  const spans = place.filter((part) => typeof part !== 'string').map(([origin, file, line, column]) => {
    const from = origin === 2 ? base.entry : origin === 1 ? base.top : 0;
    const name = record.files[file];
    return line + from === 0 ? name : column ? `${name}:${line + from}:${column}` : `${name}:${line + from}`;
  });
  return note ? `${spans.join(', ')} (${note})` : spans.join(', ');
}

function commandsOf(point) {
  return record.commands.texts[point.base.commands].map((line) => record.commands.lines[line]);
}
