// Drives by keys, gamepad and touch. Sends the wanted velocity whenever it changes.
// Keys are taken before viser sees them: there they would move the camera.
(() => {
  const WALK = 0.8, FAST = 1.5, TURN = 1.0, DEAD = 0.15, POLL_MS = 50;
  const KEYS = {
    KeyW: [0, 1], KeyS: [0, -1], ArrowUp: [0, 1], ArrowDown: [0, -1],
    KeyA: [1, 1], KeyD: [1, -1],
    KeyQ: [2, 1], KeyE: [2, -1], ArrowLeft: [2, 1], ArrowRight: [2, -1],
  };
  const BUTTONS = { 0: "push", 1: "stop", 3: "reset" };
  // viser looks for it before it first draws.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  window.__VISER_EMBED_CONFIG__ = { darkMode: dark.matches };
  dark.addEventListener("change", () => location.reload());

  const held = new Set();
  let fast = false, stick = [0, 0], sent = "0,0,0", pressed = "";

  const ask = (query) => fetch(`drive?${query}`, { cache: "no-store" }).catch(() => {});
  const send = (command) => {
    const text = command.map((value) => +value.toFixed(2)).join(",");
    if (text !== sent) ask(`command=${sent = text}`);
  };
  const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

  const fromKeys = () => {
    const command = [0, 0, 0];
    for (const code of held) {
      const [axis, sign] = KEYS[code];
      command[axis] += sign * (axis === 2 ? TURN : fast ? FAST : WALK);
    }
    return command.map((value) => Math.max(-FAST, Math.min(FAST, value)));
  };
  const onKey = (event) => {
    if (!(event.code in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.type === "keydown" && typing(event.target)) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    fast = event.shiftKey;
    event.type === "keydown" ? held.add(event.code) : held.delete(event.code);
    send(fromKeys());
  };
  addEventListener("keydown", onKey, true);
  addEventListener("keyup", onKey, true);
  // A window that is left swallows keyups.
  addEventListener("blur", () => { if (held.size) { held.clear(); send([0, 0, 0]); } });

  const live = (value) => (Math.abs(value) < DEAD ? 0 : value);
  let driving = false;
  setInterval(() => {
    const pad = [...(navigator.getGamepads?.() ?? [])].find((found) => found);
    if (!pad) return;
    const [side = 0, ahead = 0, turn = 0] = pad.axes;
    const command = [-FAST * live(ahead), -FAST * live(side), -FAST * live(turn)];
    const moved = command.some((value) => value);
    if (moved || driving) send(command.map((value) => value + 0));
    driving = moved;
    const now = Object.keys(BUTTONS).find((number) => pad.buttons[number]?.pressed) ?? "";
    if (now && now !== pressed) ask(`do=${BUTTONS[now]}`);
    pressed = now;
  }, POLL_MS);

  // A stick for fingers: ahead and back, and turns.
  addEventListener("DOMContentLoaded", () => {
    const style = document.createElement("style");
    style.textContent = `
      #stick { position: fixed; left: 16px; bottom: calc(45% + 16px); width: 110px; height: 110px;
        border-radius: 50%; background: #1f5fa822; border: 2px solid #1f5fa866; z-index: 5;
        touch-action: none; display: none; }
      #stick i { position: absolute; left: 33px; top: 33px; width: 40px; height: 40px;
        border-radius: 50%; background: #1f5fa8cc; }
      @media (pointer: coarse) { #stick { display: block; } }
      @media (prefers-color-scheme: dark) { canvas { filter: brightness(0.7); } }
      /* viser's sheet of controls is 20em wide and hides the robot on a phone. */
      @media (max-width: 36em) {
        [style*="width: 20em"] { width: 100% !important; }
        [style*="max-height: 60%"] { max-height: 45% !important; }
      }`;
    const base = Object.assign(document.createElement("div"), { id: "stick" });
    base.setAttribute("aria-label", "drive");
    const knob = base.appendChild(document.createElement("i"));
    const drag = (event) => {
      if (event.type !== "pointerdown" && !base.hasPointerCapture(event.pointerId)) return;
      base.setPointerCapture(event.pointerId);
      const box = base.getBoundingClientRect(), reach = box.width / 2;
      const x = (event.clientX - box.left) / reach - 1, y = (event.clientY - box.top) / reach - 1;
      const far = Math.max(1, Math.hypot(x, y));
      stick = [x / far, y / far];
      show();
    };
    const show = () => {
      knob.style.transform = `translate(${33 * stick[0]}px, ${33 * stick[1]}px)`;
      send([-FAST * live(stick[1]), 0, -TURN * live(stick[0])].map((value) => value + 0));
    };
    for (const name of ["pointerdown", "pointermove"]) base.addEventListener(name, drag);
    for (const name of ["pointerup", "pointercancel"])
      base.addEventListener(name, () => { stick = [0, 0]; show(); });
    document.head.append(style);
    document.body.append(base);
  });
})();
