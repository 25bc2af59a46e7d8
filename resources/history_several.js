// Several lines in one chart of a history: what makes up a point (metrics, terms of its step, parts of its
// profiles), each against its own value at the baseline, or as measured; and speedup by session.
//
// Data: {components: {id: [point]}, speedups: {id: [series]}, sessions}. A point: {title, sessions (places), base
// (places in the point), components: [{title, kind, unit, better, main, mean, low, high, share, shareLow,
// shareHigh}]}; a series: {title, scale, base, sessions, counts: [{count, ideal, mean, low, high}]}. Arrays by
// session, null for what is not known; one without any number is left out.
(() => {
  const { element, charts } = window.scalesweep
  const { choice, tick, tone, some, look, embed, save } = charts
  const COLOURS = 6 // --s1 to --s6 of the style sheet
  const SHAPES = ['circle', 'triangle-up', 'square', 'diamond', 'cross', 'triangle-down', 'triangle-right']
  const SIGNS = ['●', '▲', '■', '◆', '✚', '▼', '▶']
  const SHOWN_FIRST = 5 // lines
  const MOST_LINES = 40
  const SECONDS = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 }
  const counted = (n, noun) => `${n} ${noun}${n === 1 ? '' : 's'}`
  const day = (text) => text.slice(0, 16).replace('T', ' ')
  const text = (value) => Number(value.toPrecision(5)).toLocaleString('en-US', { maximumSignificantDigits: 5 })

  // Names of sessions, each another one: a commit may have been measured twice.
  const names = (sessions) => {
    const seen = new Map()
    return sessions.map(({ name }) => {
      seen.set(name, (seen.get(name) ?? 0) + 1)
      return seen.get(name) > 1 ? `${name} (${seen.get(name)})` : name
    })
  }

  // The horizontal axis: dates, or commits at equal distances.
  const across = (dated, order, band) => ({
    field: 'x', type: dated ? 'temporal' : 'ordinal', ...(dated ? {} : { bandPosition: band }),
    axis: dated ? { title: 'Date, UTC', format: '%Y-%m-%d', tickCount: 8, labelOverlap: true, grid: false }
      : { title: 'Commit', values: some(order), labelAngle: -35, labelOverlap: true },
    scale: dated ? { padding: 20, type: 'utc' } : { domain: order },
  })

  // What an axis spans: all means and fixed lines, and the bars as far as they are no longer than these are apart: two repeats
  // have intervals beside which nothing else could be seen.
  const limits = (values, fixed, bars) => {
    const means = [...values.map((one) => one.y), ...fixed]
    const [low, high] = [Math.min(...means), Math.max(...means)]
    const room = Math.max(high - low, 0.1 * Math.abs(high))
    const ends = bars ? values.filter((one) => one.low !== null) : []
    return [Math.max(Math.min(low, ...ends.map((one) => one.low)), low - room), Math.min(Math.max(high, ...ends.map((one) => one.high)), high + room)]
  }

  // The buttons that save a chart as a picture.
  const pictures = (chart, name) => [['SVG', 'svg'], ['PNG', 'png']].map(([words, kind]) => {
    const made = element('button', { type: 'button', textContent: words })
    made.addEventListener('click', () => save(chart.view, kind, name))
    return made
  })

  const bar = (...children) => {
    const made = element('div', { className: 'picks' }, ...children)
    made.setAttribute('role', 'group')
    made.setAttribute('aria-label', 'What the chart shows')
    return made
  }

  // A chart of lines that its reader ticks; what the lines are is for the classes below.
  class Lines {
    constructor(holder, root, sets, sessions) {
      Object.assign(this, { holder, sets, all: sessions })
      ;[this.whichLabel, this.which] = choice(this.whichTitle, sets.map((one, n) => [String(n), one.title || 'the only one']), '0')
      ;[this.overLabel, this.over] = choice('Over', this.overs, 'commits')
      ;[this.eachLabel, this.each] = tick('intervals', true)
      this.plot = element('div', { className: 'plot' })
      this.legend = element('fieldset', { className: 'legend' })
      this.said = element('p', { className: 'note' })
      this.detail = element('div', { className: 'session' })
      for (const one of [this.said, this.detail]) one.setAttribute('aria-live', 'polite')
      const own = this.own()
      root.replaceChildren(bar(this.whichLabel, this.overLabel, ...own.map(([label]) => label), this.eachLabel,
        ...pictures(this, holder.dataset.chart)), this.plot, this.legend, this.said, this.detail)
      for (const one of [this.which, this.over, ...own.map(([, select]) => select)]) one.addEventListener('change', () => this.name())
      this.each.addEventListener('change', () => this.draw())
      this.name()
    }

    get set() {
      return this.sets[Number(this.which.value)]
    }

    get overs() {
      return [['commits', 'commits, in their order'], ['dates', 'dates of the sessions']]
    }

    get sessions() {
      return this.set.sessions.map((place) => this.all[place])
    }

    // The lines of the chart, and the legend: a box for each, which the keyboard reaches. What was ticked
    // stays so as long as a line of its key is there.
    name() {
      this.detail.replaceChildren()
      this.order = names(this.sessions)
      const all = this.lines()
      this.left = Math.max(all.length - MOST_LINES, 0)
      this.found = all.slice(0, MOST_LINES)
      const known = this.found.filter((one) => this.ticked?.has(one.key)).map((one) => one.key)
      this.ticked = new Set(known.length ? known : this.first(this.found))
      this.signs = new Map()
      this.legend.replaceChildren(element('legend', { textContent: this.legendTitle }), ...this.found.map((one) => {
        const box = element('input', { type: 'checkbox', checked: this.ticked.has(one.key) })
        box.addEventListener('change', () => {
          if (box.checked) this.ticked.add(one.key)
          else this.ticked.delete(one.key)
          this.sign()
          this.draw()
        })
        this.signs.set(one.key, element('span', { ariaHidden: 'true' }))
        return element('label', { className: 'tick' }, box, this.signs.get(one.key), element('span', { textContent: one.name }))
      }))
      this.slots = new Map()
      this.sign()
      this.draw()
    }

    // A colour and a shape for each line that is ticked: the first that no other has, so that few lines never
    // share a colour, and a line keeps its own while it is ticked.
    sign() {
      for (const key of [...this.slots.keys()]) if (!this.ticked.has(key)) this.slots.delete(key)
      for (const key of this.ticked) {
        const taken = new Set(this.slots.values())
        if (!this.slots.has(key)) this.slots.set(key, Array.from({ length: MOST_LINES }, (_, n) => n).find((n) => !taken.has(n)))
      }
      for (const [key, mark] of this.signs) {
        const slot = this.slots.get(key)
        mark.textContent = slot === undefined ? '' : SIGNS[slot % SIGNS.length]
        mark.style.color = slot === undefined ? '' : `var(--s${(slot % COLOURS) + 1})`
      }
    }

    first(found) {
      return found.slice(0, SHOWN_FIRST).map((one) => one.key)
    }

    // One after the other: what is drawn last is what was chosen last.
    draw() {
      this.drawing = (this.drawing ?? Promise.resolve()).catch(console.error).then(() => this.render())
    }

    async render() {
      const { lines, said } = this.shown(this.found.filter((one) => this.ticked.has(one.key)))
      const values = lines.flatMap((line) => line.points.map((point) => ({ ...point, s: line.name, side: line.right ? 1 : 0 })))
      const drawn = values.filter((one) => one.y !== null).length
      this.said.textContent = [...said, this.left ? `${this.left} more lines not listed` : ''].filter((one) => one).join('. ') + '.'
      const [left, right] = [false, true].map((side) => lines.filter((line) => Boolean(line.right) === side))
      const title = [left, right].filter((some) => some.length).map((some) => some[0].axis).join(' and ')
      const description = `${title || 'nothing chosen'} over ${this.over.value}: ${this.set.title || 'the only one'}, ${lines.length} lines; the tables have the numbers`
      this.view = await embed(this.plot, this.spec(values, left, right, description), values.length, this.view)
      this.view.addEventListener('click', (_event, item) => {
        if (item?.datum?.n !== undefined) this.tell(this.sessions[item.datum.n])
      })
      this.holder.dataset.drawn = String(drawn)
    }

    // The session that was clicked on.
    tell(session) {
      const around = [session.subject, session.tags, session.hosts].filter((one) => one).join(' · ')
      this.detail.replaceChildren(element('p', {}, element('b', { textContent: session.name }),
        ` measured ${day(session.started)} UTC${around ? `: ${around}` : ''} `,
        session.report ? element('a', { href: session.report, textContent: 'report' }) : `Results: ${session.results} (no longer there)`))
    }

    spec(values, left, right, description) {
      const shown = [...left, ...right].map((one) => [one.name, this.slots.get(one.key)])
      const scale = (range) => ({ domain: shown.map(([name]) => name), range })
      const colour = { field: 's', type: 'nominal', legend: null, scale: scale(shown.map(([, place]) => tone(`--s${(place % COLOURS) + 1}`))) }
      const shape = { field: 's', type: 'nominal', legend: null, scale: scale(shown.map(([, place]) => SHAPES[place % SHAPES.length])) }
      const x = this.horizontal(values)
      const side = (lines, place) => {
        const fixed = [...(lines[0].zero ? [0] : []), ...(lines[0].rule === undefined ? [] : [lines[0].rule]), ...(lines[0].ideal ?? []).map((one) => one.y)]
        const domain = limits(values.filter((one) => one.side === place && one.y !== null), fixed, this.each.checked)
        const y = (field) => ({ field, type: 'quantitative', title: lines[0].axis, scale: { domain, zero: false, nice: true },
          axis: { tickCount: 6, orient: place ? 'right' : 'left', ...(place ? { grid: false } : {}) } })
        const here = { filter: `datum.side === ${place}` }
        const bars = values.some((one) => one.side === place && one.low !== null && one.low !== undefined)
        return { layer: [
          ...(lines[0].rule === undefined ? [] : [{ data: { values: [{ y: lines[0].rule }] }, mark: { type: 'rule', aria: false, strokeDash: [2, 3], color: tone('--soft') }, encoding: { y: y('y') } }]),
          { transform: [here], mark: { type: 'line', aria: false, strokeWidth: 1.75, ...(place ? { strokeDash: [5, 3] } : {}) }, encoding: { x, y: y('y'), color: colour } },
          ...(this.each.checked && bars ? [{ transform: [here, { filter: { field: 'low', valid: true } }], mark: { type: 'rule', aria: false, clip: true, strokeWidth: 1.5, opacity: 0.65 },
            encoding: { x, y: y('low'), y2: { field: 'high' }, color: colour } }] : []),
          { transform: [here, { filter: { field: 'y', valid: true } }], mark: { type: 'point', filled: true, size: 55, opacity: 1, cursor: 'pointer' },
            encoding: { x, y: y('y'), color: colour, shape,
              tooltip: [['s', 'line'], ['where', 'at'], ['when', 'measured, UTC'], ['subject', 'subject'], ['value', 'value'], ['range', '95 % interval of its repeats']]
                .map(([field, heading]) => ({ field, type: 'nominal', title: heading })) } },
        ] }
      }
      const ideal = left[0]?.ideal
      const layer = [...(left.length ? [side(left, 0)] : []), ...(right.length ? [side(right, 1)] : [])]
      if (ideal) {
        layer[0].layer.unshift({ data: { values: ideal }, mark: { type: 'line', aria: false, strokeDash: [5, 4], strokeWidth: 1, color: tone('--soft') },
          encoding: { x, y: { field: 'y', type: 'quantitative' } } })
      }
      const empty = { mark: 'point', encoding: {} }
      return { description, data: { values }, layer: layer.length ? layer : [empty],
        ...(layer.length > 1 ? { resolve: { scale: { y: 'independent' } } } : {}), ...look() }
    }

    horizontal() {
      return across(this.over.value === 'dates', this.order, 0.5)
    }

    // The points of a line over the sessions.
    points(mean, low, high, factor, unit) {
      const dated = this.over.value === 'dates'
      return mean.map((value, n) => {
        const session = this.sessions[n]
        const known = value !== null && low && low[n] !== null && high[n] !== null
        const measured = (number) => `${text(number * unit.factor)}${unit.name ? ` ${unit.name}` : ''}`
        return {
          n, x: dated ? session.started : this.order[n], y: value === null ? null : value * factor,
          low: known ? low[n] * factor : null, high: known ? high[n] * factor : null, where: this.order[n],
          when: day(session.started), subject: session.subject || '–', value: value === null ? '' : measured(value),
          range: known ? `${measured(low[n])} to ${measured(high[n])}` : 'none: one repeat, or identical ones',
        }
      })
    }
  }

  // What makes up a point: metrics, terms of the step and parts of profiles.
  class Components extends Lines {
    get whichTitle() { return 'Point' }
    get legendTitle() { return 'Metrics, terms of a step, parts of profiles' }

    own() {
      const values = choice('Values', [['baseline', 'relative to the baseline'], ['first', 'relative to the first session'], ['own', 'as measured']], 'baseline')
      this.unit = values[1]
      const amounts = choice('Terms and parts', [['share', 'share of the whole, %'], ['time', 'time']], 'share')
      this.amount = amounts[1]
      return [values, amounts]
    }

    lines() {
      return this.set.components.map((one) => {
        const share = this.amount.value === 'share' && one.share !== undefined
        const [mean, low, high] = share ? [one.share, one.shareLow, one.shareHigh] : [one.mean, one.low, one.high]
        return { key: one.title, name: `${share ? '% ' : ''}${one.title}`, of: one, share, mean, low, high }
      })
    }

    // The main metric, and what takes most.
    first(found) {
      const metric = found.find((one) => one.of.kind === 'metric')
      const rest = found.filter((one) => one.of.kind === 'part' && !/^(other|rest)\b/.test(one.of.title))
      const terms = found.filter((one) => one.of.kind === 'ledger' && one.share)
      return [metric, ...(rest.length ? rest : terms)].filter((one) => one).slice(0, SHOWN_FIRST).map((one) => one.key)
    }

    // What a line is relative to: its mean over the baseline, or in the first session; or why it has none. Where
    // it is 0 in a part of the baseline that mean is no level that it ever had.
    against(line) {
      const places = this.unit.value === 'first' || this.set.base.length === 0 ? [0] : this.set.base
      const known = places.map((place) => line.mean[place]).filter((value) => value !== null)
      if (known.length === 0) return { why: 'not measured there' }
      const below = known.filter((value) => value <= 0).length
      if (below) return { why: `0 or less in ${below} of ${counted(known.length, 'session')} there` }
      return { base: known.reduce((sum, value) => sum + value, 0) / known.length }
    }

    shown(chosen) {
      return this.unit.value === 'own' ? this.measured(chosen) : this.relative(chosen)
    }

    relative(chosen) {
      const first = this.unit.value === 'first' || this.set.base.length === 0
      const where = first ? 'the first session' : 'the baseline'
      const lines = []
      const without = []
      for (const one of chosen) {
        const { base, why } = this.against(one)
        if (why) without.push(`${one.name} (${why})`)
        else lines.push({ ...one, axis: `relative to ${where}`, rule: 1, points: this.points(one.mean, one.low, one.high, 1 / base, this.natural(one)) })
      }
      const none = first && this.unit.value !== 'first' ? 'There is no baseline yet. ' : ''
      const note = first ? `${none}Each line against its own value in the first session, ${this.order[0]}, 1.0`
        : `Each line against its own mean over the baseline (${this.set.base.length > 3
          ? `${this.set.base.length} sessions from ${this.order[this.set.base[0]]} to ${this.order[this.set.base.at(-1)]}`
          : this.set.base.map((place) => this.order[place]).join(', ')}), 1.0`
      return { lines, said: [note, without.length ? `No value relative to ${where}: ${without.join(', ')}` : '', ...this.remarks(chosen)] }
    }

    natural(one) {
      return one.share ? { factor: 100, name: '%' } : { factor: 1, name: one.of.unit === '1' ? '' : one.of.unit }
    }

    // Times on the left in one unit, or what else has the unit of the first line; shares on the right.
    measured(chosen) {
      const rest = chosen.filter((one) => !one.share)
      const timed = (one) => one.of.unit in SECONDS
      const first = rest[0]
      const alike = rest.filter((one) => one.of.unit === first.of.unit || (timed(one) && timed(first)))
      const largest = Math.max(0, ...alike.filter(timed).flatMap((one) => one.mean.map((value) => (value ?? 0) * SECONDS[one.of.unit])))
      const unit = first && timed(first) ? (largest < 1 ? 'ms' : 's') : first?.of.unit
      const lines = chosen.filter((one) => one.share || alike.includes(one)).map((one) => {
        const factor = one.share ? 100 : timed(one) ? SECONDS[one.of.unit] / SECONDS[unit] : 1
        const axis = one.share ? 'share of the whole [%]' : unit === '1' ? 'as measured' : `as measured [${unit}]`
        return { ...one, axis, right: one.share, zero: true, points: this.points(one.mean, one.low, one.high, factor, this.natural(one)) }
      })
      const others = rest.filter((one) => !alike.includes(one)).map((one) => `${one.name} [${one.of.unit}]`)
      return { lines, said: [lines.some((line) => line.share) ? 'Dashed, on the right: shares of the step or of all parts of a profile' : 'Means of the repeats',
        others.length ? `Another unit than ${first.name}, not drawn: ${others.join(', ')}` : '', ...this.remarks(chosen)] }
    }

    remarks(chosen) {
      const total = this.sessions.length
      const holes = chosen.map((one) => [one.name, one.mean.filter((value) => value !== null).length]).filter(([, count]) => count < total)
      return [
        holes.length ? `Not in every session, where the line is broken: ${holes.map(([name, count]) => `${name} (${count} of ${total})`).join(', ')}; a part may have another name there` : '',
        'Bars: 95 % intervals of a session\'s repeats, cut where they leave the chart; sessions differ by more. No verdict is given on terms and parts',
      ]
    }
  }

  // Speedup and efficiency of a scaling series by session.
  class Speedups extends Lines {
    get whichTitle() { return 'Series and metric' }
    get legendTitle() { return this.over.value === 'counts' ? 'Session' : this.set.scale }
    get overs() { return [...super.overs, ['counts', 'what it scales over, a line for each session']] }

    own() {
      const values = choice('Values', [['speedup', 'speedup'], ['efficiency', 'efficiency']], 'speedup')
      this.value = values[1]
      return [values]
    }

    get factors() {
      return this.set.counts.map((one) => (this.value.value === 'speedup' ? 1 : one.ideal === null ? null : 1 / one.ideal))
    }

    lines() {
      const { counts, scale } = this.set
      if (this.over.value !== 'counts') return counts.map((one, place) => ({ key: String(one.count), name: `${scale} ${one.count}`, place }))
      // The first session and the newest ones.
      const places = this.order.map((_, n) => n)
      const kept = places.length > MOST_LINES ? [0, ...places.slice(1 - MOST_LINES)] : places
      return kept.map((n) => ({ key: this.order[n], name: this.order[n], n }))
    }

    first(found) {
      if (this.over.value !== 'counts') return super.first(found)
      return [found[0], found[Math.floor(found.length / 2)], found[found.length - 1]].map((one) => one.key)
    }

    shown(chosen) {
      const { base, scale, counts } = this.set
      const efficient = this.value.value === 'efficiency'
      const axis = efficient ? `efficiency against ${scale} ${base}` : `speedup against ${scale} ${base}`
      const unknown = efficient && counts.some((one) => one.ideal === null)
      const unit = { factor: 1, name: '' }
      const lines = unknown ? [] : this.over.value === 'counts'
        ? chosen.map((line) => ({ ...line, axis, zero: true, ideal: this.ideal, points: [this.start(line.n), ...counts.map((one, place) => this.at(one, line.n, this.factors[place]))] }))
        : chosen.map((line) => {
          const [one, factor] = [counts[line.place], this.factors[line.place]]
          const times = (values) => values?.map((value) => (value === null ? null : value * factor))
          return { ...line, axis, zero: !efficient, ...(efficient ? { rule: 1 } : {}), points: this.points(times(one.mean), times(one.low), times(one.high), 1, unit) }
        })
      return { lines, said: [
        unknown ? 'No efficiency: the campaign does not say how the work grows (scaling: none)' : '',
        `Means of the repeats against those of ${scale} ${base} in the same session, the smallest count of the newest one`,
        'Bars: 95 % intervals from the repeats of both (Welch\'s t on logarithms), cut where they leave the chart; sessions differ by more',
        !unknown && this.over.value === 'counts' && this.ideal ? 'Dashed: ideal' : '',
      ] }
    }

    // The ideal over what it scales over; none where that is not known.
    get ideal() {
      const { base, counts } = this.set
      if (counts.some((one) => one.ideal === null)) return null
      const efficient = this.value.value === 'efficiency'
      return [{ x: base, y: 1 }, ...counts.map((one) => ({ x: one.count, y: efficient ? 1 : one.ideal }))]
    }

    // The smallest count, which all others are held against.
    start(n) {
      const session = this.sessions[n]
      return { n, x: this.set.base, y: 1, low: null, high: null, where: `${this.set.scale} ${this.set.base}`, when: day(session.started),
        subject: session.subject || '–', value: '1', range: 'none: by definition' }
    }

    // A count in a session.
    at(one, n, factor) {
      const [mean, low, high] = [one.mean, one.low, one.high].map((values) => values?.[n] ?? null)
      const [known, session] = [mean !== null && low !== null && high !== null, this.sessions[n]]
      const times = (value) => (value === null ? null : value * factor)
      return { n, x: one.count, y: times(mean), low: known ? times(low) : null, high: known ? times(high) : null,
        where: `${this.set.scale} ${one.count}`, when: day(session.started), subject: session.subject || '–', value: mean === null ? '' : text(times(mean)),
        range: known ? `${text(times(low))} to ${text(times(high))}` : 'none: one repeat, or identical ones' }
    }

    horizontal() {
      if (this.over.value !== 'counts') return super.horizontal()
      const ticks = [this.set.base, ...this.set.counts.map((one) => one.count)]
      return { field: 'x', type: 'quantitative', title: this.set.scale, scale: { type: 'log', base: 2, nice: false, padding: 12 },
        axis: { values: some(ticks), format: ',.6~g', labelOverlap: true } }
    }
  }

  window.scalesweep.several = { Components, Speedups, names, across, pictures, bar, counted, day, text }
})()
