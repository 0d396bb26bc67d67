// Pages that are opened from a disk may not start workers, and search runs in one. There, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = "<!doctype html>"
      this.inside = new Promise(ready => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow
          const load = source => new Promise(done => {
            const script = inside.document.createElement("script")
            script.src = new URL(source, location.href)
            script.addEventListener("load", done)
            inside.document.body.append(script)
          })
          inside.importScripts = (...sources) => sources.reduce((last, one) => last.then(() => load(one)), Promise.resolve())
          inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
          load(address).then(() => ready(inside))
        }, { once: true })
      })
      document.body.append(frame)
    }
    postMessage(data) {
      this.inside.then(inside => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
