// Asks the daemon, and makes elements. Texts of others, as names of pods, become text and never markup.

export interface Forecast {
  fullIn: number | null;
  earliest: number | null;
  latest: number | null;
  unknownBecause: string | null;
}

export interface Pool {
  name: string;
  cidr: string;
  family: string;
  disabled: boolean;
  notAllocatable: string | null;
  fullness: "room" | "nearlyFull" | "full";
  capacity: number;
  held: number;
  cooling: number;
  reserved: number;
  free: number;
  open: number;
  stranded: number;
  borrowed: number;
  occupied: string | null;
  forecast: Forecast | null;
}

export interface History {
  since?: string;
  until?: string;
  trouble?: string;
}

export interface Overview {
  version: string;
  store: string;
  readAt: string;
  ageSeconds: number;
  trouble: string | null;
  notes: string[];
  strictAffinity: boolean;
  history: History | null;
  pools: Pool[];
  reliefs: Relief[];
  serviceRanges: string[];
}

/** A letter where all addresses of a cell have one state, else how many have which, in the order of MARKS. */
export type Cell = string | number[];
export interface Tile {
  cidr: string;
  cellLength: number;
  at: string | null;
  /** Why cells of the past may hold more than they show. */
  open: string | null;
  cells: Cell[];
}

/** As `croft ip show -o json` has it (docs/formats/cli-json.md). */
export interface Holder {
  address: string;
  state: string;
  node: string | null;
  namespace: string | null;
  pod: string | null;
  network: string | null;
  containerId: string | null;
  ifname: string | null;
  handle: string | null;
  since: string | null;
  until: string | null;
  borrowed: boolean;
}

export interface Who {
  address: string;
  state: string;
  pool: string | null;
  block: string | null;
  blockOwner: string | null;
  holder: Holder | null;
  past?: { holders: { who: string; node: string | null }[]; isSure: boolean; knownBy: string };
}

export interface NodeRow {
  name: string;
  recorded: boolean;
  blocks: number;
  held: number;
  borrowed: number;
}

export interface BlockRow {
  cidr: string;
  counts: Record<string, number>;
}

export interface Finding {
  finding: string;
  subject: string;
  evidence: string;
  remedy: string;
}

export interface Findings {
  checkedAt: string;
  notes: string[];
  total: number;
  findings: Finding[];
}

export interface Relief {
  pool: string;
  risk: "none" | "proven" | "routing" | "intent";
  title: string;
  effect: string;
  caution: string;
  command: string | null;
}

/** Those of a check, or why none was made. */
export interface Reliefs {
  checkedAt: string | null;
  notChecked: string | null;
  reliefs: Relief[];
}

export interface Explanation {
  text: string;
  refused: boolean;
  note: string | null;
}

/** The daemon's refusal, or its absence (status 0). */
export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const TOKEN = "croft-token";

/** The tab keeps the token, and forgets it when it is closed. */
export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

async function answerTo(path: string, parameters: Record<string, string>): Promise<Response> {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
  const token = sessionStorage.getItem(TOKEN);
  try {
    return await fetch(`/api/${path}?${query}`, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" });
  } catch {
    throw new Refused(0, "The daemon does not answer.");
  }
}

/** Asks; while the register is read for the first time, again each second. */
export async function ask<T>(path: string, parameters: Record<string, string> = {}): Promise<T> {
  for (let tries = 0; ; ++tries) {
    const answer = await answerTo(path, parameters);
    const json = await answer.json().catch(() => null);
    if (answer.ok && json !== null) return json as T;
    const why = json !== null && typeof json.error === "string" ? json.error : `The daemon answered ${answer.status}.`;
    if (answer.status !== 503 || tries === 30) throw new Refused(answer.status, why);
    await new Promise((go) => setTimeout(go, 1000));
  }
}

type Child = Node | string | null;

/** An element with attributes and children. Links go to this page alone. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

/** The place of a view, as the URL keeps it. */
export function place(view: string, parameters: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
  return `#/${view}${query.toString() === "" ? "" : `?${query}`}`;
}

export function link(to: string, text: string): HTMLAnchorElement {
  return el("a", { href: to }, text);
}

/** "1,234", "1.8e19". */
export function count(number: number): string {
  return number < 1e15 ? number.toLocaleString("en") : number.toExponential(1);
}

export function plural(number: number, what: string, ending = "s"): string {
  return `${count(number)} ${what}${number === 1 ? "" : ending}`;
}

export function share(part: number, whole: number): string {
  if (whole <= 0) return "0 %";
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 0.1 ? "< 0.1 %" : `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

/** "40 min", "3 h", "2 days". */
export function span(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}
