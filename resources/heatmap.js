// A heat map of an experiment's points: the reader chooses both sides and the colour. A cell is one point:
// each other parameter is held at a value that the reader chooses. Nothing is averaged or interpolated.
//
// Data as of a chart (charts.js).
(() => {
  const { element, charts } = window.scalesweep
  const { choice, tick, tone, look, embed, save } = charts
  const MANY_COLUMNS = 24 // more leave no room for numbers in cells
  const SMALL_FROM = 12 // columns from which on numbers are small
  const CELL = 34 // height
  const DARK = 0.43 // of the range of colours: below, white contrasts more than black
  const WIDE_RANGE = 20

  class HeatMap {
    // ``kind``: the choice of what is drawn, which is a part of this one's controls.
    constructor(holder, data, kind) {
      this.holder = holder
      this.data = data
      this.held = new Map()
      this.axes = data.axes.map((_, place) => place).filter((place) => data.axes[place].leader === place)
      const options = this.axes.map((place) => [String(place), data.axes[place].title])
      const scale = this.axes.find((place) => data.axes[place].scale)
      // Two numbers first, the scale horizontal, names vertical.
      const order = [...this.axes].sort((a, b) => Number(data.axes[b].number) - Number(data.axes[a].number))
      const sides = order.slice(0, 2)
      const number = (place) => data.axes[place].number
      if (sides[0] === scale || (number(sides[0]) && !number(sides[1]))) sides.reverse()
      ;[this.colourLabel, this.colour] = choice('Colour', data.measures.map((measure, place) => [String(place), measure.title]), '0')
      ;[this.yLabel, this.y] = choice('Vertical side', options, String(sides[0]))
      ;[this.xLabel, this.x] = choice('Horizontal side', options, String(sides[1]))
      ;[this.logLabel, this.log] = tick('logarithmic', this.wide())
      this.filters = element('div', { className: 'picks' })
      this.filters.setAttribute('role', 'group')
      this.filters.setAttribute('aria-label', 'Values that are held')
      this.plot = element('div', { className: 'plot cells' })
      this.said = element('p', { className: 'note' })
      this.said.setAttribute('aria-live', 'polite')
      const image = (text, format) => {
        const made = element('button', { type: 'button', textContent: text })
        made.addEventListener('click', () => save(this.view, format, holder.dataset.chart))
        return made
      }
      const bar = element('div', { className: 'picks' }, kind, this.colourLabel, this.yLabel, this.xLabel, this.logLabel,
        image('SVG', 'svg'), image('PNG', 'png'))
      bar.setAttribute('role', 'group')
      bar.setAttribute('aria-label', 'What the heat map shows')
      holder.replaceChildren(bar, this.filters, this.plot, this.said)
      this.log.addEventListener('change', () => this.draw())
      this.colour.addEventListener('change', () => {
        this.log.checked = this.wide()
        this.draw()
      })
      this.sides = [this.x.value, this.y.value]
      for (const [side, other, place] of [[this.x, this.y, 0], [this.y, this.x, 1]]) {
        side.addEventListener('change', () => {
          if (side.value === other.value) other.value = this.sides[place] // they change places
          this.sides = [this.x.value, this.y.value]
          this.choose()
        })
      }
      this.choose()
    }

    wide() {
      const known = this.data.measures[Number(this.colour.value)].mean.filter((value) => value !== null)
      return Math.min(...known) > 0 && Math.max(...known) / Math.min(...known) > WIDE_RANGE
    }

    get measure() {
      return this.data.measures[Number(this.colour.value)]
    }

    // What tells the rows of each cell apart: parameters that vary, each with its values; the source last.
    columns() {
      const sides = [Number(this.x.value), Number(this.y.value)]
      const rest = this.data.axes.map((axis, place) => ({ ...axis, place })).filter(({ place }) => !sides.includes(place))
      const own = ({ place, leader }) => leader === place
      const sources = this.data.sources === null ? [] : [{ place: 'source', title: 'Source', texts: this.data.sources }]
      return [...rest.filter(own), ...rest.filter((axis) => !own(axis)), ...sources]
    }

    // Offer the values at which other parameters are held; ``rows`` are then one for each cell.
    choose() {
      const [x, y] = [this.data.axes[Number(this.x.value)], this.data.axes[Number(this.y.value)]]
      let rows = Array.from({ length: this.data.rows }, (_, row) => row)
      const labels = []
      this.words = []
      for (const { place, title, texts, leader } of this.columns()) {
        const cells = new Map()
        for (const row of rows) {
          if (texts[row] === null) continue
          const cell = `${x.texts[row]}\u0001${y.texts[row]}`
          cells.set(cell, (cells.get(cell) ?? new Set()).add(texts[row]))
        }
        const values = [...new Set(rows.map((row) => texts[row]).filter((text) => text !== null))]
        const several = [...cells.values()].some((among) => among.size > 1)
        if (values.length < 2 || (leader !== place && !several)) continue
        if (!values.includes(this.held.get(place))) this.held.set(place, values[0])
        const kept = this.held.get(place)
        const [label, select] = choice(title, values.map((text, n) => [String(n), text]), String(values.indexOf(kept)))
        select.addEventListener('change', () => {
          this.held.set(place, values[Number(select.value)])
          this.choose()
        })
        labels.push(label)
        this.words.push(`${title} ${kept}`)
        rows = rows.filter((row) => texts[row] === kept || texts[row] === null)
      }
      this.rows = rows
      const focused = [...this.filters.querySelectorAll('select')].indexOf(document.activeElement)
      this.filters.replaceChildren(...labels)
      if (focused >= 0) this.filters.querySelectorAll('select')[focused]?.focus()
      this.draw()
    }

    text(value) {
      if (this.measure.share) return `${(100 * value).toFixed(0)} %`
      return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumSignificantDigits: 3 })
    }

    values() {
      const { data, measure } = this
      const [x, y] = [data.axes[Number(this.x.value)], data.axes[Number(this.y.value)]]
      const known = this.rows.map((row) => measure.mean[row]).filter((value) => value !== null && (!this.log.checked || value > 0))
      const of = this.log.checked ? Math.log : (value) => value
      const [low, high] = [of(Math.min(...known)), of(Math.max(...known))]
      return this.rows.map((row) => {
        const value = measure.mean[row]
        const drawn = value !== null && (!this.log.checked || value > 0)
        const bounded = measure.low && measure.low[row] !== null
        return {
          x: x.texts[row], y: y.texts[row], v: drawn ? value : null, text: value === null ? 'no result' : this.text(value),
          light: drawn && high > low && (of(value) - low) / (high - low) < DARK,
          point: data.axes.map((axis) => `${axis.title} ${axis.texts[row]}`).join(', '),
          range: bounded ? `${this.text(measure.low[row])} to ${this.text(measure.high[row])}` : 'none',
          source: data.sources ? data.sources[row] ?? '' : '',
        }
      })
    }

    order(place, down) {
      const axis = this.data.axes[place]
      const rows = [...this.rows]
      if (axis.number) rows.sort((a, b) => axis.values[a] - axis.values[b])
      const texts = [...new Set(rows.map((row) => axis.texts[row]))]
      return down && axis.number ? texts.reverse() : texts
    }

    spec(values, description) {
      const { measure } = this
      const [xs, ys] = [this.order(Number(this.x.value), false), this.order(Number(this.y.value), true)]
      const titles = [this.x, this.y].map((side) => this.data.axes[Number(side.value)].title)
      const angle = Math.max(...xs.map((text) => text.length)) * xs.length > 80 ? -35 : 0
      const sides = {
        x: { field: 'x', type: 'nominal', title: titles[0], scale: { domain: xs }, axis: { labelAngle: angle, grid: false } },
        y: { field: 'y', type: 'nominal', title: titles[1], scale: { domain: ys }, axis: { grid: false } },
      }
      const tooltip = [{ field: 'v', type: 'quantitative', title: measure.title, format: measure.share ? '.4p' : ',.6~g' },
        ...[['point', 'point'], ['range', '95 % interval'], ...(this.data.sources ? [['source', 'source']] : [])]
          .map(([field, title]) => ({ field, type: 'nominal', title }))]
      const ink = tone('--ink')
      const size = xs.length > SMALL_FROM ? 9 : 12
      const colour = { field: 'v', type: 'quantitative', title: measure.title,
        scale: { type: this.log.checked ? 'log' : 'linear', scheme: 'viridis', nice: false, ...(this.log.checked ? {} : { zero: false }) },
        legend: { orient: 'bottom', gradientLength: 260, labelColor: ink, titleColor: ink, titleFontWeight: 500, titleLimit: 420,
          ...(measure.share ? { format: '.0%' } : { format: ',.3~r' }) } }
      const layer = []
      // A layer without marks would be an image without a text.
      const add = (filter, mark, more) => {
        if (values.some(filter.js)) layer.push({ transform: [{ filter: filter.vega }], mark, encoding: { ...sides, ...more } })
      }
      const hole = { js: (cell) => cell.v === null, vega: 'datum.v === null' }
      const light = { js: (cell) => cell.v !== null && cell.light, vega: 'datum.v !== null && datum.light' }
      const dark = { js: (cell) => cell.v !== null && !cell.light, vega: 'datum.v !== null && !datum.light' }
      add(hole, { type: 'rect', fill: 'transparent', stroke: tone('--soft'), strokeDash: [3, 3] }, { tooltip: tooltip.slice(1) })
      const known = { js: (cell) => cell.v !== null, vega: 'datum.v !== null' }
      add(known, { type: 'rect', stroke: 'white', strokeWidth: 1 }, { color: colour, tooltip })
      const text = { text: { field: 'text', type: 'nominal' }, tooltip }
      for (const [filter, fill] of xs.length <= MANY_COLUMNS ? [[hole, ink], [light, '#ffffff'], [dark, '#000000']] : []) {
        add(filter, { type: 'text', fontSize: size, fill, aria: false }, text)
      }
      return { description, data: { values }, layer, ...look(), height: Math.max(140, CELL * ys.length + 110) }
    }

    draw() {
      this.drawing = (this.drawing ?? Promise.resolve()).catch(console.error).then(() => this.render())
    }

    async render() {
      const values = this.values()
      const points = values.filter((cell) => cell.v !== null).length
      const holes = values.filter((cell) => cell.text === 'no result').length
      const dull = values.length - points - holes // not above zero, on a logarithmic scale
      const held = this.words.length ? `; held: ${this.words.join(', ')}` : ''
      this.said.textContent = `${points} point${points === 1 ? '' : 's'}, a cell each${dull ? `, ${dull} without a colour, because they are not above 0` : ''}${holes ? `, ${holes} without a result` : ''}${held}; blank: not planned, or excluded. Hover for 95 % intervals of the mean.`
      const sides = [this.y, this.x].map((side) => this.data.axes[Number(side.value)].title)
      const description = `${this.measure.title} by ${sides.join(' and ')}${held}: ${points} points; the table has their numbers`
      this.view = await embed(this.plot, this.spec(values, description), values.length, this.view)
      this.holder.dataset.drawn = String(points)
    }
  }

  window.scalesweep.heatmap = { make: (holder, data, kind) => new HeatMap(holder, data, kind) }
})()
