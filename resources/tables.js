// Tables of a page, made sortable, filterable and exportable with DataTables. Without scripts, and
// in print, the page shows the rows in its HTML.
//
// A table's data: {rows, shown: [{title, name, values, texts, number, filter, bad}], raw: [{name,
// values}], points}: columns are arrays by row. `shown` are the visible columns (`values` to sort
// and filter by), `raw` all that an export has, named as in the Parquet file; `points` are the
// places of each row's runs.
(() => {
  const { library } = window.scalesweep
  const PAGE = 15
  const MAX_CHOICES = 200

  const element = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties)
    made.append(...children)
    return made
  }

  const save = (name, type, text) => {
    const address = URL.createObjectURL(new Blob([text], { type }))
    element('a', { href: address, download: name }).click()
    setTimeout(() => URL.revokeObjectURL(address), 10_000)
  }

  // Quoted as RFC 4180 has it; a missing value is an empty field, as in the tables' CSV files.
  const field = (value) => {
    const text = value === null ? '' : String(value)
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }

  const csv = (raw, rows) =>
    [raw.map((one) => field(one.name)), ...rows.map((row) => raw.map((one) => field(one.values[row])))]
      .map((fields) => fields.join(',')).join('\n') + '\n'

  const json = (raw, rows) =>
    JSON.stringify(rows.map((row) => Object.fromEntries(raw.map((one) => [one.name, one.values[row]]))))

  // Where the files of a run are. Bits of `files`: record, stdout, stderr, failure.
  const FILES = [[1, 'record', 'record.json'], [8, 'failure', 'failure.json']]
  const LOGS = [[2, 'stdout', 'stdout.log'], [4, 'stderr', 'stderr.log']]
  const links = (runs, run) => {
    const folder = `${runs.base}/${encodeURIComponent(runs.ids[run])}`
    const here = FILES.map(([bit, label, name]) => [bit, label, `${folder}/${name}`])
    const logs = LOGS.map(([bit, label, name]) =>
      [bit, label, `${folder}/attempt-${runs.attempts[run]}/${name}`])
    const found = [...here, ...logs].filter(([bit]) => runs.files[run] & bit)
    return found.flatMap(([, label, href], place) =>
      [...(place ? [' · '] : []), element('a', { href, textContent: label })])
  }

  // The runs of a point, below its row.
  const unfolded = (runs, places) => element('ul', { className: 'of-point' }, ...places.map((run) =>
    element('li', {},
      element('span', { className: 'id', textContent: runs.ids[run] }),
      ` repeat ${runs.repeats[run]}, ${runs.words[run]}${runs.files[run] ? ': ' : ''}`, ...links(runs, run))))

  // A number's text, which may break before its interval only.
  const unbroken = (text) => text.replace(/ (?!\[)/g, '\u00a0')

  const column = (shown, place, runs) => ({
    name: shown.name,
    className: [shown.number ? 'num' : '', shown.id ? 'id' : ''].join(' ').trim(),
    cellType: place === 0 ? 'th' : 'td',
    orderable: !shown.files,
    // A search is for words and for values of parameters: through all digits of all metrics it takes longer than all else.
    searchable: !shown.files && (shown.filter || !shown.number),
    type: shown.number ? 'num' : 'string', // or DataTables looks at every cell to find out
    data: ({ row }) => row,
    defaultContent: '',
    render: shown.files ? () => '' : (row, kind) => {
      const value = shown.values[row]
      if (kind === 'sort' || kind === 'type') {
        // Missing values come first or last together, not among the numbers.
        return shown.number ? (value === null ? -Infinity : value) : String(value ?? '')
      }
      const text = shown.texts[row]
      if (kind !== 'display') return text
      return window.jQuery.fn.dataTable.util.escapeHtml(shown.number ? unbroken(text) : text)
    },
    createdCell: (cell, _data, { row }) => {
      if (place === 0) cell.scope = 'row'
      if (shown.files) cell.replaceChildren(...links(runs, row))
      if (shown.bad && shown.bad.includes(row)) cell.classList.add('bad')
      if (shown.unfold) {
        const button = element('button', { type: 'button', className: 'unfold' })
        button.append(...cell.childNodes)
        button.setAttribute('aria-expanded', 'false')
        button.title = 'Runs of this point'
        button.dataset.row = row
        cell.append(button)
      }
    },
  })

  // A choice of one value for each parameter with few of them.
  const picks = (table, data, label) => {
    const chosen = data.shown.map((shown, place) => [shown, place]).filter(([shown]) => shown.filter)
    const found = {}
    const bar = element('div', { className: 'picks' })
    for (const [shown, place] of chosen) {
      const values = new Map(shown.texts.map((text, row) => [text, shown.values[row]]))
      if (values.size < 2 || values.size > MAX_CHOICES) continue
      const texts = [...values.keys()]
      if (shown.number) texts.sort((a, b) => values.get(a) - values.get(b))
      const select = element('select', {}, element('option', { value: '', textContent: 'any' }),
        ...texts.map((text, number) => element('option', { value: String(number), textContent: text })))
      select.addEventListener('change', () => {
        const wanted = texts[Number(select.value)]
        table.column(place).search.fixed('pick',
          select.value === '' ? null : (_text, { row }) => shown.texts[row] === wanted)
        table.draw()
      })
      found[shown.name] = (value) => {
        const number = texts.findIndex((text) => text === String(value) || values.get(text) === value)
        select.value = number < 0 ? '' : String(number)
        select.dispatchEvent(new Event('change'))
      }
      bar.append(element('label', {}, element('span', { textContent: shown.title }), select))
    }
    bar.setAttribute('role', 'group')
    bar.setAttribute('aria-label', `Filters of ${label}`)
    return [bar, found]
  }

  // What all tables have around them: a search, how many rows there are, and pages of them.
  const frame = (rows, page, topEnd = null) => ({
    autoWidth: false,
    order: [],
    paging: rows > page,
    pageLength: page,
    lengthMenu: [page, 50, 200],
    layout: {
      topStart: rows > 5 ? 'search' : null,
      topEnd,
      bottomStart: 'info',
      bottomEnd: rows > page ? ['pageLength', 'paging'] : null,
    },
    language: { search: 'Search', info: '_START_ to _END_ of _TOTAL_', infoFiltered: '(of _MAX_)' },
  })

  // Make the table in `holder` (a div with data-table) interactive; its rows come from `data`.
  const make = (holder, data, runs) => {
    library('tables')
    const label = holder.getAttribute('aria-label')
    const name = holder.dataset.table
    const rows = data.rows
    const node = holder.querySelector('table')
    node.tBodies[0].replaceChildren()
    holder.classList.add('live')
    holder.querySelector(':scope > .note')?.remove() // of rows that it has now
    holder.removeAttribute('tabindex')
    const current = () => table.rows({ search: 'applied', order: 'applied' }).indexes().toArray()
    const button = (text, type, make) => ({
      text,
      className: 'small',
      action: () => save(`${name}.${text.toLowerCase()}`, type, make(data.raw, current())),
    })
    const table = window.jQuery(node).DataTable({
      // Objects: DataTables takes a value that equals its row's data for one that is missing.
      data: Array.from({ length: rows }, (_, row) => ({ row })),
      columns: data.shown.map((shown, place) => column(shown, place, runs)),
      deferRender: true,
      ...frame(rows, PAGE, { buttons: [button('CSV', 'text/csv', csv), button('JSON', 'application/json', json)] }),
    })
    const [bar, found] = picks(table, data, label)
    if (bar.children.length && rows > 2) holder.prepend(bar)
    node.addEventListener('click', (event) => {
      const button = event.target.closest('button.unfold')
      if (!button) return
      const child = table.row(button.closest('tr')).child
      const open = !child.isShown()
      button.setAttribute('aria-expanded', String(open))
      if (open) child(unfolded(runs, data.points[Number(button.dataset.row)]), 'below').show()
      else child.hide()
    })
    return { table, pick: (key) => {
      for (const [parameter, set] of Object.entries(found)) set(key[parameter] ?? '')
    } }
  }

  Object.assign(window.scalesweep, { element, tables: { make, frame, PAGE } })
})()
