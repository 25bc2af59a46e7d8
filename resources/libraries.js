// Libraries of a page (`script` elements of type text/plain): compiled and run when something needs one.
// Together they are 1.5 MB, which a page that is only read never runs.
(() => {
  // Run a library that has not been run; returns whether it was.
  const library = (name) => {
    const text = document.getElementById(`library-${name}`)
    if (!text) return false
    const script = document.createElement('script')
    script.textContent = text.textContent // its digest is in the page's policy
    text.remove()
    document.head.append(script)
    return true
  }

  // Do `wake` for what comes near the screen, one element at a time and while the browser has nothing else to do:
  // what is on the screen first, then what was passed by. The library that a target needs runs in a turn of its own.
  const nearby = (elements, needs, wake, margin = '600px') => {
    const waiting = new Set()
    const near = new Set()
    const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 16))
    const next = () => {
      const target = [...waiting].find((one) => near.has(one)) ?? [...waiting][0]
      if (!target) return
      if (!library(needs(target))) {
        waiting.delete(target)
        observer.unobserve(target)
        wake(target)
      }
      if (waiting.size) later(next, { timeout: 500 })
    }
    const observer = new IntersectionObserver((entries) => {
      const idle = waiting.size === 0
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) near.add(target)
        else near.delete(target)
        if (isIntersecting) waiting.add(target)
      }
      if (idle && waiting.size) later(next, { timeout: 500 })
    }, { rootMargin: margin })
    for (const one of elements) observer.observe(one)
  }

  window.scalesweep = { library, nearby }
})()
