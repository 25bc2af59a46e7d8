// The report: charts are built when they come near the screen; links unfold what they lead to.
(() => {
  const { charts, nearby, pick } = window.scalesweep
  let parsed = null
  const data = () => (parsed ??= JSON.parse(document.getElementById('report-data').textContent))
  const woken = new Map()
  const wake = (holder) => {
    if (!woken.has(holder)) woken.set(holder, charts.make(holder, data().charts[holder.dataset.chart]))
  }
  nearby(document.querySelectorAll('[data-chart]'), () => 'charts', wake)

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

  // From a finding or a point to its rows.
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[data-key]')
    const holder = link && document.getElementById(link.dataset.rows)
    if (!holder) return
    reveal(holder)
    pick(holder.querySelector('table'), JSON.parse(link.dataset.key))
  })

  // Colours of charts are read when they are drawn.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => woken.forEach((chart) => chart.draw()))

  // On paper there is nothing to unfold.
  let unfolded = []
  addEventListener('beforeprint', () => {
    document.querySelectorAll('[data-chart]').forEach(wake)
    unfolded = [...document.querySelectorAll('details:not([open], .small)')]
    for (const one of unfolded) one.open = true
  })
  addEventListener('afterprint', () => {
    for (const one of unfolded) one.open = false
  })
})()
