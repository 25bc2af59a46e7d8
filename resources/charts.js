// A chart of an experiment's points: the reader chooses its axes, the grouping into series, and the
// series to show. Drawn with Vega-Lite from the columns of the table.
//
// Data of a chart: {rows, axes: [{title, values, texts, number, scale, leader}], measures: [{title, mean, low,
// high, ideal, share}], sources: [texts] or null, predicted: [{texts (of the axes), x, measure, y, low, high}]}; columns are arrays by row. Fields of the chart have
// names of our own: what a campaign calls its parameters is data there, never part of an expression.
(() => {
  const { element, library } = window.scalesweep
  const MAX_SERIES = 40
  const SHOWN_FIRST = 12
  const COLOURS = 6 // --s1 to --s6 of the style sheet
  const FEW = 12 // values of a parameter that all get a tick
  const MANY_TICKS = 24
  const MAX_DECADES = 12 // lines of a logarithmic axis that spans many
  const MANY = 200 // marks, from which on a canvas is faster than SVG, and a text for each takes longer than drawing it
  const SHAPES = ['circle', 'triangle-up', 'square', 'diamond', 'cross', 'triangle-down', 'triangle-right']
  const SIGNS = { circle: '●', 'triangle-up': '▲', square: '■', diamond: '◆', cross: '✚',
    'triangle-down': '▼', 'triangle-right': '▶' }

  const counted = (count, noun) => `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`

  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

  const choice = (title, options, value) => {
    const select = element('select', {}, ...options.map(([key, text]) =>
      element('option', { value: key, textContent: text, selected: key === value })))
    return [element('label', {}, element('span', { textContent: title }), select), select]
  }

  const tick = (title, checked) => {
    const box = element('input', { type: 'checkbox', checked })
    return [element('label', { className: 'tick' }, box, element('span', { textContent: title })), box]
  }

  // At most MANY_TICKS of these values, evenly.
  const some = (ticks) => {
    const stride = Math.ceil(ticks.length / MANY_TICKS)
    return ticks.filter((_, place) => place % stride === 0)
  }

  const wide = (values) => {
    const known = values.filter((value) => value > 0)
    return known.length > 2 && Math.max(...known) / Math.min(...known) >= 8
  }

  // Size and colours of a chart, as they are now.
  const look = () => {
    const [ink, soft, line] = [tone('--ink'), tone('--soft'), tone('--line')]
    return {
      width: 'container', height: 340, autosize: { type: 'fit', contains: 'padding' }, background: 'transparent',
      config: {
        font: 'system-ui, sans-serif',
        axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: soft, tickColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 },
        view: { stroke: null },
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

  class Chart {
    constructor(holder, data) {
      this.holder = holder
      this.data = data
      const axes = data.axes.map((axis, place) => [`a${place}`, axis.title])
      const measures = data.measures.map((measure, place) => [`m${place}`, measure.title])
      const scale = Math.max(data.axes.findIndex((axis) => axis.scale), 0)
      const start = data.start ?? {}
      this.whole = new Set(start.whole ?? [])
      const group = start.by ?? data.axes.findIndex((axis, place) => place !== scale && axis.leader === place)
      ;[this.yLabel, this.y] = choice('Vertical axis', measures, `m${start.measure ?? 0}`)
      ;[this.xLabel, this.x] = choice('Horizontal axis', [...axes, ...measures], `a${scale}`)
      ;[this.byLabel, this.by] = choice('Series', [['', 'none'], ...axes], group < 0 ? '' : `a${group}`)
      // A point without a result has no source; it is a hole in the lines of all.
      this.kinds = [...new Set(data.sources ?? [''])].filter((source) => source !== null)
      const spread = data.axes[scale].number && wide(data.axes[scale].values)
      ;[this.logX, this.xBox] = tick('log horizontal', spread)
      ;[this.logY, this.yBox] = tick('log vertical', start.measure === undefined && spread && data.axes[scale].scale && wide(data.measures[0].mean))
      this.filters = element('div', { className: 'picks' })
      this.filters.setAttribute('role', 'group')
      this.filters.setAttribute('aria-label', 'Points to show')
      this.legend = element('fieldset', { className: 'legend' })
      this.plot = element('div', { className: 'plot' })
      this.said = element('p', { className: 'note' })
      this.said.setAttribute('aria-live', 'polite')
      const image = (text, kind) => {
        const made = element('button', { type: 'button', textContent: text })
        made.addEventListener('click', () => this.download(kind))
        return made
      }
      const bar = element('div', { className: 'picks' }, ...this.kindOf('lines'), this.yLabel, this.xLabel, this.byLabel,
        this.logX, this.logY, image('SVG', 'svg'), image('PNG', 'png'))
      bar.setAttribute('role', 'group')
      bar.setAttribute('aria-label', 'What the chart shows')
      this.parts = [bar, this.filters, this.plot, this.legend, this.said]
      holder.replaceChildren(...this.parts)
      for (const one of [this.y, this.xBox, this.yBox]) one.addEventListener('change', () => this.draw())
      for (const one of [this.x, this.by]) one.addEventListener('change', () => this.choose())
      this.choose()
    }

    // The choice between lines and a heat map; none where points differ in one parameter only.
    kindOf(kind) {
      const own = this.data.axes.filter((axis, place) => axis.leader === place)
      if (own.length < 2 || !window.scalesweep.heatmap) return []
      const [label, select] = choice('Drawn as', [['lines', 'lines'], ['heat', 'heat map']], kind)
      select.addEventListener('change', () => {
        const heat = select.value === 'heat'
        select.value = kind // as it is shown again later
        this.heat = heat ? window.scalesweep.heatmap.make(this.holder, this.data, this.kindOf('heat')[0]) : null
        if (!heat) {
          this.holder.replaceChildren(...this.parts)
          this.draw()
        }
        this.holder.querySelector('select').focus()
      })
      return [label]
    }

    // Parameters that are on no axis, without those that the axes determine.
    get rest() {
      const there = [this.x.value, this.by.value]
      return this.data.axes.map((_, place) => place).filter((place) =>
        !there.includes(`a${place}`) && !there.includes(`a${this.data.axes[place].leader}`))
    }

    // A choice of one value, or all, for each of these parameters.
    choose() {
      this.kept = new Map()
      const many = this.data.rows > 150
      this.filters.replaceChildren(...this.rest.map((place) => {
        const axis = this.data.axes[place]
        const values = [...new Set(axis.texts)]
        const [label, select] = choice(axis.title, [['', 'all'], ...values.map((text, n) => [String(n), text])],
          many && !this.whole.has(place) ? '0' : '')
        const keep = () => this.kept.set(place, select.value === '' ? null : values[Number(select.value)])
        select.addEventListener('change', () => { keep(); this.name() })
        keep()
        return label
      }))
      this.name()
    }

    rows() {
      return Array.from({ length: this.data.rows }, (_, row) => row).filter((row) =>
        [...this.kept].every(([place, text]) => text === null || this.data.axes[place].texts[row] === text))
    }

    series(row) {
      return this.by.value === '' ? 'all' : this.data.axes[Number(this.by.value.slice(1))].texts[row]
    }

    // The legend: a box for each series, which the keyboard reaches.
    name() {
      const names = [...new Set(this.rows().map((row) => this.series(row)))]
      this.names = names.slice(0, MAX_SERIES)
      this.left = names.length - this.names.length
      this.hidden = new Set(this.names.slice(SHOWN_FIRST))
      const title = this.by.value === '' ? '' : this.data.axes[Number(this.by.value.slice(1))].title
      this.legend.hidden = this.names.length < 2
      this.legend.replaceChildren(element('legend', { textContent: title }), ...this.names.map((name, place) => {
        const box = element('input', { type: 'checkbox', checked: !this.hidden.has(name) })
        box.addEventListener('change', () => {
          if (box.checked) this.hidden.delete(name)
          else this.hidden.add(name)
          this.draw()
        })
        const sign = element('span', { textContent: SIGNS[SHAPES[place % SHAPES.length]], ariaHidden: 'true' })
        sign.style.color = `var(--s${(place % COLOURS) + 1})`
        return element('label', { className: 'tick' }, box, sign, element('span', { textContent: name }))
      }))
      this.draw()
    }

    colour(place) {
      return tone(`--s${(place % COLOURS) + 1}`)
    }

    column(key) {
      const place = Number(key.slice(1))
      if (key[0] === 'a') return this.data.axes[place]
      const measure = this.data.measures[place]
      return { title: measure.title, values: measure.mean, number: true, measure }
    }

    // What is drawn: a row for each point; where there is no result, lines break.
    values() {
      const x = this.column(this.x.value)
      const y = this.data.measures[Number(this.y.value.slice(1))]
      const log = [this.xBox.checked && x.number, this.yBox.checked]
      const found = []
      this.holes = 0
      this.below = 0 // points that a logarithmic axis has no place for
      for (const row of this.rows()) {
        const series = this.series(row)
        const [at, mean] = [x.number ? x.values[row] : x.texts[row], y.mean[row]]
        if (at === null || this.hidden.has(series) || !this.names.includes(series)) continue
        if (log[0] && at <= 0) {
          this.below += 1
          continue
        }
        if (mean === null || (log[1] && mean <= 0)) {
          if (mean === null) this.holes += 1
          else this.below += 1
          for (const source of this.kinds) {
            found.push({ x: at, y: null, low: null, high: null, s: series, ideal: null, line: this.line(row, source) })
          }
          continue
        }
        const low = y.low ? y.low[row] : null
        const high = y.high ? y.high[row] : null
        const known = low !== null && high !== null
        const shown = known && !(log[1] && low <= 0)
        found.push({
          x: at, y: mean, low: shown ? low : null, high: shown ? high : null, s: series,
          ideal: y.ideal && !(log[1] && y.ideal[row] <= 0) ? y.ideal[row] : null,
          line: this.line(row, this.data.sources ? this.data.sources[row] : ''),
          point: this.data.axes.map((axis) => `${axis.title} ${axis.texts[row]}`).join(', '),
          range: known ? `${this.text(low)} to ${this.text(high)}` : 'none',
          source: this.data.sources ? this.data.sources[row] : '',
        })
      }
      return [...found, ...this.ahead(found, log[1])]
    }

    // Predicted counts, where the horizontal axis is the scale, and the measured point that each line of
    // them begins at, which gets no mark of its own.
    ahead(found, log) {
      const scale = this.data.axes.findIndex((axis) => axis.scale)
      if (this.x.value !== `a${scale}`) return []
      const marks = new Map()
      for (const one of this.data.predicted) {
        const series = this.by.value === '' ? 'all' : one.texts[Number(this.by.value.slice(1))]
        const kept = [...this.kept].every(([place, text]) => text === null || one.texts[place] === text)
        if (`m${one.measure}` !== this.y.value || !kept || this.hidden.has(series) || !this.names.includes(series)) continue
        const rest = this.rest.map((place) => one.texts[place])
        const line = [...rest, 'predicted'].join('\u0001')
        if (!marks.has(series + line)) {
          const before = found.filter((point) => point.s === series && point.y !== null && point.x < one.x
            && point.line.startsWith([...rest, ''].join('\u0001')))
          const last = before.reduce((a, b) => (a === null || b.x > a.x ? b : a), null)
          marks.set(series + line, last ? [{ x: last.x, y: last.y, low: last.y, high: last.y, s: series, ideal: null, line, ahead: true }] : [])
        }
        marks.get(series + line).push({
          x: one.x, y: one.y, low: log && one.low <= 0 ? null : one.low, high: one.high, s: series, ideal: null, line,
          ahead: true, mark: true, range: `${this.text(one.low)} to ${this.text(one.high)}`, source: 'predicted',
          point: this.data.axes.map((axis, place) => `${axis.title} ${one.texts[place] ?? '–'}`).join(', '),
        })
      }
      return [...marks.values()].flat()
    }

    // What distinguishes the lines of one series.
    line(row, source) {
      return [...this.rest.map((place) => this.data.axes[place].texts[row]), source].join('\u0001')
    }

    text(value) {
      return Number(value.toPrecision(5)).toLocaleString('en-US', { maximumSignificantDigits: 5 })
    }

    spec(values, description) {
      const x = this.column(this.x.value)
      const y = this.data.measures[Number(this.y.value.slice(1))]
      const log = { x: this.xBox.checked && x.number, y: this.yBox.checked }
      const shown = this.names.map((name, place) => [name, place]).filter(([name]) => !this.hidden.has(name))
      const order = shown.map(([name]) => name)
      const ticks = [...new Set(values.map((one) => one.x))].sort((a, b) => a - b)
      const across = {
        field: 'x', title: x.title, type: x.number ? 'quantitative' : 'nominal',
        ...(x.number
          ? { scale: { ...(log.x ? { type: 'log', ...(x.scale ? { base: 2 } : {}) } : { type: 'linear', zero: false }), nice: false, padding: 12 },
              axis: { labelOverlap: true, ...(ticks.length <= FEW || x.scale ? { values: some(ticks), format: ',.6~g' } : {}) } }
          : { sort: null, axis: { labelAngle: values.length && String(values[0].x).length > 8 ? -30 : 0 } }),
      }
      // Lines at 1, 10, 100 ..., at 2 and 5 times these where there are few, and some where there are many.
      const logs = values.filter((one) => one.y !== null).map((one) => Math.log10(one.y))
      const [from, to] = logs.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity])
      const [first, last] = [Math.floor(from) - 1, Math.ceil(to) + 1]
      const steps = last - first > 5 ? [1] : [1, 2, 5]
      const stride = Math.max(1, Math.ceil((last - first) / MAX_DECADES))
      const decades = logs.length === 0 ? [] : Array.from({ length: Math.ceil((last - first) / stride) }, (_, n) =>
        steps.map((step) => step * 10 ** (first + n * stride))).flat()
      const up = (field) => ({ field, type: 'quantitative', title: y.title,
        scale: log.y ? { type: 'log', nice: false, padding: 10, ...(from === to ? { domain: [10 ** from / 2, 10 ** from * 2] } : {}) } : { type: 'linear', zero: y.share === true, nice: true },
        axis: { ...(log.y ? { values: decades } : { tickCount: 6 }), ...(y.share ? { format: '.0%' } : {}) } })
      const colour = { field: 's', type: 'nominal', legend: null,
        scale: { domain: order, range: shown.map(([, place]) => this.colour(place)) } }
      const shape = { field: 's', type: 'nominal', legend: null,
        scale: { domain: order, range: shown.map(([, place]) => SHAPES[place % SHAPES.length]) } }
      const detail = [{ field: 'line', type: 'nominal' }]
      const shift = x.number || order.length < 2 ? {} : { xOffset: { field: 's', type: 'nominal', sort: null } }
      const bands = values.some((one) => one.low !== null)
      const measured = this.x.value[0] === 'a' && x.number
      const ends = { x: across, y: up('low'), y2: { field: 'high' }, color: colour, detail }
      const layer = []
      const here = { filter: 'datum.ahead !== true' } // what was measured
      const ahead = { filter: 'datum.ahead === true' }
      if (measured) {
        if (values.some((one) => one.ahead)) {
          layer.push({ mark: { type: 'area', opacity: 0.1 }, transform: [ahead], encoding: ends })
          layer.push({ mark: { type: 'line', strokeWidth: 1.5, strokeDash: [2, 3] }, transform: [ahead],
            encoding: { x: across, y: up('y'), color: colour, detail } })
        }
        if (bands) layer.push({ mark: { type: 'area', opacity: 0.16 }, transform: [here], encoding: ends })
        if (values.some((one) => one.ideal !== null)) {
          layer.push({ mark: { type: 'line', strokeDash: [5, 4], strokeWidth: 1, opacity: 0.8 },
            transform: [{ filter: { field: 'ideal', valid: true } }],
            encoding: { x: across, y: up('ideal'), color: colour, detail } })
        }
        layer.push({ mark: { type: 'line', strokeWidth: 1.75 }, transform: [here], encoding: { x: across, y: up('y'), color: colour, detail } })
      } else if (bands) {
        layer.push({ mark: { type: 'rule', strokeWidth: 1.5 }, encoding: { ...ends, ...shift } })
      }
      const tips = [['point', 'point'], ['range', '95 % interval'], ...(this.data.sources ? [['source', 'source']] : [])]
      const marks = (which, mark, more) => layer.push({
        transform: [{ filter: { field: 'y', valid: true } }, which],
        mark: { type: 'point', size: 65, opacity: 1, ...(values.length > MANY ? { aria: false } : {}), ...mark },
        encoding: { x: across, y: up('y'), color: colour, shape, detail,
          ...shift,
          tooltip: [{ field: 'y', type: 'quantitative', title: y.title, format: y.share ? '.4p' : ',.6~g' },
            ...[...tips, ...more].map(([field, title]) => ({ field, type: 'nominal', title }))] },
      })
      marks(here, { filled: true }, [])
      if (values.some((one) => one.mark)) {
        marks({ filter: 'datum.mark === true' }, { filled: false, strokeWidth: 1.5 }, this.data.sources ? [] : [['source', 'source']])
      }
      return { description, data: { values }, layer, ...look() }
    }

    // One after the other: what is drawn last is what was chosen last.
    draw() {
      if (this.heat) {
        this.heat.draw()
        return
      }
      this.drawing = (this.drawing ?? Promise.resolve()).catch(console.error).then(() => this.render())
    }

    async render() {
      const values = this.values()
      const x = this.column(this.x.value)
      const y = this.data.measures[Number(this.y.value.slice(1))]
      const points = values.filter((one) => one.y !== null && !one.ahead).length
      const predicted = values.filter((one) => one.mark).length
      const ideal = y.ideal && values.some((one) => one.ideal !== null)
      this.said.textContent = `${counted(points, 'point')}${this.holes ? `, ${this.holes} without a result` : ''}`
        + `${this.below ? `, ${this.below} omitted because they are not above 0` : ''}; bands or bars: 95 % intervals of the mean`
        + `${ideal ? '; dashed: ideal' : ''}${predicted ? `; hollow, dotted: ${predicted} predicted` : ''}${this.left ? `; ${this.left} more series not shown: choose another grouping or fewer points` : ''}.`
      const description = `${y.title} over ${x.title}: ${counted(points, 'point')}; the table has their numbers`
      this.view = await embed(this.plot, this.spec(values, description), values.length, this.view)
      this.holder.dataset.drawn = String(points)
    }

    download(kind) {
      return save(this.view, kind, this.holder.dataset.chart)
    }
  }

  window.scalesweep.charts = { make: (holder, data) => new Chart(holder, data), choice, tick, tone, some, look, embed, save }
})()
