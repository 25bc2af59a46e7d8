// The chart of a history: one point, the lines that its reader ticks (metrics, terms of a step, parts of
// profiles, speedups), as measured, against the baseline, or as shares; over commits or dates.
//
// Data: {points: [{title, lines: [{title, kind, unit, better, main, sessions (places), base (places in the
// line), mean, low, high, share or null, levels: [[first, last, mean]], spikes, changes: [[place, text]],
// verdict, said, runs}]}], sessions: [{name, started, subject, tags, hosts, results, report, records}]}.
(() => {
  const { element, charts } = window.scalesweep
  const { choice, tick, tone, some, look, embed, save } = charts
  const data = JSON.parse(document.getElementById('history-data').textContent)
  const holder = document.getElementById('history-chart')
  const COLOURS = 6 // --s1 to --s6 of the style sheet
  const SHAPES = ['circle', 'triangle-up', 'square', 'diamond', 'cross', 'triangle-down']
  const SIGNS = ['●', '▲', '■', '◆', '✚', '▼']
  const MEASURED = 'measured', RELATIVE = 'relative', SHARE = 'share'
  const day = (text) => text.slice(0, 16).replace('T', ' ')
  const text = (value) => Number(value.toPrecision(5)).toLocaleString('en-US', { maximumSignificantDigits: 5 })
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

  // Names of sessions, each another one: a commit may have been measured twice.
  const names = (places) => {
    const seen = new Map()
    return new Map(places.map((place) => {
      const { name } = data.sessions[place]
      seen.set(name, (seen.get(name) ?? 0) + 1)
      return [place, seen.get(name) > 1 ? `${name} (${seen.get(name)})` : name]
    }))
  }

  const pictures = (chart) => [['SVG', 'svg'], ['PNG', 'png']].map(([words, kind]) => {
    const made = element('button', { type: 'button', textContent: words })
    made.addEventListener('click', () => save(chart.view, kind, 'history'))
    return made
  })

  class HistoryChart {
    constructor() {
      ;[this.pointLabel, this.point] = choice('Point', data.points.map((one, n) => [String(n), one.title]), '0')
      ;[this.unitLabel, this.unit] = choice('Values', [[MEASURED, 'as measured'], [RELATIVE, 'relative to the baseline'], [SHARE, 'share, efficiency']], MEASURED)
      ;[this.overLabel, this.over] = choice('Over', [['commits', 'commits'], ['dates', 'dates']], 'commits')
      ;[this.barLabel, this.bars] = tick('intervals', true)
      ;[this.pickLabel, this.pick] = choice('Session', [], '')
      this.plot = element('div', { className: 'plot' })
      this.legend = element('fieldset', { className: 'legend' })
      this.said = element('p', { className: 'note' })
      this.detail = element('div', { className: 'session' })
      for (const one of [this.said, this.detail]) one.setAttribute('aria-live', 'polite')
      const bar = element('div', { className: 'picks' }, this.pointLabel, this.unitLabel, this.overLabel, this.barLabel, ...pictures(this))
      holder.replaceChildren(bar, this.plot, this.legend, this.said, element('div', { className: 'picks' }, this.pickLabel), this.detail)
      this.point.addEventListener('change', () => this.choose())
      for (const one of [this.unit, this.over, this.bars]) one.addEventListener('change', () => this.draw())
      this.pick.addEventListener('change', () => this.tell())
      this.choose()
    }

    // Another point: its main metric is ticked, and a line for each box.
    choose() {
      this.lines = data.points[Number(this.point.value)].lines
      const places = [...new Set(this.lines.flatMap((line) => line.sessions))]
      this.places = places.sort((a, b) => this.rank(a) - this.rank(b))
      this.names = names(this.places)
      this.boxes = this.lines.map((line, n) => {
        const [label, box] = tick(`${SIGNS[n % SIGNS.length]} ${line.title} [${line.unit}]`, n === 0)
        label.style.color = tone(`--s${n % COLOURS + 1}`)
        box.addEventListener('change', () => this.draw())
        return [label, box]
      })
      const all = element('button', { type: 'button', textContent: 'terms and parts' })
      all.addEventListener('click', () => {
        this.boxes.forEach(([, box], n) => { box.checked = ['term', 'part'].includes(this.lines[n].kind) })
        this.draw()
      })
      const made = this.lines.some((line) => ['term', 'part'].includes(line.kind)) ? [all] : []
      this.legend.replaceChildren(element('legend', { textContent: 'Lines' }), ...this.boxes.map(([label]) => label), ...made)
      this.pick.replaceChildren(element('option', { value: '', textContent: 'click on a session, or choose one' }),
        ...[...this.places].reverse().map((place) => element('option', { value: String(place), textContent: `${this.names.get(place)}, ${day(data.sessions[place].started)}` })))
      this.tell()
      this.draw()
    }

    // The order of the longest line; sessions that it lacks by their start.
    rank(place) {
      const longest = this.lines.reduce((one, other) => (other.sessions.length > one.sessions.length ? other : one))
      const at = longest.sessions.indexOf(place)
      if (at >= 0) return at
      const later = longest.sessions.findIndex((other) => data.sessions[other].started > data.sessions[place].started)
      return (later < 0 ? longest.sessions.length : later) - 0.5
    }

    get shown() {
      return this.lines.map((line, n) => [line, n]).filter(([, n]) => this.boxes[n][1].checked)
    }

    // The report and the records of the session that is picked.
    tell() {
      holder.dataset.session = this.pick.value
      if (this.pick.value === '') return this.detail.replaceChildren()
      const place = Number(this.pick.value)
      const one = data.sessions[place]
      const line = (...parts) => element('p', {}, ...parts)
      const around = [one.subject, one.tags, one.hosts].filter((words) => words).join(' · ')
      const runs = this.lines.flatMap((it) => it.runs[it.sessions.indexOf(place)] ?? [])
      const records = one.records ? [...new Set(runs)].map((id) => element('a', { href: `${one.records}/${encodeURIComponent(id)}/record.json`, textContent: id })) : []
      this.detail.replaceChildren(
        line(element('b', { textContent: this.names.get(place) }), ` measured ${day(one.started)} UTC${around ? `: ${around}` : ''}`),
        line(...(one.report ? ['Session: ', element('a', { href: one.report, textContent: 'report' })] : [`Results: ${one.results} (no longer there)`])),
        ...(records.length ? [line('Records: ', ...records.flatMap((link, n) => [...(n ? [' · '] : []), link]))] : []))
    }

    // Marks of the lines that are ticked; a line that has no share is left out of shares.
    marks() {
      const at = (place) => (this.over.value === 'dates' ? data.sessions[place].started : this.names.get(place))
      const unit = this.unit.value
      const marks = { points: [], levels: [], changes: [] }
      for (const [line, n] of this.shown) {
        const values = unit === SHARE ? line.share : line.mean
        if (!values) continue
        const known = line.base.map((place) => values[place]).filter((value) => value !== null)
        const base = known.length ? mean(known) : values.find((value) => value)
        const factor = unit === RELATIVE ? 1 / base : 1
        const scaled = (value) => (value === null || value === undefined ? null : value * factor)
        line.sessions.forEach((place, k) => values[k] !== null && marks.points.push({
          line: String(n), place, x: at(place), y: scaled(values[k]), name: this.names.get(place), when: day(data.sessions[place].started),
          low: unit === SHARE ? null : scaled(line.low[k]), high: unit === SHARE ? null : scaled(line.high[k]), title: line.title,
          value: `${text(values[k])} ${unit === SHARE ? '' : line.unit}`, change: `${text((values[k] / base - 1) * 100)} %`,
          subject: data.sessions[place].subject || '–', outlier: line.spikes.includes(k) }))
        if (unit !== SHARE) line.levels.forEach(([first, last, y]) => marks.levels.push({ line: String(n), x: at(line.sessions[first]), x2: at(line.sessions[last]), y: y * factor }))
        line.changes.forEach(([k, words]) => marks.changes.push({ x: at(line.sessions[k]), number: String(marks.changes.length + 1), text: words }))
      }
      return marks
    }

    spec({ points, levels, changes }, title) {
      const dated = this.over.value === 'dates'
      const order = [...this.names.values()]
      const across = (band) => ({ field: 'x', type: dated ? 'temporal' : 'ordinal', ...(dated ? {} : { bandPosition: band }),
        axis: dated ? { title: 'Date, UTC', format: '%Y-%m-%d', tickCount: 8, labelOverlap: true, grid: false }
          : { title: 'Commit', values: some(order), labelAngle: -35, labelOverlap: true },
        scale: dated ? { padding: 20, type: 'utc' } : { domain: order } })
      const numbers = this.lines.map((_, n) => String(n))
      const color = { field: 'line', type: 'nominal', legend: null, scale: { domain: numbers, range: numbers.map((n) => tone(`--s${n % COLOURS + 1}`)) } }
      const shape = { field: 'line', type: 'nominal', legend: null, scale: { domain: numbers, range: numbers.map((n) => SHAPES[n % SHAPES.length]) } }
      const y = (field) => ({ field, type: 'quantitative', title, scale: { zero: false, nice: true }, axis: { tickCount: 6 } })
      const bars = this.bars.checked ? points.filter((one) => one.low !== null) : []
      const several = this.shown.length > 1
      const layer = [
        { data: { values: bars }, mark: { type: 'rule', aria: false, opacity: 0.5 }, encoding: { x: across(0.5), y: y('low'), y2: { field: 'high' }, color } },
        { data: { values: several ? points : [] }, mark: { type: 'line', aria: false, opacity: 0.6, strokeWidth: 1.2 }, encoding: { x: across(0.5), y: y('y'), color } },
        { data: { values: levels }, mark: { type: 'rule', aria: false, strokeWidth: 2.2 }, encoding: { x: across(0), x2: { field: 'x2', ...(dated ? {} : { bandPosition: 1 }) }, y: y('y'), color } },
        { data: { values: changes }, mark: { type: 'rule', aria: false, strokeDash: [5, 4], color: tone('--soft') }, encoding: { x: across(0) } },
        { data: { values: changes }, mark: { type: 'text', aria: false, align: 'left', dx: 3, fontWeight: 600, color: tone('--ink') },
          encoding: { x: across(0), y: { value: 8 }, text: { field: 'number' }, tooltip: [{ field: 'text', title: 'changed' }] } },
        { data: { values: points }, mark: { type: 'point', filled: true, cursor: 'pointer' },
          encoding: { x: across(0.5), y: y('y'), color, shape, size: { condition: { test: 'datum.outlier', value: 150 }, value: 60 }, opacity: { condition: { test: 'datum.outlier', value: 0.45 }, value: 1 },
            tooltip: [['title', 'line'], ['name', 'commit'], ['when', 'measured, UTC'], ['subject', 'subject'], ['value', 'value'], ['change', 'against the baseline']].map(([field, heading]) => ({ field, type: 'nominal', title: heading })) } },
      ]
      const drawn = layer.filter((one) => one.data.values.length)
      return { description: `${title} over ${this.over.value}; the tables have the numbers`, layer: drawn, ...look() }
    }

    // One after the other: what is drawn last is what was chosen last.
    draw() {
      this.drawing = (this.drawing ?? Promise.resolve()).catch(console.error).then(() => this.render())
    }

    async render() {
      const marks = this.marks()
      const lines = this.shown.map(([line]) => line)
      const units = [...new Set(lines.map((line) => line.unit))].join(', ')
      const named = lines.length === 1 ? lines[0].title : 'Values'
      const title = { [MEASURED]: `${named} [${units}]`, [RELATIVE]: `${named}, baseline = 1`, [SHARE]: 'Share, efficiency' }[this.unit.value]
      this.view = await embed(this.plot, this.spec(marks, title), marks.points.length, this.view)
      this.view.addEventListener('click', (_event, item) => {
        if (item?.datum?.place === undefined) return
        this.pick.value = String(item.datum.place)
        this.tell()
      })
      const changed = marks.changes.map(({ number, text: words }) => `${number} ${words}`).join('; ')
      const judged = lines.filter((line) => line.verdict)
      this.said.replaceChildren('Heavy lines: levels; bars: 95 % intervals from the repeats; large and pale: outliers. ',
        ...(changed ? [`Changed in software, settings or machine: ${changed}. `] : []),
        ...judged.slice(0, 5).flatMap((line) => [element('b', { textContent: `${line.verdict}: ` }), `${line.said} `]))
      holder.dataset.drawn = String(marks.points.length)
    }
  }

  if (!data.points.length) return
  const chart = new HistoryChart()
  // Colours of charts are read when they are drawn.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => chart.choose())
})()
