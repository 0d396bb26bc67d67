"use strict";
// Whatever is wider than its box says so in words, since many browsers show no scrollbar until one scrolls.
for (const box of document.querySelectorAll(".scroll")) {
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = box.querySelector("table") ? "Scroll the table sideways: there is more →" : "Scroll the figure sideways: there is more →";
  box.before(hint);
  const tell = () => hint.classList.toggle("overflowing", box.scrollWidth > box.clientWidth + 1);
  new ResizeObserver(tell).observe(box);
  tell();
}
