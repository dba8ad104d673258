// The map of addresses: a canvas of cells, each an address or a part of the space. The server counts; this draws.

import { Cell, Tile } from "./ask.js";

/** In the order of the server's numbers. */
export const MARKS = ["outside", "free", "reserved", "cooling", "used", "borrowed", "service"] as const;
export type Mark = typeof MARKS[number];
const LETTERS = "ofrcubs";
export const MARK_TEXT: Record<Mark, string> = {
  used: "used",
  borrowed: "used, borrowed from another node's block",
  cooling: "cooling: released, not yet free",
  free: "free",
  reserved: "reserved: nobody gets it",
  service: "a Service's",
  outside: "in no block: a node may claim it",
};
/** From the bottom of a cell to its top. */
export const DRAWN: Mark[] = ["used", "borrowed", "service", "cooling", "reserved", "free", "outside"];

// -- addresses as numbers

export interface Prefix {
  first: bigint;
  length: number;
  bits: 32 | 128;
}

function parseAddress(text: string): { value: bigint; bits: 32 | 128 } | null {
  if (/^\d+(\.\d+){3}$/.test(text)) {
    const value = text.split(".").reduce((sum, octet) => sum * 256n + BigInt(octet), 0n);
    return { value, bits: 32 };
  }
  if (!/^[0-9a-f:]+$/i.test(text)) return null;
  const [head, tail] = text.split("::");
  const groups = (part: string | undefined) => (part ? part.split(":") : []);
  const before = groups(head), after = groups(tail);
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const all = [...before, ...new Array<string>(Math.max(zeros, 0)).fill("0"), ...after];
  if (all.length !== 8) return null;
  return { value: all.reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n), bits: 128 };
}

export function parsePrefix(text: string): Prefix | null {
  const [address, length] = text.split("/");
  const parsed = parseAddress(address ?? "");
  if (parsed === null) return null;
  return { first: parsed.value, length: length === undefined ? parsed.bits : Number(length), bits: parsed.bits };
}

export function addressText(value: bigint, bits: number): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join(".");
  const text = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 65535n).toString(16)).join(":");
  let [at, size] = [0, 0];
  for (const { 0: run = "", index = 0 } of text.matchAll(/\b0(?::0)+\b/g)) {
    if (run.length > size) [at, size] = [index, run.length];
  }
  return size === 0 ? text : `${text.slice(0, at).replace(/:$/, "")}::${text.slice(at + size).replace(/^:/, "")}`;
}

export function prefixText(prefix: Prefix): string {
  const text = addressText(prefix.first, prefix.bits);
  return prefix.length === prefix.bits ? text : `${text}/${prefix.length}`;
}

/** The prefix of this length around another, or inside it at its begin. */
export function resized(prefix: Prefix, length: number): Prefix {
  const rest = BigInt(prefix.bits - length);
  return { first: (prefix.first >> rest) << rest, length, bits: prefix.bits };
}

export function contains(outer: Prefix, inner: Prefix): boolean {
  return outer.bits === inner.bits && outer.length <= inner.length && resized(inner, outer.length).first === outer.first;
}

// -- cells

/** How many addresses of a cell have which state. */
export function tally(cell: Cell, size: number): Map<Mark, number> {
  if (typeof cell === "string") return new Map([[MARKS[LETTERS.indexOf(cell)] ?? "outside", size]]);
  const found = new Map<Mark, number>();
  cell.forEach((number, i) => {
    const mark = MARKS[i];
    if (number > 0 && mark !== undefined) found.set(mark, number);
  });
  return found;
}

/** The place on a Hilbert curve over a square of `side` cells. */
function onCurve(index: number, side: number): [number, number] {
  let x = 0, y = 0;
  for (let part = 1, rest = index; part < side; part *= 2, rest = Math.floor(rest / 4)) {
    const right = 1 & (rest >> 1), down = 1 & (rest ^ right);
    if (down === 0) {
      if (right === 1) [x, y] = [part - 1 - x, part - 1 - y];
      [x, y] = [y, x];
    }
    x += part * right;
    y += part * down;
  }
  return [x, y];
}

export type Order = "rows" | "hilbert";

/** Where cells lie: by rows, or along Hilbert's curve, of which two lie side by side where their number asks for it. */
class Layout {
  readonly columns: number;
  readonly rows: number;
  private readonly xy: [number, number][] = [];
  private readonly index: number[] = [];

  constructor(cells: number, order: Order) {
    const log = Math.round(Math.log2(cells));
    this.rows = 2 ** Math.floor(log / 2);
    this.columns = cells / this.rows;
    for (let i = 0; i < cells; ++i) {
      const square = this.rows * this.rows;
      const [x, y] = order === "rows" ? [i % this.columns, Math.floor(i / this.columns)] : onCurve(i % square, this.rows);
      const at: [number, number] = order === "rows" ? [x, y] : [x + this.rows * Math.floor(i / square), y];
      this.xy.push(at);
      this.index[at[1] * this.columns + at[0]] = i;
    }
  }
  at(cell: number): [number, number] {
    return this.xy[cell] ?? [0, 0];
  }
  cell(x: number, y: number): number {
    return x < 0 || y < 0 || x >= this.columns || y >= this.rows ? -1 : this.index[y * this.columns + x] ?? -1;
  }
}

// -- colours and patterns

type Fills = Map<Mark, (string | CanvasPattern)[]>;

/** What tells a state apart without its colour, in a square of 6 × 6: as desk.css has it for bars and the legend. */
const PATTERNS: Partial<Record<Mark, (pen: CanvasRenderingContext2D) => void>> = {
  borrowed: (pen) => [-6, 0, 6].forEach((x) => stroke(pen, x, 6, x + 6, 0)),
  cooling: (pen) => {
    pen.fillRect(1, 1, 2, 2);
    pen.fillRect(4, 4, 2, 2);
  },
  reserved: (pen) => [-6, 0, 6].forEach((x) => stroke(pen, x, 0, x + 6, 6)),
  service: (pen) => [1.5, 4.5].forEach((x) => stroke(pen, x, 0, x, 6)),
  outside: (pen) => pen.fillRect(2, 2, 1, 1),
};

function stroke(pen: CanvasRenderingContext2D, x: number, y: number, toX: number, toY: number): void {
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(toX, toY);
  pen.stroke();
}

function fillsOf(pen: CanvasRenderingContext2D): Fills {
  const style = getComputedStyle(document.documentElement);
  const fills: Fills = new Map();
  for (const mark of MARKS) {
    const layers: (string | CanvasPattern)[] = [style.getPropertyValue(`--${mark}`).trim()];
    const draw = PATTERNS[mark];
    if (draw !== undefined) {
      const square = document.createElement("canvas");
      square.width = square.height = 6;
      const square_pen = square.getContext("2d");
      if (square_pen !== null) {
        square_pen.fillStyle = square_pen.strokeStyle = style.getPropertyValue(`--${mark}-ink`).trim();
        draw(square_pen);
        const pattern = pen.createPattern(square, "repeat");
        if (pattern !== null) layers.push(pattern);
      }
    }
    fills.set(mark, layers);
  }
  return fills;
}

function fill(pen: CanvasRenderingContext2D, fills: Fills, mark: Mark, x: number, y: number, width: number, height: number): void {
  for (const layer of fills.get(mark) ?? []) {
    pen.fillStyle = layer;
    pen.fillRect(x, y, width, height);
  }
}

// -- the view

export interface Seen {
  prefix: Prefix;
  cell: Cell;
  /** Somebody went there with the mouse; else by a key, and it is kept in the URL. */
  byMouse: boolean;
}

/** Draws one tile; `seen` is told which cell has the mouse or the focus, `enter` which one is to be opened. */
export class MapView {
  readonly canvas = document.createElement("canvas");
  private readonly pen = this.canvas.getContext("2d");
  private picture: HTMLCanvasElement | null = null;
  private tile: Tile | null = null;
  private part: Prefix | null = null;
  private layout = new Layout(1, "rows");
  private focus = 0;
  private wanted = "";

  constructor(private readonly seen: (what: Seen) => void, private readonly enter: (prefix: Prefix) => void,
              private readonly leave: () => void) {
    this.canvas.id = "map";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", "Address map. Arrow keys move, Enter opens a part, Backspace goes back.");
    this.canvas.setAttribute("aria-describedby", "cell");
    this.canvas.addEventListener("mousemove", (event) => this.go(this.cellUnder(event), true));
    this.canvas.addEventListener("click", (event) => this.open(this.cellUnder(event)));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
    new ResizeObserver(() => this.render()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.render());
  }

  /** `focus`: an address or part to begin at. */
  show(tile: Tile, order: Order, focus: Prefix | null): void {
    const is_another = this.tile?.cidr !== tile.cidr;
    const wanted = focus === null ? "" : prefixText(focus);
    this.tile = tile;
    this.part = parsePrefix(tile.cidr);
    this.layout = new Layout(tile.cells.length, order);
    if (is_another) this.focus = 0;
    if (focus !== null && this.part !== null && contains(this.part, focus) && (is_another || wanted !== this.wanted)) {
      this.focus = Number((focus.first - this.part.first) >> BigInt(this.part.bits - tile.cellLength));
    }
    this.wanted = wanted;
    this.render();
    this.tell(false);
  }

  private prefixOf(cell: number): Prefix | null {
    if (this.tile === null || this.part === null) return null;
    const { bits, first } = this.part;
    const shift = BigInt(bits - this.tile.cellLength);
    return { first: first + (BigInt(cell) << shift), length: this.tile.cellLength, bits };
  }

  private tell(byMouse: boolean): void {
    const prefix = this.prefixOf(this.focus);
    const cell = this.tile?.cells[this.focus];
    if (prefix !== null && cell !== undefined) this.seen({ prefix, cell, byMouse });
  }

  private go(cell: number, byMouse: boolean): void {
    if (cell < 0 || cell === this.focus) return;
    this.focus = cell;
    requestAnimationFrame(() => this.draw());
    this.tell(byMouse);
  }

  private open(cell: number): void {
    const prefix = this.prefixOf(cell);
    if (prefix === null || this.tile === null || this.part === null) return;
    this.focus = cell;
    // Four bits a step, so that one sees where one comes from; of 256 addresses or fewer, the address.
    const length = this.part.length < this.part.bits - 8 ? this.part.length + 4 : this.part.bits;
    this.enter(resized(prefix, Math.min(length, prefix.length)));
  }

  private cellUnder(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * this.layout.columns);
    const y = Math.floor(((event.clientY - box.top) / box.height) * this.layout.rows);
    return this.layout.cell(x, y);
  }

  private press(event: KeyboardEvent): void {
    const [x, y] = this.layout.at(this.focus);
    const { columns, rows } = this.layout;
    const far = event.ctrlKey ? Math.max(1, Math.floor(columns / 8)) : 1;
    const to: Record<string, () => number> = {
      ArrowLeft: () => this.layout.cell(Math.max(0, x - far), y),
      ArrowRight: () => this.layout.cell(Math.min(columns - 1, x + far), y),
      ArrowUp: () => this.layout.cell(x, Math.max(0, y - far)),
      ArrowDown: () => this.layout.cell(x, Math.min(rows - 1, y + far)),
      Home: () => 0,
      End: () => columns * rows - 1,
    };
    const step = to[event.key];
    if (step !== undefined) {
      this.go(step(), false);
    } else if (event.key === "Enter" || event.key === " " || event.key === "+") {
      this.open(this.focus);
    } else if (event.key === "Backspace" || event.key === "-" || event.key === "Escape") {
      this.leave();
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Draws all cells once, beside the screen: frames copy that. */
  private render(): void {
    const { columns, rows } = this.layout;
    const density = Math.min(devicePixelRatio, 2);
    const size = Math.max(2, Math.floor((this.canvas.clientWidth * density) / columns));
    const picture = document.createElement("canvas");
    picture.width = this.canvas.width = size * columns;
    picture.height = this.canvas.height = size * rows;
    const pen = picture.getContext("2d");
    if (pen === null || this.tile === null || this.part === null) return;
    const fills = fillsOf(pen);
    const gap = size >= 8 ? Math.min(3, Math.ceil(size / 12)) : 0;
    const addresses = 2 ** (this.part.bits - this.tile.cellLength);
    this.tile.cells.forEach((cell, i) => {
      const [x, y] = this.layout.at(i);
      this.drawCell(pen, fills, tally(cell, addresses), addresses, x * size, y * size, size - gap);
    });
    this.picture = picture;
    this.draw();
  }

  /** A share of the cell for each state; one that is there at all is seen. */
  private drawCell(pen: CanvasRenderingContext2D, fills: Fills, states: Map<Mark, number>, addresses: number, x: number,
                   y: number, size: number): void {
    const least = Math.min(size / 4, Math.max(1, size / 6));
    let bottom = size;
    for (const mark of DRAWN) {
      const number = states.get(mark) ?? 0;
      if (number === 0 || bottom <= 0) continue;
      const is_last = mark === "outside" || states.size === 1;
      const height = is_last ? bottom : Math.min(bottom, Math.max(least, Math.round((size * number) / addresses)));
      fill(pen, fills, mark, x, y + bottom - height, size, height);
      bottom -= height;
    }
    if (bottom > 0) fill(pen, fills, states.has("free") ? "free" : "outside", x, y, size, bottom);
  }

  private draw(): void {
    if (this.pen === null || this.picture === null) return;
    this.pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.pen.drawImage(this.picture, 0, 0);
    const size = this.canvas.width / this.layout.columns;
    const [x, y] = this.layout.at(this.focus);
    this.pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text").trim();
    this.pen.lineWidth = document.activeElement === this.canvas ? 3 : 1.5;
    this.pen.strokeRect(x * size + 0.5, y * size + 0.5, size - 1, size - 1);
  }
}
