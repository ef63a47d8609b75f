// The matrix: a section for each config, a line for each topology, a link for each point. A section is built when it
// comes near the screen, so that five thousand points cost what a screenful costs.

// -- ways to colour: a category has a name, a tone and a mark, so that colour is never all that tells them apart --------

function costMode() {
  const known = [...new Set(points.map((point) => point.hours).filter((hours) => hours !== null))].sort((a, b) => a - b);
  const size = Math.max(1, Math.ceil(known.length / 5));
  const bins = [];
  for (let at = 0; at < known.length; at += size) bins.push([known[at], known[Math.min(at + size, known.length) - 1]]);
  const categories = bins.map(([low, high], index) => {
    const level = bins.length === 1 ? 3 : 1 + Math.round((index * 4) / (bins.length - 1));
    const range = low === high ? number(low, 1) : `${number(low, 1)}–${number(high, 1)}`;
    return { name: `${range} GPU-hours`, tone: `cost${level}`, mark: `bar${level}` };
  });
  categories.push({ name: 'length unknown', tone: 'none', mark: 'what' });
  const of = (point) => (point.hours === null ? bins.length : bins.findIndex(([, high]) => point.hours <= high));
  return { name: 'Cost', categories, of };
}

function namedMode(name, table, key) {
  const categories = table.map(([, told, tone, mark]) => ({ name: told, tone, mark }));
  const numbers = new Map(table.map(([word], index) => [word, index]));
  return { name, categories, of: (point) => numbers.get(key(point)) ?? categories.length - 1 };
}

function lastResult(point) {
  const covered = record.coverage?.points[point.index];
  return covered && covered[3] !== null ? record.coverage.results[covered[3]] : null;
}

function resultOf(point) {
  const covered = record.coverage?.points[point.index];
  return covered && covered[2] !== null ? record.coverage.results[covered[2]] : null;
}

function statusWord(point) {
  const covered = record.coverage?.points[point.index];
  const last = lastResult(point);
  if (covered?.[0] === 'in progress') return 'open';
  return last === null ? 'none' : last.success ? 'passed' : 'failed';
}

const STATUS = [
  ['passed', 'last launch passed', 'good', 'check'], ['failed', 'last launch failed', 'bad', 'cross'],
  ['open', 'in progress', 'info', 'dots'], ['none', 'never run', 'none', 'ring'],
];
const COVERAGE = [
  ['current', 'current', 'good', 'check'], ['stale', 'stale', 'warn', 'clock'],
  ['superseded', 'superseded', 'other', 'turn'], ['failed', 'failed', 'bad', 'cross'],
  ['in progress', 'in progress', 'info', 'dots'], ['never run', 'never run', 'none', 'ring'],
];
const PLAN = [
  ['canary', 'canary', 'warn', 'star'], ['runs', 'runs', 'good', 'play'],
  ['other', 'runs as another job', 'other', 'tilde'], ['out', 'not in the plan', 'none', 'minus'],
];
const CHANGE = [
  ['added', 'added', 'good', 'plus'], ['changed', 'changed', 'warn', 'tilde'],
  ['renamed', 'renamed', 'info', 'arrow'], ['same', 'as before', 'none', 'equal'],
];

function changeOf(point) {
  return record.diff?.changes[record.diff.points[point.index]] ?? null;
}

const modes = [
  record.plan && namedMode('Plan', PLAN, (point) => record.plan.points[point.index]),
  record.diff && namedMode('Change', CHANGE, (point) => changeOf(point)?.kind ?? 'same'),
  namedMode('Status', STATUS, statusWord),
  costMode(),
  namedMode('Coverage', COVERAGE, (point) => record.coverage?.points[point.index][0] ?? 'never run'),
].filter(Boolean);

// -- what is shown ------------------------------------------------------------------------------------------------

const FACETS = [
  ['Model', (point) => point.config.prefix], ['Framework', (point) => point.config.framework],
  ['Precision', (point) => point.config.precision], ['Workload', (point) => point.line.scenario],
  ['Runner', (point) => point.line.runner], ['Topology', (point) => point.line.topology],
  ['Run', (point) => KINDS[point.kind]],
];

const state = {
  mode: modes.find((mode) => mode.name === (record.plan ? 'Plan' : record.diff ? 'Change' : record.coverage ? 'Coverage' : 'Cost')),
  words: [], facets: new Map(), category: null, shown: points, lines: [], current: null,
};

function matchesAll(point) {
  return state.words.every((word) => point.words.includes(word))
    && [...state.facets].every(([index, value]) => FACETS[index][1](point) === value);
}

function chosen() {
  const found = points.filter(matchesAll);
  return [found, state.category === null ? found : found.filter((point) => state.mode.of(point) === state.category)];
}

// -- sections -----------------------------------------------------------------------------------------------------

const sections = configs.map((config, index) => {
  const body = el('div', { class: 'lines' });
  const total = el('p', { class: 'total' });
  const about = [config.model, config.precision, config.framework];
  const node = el('section', { class: 'config', 'aria-label': config.key },
    el('header', {}, el('h2', {}, config.key), el('p', { class: 'about' }, about.join(' · ')), total), body);
  return { index, config, node, body, total, lines: [], built: false };
});

let watcher = null;

function lineTitle(line) {
  return [line.scenario, line.spec.replace('_', ' '), line.offload].filter(Boolean).join(' · ');
}

function pointLabel(point) {
  const category = state.mode.categories[state.mode.of(point)];
  const cost = point.hours === null ? 'length unknown' : `${number(point.hours, 1)} GPU-hours`;
  const told = state.mode.name === 'Cost' ? cost : category.name;
  return `concurrency ${point.concs.join(', ')}, ${KINDS[point.kind]}, ${told}`;
}

function chip(point) {
  const category = state.mode.categories[state.mode.of(point)];
  const node = el('a', {
    href: `#${point.id}`, class: `chip tone-${category.tone}${point.kind === 2 ? ' accuracy' : ''}`,
    tabindex: point === state.current ? 0 : -1, 'aria-label': pointLabel(point), title: `${point.id}\n${pointLabel(point)}`,
    'data-index': point.index, 'aria-current': location.hash.slice(1) === point.id ? 'true' : null,
  }, glyph(category.mark), el('span', {}, point.concs.join('-')), point.kind === 2 && el('i', { 'aria-hidden': 'true' }, 'A'));
  const places = point.concs.map((conc) => columnOf.get(conc));
  node.style.setProperty('--from', String(Math.min(...places)));
  node.style.setProperty('--to', String(Math.max(...places) + 1));
  return node;
}

function build(section) {
  if (section.built) return;
  section.built = true;
  section.body.replaceChildren(...section.lines.map(({ line, points: mine }) => {
    const label = el('div', { class: 'label' }, el('b', {}, line.topology), el('span', {}, lineTitle(line)),
      line.runner !== section.lines[0].line.runner && el('span', { class: 'runner' }, line.runner));
    const name = `${line.topology}, ${lineTitle(line)}`;
    return el('div', { class: 'line', role: 'group', 'aria-label': name }, label, el('div', { class: 'cells' }, mine.map(chip)));
  }));
  section.body.style.removeProperty('min-height');
}

function unbuild(section) {
  section.built = false;
  section.body.replaceChildren();
  section.body.style.setProperty('min-height', `${section.lines.length * (layout === 'grid' ? 45 : 74)}px`);
}

let layout = '';

function measure() {
  const room = byId('matrix').clientWidth;
  const wanted = room >= 720 && (room - 290) / Math.max(columns.length, 1) >= 56 ? 'grid' : 'flow';
  byId('matrix').style.setProperty('--columns', String(columns.length));
  byId('matrix').dataset.tight = String((room - 290) / columns.length < 62);
  if (wanted === layout) return false;
  layout = wanted;
  byId('matrix').dataset.layout = layout;
  return true;
}

// Everything that depends on what is shown. Sections near the screen are built at once, the others when they come near.
function refresh() {
  const [found, shown] = chosen();
  const visible = new Set(shown);
  const active = document.activeElement?.dataset?.index;
  state.shown = shown;
  state.lines = [];
  for (const section of sections) section.lines = [];
  for (const line of lines) {
    const mine = line.points.filter((point) => visible.has(point));
    if (mine.length) sections[line.config].lines.push({ line, points: mine });
  }
  for (const section of sections) {
    state.lines.push(...section.lines.map((each) => ({ ...each, section })));
    section.node.hidden = section.lines.length === 0;
    if (!section.node.hidden) section.total.textContent = totals(section.lines.flatMap((each) => each.points));
    unbuild(section);
  }
  if (!visible.has(state.current)) state.current = state.lines[0]?.points[0] ?? null;
  showLegend(found);
  showCount();
  byId('nothing').hidden = shown.length > 0;
  if (!points.length) byId('nothing').textContent = 'There is no point to show: none was selected when this page was made.';
  byId('columns').hidden = shown.length === 0;
  watcher?.disconnect();
  watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) build(sections[Number(entry.target.dataset.number)]);
  }, { rootMargin: '900px' });
  const near = sections.filter((section) => !section.node.hidden).filter((section) => {
    const box = section.node.getBoundingClientRect();
    return box.bottom > -200 && box.top < innerHeight + 200;
  });
  near.forEach(build);
  for (const section of sections) if (!section.node.hidden) watcher.observe(section.node);
  if (active !== undefined && visible.has(points[active])) focusPoint(points[active]);
}

function totals(mine) {
  const hours = mine.reduce((total, point) => total + (point.hours ?? 0), 0);
  const parts = [counted(mine.length, 'point')];
  if (hours) parts.push(`${number(hours)} GPU-hours`);
  return parts.join(', ');
}

function showCount() {
  const told = state.shown.length === points.length ? counted(points.length, 'point')
    : `${number(state.shown.length)} of ${counted(points.length, 'point')}`;
  byId('count').textContent = told;
  const used = state.facets.size;
  byId('filtered').textContent = used ? ` (${used})` : '';
  byId('reset').hidden = !(used || state.words.length || state.category !== null);
}

function showLegend(found) {
  const counts = state.mode.categories.map(() => 0);
  for (const point of found) counts[state.mode.of(point)] += 1;
  byId('legend').replaceChildren(...state.mode.categories.map((category, index) => el('button', {
    type: 'button', class: 'entry', 'aria-pressed': String(state.category === index), disabled: !counts[index] && state.category !== index,
    onclick: () => { state.category = state.category === index ? null : index; refresh(); byId('legend').children[index]?.focus(); },
  }, el('span', { class: `swatch tone-${category.tone}` }, glyph(category.mark)), el('span', {}, category.name),
  el('span', { class: 'number' }, number(counts[index])))),
  ...(points.some((point) => point.kind === 2) ? [el('span', { class: 'entry note' }, el('i', {}, 'A'), 'accuracy run')] : []));
}

function showColumns() {
  byId('columns').replaceChildren(el('span', { class: 'axis' }, 'concurrency, clients'),
    el('div', { class: 'cells' }, columns.map((conc) => el('span', {}, String(conc)))));
}

// -- keyboard -----------------------------------------------------------------------------------------------------

function linkOf(point) {
  build(sections[point.line.config]);
  return sections[point.line.config].body.querySelector(`[data-index="${point.index}"]`);
}

function focusPoint(point) {
  const before = state.current === null ? null : byId('sections').querySelector('.chip[tabindex="0"]');
  if (before) before.tabIndex = -1;
  state.current = point;
  const link = linkOf(point);
  if (!link) return;
  link.tabIndex = 0;
  link.focus({ preventScroll: true });
  link.scrollIntoView({ block: 'nearest' });
}

function step(point, key) {
  const at = state.lines.findIndex((each) => each.points.includes(point));
  if (at < 0) return null;
  const mine = state.lines[at].points;
  const place = mine.indexOf(point);
  const near = (index) => {
    const other = state.lines[index]?.points;
    return other?.reduce((best, each) => (Math.abs(Math.log2(each.concs[0] / point.concs[0]))
      < Math.abs(Math.log2(best.concs[0] / point.concs[0])) ? each : best)) ?? null;
  };
  const config = (way) => {
    let index = at;
    while (state.lines[index]?.section === state.lines[at].section) index += way;
    return near(index);
  };
  switch (key) {
    case 'ArrowRight': return mine[place + 1] ?? null;
    case 'ArrowLeft': return mine[place - 1] ?? null;
    case 'ArrowDown': return near(at + 1);
    case 'ArrowUp': return near(at - 1);
    case 'Home': return mine[0];
    case 'End': return mine[mine.length - 1];
    case 'PageDown': return config(1);
    case 'PageUp': return config(-1);
    default: return null;
  }
}

byId('sections').addEventListener('keydown', (event) => {
  const index = event.target.dataset?.index;
  if (index === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  const known = ['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp', 'Home', 'End', 'PageDown', 'PageUp'];
  if (!known.includes(event.key)) return;
  event.preventDefault();
  const next = step(points[index], event.key);
  if (next) focusPoint(next);
});
