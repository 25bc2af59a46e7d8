// The comparison: its tables sort by what their cells hold (data-order), and can be searched.
(() => {
  const LONG = 25
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue
      near.unobserve(target)
      const rows = target.tBodies[0].rows.length
      target.closest('.scroll')?.classList.add('live')
      window.jQuery(target).DataTable(window.scalesweep.tables.frame(rows, LONG))
    }
  }, { rootMargin: '400px' })
  for (const table of document.querySelectorAll('table.data')) near.observe(table)
  const pages = (rows) => document.querySelectorAll('table.data.dataTable')
    .forEach((table) => window.jQuery(table).DataTable().page.len(rows).draw(false))
  addEventListener('beforeprint', () => pages(-1))
  addEventListener('afterprint', () => pages(LONG))
})()
