// What is drawn once, and what listens.

function tile(value, told, extra) {
  return el('div', { class: 'tile' }, el('b', {}, value), ' ', el('span', {}, told), extra);
}

function coverageBar() {
  const mode = modes.find((each) => each.name === 'Coverage');
  const counts = mode.categories.map(() => 0);
  for (const point of points) counts[mode.of(point)] += 1;
  const told = mode.categories.map((category, index) => `${counts[index]} ${category.name}`).filter((_, index) => counts[index]);
  const parts = mode.categories.map((category, index) => {
    const part = el('span', { class: `tone-${category.tone}` });
    part.style.setProperty('flex-grow', String(counts[index]));
    part.hidden = !counts[index];
    return part;
  });
  return el('div', { class: 'stack', role: 'img', 'aria-label': `Coverage: ${told.join(', ')}` }, parts);
}

function planCard() {
  const plan = record.plan;
  if (!plan) return null;
  const words = { run: ['good', 'play', 'Run'], skip: ['none', 'minus', 'Skip'], cancel: ['warn', 'cross', 'Cancel'], refuse: ['bad', 'cross', 'Refuse'] };
  const [tone, mark, told] = words[plan.decision] ?? ['none', 'what', plan.decision];
  const lines_ = [`${counted(plan.jobs, 'job')} in ${counted(plan.shards.length, 'shard')}`];
  if (plan.mode.label) lines_.push(`label ${plan.mode.label}`);
  if (plan.head) lines_.push(plan.base ? `${plan.base} → ${plan.head}` : plan.head);
  return el('section', { class: 'card', 'aria-label': 'Plan' }, el('h2', {}, 'Plan'),
    el('p', { class: 'lead' }, badge(tone, mark, told), ` ${plan.reason}`), el('p', {}, lines_.join(' · ')),
    plan.absent.length > 0 && el('details', {}, el('summary', {}, `${counted(plan.absent.length, 'point')} of the plan are not in this matrix`),
      el('ul', {}, plan.absent.slice(0, 200).map((id) => el('li', {}, el('code', {}, id))))), el('p', { class: 'from' }, el('code', {}, plan.file)));
}

function diffCard() {
  const diff = record.diff;
  if (!diff) return null;
  const marks = { added: ['good', 'plus'], removed: ['bad', 'minus'], changed: ['warn', 'tilde'], renamed: ['info', 'arrow'] };
  const told = Object.entries(diff.counts).filter(([, count]) => count).map(([kind, count]) => badge(...marks[kind], `${number(count)} ${kind}`));
  const gone = diff.changes.filter((change) => change.kind === 'removed');
  const hours = diff.hours === 0 ? 'no change of GPU-hours' : `${diff.hours > 0 ? '+' : '−'}${number(Math.abs(diff.hours), 1)} GPU-hours`;
  return el('section', { class: 'card', 'aria-label': 'Change' }, el('h2', {}, 'Change'),
    el('p', {}, el('code', {}, diff.before), ' → ', el('code', {}, diff.after)),
    told.length ? el('p', { class: 'badges' }, told) : el('p', { class: 'lead' }, 'No change of any job.'),
    told.length > 0 && el('p', {}, hours),
    gone.length > 0 && el('details', {}, el('summary', {}, `${counted(gone.length, 'point')} removed`),
      el('ul', {}, gone.slice(0, 500).map((change) => el('li', {}, el('code', {}, change.id))))));
}

function showOverview() {
  const shown = state.shown;
  const hours = shown.reduce((total, point) => total + (point.hours ?? 0), 0);
  const used = new Set(shown.map((point) => point.config));
  const untimed = shown.filter((point) => point.hours === null).length;
  const accuracy = shown.filter((point) => point.kind === 2).length;
  const tiles = [
    tile(number(shown.length), shown.length === 1 ? 'point' : 'points'), tile(number(used.size), used.size === 1 ? 'config' : 'configs'),
    tile(number(hours), 'GPU-hours', untimed > 0 && el('small', {}, `${number(untimed)} of unknown length`)),
    tile(number(accuracy), accuracy === 1 ? 'accuracy run' : 'accuracy runs'),
  ];
  if (record.coverage) {
    const current = shown.filter((point) => record.coverage.points[point.index][0] === 'current').length;
    tiles.push(tile(shown.length ? `${Math.floor((100 * current) / shown.length)}%` : '–', `current, ${record.coverage.days} days`, coverageBar()));
  }
  const cards = [planCard(), diffCard()].filter(Boolean);
  if (cards.length === 1) cards[0].classList.add('alone');
  const width = byId('overview').clientWidth;
  roomIn(width < 820 ? width - 38 : (width - 12) / 2 - 38);
  const charts = shown.length ? [
    el('section', { class: 'card' }, poolChart(shown)),
    el('section', { class: 'card' }, ladderChart('Concurrency ladder per topology', shown)),
  ] : [];
  byId('overview').replaceChildren(el('div', { class: 'tiles' }, tiles), el('div', { class: 'cards' }, cards, charts));
}

function update() {
  refresh();
  showOverview();
}

function showModes() {
  byId('modes').append(...modes.map((mode) => el('label', {}, el('input', {
    type: 'radio', name: 'mode', value: mode.name, checked: mode === state.mode,
    onchange: () => { state.mode = mode; state.category = null; refresh(); },
  }), el('span', {}, mode.name))));
}

function showFacets() {
  byId('facets').replaceChildren(...FACETS.map(([name, of], index) => {
    const counts = new Map();
    for (const point of points) counts.set(of(point), (counts.get(of(point)) ?? 0) + 1);
    const values = [...counts.keys()].sort();
    const select = el('select', { name, onchange: () => {
      if (select.selectedIndex === 0) state.facets.delete(index);
      else state.facets.set(index, values[select.selectedIndex - 1]);
      select.classList.toggle('used', select.selectedIndex > 0);
      update();
    } }, el('option', {}, 'all'), values.map((value) => el('option', {}, `${value} (${counts.get(value)})`)));
    return el('label', {}, el('span', {}, name), select);
  }));
}

function reset() {
  state.words = [];
  state.category = null;
  state.facets.clear();
  byId('search').value = '';
  for (const select of byId('facets').querySelectorAll('select')) {
    select.selectedIndex = 0;
    select.classList.remove('used');
  }
  update();
}

// -- light and dark -------------------------------------------------------------------------------------------------

const THEMES = ['system', 'light', 'dark'];

function stored(value) {
  // A browser may refuse to remember anything for a file.
  try {
    if (value !== undefined) localStorage.setItem('matrix-theme', value);
    return localStorage.getItem('matrix-theme');
  } catch {
    return null;
  }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId('theme').textContent = `Theme: ${name}`;
}

// -- the start --------------------------------------------------------------------------------------------------------

byId('title').textContent = record.title;
byId('about').textContent = `${record.side} · ${record.made.replace('T', ' ').replace('+00:00', ' UTC')} · ${record.program}`;
setTheme(THEMES.includes(stored()) ? stored() : 'system');
byId('theme').addEventListener('click', () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  stored(next);
  setTheme(next);
});
sections.forEach((each) => { each.node.dataset.number = String(each.index); });
byId('sections').append(...sections.map((each) => each.node));
if (matchMedia('(min-width: 720px)').matches) byId('filters').open = true;
showModes();
showFacets();
measure();
showColumns();
update();

let waiting = 0;
byId('search').addEventListener('input', (event) => {
  state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  refresh();
  clearTimeout(waiting);
  waiting = setTimeout(showOverview, 150);
});
byId('reset').addEventListener('click', () => { reset(); byId('search').focus(); });
let wide = byId('overview').clientWidth;
new ResizeObserver(() => {
  document.documentElement.style.setProperty('--tools', `${byId('tools').offsetHeight}px`);
  if (measure()) refresh();
  if (Math.abs(byId('overview').clientWidth - wide) > 8) {
    wide = byId('overview').clientWidth;
    showOverview();
  }
}).observe(byId('matrix'));
addEventListener('hashchange', follow);
addEventListener('popstate', follow);
document.addEventListener('keydown', (event) => {
  const typing = event.target instanceof Element && event.target.matches('input, select, textarea');
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    byId('search').focus();
    byId('search').select();
  } else if (event.key === 'Escape') {
    if (!byId('point').hidden) closePoint();
    else if (event.target === byId('search')) {
      byId('search').value = '';
      state.words = [];
      update();
      if (state.current) focusPoint(state.current);
    }
  }
});
// Paper has no scrolling: everything is there when it is printed.
const everything = () => {
  sections.filter((each) => !each.node.hidden).forEach(build);
  for (const each of byId('point').querySelectorAll('details')) each.open = true;
};
addEventListener('beforeprint', everything);
matchMedia('print').addEventListener('change', (event) => { if (event.matches) everything(); });
follow();
