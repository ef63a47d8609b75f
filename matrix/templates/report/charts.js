// Charts as inline SVG. Each has a name that says what it shows, and the same figures as a table for who cannot see it.

// A chart is drawn for the room that it has, so that its words are as large on a phone as on a desk.
let room = 520;

function roomIn(width) {
  room = Math.max(260, Math.min(Math.round(width), 640));
}

function chart(title, height, drawn, table) {
  const picture = svg('svg', { viewBox: `0 0 ${room} ${height}`, width: room, height, role: 'img', 'aria-label': title, class: 'chart' }, drawn);
  const [head, ...rows] = table;
  return el('figure', {},
    el('figcaption', {}, title),
    picture,
    el('div', { class: 'hidden' }, el('table', {},
      el('caption', {}, title),
      el('thead', {}, el('tr', {}, head.map((told) => el('th', { scope: 'col' }, told)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, row.map((told) => el('td', {}, String(told)))))))));
}

function text(x, y, content, attributes = {}) {
  return svg('text', { x, y, ...attributes }, String(content));
}

function niceSteps(largest, wanted = 4) {
  const most = largest > 0 ? largest : 1; // of nothing but zeros the steps would have no size
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const steps = [];
  for (let value = 0; value <= most + step * 0.001; value += step) steps.push(value);
  if (steps[steps.length - 1] < most) steps.push(steps[steps.length - 1] + step);
  return steps;
}

// As many digits behind the point as tell two steps apart.
function digits(steps) {
  return steps.length > 1 ? Math.max(0, -Math.floor(Math.log10(steps[1] - steps[0]) + 1e-9)) : 0;
}

const LETTER = 7.2;

// Below a place of an axis, and inside of the chart.
function tick(x, y, label) {
  const half = (String(label).length * LETTER) / 2;
  const anchor = x - half < 0 ? 'start' : x + half > room ? 'end' : 'middle';
  return text(anchor === 'end' ? Math.min(x + 8, room) : x, y, label, { 'text-anchor': anchor });
}

function clipped(label, most) {
  return label.length <= most ? label : `${label.slice(0, most - 1)}…`;
}

// Pools with what their jobs take; jobs of unknown length are told, never counted as nothing.
function poolChart(shown) {
  const pools = new Map();
  for (const point of shown) {
    const pool = pools.get(point.line.runner) ?? { hours: 0, jobs: 0, untimed: 0 };
    pool.jobs += 1;
    if (point.hours === null) pool.untimed += 1;
    else pool.hours += point.hours;
    pools.set(point.line.runner, pool);
  }
  const listed = [...pools].sort((one, other) => other[1].hours - one[1].hours || other[1].jobs - one[1].jobs);
  const top = listed.slice(0, 8);
  const largest = Math.max(0, ...top.map(([, pool]) => pool.hours));
  const steps = largest > 0 ? niceSteps(largest) : [0];
  const left = 2, right = 16, rowHeight = 42, height = top.length * rowHeight + 40;
  const most = steps[steps.length - 1] || 1;
  const scale = (value) => left + (value / most) * (room - left - right);
  const bottom = top.length * rowHeight + 4;
  const drawn = steps.map((step) => [
    svg('line', { x1: scale(step), x2: scale(step), y1: 4, y2: bottom, class: 'grid' }),
    tick(scale(step), bottom + 14, number(step, digits(steps))),
  ]);
  drawn.push(text(room - right, bottom + 30, 'GPU-hours', { 'text-anchor': 'end', class: 'unit' }));
  top.forEach(([name, pool], index) => {
    const y = index * rowHeight + 8;
    const brief = room < 420;
    const jobs = pool.untimed === 0 ? counted(pool.jobs, 'job')
      : pool.untimed === pool.jobs ? `${counted(pool.jobs, 'job')}${brief ? ', untimed' : ' of unknown length'}`
        : `${counted(pool.jobs, 'job')}, ${number(pool.untimed)}${brief ? ' untimed' : ' of unknown length'}`;
    drawn.push(text(left, y + 10, clipped(name, 34), { class: 'strong' }));
    drawn.push(text(room - right, y + 10, jobs, { 'text-anchor': 'end' }));
    drawn.push(svg('rect', { x: left, y: y + 16, width: Math.max(1, scale(pool.hours) - left), height: 12, rx: 2, class: 'bar' }));
    const end = scale(pool.hours);
    const inside = end > room - 70;
    drawn.push(text(inside ? end - 6 : end + 6, y + 26, pool.untimed === pool.jobs ? 'unknown' : number(pool.hours), {
      class: inside ? 'strong inside' : 'strong', 'text-anchor': inside ? 'end' : 'start',
    }));
  });
  const rows = listed.map(([name, pool]) => [name, number(pool.hours, 1), pool.jobs, pool.untimed]);
  return chart('GPU-hours per runner pool', height, drawn.flat(), [['pool', 'GPU-hours', 'jobs', 'of unknown length'], ...rows]);
}

function logScale(values, from, to) {
  const low = Math.log2(Math.min(...values)), high = Math.log2(Math.max(...values));
  const span = high - low || 1;
  return (value) => (high === low ? (from + to) / 2 : from + ((Math.log2(value) - low) / span) * (to - from));
}

// Of close neighbours only the first is labelled.
function spaced(values, scale) {
  const least = Math.max(30, ...values.map((value) => String(value).length * LETTER + 6));
  let last = -Infinity;
  return values.filter((value) => {
    if (scale(value) - last < least) return false;
    last = scale(value);
    return true;
  });
}

// A line for each topology, a mark for each concurrency; ``here`` is the point that is looked at.
function ladderChart(title, shown, here = null, most = 7) {
  const ladders = new Map();
  for (const point of shown) {
    const ladder = ladders.get(point.line.topology) ?? new Map();
    for (const conc of point.concs) ladder.set(conc, (ladder.get(conc) ?? 0) + 1);
    ladders.set(point.line.topology, ladder);
  }
  const all = [...ladders].sort((one, other) => sum(other[1]) - sum(one[1]));
  const listed = all.filter(([name], index) => index < most || (here && name === here.line.topology));
  const values = [...new Set(listed.flatMap(([, ladder]) => [...ladder.keys()]))].sort((one, other) => one - other);
  const longest = Math.max(...listed.map(([name]) => name.length));
  const letters = Math.floor((room * 0.44) / 6.8);
  const left = 12 + Math.min(longest, letters) * 6.8, right = 16, rowHeight = 22;
  const bottom = listed.length * rowHeight + 10;
  const scale = logScale(values, left + 12, room - right);
  const drawn = spaced(values, scale).map((value) => [
    svg('line', { x1: scale(value), x2: scale(value), y1: 4, y2: bottom, class: 'grid' }),
    tick(scale(value), bottom + 14, value),
  ]);
  drawn.push(text(room - right, bottom + 30, 'concurrency, clients, log scale', { 'text-anchor': 'end', class: 'unit' }));
  listed.forEach(([name, ladder], index) => {
    const y = index * rowHeight + 18;
    const steps = [...ladder.keys()].sort((one, other) => one - other);
    const mine = here !== null && here.line.topology === name;
    drawn.push(text(left - 4, y + 4, clipped(name, letters), { 'text-anchor': 'end', class: mine ? 'mono strong' : 'mono' }));
    drawn.push(svg('line', { x1: scale(steps[0]), x2: scale(steps[steps.length - 1]), y1: y, y2: y, class: 'ladder' }));
    const marks = [];
    for (const [at, step] of steps.entries()) {
      const gap = Math.min(...[steps[at - 1], steps[at + 1]].filter(Boolean).map((other) => Math.abs(scale(other) - scale(step))));
      const r = Math.max(1.2, Math.min(here === null ? Math.min(3.2 + Math.sqrt(ladder.get(step)), 8) : 4, gap / 2 - 0.7));
      const used = mine && here.concs.includes(step);
      // An outline between marks that touch would hide them.
      const shape = used ? 'dot here' : gap < 2 * r + 3 ? 'dot dense' : 'dot';
      const mark = svg('circle', { cx: scale(step), cy: y, r: used ? 6 : r, class: shape },
        svg('title', {}, `${name}, concurrency ${step}: ${counted(ladder.get(step), 'point')}`));
      marks.splice(used ? marks.length : 0, 0, mark); // the one that is looked at on top
    }
    drawn.push(...marks);
  });
  const rows = all.map(([name, ladder]) => [name, [...ladder.keys()].sort((one, other) => one - other).join(', ')]);
  const more = all.length - listed.length;
  const told = more > 0 ? `${title} (${listed.length} of ${all.length})` : title;
  return chart(told, bottom + 40, drawn.flat(), [['topology', 'concurrencies'], ...rows]);
}

function sum(ladder) {
  let total = 0;
  for (const count of ladder.values()) total += count;
  return total;
}

// Tokens a step over draft tokens, a line for each way of thinking; the level that was used is marked and named.
function goldenChart(used) {
  const [index, mode, tokens, value] = used;
  const curve = record.golden.curves[index];
  const series = Object.entries(curve.values).map(([name, cells]) => [
    name, Object.entries(cells).map(([level, length]) => [Number(level), Number(length)]).sort((a, b) => a[0] - b[0]),
  ]).filter(([, cells]) => cells.length);
  const all = series.flatMap(([, cells]) => cells);
  const levels = [...new Set(all.map(([level]) => level))].sort((one, other) => one - other);
  const steps = niceSteps(Math.max(...all.map(([, length]) => length)));
  const left = 40, right = 92, top = 30, bottom = 180, height = 218;
  const widest = Math.max(...levels), narrowest = Math.min(...levels);
  const x = (level) => left + ((level - narrowest) / (widest - narrowest || 1)) * (room - left - right);
  const y = (length) => bottom - (length / steps[steps.length - 1]) * (bottom - top);
  const drawn = steps.map((step) => [
    svg('line', { x1: left, x2: room - right, y1: y(step), y2: y(step), class: 'grid' }),
    text(left - 8, y(step) + 4, number(step, digits(steps)), { 'text-anchor': 'end' }),
  ]);
  for (const level of levels) drawn.push(text(x(level), bottom + 16, level, { 'text-anchor': 'middle' }));
  drawn.push(text(2, 12, 'tokens a step', { class: 'unit' }));
  drawn.push(text(room - right, bottom + 34, 'draft tokens', { 'text-anchor': 'end', class: 'unit' }));
  const ends = series.map(([name, cells]) => [name, cells, y(cells[cells.length - 1][1])]).sort((a, b) => a[2] - b[2]);
  let lowest = -Infinity;
  for (const [name, cells, end] of ends) {
    const mine = name === mode;
    const path = cells.map(([level, length], at) => `${at ? 'L' : 'M'}${x(level)} ${y(length)}`).join('');
    const label = Math.max(end, lowest + 14);
    lowest = label;
    drawn.push(svg('path', { d: path, class: mine ? 'curve' : 'curve other' }));
    drawn.push(text(x(cells[cells.length - 1][0]) + 8, label + 4, name.replace('_', ' '), { class: mine ? 'strong' : '' }));
    for (const [level, length] of cells) {
      drawn.push(svg('circle', { cx: x(level), cy: y(length), r: 2.6, class: mine ? 'dot' : 'dot other' }));
    }
  }
  drawn.push(svg('line', { x1: x(tokens), x2: x(tokens), y1: y(Number(value)), y2: bottom, class: 'used' }));
  drawn.push(svg('circle', { cx: x(tokens), cy: y(Number(value)), r: 6, class: 'dot here' }));
  drawn.push(text(x(tokens), y(Number(value)) - 12, value, { 'text-anchor': 'middle', class: 'strong large' }));
  const rows = levels.map((level) => [level, ...series.map(([, cells]) => cells.find(([at]) => at === level)?.[1] ?? '')]);
  const title = `Golden curve: ${value} tokens a step with ${tokens} draft tokens, ${mode.replace('_', ' ')}`;
  return chart(title, height, drawn.flat(), [['draft tokens', ...series.map(([name]) => name)], ...rows]);
}

// What the newest verified results of one config and scenario measured.
function throughputChart(series, here) {
  const all = series.flatMap(([, cells]) => cells);
  const steps = niceSteps(Math.max(...all.map((cell) => cell.value)));
  const values = [...new Set(all.map((cell) => cell.conc))].sort((one, other) => one - other);
  const left = 62, right = 20, top = 30, bottom = 180;
  const x = logScale(values, left + 10, room - right);
  const y = (value) => bottom - (value / steps[steps.length - 1]) * (bottom - top);
  const drawn = steps.map((step) => [
    svg('line', { x1: left, x2: room - right, y1: y(step), y2: y(step), class: 'grid' }),
    text(left - 8, y(step) + 4, number(step, digits(steps)), { 'text-anchor': 'end' }),
  ]);
  for (const value of spaced(values, x)) drawn.push(tick(x(value), bottom + 16, value));
  drawn.push(text(2, 12, 'tokens/s', { class: 'unit' }));
  drawn.push(text(room - right, bottom + 34, 'concurrency, clients, log scale', { 'text-anchor': 'end', class: 'unit' }));
  for (const [name, cells] of series) {
    const mine = name === here.line.topology;
    const path = cells.map((cell, at) => `${at ? 'L' : 'M'}${x(cell.conc)} ${y(cell.value)}`).join('');
    drawn.push(svg('path', { d: path, class: mine ? 'curve' : 'curve other' }));
    for (const cell of cells) {
      const used = cell.point === here;
      drawn.push(svg('circle', { cx: x(cell.conc), cy: y(cell.value), r: used ? 6 : 3, class: used ? 'dot here' : mine ? 'dot' : 'dot other' },
        svg('title', {}, `${name}, concurrency ${cell.conc}: ${number(cell.value)} tokens/s`)));
    }
  }
  const rows = series.flatMap(([name, cells]) => cells.map((cell) => [name, cell.conc, number(cell.value)]));
  return chart('Throughput of the newest results, tokens/s', bottom + 40, drawn.flat(), [['topology', 'concurrency', 'tokens/s'], ...rows]);
}
