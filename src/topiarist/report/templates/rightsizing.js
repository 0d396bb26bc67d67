const REACH_PIXELS = 24;
const tooltip = document.getElementById("tooltip");

const cardOf = (link) => document.getElementById((link.getAttribute("xlink:href") ?? link.hash).slice(1));

function showTooltip(link) {
  const card = cardOf(link);
  const name = document.createElement("strong");
  name.append(card.querySelector(".card-name").firstElementChild.cloneNode(true));
  tooltip.replaceChildren(name, card.querySelector(".facts.key").cloneNode(true));
  tooltip.hidden = false;
  const place = link.getBoundingClientRect();
  const room = document.documentElement.clientWidth - tooltip.offsetWidth - 8;
  const left = place.left + place.width / 2 - tooltip.offsetWidth / 2;
  const above = place.top - tooltip.offsetHeight - 6;
  tooltip.style.left = `${Math.max(8, Math.min(left, room)) + scrollX}px`;
  tooltip.style.top = `${(above > 4 ? above : place.bottom + 6) + scrollY}px`;
}

function hideTooltip() {
  tooltip.hidden = true;
}

function openCard(card) {
  if (card instanceof HTMLDetailsElement) card.open = true;
}

// Points may lie on one another: the pointer means the one whose middle is nearest.
function nearestLink(figure, event) {
  let nearest = null;
  let least = REACH_PIXELS;
  for (const link of figure.querySelectorAll("a")) {
    const place = link.getBoundingClientRect();
    const across = place.left + place.width / 2 - event.clientX;
    const distance = Math.hypot(across, place.top + place.height / 2 - event.clientY);
    if (distance < least) [nearest, least] = [link, distance];
  }
  return nearest;
}

for (const figure of document.querySelectorAll(".front")) {
  let near = null;
  const approach = (link) => {
    if (link === near) return;
    near?.classList.remove("near");
    near = link;
    near?.classList.add("near");
    if (near) showTooltip(near);
    else hideTooltip();
  };
  figure.addEventListener("pointermove", (event) => approach(nearestLink(figure, event)));
  figure.addEventListener("pointerleave", () => approach(null));
  figure.addEventListener("click", (event) => {
    const link = event.detail ? nearestLink(figure, event) : event.target.closest("a"); // 0: by the keyboard
    if (!link) return;
    event.preventDefault();
    approach(null);
    hideTooltip();
    openCard(cardOf(link));
    location.hash = cardOf(link).id;
  });
  for (const link of figure.querySelectorAll("a")) {
    link.addEventListener("focus", () => showTooltip(link));
    link.addEventListener("blur", hideTooltip);
  }
}
for (const link of document.querySelectorAll('a[href^="#network-"]')) {
  link.addEventListener("click", () => openCard(cardOf(link)));
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTooltip();
});
addEventListener("hashchange", () => openCard(document.getElementById(location.hash.slice(1))));
openCard(document.getElementById(location.hash.slice(1)));
addEventListener("beforeprint", () => {
  for (const card of document.querySelectorAll("details")) card.open = true;
});

for (const choice of document.querySelectorAll(".switch")) {
  choice.hidden = false;
  choice.addEventListener("change", (event) => {
    for (const figure of document.querySelectorAll(".front[data-axis]")) figure.hidden = figure.dataset.axis !== event.target.value;
  });
}
