// Swap the sections that have changed; where the reader is on the page stays.
const PAUSE_MS = 1500;
const silent = document.getElementById("silent");

async function swap(id, digest) {
  const answer = await fetch("section/" + encodeURIComponent(id));
  if (!answer.ok) return;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const fresh = holder.content.firstElementChild;
  const old = document.getElementById(id);
  if (!fresh || !old) return;
  const open = [...old.querySelectorAll("details")].map((fold) => fold.open);
  const folds = fresh.querySelectorAll("details");
  if (folds.length === open.length) folds.forEach((fold, k) => (fold.open = open[k]));
  const scrolled = [...old.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  fresh.dataset.digest = digest;
  old.replaceWith(fresh);
  fresh.querySelectorAll(".scroll").forEach((box, k) => {
    box.scrollLeft = scrolled[k] || 0;
  });
}

async function update() {
  if (document.hidden) return;
  try {
    const answer = await fetch("state.json");
    if (!answer.ok) throw new Error(answer.statusText);
    const state = await answer.json();
    const ids = state.sections.map(([id]) => id).join();
    const shown = [...document.querySelectorAll("section[data-digest]")];
    if (ids !== shown.map((section) => section.id).join()) return location.reload();
    for (const [id, digest] of state.sections) {
      if (document.getElementById(id).dataset.digest !== digest) await swap(id, digest);
    }
    silent.hidden = true;
  } catch {
    silent.hidden = false;
  }
}

async function keepUpdating() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    await update();
  }
}
document.addEventListener("visibilitychange", update);
keepUpdating();
