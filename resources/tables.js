// Tables of a page (table.data), made sortable, searchable and exportable with DataTables from their HTML when
// they come near the screen. Cells sort, and are saved, by what they hold (data-order). Without scripts the page
// has all of their rows.
(() => {
  const PAGE = 25
  const PRINTED = 200
  const { library, nearby } = window.scalesweep
  const woken = new Map()

  const element = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties)
    made.append(...children)
    return made
  }

  const wake = (node) => {
    if (woken.has(node)) return woken.get(node)
    library('tables')
    const holder = node.closest('.scroll')
    holder.classList.add('live')
    holder.removeAttribute('tabindex')
    const rows = node.tBodies[0].rows.length
    const csv = { extend: 'csv', filename: holder.id || 'table', exportOptions: { orthogonal: 'sort' } }
    const all = { text: 'All rows', action: () => table.search('').columns().search('').draw() }
    const table = window.jQuery(node).DataTable({
      autoWidth: false,
      order: [],
      paging: rows > PAGE,
      pageLength: PAGE,
      lengthMenu: [PAGE, 100, 500],
      layout: {
        topStart: rows > 5 ? 'search' : null,
        topEnd: { buttons: [all, csv] },
        bottomStart: 'info',
        bottomEnd: rows > PAGE ? ['pageLength', 'paging'] : null,
      },
      language: { search: 'Search', info: '_START_ to _END_ of _TOTAL_', infoFiltered: '(of _MAX_)' },
    })
    woken.set(node, table)
    return table
  }
  nearby(document.querySelectorAll('table.data'), () => 'tables', wake)

  // The rows of a table in which the columns of these names have these texts.
  const pick = (node, key) => {
    const table = wake(node).search('').columns().search('')
    node.querySelectorAll('thead th').forEach((head, place) => {
      const wanted = key[head.dataset.name]
      if (wanted !== undefined) table.column(place).search(wanted, { exact: true })
    })
    table.draw()
  }

  const pages = (rows) => woken.forEach((table) => table.page.len(rows).draw(false))
  addEventListener('beforeprint', () => pages(PRINTED))
  addEventListener('afterprint', () => pages(PAGE))
  Object.assign(window.scalesweep, { element, pick })
})()
