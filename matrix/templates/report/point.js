// The part of the page that is about one point: everything that is known of it, at an address of its own.

function section(title, ...children) {
  return el('section', { 'aria-label': title }, el('h3', {}, title), ...children);
}

function fact(name, ...value) {
  return el('div', {}, el('dt', {}, name), el('dd', {}, ...value));
}

function badge(tone, mark, told) {
  return el('span', { class: `badge tone-${tone}` }, glyph(mark), told);
}

function categoryBadge(mode, point) {
  const category = mode.categories[mode.of(point)];
  return badge(category.tone, category.mark, category.name);
}

function copyButton(label, content) {
  const button = el('button', { type: 'button', class: 'small', onclick: async () => {
    const told = await copied(content());
    button.textContent = told ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { button.textContent = label; }, 1600);
  } }, label);
  return button;
}

// Pages opened from a disk may have no clipboard; then the text is selected in a field of its own.
async function copied(content) {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    const field = el('textarea', { class: 'hidden', 'aria-label': 'text to copy' });
    field.value = content;
    byId('point').append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}

function days(age) {
  return age === null ? 'age unknown' : age >= 2 ? `${number(age)} days old` : `${number(age * 24)} hours old`;
}

function facts(point) {
  const { base, line } = point;
  const mode = (name) => modes.find((each) => each.name === name);
  const covered = record.coverage?.points[point.index];
  const found = [
    fact('Config', point.config.key), fact('Model', `${point.config.model} · ${point.config.precision}`),
    fact('Engine', point.config.framework), fact('Image', el('code', {}, point.config.image)), fact('Runner', line.runner),
    fact('Workload', lineTitle(line)), fact('Topology', el('code', {}, line.topology)),
    fact('Concurrency', point.concs.join(', ')), fact('Run', KINDS[point.kind]),
    fact('Takes', `${counted(base.nodes, 'node')}, ${counted(base.gpus, 'GPU')}`,
      point.hours === null ? ', length unknown' : `, ${number(point.hours, 1)} GPU-hours (length from ${point.basis})`.replace('from assumed', 'assumed')),
  ];
  if (base.variant) found.push(fact('Variant', el('code', {}, base.variant)));
  if (covered) {
    const age = covered[0] === 'current' || covered[0] === 'stale' || covered[0] === 'superseded' ? `, ${days(covered[1])}` : '';
    found.push(fact('Coverage', categoryBadge(mode('Coverage'), point), age));
  }
  if (record.plan) {
    const why = record.plan.why[point.id];
    found.push(fact('Plan', categoryBadge(mode('Plan'), point), why ? ` ${why}` : ''));
  }
  if (record.diff) found.push(fact('Change', categoryBadge(mode('Change'), point)));
  return el('dl', { class: 'facts' }, found);
}

function changePart(point) {
  const change = changeOf(point);
  if (!change) return null;
  const told = [];
  if (change.was) told.push(el('p', {}, 'Was ', el('code', {}, change.was)));
  if (change.fields.length) {
    told.push(el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Changed fields' }, el('table', {},
      el('thead', {}, el('tr', {}, ['field', 'before', 'after'].map((head) => el('th', { scope: 'col' }, head)))),
      el('tbody', {}, change.fields.map(([name, before, after]) => el('tr', {}, el('th', { scope: 'row' }, name),
        el('td', {}, el('del', {}, shown(before))), el('td', {}, el('ins', {}, shown(after)))))))));
  }
  if (!told.length) told.push(el('p', {}, `${change.kind} between ${record.diff.before} and ${record.diff.after}.`));
  return section(`Change since ${record.diff.before}`, ...told);
}

function shown(value) {
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

function goldenPart(point) {
  if (point.base.golden === null) return null;
  const used = record.golden.used[point.base.golden];
  const curve = record.golden.curves[used[0]];
  return section('Golden acceptance length', goldenChart(used),
    el('p', { class: 'from' }, `${curve.model}, curve ${curve.name}, `, el('code', {}, used[4])));
}

const TOKENS = ['total-tokens-per-second', 'total.tokens_per_second'];

function throughput(figures, conc) {
  const mine = figures.find((each) => each.conc === conc);
  const name = mine && TOKENS.find((each) => typeof mine[each] === 'number');
  return name ? mine[name] : null;
}

function resultPart(point) {
  const result = resultOf(point) ?? lastResult(point);
  if (!result) return null;
  const flat = (figures) => Object.entries(figures).flatMap(([name, value]) => (value !== null && typeof value === 'object'
    ? Object.entries(value).flatMap(([inner, scores]) => Object.entries(Object(scores)).map(([score, each]) => [`${inner} ${score}`, each]))
    : [[name, value]]));
  const names = [...new Set(result.figures.flatMap((figures) => flat(figures).map(([name]) => name)))];
  const outcome = result.success ? badge('good', 'check', 'verified') : result.open ? badge('info', 'dots', 'in progress') : badge('bad', 'cross', result.verdict || 'failed');
  const told = [el('p', {}, outcome, ` job ${result.job || 'unknown'}`, result.nodes && ` on ${result.nodes}`,
    result.ended && `, ended ${result.ended.replace('T', ' ').replace('+00:00', ' UTC')}`)];
  if (!result.success && result.why) told.push(el('p', {}, result.why));
  if (names.length) {
    told.push(el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Figures' }, el('table', {},
      el('tbody', {}, names.map((name) => el('tr', {}, el('th', { scope: 'row' }, name),
        result.figures.map((figures) => {
          const found = flat(figures).find(([each]) => each === name)?.[1];
          return el('td', { class: 'right' }, typeof found === 'number' ? number(found, 3) : shown(found));
        })))))));
  }
  told.push(el('p', { class: 'from' }, el('code', {}, result.file)));
  const chartOf = measured(point);
  return section('Newest result', ...told.slice(0, -1), chartOf, told[told.length - 1]);
}

function measured(point) {
  const series = new Map();
  for (const other of points) {
    if (other.kind === 2 || other.config !== point.config || other.line.scenario !== point.line.scenario) continue;
    const result = resultOf(other);
    for (const conc of result?.success ? other.concs : []) {
      const value = throughput(result.figures, conc);
      if (value === null) continue;
      const cells = series.get(other.line.topology) ?? [];
      cells.push({ conc, value, point: other });
      series.set(other.line.topology, cells);
    }
  }
  for (const cells of series.values()) cells.sort((one, other) => one.conc - other.conc);
  const count = [...series.values()].reduce((total, cells) => total + cells.length, 0);
  return count > 1 ? throughputChart([...series], point) : null;
}

function rowPart(point) {
  const rows = rowOf(point).map(([name, value, place]) => el('tr', {}, el('th', { scope: 'row' }, name),
    el('td', {}, Array.isArray(value) ? value.map((each) => el('span', { class: 'item' }, shown(each))) : shown(value)),
    el('td', { class: 'place' }, place)));
  return section('Row', el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Row' },
    el('table', { class: 'fields' }, el('thead', {}, el('tr', {}, ['field', 'value', 'where it comes from'].map((head) => el('th', { scope: 'col' }, head)))),
      el('tbody', {}, rows))));
}

function commandsPart(point) {
  const told = commandsOf(point);
  const blocks = told.join('\n').split('\n\n').filter((block) => block.trim());
  const parts = blocks.map((block, index) => {
    const [first, ...rest] = block.split('\n');
    const title = first.replace(/^# /, '');
    const content = blocks.length > 1 && index > 0 ? rest.join('\n') : block;
    return el('details', { open: index === 0 }, el('summary', {}, el('code', {}, index === 0 ? 'The job' : title)),
      el('pre', { tabindex: 0, role: 'region', 'aria-label': index === 0 ? 'The job' : title }, content));
  });
  return section('Commands', copyButton('Copy all', () => told.join('\n')), ...parts);
}

function around(point) {
  const listed = state.lines.flatMap((each) => each.points);
  const at = listed.indexOf(point);
  const go = (label, other) => el('button', { type: 'button', class: 'small', disabled: !other,
    onclick: () => { location.hash = other.id; } }, label);
  return el('div', { class: 'around' }, go('Previous', listed[at - 1]), go('Next', at < 0 ? null : listed[at + 1]));
}

function closeButton() {
  return el('button', { type: 'button', class: 'close', 'aria-label': 'Close this point', onclick: closePoint }, glyph('close'));
}

function showPoint(id) {
  const aside = byId('point');
  const point = pointOf.get(id);
  aside.hidden = false;
  roomIn(aside.clientWidth - (innerWidth < 720 ? 32 : 52));
  markCurrent(point);
  if (!point) {
    aside.replaceChildren(el('div', { class: 'head' }, el('h2', { id: 'point-title' }, 'No such point'), closeButton()),
      el('p', {}, 'This page has no point ', el('code', {}, id), '. It may have been renamed or removed.'));
  } else {
    const same = points.filter((other) => other.config === point.config && other.line.scenario === point.line.scenario && other.kind < 2);
    aside.replaceChildren(
      el('div', { class: 'head' }, el('p', { class: 'kind' }, point.kind === 2 ? 'Accuracy run' : 'Throughput run'), around(point), closeButton()),
      el('h2', { id: 'point-title' }, point.id), copyButton('Copy id', () => point.id),
      facts(point),
      ...[changePart(point), resultPart(point), goldenPart(point)].filter(Boolean),
      section('Concurrency ladder', ladderChart(`Concurrencies of ${point.config.key}, ${point.line.scenario}`, same.length ? same : [point], point)),
      rowPart(point), commandsPart(point));
  }
  document.title = point ? `${point.id} – ${record.title}` : record.title;
  document.body.classList.add('open');
  cover();
  aside.scrollTop = 0;
  aside.focus({ preventScroll: true });
}

function markCurrent(point) {
  for (const link of byId('sections').querySelectorAll('[aria-current]')) link.removeAttribute('aria-current');
  if (!point) return;
  if (state.shown.includes(point)) {
    const before = byId('sections').querySelector('.chip[tabindex="0"]');
    if (before) before.tabIndex = -1;
    state.current = point;
    const link = linkOf(point);
    link.tabIndex = 0;
    link.setAttribute('aria-current', 'true');
    const box = link.getBoundingClientRect();
    if (box.top < 180 || box.bottom > innerHeight - 20) link.scrollIntoView({ block: 'center' });
  }
}

// On a phone a point covers the page, and what nobody sees must not take the focus.
const narrow = matchMedia('(max-width: 719px)');

function cover() {
  const covered = narrow.matches && !byId('point').hidden;
  for (const part of document.querySelectorAll('.skip, .top, main')) part.inert = covered;
}

narrow.addEventListener('change', cover);

function closePoint() {
  history.pushState(null, '', location.pathname + location.search);
  hidePoint();
}

function hidePoint() {
  const aside = byId('point');
  if (aside.hidden) return;
  aside.hidden = true;
  aside.replaceChildren();
  document.body.classList.remove('open');
  cover();
  document.title = record.title;
  markCurrent(null);
  if (state.current) focusPoint(state.current);
}

function follow() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (id === 'matrix') byId('matrix').focus();
  else if (id) showPoint(id);
  else hidePoint();
}
