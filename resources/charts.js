// A chart of an experiment's points: the reader chooses lines or a heat map, its axes, and the points to
// show. One Vega-Lite spec a choice, made of the columns of the table. Nothing is averaged or interpolated.
//
// Data of a chart: {rows, axes: [{title, values, texts, number, scale, leader}], measures: [{title, mean, low,
// high, ideal, share}], sources: [texts] or null}; columns are arrays by row. Fields have names of our own: what a campaign calls its parameters is data there.
(() => {
  const { element, library } = window.scalesweep
  const MAX_SERIES = 12
  const COLOURS = 6 // --s1 to --s6 of the style sheet
  const MANY_TICKS = 24
  const MANY = 200 // marks, from which on a canvas is faster than SVG
  const MANY_COLUMNS = 24 // of a heat map: more leave no room for numbers in cells
  const SHAPES = ['circle', 'triangle-up', 'square', 'diamond', 'cross', 'triangle-down', 'triangle-right']

  const counted = (count, noun) => `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
  const text = (value) => Number(value.toPrecision(5)).toLocaleString('en-US', { maximumSignificantDigits: 5 })
  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

  const choice = (title, options, value) => {
    const select = element('select', {}, ...options.map(([key, words]) =>
      element('option', { value: key, textContent: words, selected: key === value })))
    return [element('label', {}, element('span', { textContent: title }), select), select]
  }

  const tick = (title, checked) => {
    const box = element('input', { type: 'checkbox', checked })
    return [element('label', { className: 'tick' }, box, element('span', { textContent: title })), box]
  }

  // At most MANY_TICKS of these values, evenly.
  const some = (ticks) => ticks.filter((_, place) => place % Math.ceil(ticks.length / MANY_TICKS) === 0)

  const wide = (values, times) => {
    const known = values.filter((value) => value !== null)
    return known.length > 2 && Math.min(...known) > 0 && Math.max(...known) / Math.min(...known) >= times
  }

  // Size and colours of a chart, as they are now.
  const look = () => {
    const [ink, soft, line] = [tone('--ink'), tone('--soft'), tone('--line')]
    const words = { labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 }
    return {
      width: 'container', height: 340, autosize: { type: 'fit', contains: 'padding' }, background: 'transparent',
      config: {
        font: 'system-ui, sans-serif', view: { stroke: null },
        axis: { ...words, gridColor: line, domainColor: soft, tickColor: soft },
        legend: { ...words, orient: 'bottom', columns: 4, symbolLimit: MAX_SERIES, symbolOpacity: 1, titleLimit: 420, gradientLength: 260 },
      },
    }
  }

  // Draw a chart of so many marks in place of the view before; returns its view.
  const embed = async (plot, spec, marks, before) => {
    library('charts')
    const drawn = await window.vegaEmbed(plot, spec, { actions: false, ast: true, renderer: marks > MANY ? 'canvas' : 'svg' })
    if (before) before.finalize()
    return drawn.view
  }

  const save = async (view, kind, name) => {
    const address = await view.toImageURL(kind, kind === 'png' ? 2 : 1)
    element('a', { href: address, download: `${name}.${kind}` }).click()
  }

  const group = (label, ...parts) => {
    const made = element('div', { className: 'picks' }, ...parts)
    made.setAttribute('role', 'group')
    made.setAttribute('aria-label', label)
    return made
  }

  class Chart {
    constructor(holder, data) {
      this.holder = holder
      this.data = data
      const axes = data.axes.map((axis, place) => [`a${place}`, axis.title])
      const measures = data.measures.map((measure, place) => [`m${place}`, measure.title])
      this.own = data.axes.map((_, place) => place).filter((place) => data.axes[place].leader === place)
      this.scale = data.axes.findIndex((axis) => axis.scale)
      const scale = Math.max(this.scale, 0)
      const by = data.axes.findIndex((axis, place) => place !== scale && axis.leader === place)
      const spread = data.axes[scale].number && wide(data.axes[scale].values, 8)
      const kinds = [['lines', 'lines'], ...(this.own.length > 1 ? [['heat', 'heat map']] : [])]
      const labels = {}
      const add = (name, [label, control]) => Object.assign(this, { [name]: control }) && (labels[name] = label)
      add('kind', choice('Drawn as', kinds, 'lines'))
      add('y', choice('Metric', measures, 'm0'))
      add('x', choice('Horizontal axis', [...axes, ...measures], `a${scale}`))
      add('by', choice('Series, or vertical side', [['', 'none'], ...axes], by < 0 ? '' : `a${by}`))
      add('logX', tick('log horizontal', spread))
      add('logY', tick('log vertical', spread && data.axes[scale].scale && wide(data.measures[0].mean, 8)))
      this.held = this.own.map((place) => {
        const values = [...new Set(data.axes[place].texts)].filter((value) => value !== null)
        const many = data.rows > 150 && place !== scale && place !== by
        return [place, values, ...choice(data.axes[place].title, [['', 'all'], ...values.map((value, n) => [String(n), value])], many ? '0' : '')]
      })
      const images = ['svg', 'png'].map((kind) => {
        const made = element('button', { type: 'button', textContent: kind.toUpperCase() })
        made.addEventListener('click', () => save(this.view, kind, holder.dataset.chart))
        return made
      })
      this.plot = element('div', { className: 'plot' })
      this.said = element('p', { className: 'note' })
      this.said.setAttribute('aria-live', 'polite')
      holder.replaceChildren(group('What the chart shows', ...Object.values(labels), ...images),
        group('Points to show', ...this.held.map(([, , label]) => label)), this.plot, this.said)
      holder.addEventListener('change', () => this.draw())
      this.draw()
    }

    column(key) {
      const place = Number(key.slice(1))
      if (key[0] === 'a') return this.data.axes[place]
      return { title: this.data.measures[place].title, values: this.data.measures[place].mean, number: true }
    }

    // A heat map needs another vertical side, and one value of each parameter that is on no side.
    settle() {
      this.heat = this.kind.value === 'heat'
      if (!this.heat) return
      const free = this.own.map((place) => `a${place}`)
      if (!free.includes(this.x.value)) this.x.value = free[0]
      if (!free.includes(this.by.value) || this.by.value === this.x.value) this.by.value = free.find((key) => key !== this.x.value)
      const texts = (key, row) => this.data.axes[Number(key.slice(1))].texts[row]
      const sides = [this.x.value, this.by.value]
      let rows = Array.from({ length: this.data.rows }, (_, row) => row)
      for (const [place, values, , select] of this.held) {
        const cells = new Set(rows.map((row) => sides.map((key) => texts(key, row)).join('\u0001')))
        const free = sides.includes(`a${place}`) || rows.length === cells.size
        if (!free && select.value === '') select.value = '0'
        if (select.value !== '') rows = rows.filter((row) => this.data.axes[place].texts[row] === values[Number(select.value)])
      }
    }

    // What is drawn: an object for each point; where there is no result, lines break.
    values() {
      const { data } = this
      const [x, y] = [this.column(this.x.value), data.measures[Number(this.y.value.slice(1))]]
      const log = { x: this.logX.checked && x.number && !this.heat, y: this.logY.checked }
      const kept = this.held.filter(([, , , select]) => select.value !== '')
        .map(([place, values, , select]) => [place, values[Number(select.value)]])
      const chosen = (texts) => kept.every(([place, value]) => texts(place) === value)
      const by = this.by.value === '' ? null : Number(this.by.value.slice(1))
      const rest = data.axes.map((_, place) => place).filter((place) => `a${place}` !== this.x.value && place !== by)
      const alone = data.sources?.find((source) => source !== null) ?? '' // a point without a result has none
      this.below = 0 // points that a logarithmic axis has no place for
      this.omitted = new Set()
      const names = []
      const made = []
      const add = (texts, at, value, low, high, more) => {
        if (!chosen(texts) || at === null) return
        const s = by === null ? 'all' : texts(by)
        if (!names.includes(s)) names.push(s)
        if (names.indexOf(s) >= MAX_SERIES && !this.heat) return this.omitted.add(s)
        const shown = value !== null && !(log.y && value <= 0) && !(log.x && at <= 0)
        if (value !== null && !shown) this.below += 1
        const known = low !== null && high !== null
        made.push({ x: at, y: shown ? value : null, s, low: shown && known && !(log.y && low <= 0) ? low : null, high: shown && known ? high : null,
          hole: value === null, line: [s, ...rest.map(texts), more.source].join('\u0001'),
          text: value === null ? 'no result' : y.share ? `${(100 * value).toFixed(0)} %` : text(Number(value.toPrecision(3))),
          range: known ? `${text(low)} to ${text(high)}` : 'none',
          point: data.axes.map((axis, place) => `${axis.title} ${texts(place) ?? '–'}`).join(', '), ...more })
      }
      for (let row = 0; row < data.rows; row += 1) {
        add((place) => data.axes[place].texts[row], x.number && !this.heat ? x.values[row] : x.texts?.[row] ?? null, y.mean[row],
          y.low ? y.low[row] : null, y.high ? y.high[row] : null,
          { ideal: y.ideal && !(log.y && y.ideal[row] <= 0) ? y.ideal[row] : null, source: data.sources ? data.sources[row] ?? alone : '' })
      }
      return [made, names.slice(0, MAX_SERIES), log]
    }

    tooltip(y) {
      return [{ field: 'y', type: 'quantitative', title: y.title, format: y.share ? '.4p' : ',.6~g' },
        ...[['point', 'point'], ['range', '95 % interval'], ['source', 'source']].map(([field, title]) => ({ field, type: 'nominal', title }))]
    }

    lines(values, names, log, x, y) {
      const ticks = [...new Set(values.map((one) => one.x))].sort((a, b) => a - b)
      const across = { field: 'x', title: x.title, type: x.number ? 'quantitative' : 'nominal',
        ...(x.number
          ? { scale: { ...(log.x ? { type: 'log', ...(x.scale ? { base: 2 } : {}) } : { type: 'linear', zero: false }), nice: false, padding: 12 },
              axis: { labelOverlap: true, ...(this.x.value[0] === 'a' ? { values: some(ticks), format: ',.6~g' } : {}) } }
          : { sort: null, axis: { labelAngle: String(values[0]?.x).length > 8 ? -30 : 0 } }) }
      const up = (field) => ({ field, type: 'quantitative', title: y.title, scale: log.y ? { type: 'log', nice: true } : { type: 'linear', zero: y.share === true },
        axis: { tickCount: 6, ...(y.share ? { format: '.0%' } : log.y ? { format: ',.6~g' } : {}) } })
      const legend = names.length > 1 ? { title: this.column(this.by.value).title } : null
      const series = (range) => ({ field: 's', type: 'nominal', legend, scale: { domain: names, range: names.map((_, n) => range(n)) } })
      const color = series((n) => tone(`--s${(n % COLOURS) + 1}`))
      const shape = series((n) => SHAPES[n % SHAPES.length])
      const along = { x: across, color, detail: [{ field: 'line', type: 'nominal' }] }
      const layer = []
      const add = (some, one) => { if (some) layer.push(one) }
      const known = values.some((one) => one.low !== null)
      const line = this.x.value[0] === 'a' && x.number
      const ends = { ...along, y: up('low'), y2: { field: 'high' } }
      add(known && line && names.length < 4, { mark: { type: 'area', opacity: 0.16 }, encoding: ends })
      add(known, { mark: { type: 'rule', opacity: 0.7 }, encoding: ends })
      add(line && values.some((one) => one.ideal), { transform: [{ filter: { field: 'ideal', valid: true } }],
        mark: { type: 'line', strokeDash: [5, 4], strokeWidth: 1, opacity: 0.8 }, encoding: { ...along, y: up('ideal') } })
      add(line, { mark: { type: 'line', strokeWidth: 1.75 }, encoding: { ...along, y: up('y') } })
      const point = { type: 'point', size: 65, opacity: 1, ...(values.length > MANY ? { aria: false } : {}) }
      const dots = { ...along, y: up('y'), shape, tooltip: this.tooltip(y) }
      add(true, { transform: [{ filter: { field: 'y', valid: true } }], mark: { ...point, filled: true }, encoding: dots })
      return { layer }
    }

    cells(values, log, x, y) {
      const side = this.column(this.by.value)
      const order = (axis, texts) => {
        const shown = [...new Set(texts)]
        return axis.number ? shown.sort((a, b) => Number(a) - Number(b)) : shown
      }
      const xs = order(x, values.map((one) => one.x))
      const ys = order(side, values.map((one) => one.s))
      if (side.number) ys.reverse()
      const angle = Math.max(...xs.map((words) => String(words).length)) * xs.length > 80 ? -35 : 0
      const sides = { x: { field: 'x', type: 'nominal', title: x.title, scale: { domain: xs }, axis: { labelAngle: angle, grid: false } },
        y: { field: 's', type: 'nominal', title: side.title, scale: { domain: ys }, axis: { grid: false } }, tooltip: this.tooltip(y) }
      const known = values.map((one) => one.y).filter((value) => value !== null)
      const middle = log.y ? Math.sqrt(Math.min(...known) * Math.max(...known)) : (Math.min(...known) + Math.max(...known)) / 2
      for (const one of values) one.ink = one.y === null ? tone('--ink') : one.y < middle ? '#ffffff' : '#000000'
      const color = { field: 'y', type: 'quantitative', title: y.title,
        scale: { type: log.y ? 'log' : 'linear', scheme: 'viridis', nice: false, ...(log.y ? {} : { zero: false }) },
        legend: { format: y.share ? '.0%' : ',.3~r' } }
      const hole = { transform: [{ filter: 'datum.y === null' }], mark: { type: 'rect', fill: 'transparent', stroke: tone('--soft'), strokeDash: [3, 3] }, encoding: sides }
      const words = [...new Set(values.map((one) => one.ink))].map((ink) => ({ transform: [{ filter: { field: 'ink', equal: ink } }],
        mark: { type: 'text', aria: false, fontSize: xs.length > 12 ? 9 : 12, fill: ink }, encoding: { ...sides, text: { field: 'text', type: 'nominal' } } }))
      const layer = [
        ...(known.length < values.length ? [hole] : []),
        ...(known.length ? [{ transform: [{ filter: 'datum.y !== null' }], mark: { type: 'rect', stroke: 'white', strokeWidth: 1 }, encoding: { ...sides, color } }] : []),
        ...(xs.length <= MANY_COLUMNS ? words : []),
      ]
      return { layer, height: Math.max(140, 34 * ys.length + 110) }
    }

    // One after the other: what is drawn last is what was chosen last.
    draw() {
      this.drawing = (this.drawing ?? Promise.resolve()).catch(console.error).then(() => this.render())
    }

    async render() {
      this.settle()
      const [values, names, log] = this.values()
      const [x, y] = [this.column(this.x.value), this.data.measures[Number(this.y.value.slice(1))]]
      const points = values.filter((one) => one.y !== null).length
      const holes = values.filter((one) => one.hole).length
      this.said.textContent = `${counted(points, 'point')}${holes ? `, ${holes} without a result` : ''}`
        + `${this.below ? `, ${this.below} omitted because they are not above 0` : ''}; bars, bands and hover: 95 % intervals of the mean`
        + `${y.ideal && !this.heat ? '; dashed: ideal' : ''}`
        + `${this.omitted.size ? `; ${this.omitted.size} more series not shown: choose other series or fewer points` : ''}.`
      const over = this.heat ? `by ${this.column(this.by.value).title} and` : 'over'
      const description = `${y.title} ${over} ${x.title}: ${counted(points, 'point')}; the table has their numbers`
      const spec = this.heat ? this.cells(values, log, x, y) : this.lines(values, names, log, x, y)
      this.view = await embed(this.plot, { description, data: { values }, ...look(), ...spec }, values.length, this.view)
      this.holder.dataset.drawn = String(points)
    }
  }

  window.scalesweep.charts = { make: (holder, data) => new Chart(holder, data), choice, tick, tone, some, look, embed, save }
})()
