// The comparison: its tables sort by what their cells hold (data-order), and can be searched.
(() => {
  const LONG = 25
  const { nearby, tables } = window.scalesweep
  nearby(document.querySelectorAll('table.data'), () => 'tables', (target) => {
    target.closest('.scroll')?.classList.add('live')
    window.jQuery(target).DataTable(tables.frame(target.tBodies[0].rows.length, LONG))
  })
  const pages = (rows) => document.querySelectorAll('table.data.dataTable')
    .forEach((table) => window.jQuery(table).DataTable().page.len(rows).draw(false))
  addEventListener('beforeprint', () => pages(-1))
  addEventListener('afterprint', () => pages(LONG))
})()
