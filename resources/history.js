// The history: a chart of each benchmark, site, device and kind of scaling, whose reader chooses the
// series, what it is over and its unit; a click on a session leads to its report and records.
//
// Data: {groups: {id: [series]}, components, speedups (history_several.js), sessions: [{name, started, committed, subject, tags, hosts, results, report,
// records}]}. A series: {title, metric, unit, better, verdict, said, base, sessions (places), centres, repeats, runs,
// spikes (places in the series), of_base, levels: [[first, last, low, mean, high]], changes: [[place, text]]}.
// Names of commits are data of the chart, never part of an expression.
(() => {
  const { element, charts } = window.scalesweep
  const { choice, tick, tone, look, embed } = charts
  const { Components, Speedups, names, across, pictures, bar, counted, day, text } = window.scalesweep.several
  const data = JSON.parse(document.getElementById('history-data').textContent)

  class SeriesChart {
    constructor(holder, root, all) {
      this.holder = holder
      this.all = all
      ;[this.whichLabel, this.which] = choice('Point and metric', all.map((one, n) => [String(n), `${one.title} (${one.verdict})`]), '0')
      ;[this.overLabel, this.over] = choice('Over', [['commits', 'commits, in their order'], ['dates', 'dates of the sessions']], 'commits')
      ;[this.unitLabel, this.unit] = choice('Values', [['relative', 'relative to the baseline'], ['own', 'as measured']], 'relative')
      ;[this.eachLabel, this.each] = tick('repeats', true)
      ;[this.pickLabel, this.pick] = choice('Session', [], '')
      this.plot = element('div', { className: 'plot' })
      this.said = element('p', { className: 'note' })
      this.said.setAttribute('aria-live', 'polite')
      this.detail = element('div', { className: 'session' })
      this.detail.setAttribute('aria-live', 'polite')
      root.replaceChildren(bar(this.whichLabel, this.overLabel, this.unitLabel, this.eachLabel, ...pictures(this, holder.dataset.chart)),
        this.plot, this.said, element('div', { className: 'picks' }, this.pickLabel), this.detail)
      this.which.addEventListener('change', () => this.choose())
      for (const one of [this.over, this.unit, this.each]) one.addEventListener('change', () => this.draw())
      this.pick.addEventListener('change', () => this.tell())
      this.choose()
    }

    get series() {
      return this.all[Number(this.which.value)]
    }

    // Another series: its sessions can be picked, the newest first.
    choose() {
      this.names = names(this.series.sessions.map((place) => data.sessions[place]))
      const options = this.names.map((name, n) => [String(n), `${name}, ${day(this.session(n).started)}`]).reverse()
      this.pick.replaceChildren(element('option', { value: '', textContent: 'click on a session, or choose one' }),
        ...options.map(([value, textContent]) => element('option', { value, textContent })))
      this.tell()
      this.draw()
    }

    session(place) {
      return data.sessions[this.series.sessions[place]]
    }

    // The report and the records of the session that is picked.
    tell() {
      const place = this.pick.value === '' ? null : Number(this.pick.value)
      this.holder.dataset.session = place === null ? '' : this.names[place]
      if (place === null) return this.detail.replaceChildren()
      const [one, series] = [this.session(place), this.series]
      const links = one.report ? [element('a', { href: one.report, textContent: 'report' })] : []
      const records = one.records ? series.runs[place].map((id) =>
        element('a', { href: `${one.records}/${encodeURIComponent(id)}/record.json`, textContent: id })) : []
      const line = (...parts) => element('p', {}, ...parts)
      const values = series.repeats[place].map((value) => text(value)).join(', ')
      const around = [one.subject, one.tags, one.hosts].filter((text) => text).join(' · ')
      this.detail.replaceChildren(
        line(element('b', { textContent: one.name }), ` measured ${day(one.started)} UTC${around ? `: ${around}` : ''}`),
        line(`${series.metric}: ${values} ${series.unit}${series.spikes.includes(place) ? ' (outlier)' : ''}`),
        line(...(links.length ? ['Session: ', ...links] : [`Results: ${one.results} (no longer there)`])),
        ...(records.length ? [line('Records: ', ...records.flatMap((link, n) => [...(n ? [' · '] : []), link]))] : []))
    }

    values() {
      const [series, factor] = [this.series, this.unit.value === 'relative' ? 1 / this.series.base : 1]
      const dated = this.over.value === 'dates'
      const at = (place) => (dated ? this.session(place).started : this.names[place])
      const spikes = new Set(series.spikes)
      const base = new Set(series.of_base)
      const sessions = series.centres.map((value, n) => ({
        kind: 'session', n, x: at(n), y: value * factor, mark: spikes.has(n) ? 'outlier' : base.has(n) ? 'baseline' : 'session',
        name: this.names[n], when: day(this.session(n).started), subject: this.session(n).subject || '–', value: `${text(value)} ${series.unit}`,
        change: `${text((value / series.base - 1) * 100)} %`,
      }))
      const repeats = this.each.checked ? series.repeats.flatMap((all, n) => all.map((value) => ({ kind: 'repeat', n, x: at(n), y: value * factor }))) : []
      const levels = series.levels.map(([first, last, low, mean, high], place) => ({
        kind: 'level', x: at(first), x2: at(last), low: low * factor, y: mean * factor, high: high * factor,
        newest: place === series.levels.length - 1 && place > 0,
      }))
      const changes = series.changes.map(([place, text], n) => ({ kind: 'change', x: at(place), number: String(n + 1), text }))
      return { sessions, repeats, levels, changes, base: series.base * factor }
    }

    spec({ sessions, repeats, levels, changes, base }, title, description) {
      const dated = this.over.value === 'dates'
      const order = this.names
      const x = (band) => across(dated, order, band)
      const x2 = { field: 'x2', ...(dated ? {} : { bandPosition: 1 }) }
      const y = (field) => ({ field, type: 'quantitative', title, scale: { zero: false, nice: true }, axis: { tickCount: 6 } })
      const worse = this.series.verdict === 'regression' ? tone('--bad') : this.series.verdict === 'improvement' ? tone('--good') : tone('--ink')
      const layer = [
        { data: { values: levels }, mark: { type: 'rect', aria: false, opacity: 0.13, color: tone('--s1') }, encoding: { x: x(0), x2, y: y('low'), y2: { field: 'high' } } },
        { data: { values: [{ y: base }] }, mark: { type: 'rule', aria: false, strokeDash: [2, 3], color: tone('--soft') }, encoding: { y: y('y') } },
        { data: { values: repeats }, mark: { type: 'point', aria: false, filled: true, size: 12, color: tone('--soft'), opacity: 0.6 }, encoding: { x: x(0.5), y: y('y') } },
        { data: { values: levels }, mark: { type: 'rule', aria: false, strokeWidth: 2.2 }, encoding: { x: x(0), x2, y: y('y'),
          color: { condition: { test: 'datum.newest', value: worse }, value: tone('--ink') } } },
        { data: { values: changes }, mark: { type: 'rule', aria: false, strokeDash: [5, 4], color: tone('--soft'), size: 1 }, encoding: { x: x(0) } },
        { data: { values: changes }, mark: { type: 'text', aria: false, align: 'left', dx: 3, fontWeight: 600, color: tone('--ink') },
          encoding: { x: x(0), y: { value: 8 }, text: { field: 'number' }, tooltip: [{ field: 'text', title: 'changed' }] } },
        { data: { values: sessions }, mark: { type: 'point', filled: true, size: 70, opacity: 1, cursor: 'pointer' },
          encoding: { x: x(0.5), y: y('y'),
            color: { field: 'mark', type: 'nominal', legend: null, scale: { domain: ['session', 'baseline', 'outlier'], range: [tone('--s1'), tone('--s3'), tone('--s2')] } },
            shape: { field: 'mark', type: 'nominal', legend: null, scale: { domain: ['session', 'baseline', 'outlier'], range: ['circle', 'square', 'triangle-up'] } },
            tooltip: [['name', 'commit'], ['when', 'measured, UTC'], ['subject', 'subject'], ['value', 'value'], ['change', 'against the baseline'], ['mark', 'kind']]
              .map(([field, heading]) => ({ field, type: 'nominal', title: heading })) } },
      ]
      return { description, layer, ...look() }
    }

    // One after the other: what is drawn last is what was chosen last.
    draw() {
      this.drawing = (this.drawing ?? Promise.resolve()).catch(console.error).then(() => this.render())
    }

    async render() {
      const [series, parts] = [this.series, this.values()]
      const relative = this.unit.value === 'relative'
      const title = relative ? `${series.metric}, relative (${series.better} is better)` : `${series.metric} [${series.unit}]`
      const outliers = series.spikes.length
      this.said.replaceChildren(
        `${counted(series.sessions.length, 'session')}, ${counted(series.levels.length, 'level')}${outliers ? `, ${counted(outliers, 'outlier')} (triangles)` : ''}; `
        + 'squares: the baseline, dotted; lines: levels; bands: 95 % of sessions. ',
        ...(series.changes.length ? [`Changed in software, settings or machine: ${series.changes.map(([, text], n) => `${n + 1} ${text}`).join('; ')}. `] : []),
        element('b', { textContent: `${series.verdict}: ` }), series.said)
      const description = `${title} over ${this.over.value}: ${series.title}, ${counted(series.sessions.length, 'session')}; the tables have the numbers`
      this.view = await embed(this.plot, this.spec(parts, title, description), parts.sessions.length + parts.repeats.length, this.view)
      this.view.addEventListener('click', (_event, item) => {
        if (item?.datum?.kind !== 'session' && item?.datum?.kind !== 'repeat') return
        this.pick.value = String(item.datum.n)
        this.tell()
      })
      this.holder.dataset.drawn = String(series.sessions.length)
    }
  }

  // A group's chart: one series with its verdict, or several lines, where there are some.
  class Holder {
    constructor(holder) {
      const id = holder.dataset.chart
      const makers = {
        series: () => new SeriesChart(holder, this.root, data.groups[id]),
        components: () => new Components(holder, this.root, data.components[id], data.sessions),
        speedups: () => new Speedups(holder, this.root, data.speedups[id], data.sessions),
      }
      const views = [['series', 'one series with its verdict'], ...(data.components[id]?.length ? [['components', 'several components of a point']] : []),
        ...(data.speedups[id]?.length ? [['speedups', 'speedup and efficiency']] : [])]
      const [label, select] = choice('Show', views, 'series')
      this.root = element('div')
      holder.replaceChildren(...(views.length > 1 ? [element('div', { className: 'picks show' }, label)] : []), this.root)
      const show = () => {
        this.chart?.view?.finalize()
        this.chart = makers[select.value]()
      }
      select.addEventListener('change', show)
      show()
    }

    draw() {
      this.chart.draw()
    }
  }

  const woken = []
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue
      near.unobserve(target)
      woken.push(new Holder(target))
    }
  }, { rootMargin: '400px' })
  for (const holder of document.querySelectorAll('[data-chart]')) near.observe(holder)

  // Colours of charts are read when they are drawn.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => woken.forEach((one) => one.draw()))

  // On paper nothing can be unfolded.
  let unfolded = []
  addEventListener('beforeprint', () => {
    unfolded = [...document.querySelectorAll('details.figures-of:not([open])')]
    for (const one of unfolded) one.open = true
  })
  addEventListener('afterprint', () => unfolded.forEach((one) => { one.open = false }))
})()
