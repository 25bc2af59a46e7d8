// The report: builds its tables and charts when they come near the screen.
(() => {
  const { tables, charts, nearby } = window.scalesweep
  let parsed = null
  const data = () => (parsed ??= JSON.parse(document.getElementById('report-data').textContent))

  // Lists with few distinct values come as levels and places.
  const unpacked = (list) => {
    if (!list?.levels) return list
    if (typeof list.at === 'number') return new Array(list.at).fill(list.levels[0])
    return list.at.map((place) => list.levels[place])
  }

  // Columns as scripts want them: by row, with texts.
  const textOf = (value) => (value === null ? '–' : String(value))
  const resolve = (table) => {
    table.files = unpacked(table.files)
    for (const one of table.raw) one.values = unpacked(one.values)
    for (const shown of table.shown) {
      shown.texts = unpacked(shown.texts)
      if (shown.raw !== undefined) shown.values = table.raw[shown.raw].values
      shown.texts ??= shown.values ? shown.values.map(textOf) : null
      shown.values ??= shown.texts
    }
    return table
  }
  const column = (table, name) => table.raw.find((one) => one.name === name)?.values

  const runsOf = (table) => ({
    base: table.base, files: table.files, ids: column(table, 'run_id'), repeats: column(table, 'repeat'),
    words: table.shown.find((one) => one.name === 'status').texts,
    attempts: column(table, 'attempt') ?? [],
  })

  const cache = new Map()
  const table = (name) => {
    if (!cache.has(name)) cache.set(name, resolve(data().tables[name]))
    return cache.get(name)
  }

  const woken = new Map()
  const charted = (name) => data().charts[name] !== undefined
  const wakeTable = (holder) => {
    const name = holder.dataset.table
    if (!woken.has(name)) {
      const runs = data().tables[`${name.split('-')[0]}-runs`]
      woken.set(name, tables.make(holder, table(name), runs ? runsOf(table(`${name.split('-')[0]}-runs`)) : null))
    }
    return woken.get(name)
  }

  const measure = (from, one) => {
    const scaled = (place) => place === null || place === undefined ? null
      : from.raw[place].values.map((value) => (value === null ? null : value * (one.factor ?? 1)))
    return { ...one, mean: scaled(one.mean), low: scaled(one.low), high: scaled(one.high), ideal: scaled(one.ideal) }
  }
  const wakeChart = (holder) => {
    const name = holder.dataset.chart
    if (woken.has(name)) return
    const chart = data().charts[name]
    const from = table(chart.table)
    woken.set(name, charts.make(holder, {
      rows: from.rows,
      axes: chart.axes.map((axis) => ({ ...from.shown[axis.shown], ...axis })),
      measures: chart.measures.map((one) => measure(from, one)),
      sources: chart.source === null ? null : from.raw[chart.source].values,
      predicted: chart.predicted ?? [],
      start: chart.start,
    }))
  }

  nearby(document.querySelectorAll('[data-table], [data-chart]'), (target) => (target.dataset.table ? 'tables' : 'charts'), (target) => {
    if (target.dataset.table) wakeTable(target)
    else wakeChart(target)
  })

  // What an address leads to is unfolded, with all that it is in.
  const reveal = (target) => {
    for (let one = target?.closest('details'); one; one = one.parentElement.closest('details')) one.open = true
  }
  const follow = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)))
    if (!target) return
    reveal(target)
    target.scrollIntoView()
  }
  addEventListener('hashchange', follow)
  follow()

  // From a finding to the rows that it rests on.
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[data-key]')
    const holder = link && document.querySelector(`[data-table="${CSS.escape(link.dataset.rows)}"]`)
    if (!holder) return
    reveal(holder)
    wakeTable(holder).pick(JSON.parse(link.dataset.key))
  })

  // A click on a heading sorts its table; a second one the other way.
  for (const head of document.querySelectorAll('table.sortable thead th')) {
    const button = document.createElement('button')
    button.className = 'sort'
    button.append(...head.childNodes)
    head.append(button)
    button.addEventListener('click', () => {
      const turn = head.ariaSort === 'ascending' ? -1 : 1
      const body = head.closest('table').tBodies[0]
      const text = (row) => row.cells[head.cellIndex].textContent
      body.append(...[...body.rows].sort((a, b) => turn * text(a).localeCompare(text(b), 'en', { numeric: true })))
      for (const other of head.parentElement.cells) other.ariaSort = null
      head.ariaSort = turn === 1 ? 'ascending' : 'descending'
    })
  }

  // Colours of charts are read when they are drawn.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const [name, one] of woken) if (charted(name)) one.draw()
  })

  // On paper there is no turning of pages, and nothing to unfold.
  const PRINTED = 200
  let unfolded = []
  const pages = (rows) => {
    for (const [name, one] of woken) if (!charted(name)) one.table.page.len(rows).draw(false)
  }
  addEventListener('beforeprint', () => {
    for (const holder of document.querySelectorAll('[data-chart]')) wakeChart(holder)
    pages(PRINTED)
    unfolded = [...document.querySelectorAll('details:not([open], .small)')]
    for (const one of unfolded) one.open = true
  })
  addEventListener('afterprint', () => {
    pages(tables.PAGE)
    for (const one of unfolded) one.open = false
  })
})()
