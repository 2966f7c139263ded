"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  for (const part of all(".scripted")) part.hidden = false;

  // Tables: a click or Enter on a heading sorts by it, the same again the other way round.
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const order = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
  const sort = (table, heading) => {
    const column = heading.cellIndex;
    const before = heading.getAttribute("aria-sort");
    const numbers = heading.classList.contains("number");
    const down = before ? before === "ascending" : numbers;
    for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => order(value(a, column), value(b, column)) * (down ? -1 : 1));
    table.tBodies[0].append(...rows);
  };
  for (const table of all("table.sortable")) {
    for (const heading of all("thead th", table)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading));
    }
  }

  // Flame graphs. Frames come callers first, so a frame's callees follow it directly.
  const READABLE = 28;
  const flame = (figure) => {
    const graph = figure.querySelector(".frames");
    const frames = all(".frame", graph).map((group, index) => ({
      group,
      index,
      box: group.querySelector("svg"),
      name: group.querySelector("text").textContent,
      x: Number(group.dataset.x),
      w: Number(group.dataset.w),
      depth: Number(group.dataset.d),
    }));
    if (frames.length === 0) return;
    const output = figure.querySelector("output");
    const search = figure.querySelector("input");
    const info = figure.querySelector(".info");
    let zoomed = frames[0];

    const end = (frame) => {
      let next = frame.index + 1;
      while (next < frames.length && frames[next].depth > frame.depth) next++;
      return next;
    };
    const caller = (frame) => {
      let at = frame.index - 1;
      while (at >= 0 && frames[at].depth >= frame.depth) at--;
      return frames[at];
    };
    const callees = (frame) =>
      frames.slice(frame.index + 1, end(frame)).filter((one) => one.depth === frame.depth + 1);

    const place = (frame, x, w) => {
      frame.box.setAttribute("x", `${x}%`);
      frame.box.setAttribute("width", `${w}%`);
      frame.group.classList.toggle("narrow", (w / 100) * graph.clientWidth < READABLE);
    };
    const draw = () => {
      const last = end(zoomed);
      const callers = new Set();
      for (let one = caller(zoomed); one; one = caller(one)) callers.add(one);
      for (const frame of frames) {
        const inside = frame.index >= zoomed.index && frame.index < last;
        const above = callers.has(frame);
        frame.group.classList.toggle("above", above);
        frame.group.toggleAttribute("hidden", !inside && !above);
        if (above) place(frame, 0, 100);
        if (inside) place(frame, ((frame.x - zoomed.x) / zoomed.w) * 100, (frame.w / zoomed.w) * 100);
      }
    };
    const zoom = (frame) => {
      zoomed = frame;
      draw();
    };
    const walk = (frame) => {
      if (!frame || frame.group.hasAttribute("hidden")) return;
      for (const one of frames) one.group.tabIndex = one === frame ? 0 : -1;
      frame.group.focus();
    };
    const beside = (frame, step) => {
      const row = caller(frame) ? callees(caller(frame)) : [frame];
      return row[row.indexOf(frame) + step];
    };

    const find = () => {
      const text = search.value;
      let pattern;
      try {
        pattern = new RegExp(text, "i");
      } catch {
        pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
      }
      let count = 0;
      let share = 0;
      let covered = 0; // frames up to here are in one that was counted
      for (const frame of frames) {
        const hit = text !== "" && frame.depth > 0 && pattern.test(frame.name);
        frame.group.classList.toggle("hit", hit);
        if (!hit) continue;
        count++;
        if (frame.index < covered) continue;
        share += frame.w;
        covered = end(frame);
      }
      output.textContent = text === "" ? "" : `${share.toFixed(1)} % in ${count} ${count === 1 ? "frame" : "frames"}`;
    };

    const of = (event) => {
      const group = event.target.closest?.(".frame");
      return group && frames.find((frame) => frame.group === group);
    };
    const show = (event) => {
      const frame = of(event);
      if (!frame) return;
      info.textContent = frame.group.getAttribute("aria-label");
      // Tooltips are made when they are wanted: the names would be in the file twice.
      if (frame.box.querySelector("title")) return;
      const title = document.createElementNS(graph.namespaceURI, "title");
      title.textContent = info.textContent;
      frame.box.prepend(title);
    };
    graph.addEventListener("mouseover", show);
    graph.addEventListener("focusin", show);
    graph.addEventListener("click", (event) => {
      const frame = of(event);
      if (frame) zoom(frame);
    });
    graph.addEventListener("keydown", (event) => {
      const frame = of(event);
      if (!frame) return;
      const moves = {
        Enter: () => zoom(frame),
        " ": () => zoom(frame),
        Escape: () => zoom(frames[0]),
        ArrowUp: () => walk(caller(frame)),
        ArrowDown: () => walk(callees(frame)[0]),
        ArrowLeft: () => walk(beside(frame, -1)),
        ArrowRight: () => walk(beside(frame, 1)),
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
    search.addEventListener("input", find);
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      search.value = "";
      find();
    });
    figure.querySelector("button").addEventListener("click", () => zoom(frames[0]));
    window.addEventListener("resize", draw);
    draw();
  };
  for (const figure of all(".flame")) flame(figure);

  // On paper nothing can be opened.
  window.addEventListener("beforeprint", () => {
    for (const part of all("details")) part.open = true;
  });
})();
