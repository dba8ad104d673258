// The page: its views, each a function of the place that the URL names. Nothing here changes anything in the register.
import { ask, count, el, keepToken, link, place, plural, Refused, share, span, } from "./ask.js";
import { addressText, contains, DRAWN, MARK_TEXT, MARKS, MapView, parsePrefix, prefixText, resized, tally, } from "./map.js";
const LOOK_AGAIN = 10000;
/** In seconds. */
const OLD = 60;
const ROWS_MAX = 300;
const status = document.getElementById("status");
const main = document.getElementById("main");
/** Where the browser is. */
function here() {
    const found = /^#\/(\w+)(?:\?(.*))?$/.exec(location.hash);
    return { view: found?.[1] ?? "pools", given: Object.fromEntries(new URLSearchParams(found?.[2] ?? "")) };
}
/** Another place in the same view: it is no step for the button "back". */
function keep(given) {
    history.replaceState(null, "", place(here().view, given));
}
/** What was seen last, and when; nothing after a failure, which the status line tells then. */
let told = null;
function tellStatus() {
    if (told === null)
        return;
    const { seen, at } = told;
    const age = seen.ageSeconds + (Date.now() - at) / 1000;
    const trouble = seen.trouble === null ? "" : ` The last reading failed: ${seen.trouble}.`;
    const notes = seen.notes.map((note) => ` ${note}.`).join("");
    status.textContent = `Croft ${seen.version} · ${seen.store} · read ${span(age)} ago.${trouble}${notes}`;
    status.classList.toggle("trouble", seen.trouble !== null || age > OLD);
}
async function overview() {
    const seen = await ask("overview");
    told = { seen, at: Date.now() };
    tellStatus();
    return seen;
}
function heading(text, ...below) {
    return el("div", { class: "heading" }, el("h1", {}, text), el("p", {}, ...below));
}
/** A text with commands in backticks. */
function withCommands(text) {
    const parts = text.split("`").map((part, i) => (i % 2 === 1 ? el("code", {}, part) : part));
    return el("span", {}, ...parts);
}
function copyable(command) {
    const code = el("code", {}, command);
    const button = el("button", { type: "button" }, "Copy");
    button.addEventListener("click", async () => {
        try {
            await navigator.clipboard.writeText(command);
            button.textContent = "Copied";
        }
        catch {
            getSelection()?.selectAllChildren(code);
            button.textContent = "Selected";
        }
        setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    return el("div", { class: "command" }, code, button);
}
// -- pools
/** The share of addresses in each state, in one bar. */
function bar(states, whole) {
    const made = el("div", { class: "bar", role: "img" });
    const said = [];
    for (const [mark, number] of states) {
        if (number <= 0)
            continue;
        const piece = el("span", { class: mark });
        piece.style.flexGrow = String(number / whole);
        made.append(piece);
        said.push(`${mark} ${share(number, whole)}`);
    }
    made.setAttribute("aria-label", said.join(", "));
    return made;
}
function statesOf(pool) {
    return [["used", pool.held - pool.borrowed], ["borrowed", pool.borrowed], ["cooling", pool.cooling], ["reserved", pool.reserved],
        ["free", pool.free]];
}
function usable(pool) {
    return Math.max(pool.capacity - pool.reserved, 0);
}
function timeToFull(pool) {
    const forecast = pool.forecast;
    if (pool.fullness === "full")
        return "full now";
    if (forecast === null)
        return "no forecast: no history here";
    if (forecast.unknownBecause !== null)
        return `no forecast: ${forecast.unknownBecause}`;
    if (forecast.fullIn === null)
        return "not full soon";
    const band = forecast.earliest !== null && forecast.latest !== null ? ` (${span(forecast.earliest)} to ${span(forecast.latest)})` : "";
    return `full in ${span(forecast.fullIn)}${band}`;
}
/** Pools that give addresses, the first to fill first: by time where that is known, then by what is open. */
function byUrgency(pools) {
    const gives = (pool) => !pool.disabled && pool.notAllocatable === null;
    const soon = (pool) => (pool.fullness === "full" ? 0 : pool.forecast?.fullIn ?? Infinity);
    const order = (a, b) => {
        if (gives(a) !== gives(b))
            return gives(a) ? -1 : 1;
        if (soon(a) !== soon(b))
            return soon(a) - soon(b);
        return a.open / Math.max(usable(a), 1) - b.open / Math.max(usable(b), 1);
    };
    return [...pools].sort(order);
}
function stateOf(pool) {
    if (pool.disabled)
        return el("span", { class: "chip" }, "disabled");
    if (pool.notAllocatable !== null)
        return el("span", { class: "chip" }, pool.notAllocatable);
    if (pool.fullness === "full")
        return el("span", { class: "chip bad" }, "full");
    if (pool.fullness === "nearlyFull")
        return el("span", { class: "chip warn" }, "nearly full");
    return el("span", { class: "chip good" }, "has room");
}
function mapOf(pool) {
    return place("map", { space: pool.cidr, cidr: pool.family === "IPv6" ? pool.occupied ?? pool.cidr : pool.cidr });
}
function card(title, answer, detail, tone = "") {
    return el("section", { class: `card ${tone}` }, el("h2", {}, title), el("p", { class: "answer" }, answer), el("p", {}, detail));
}
/** The four questions of somebody on call. */
function glance({ pools, reliefs, strictAffinity }) {
    const first = byUrgency(pools)[0];
    const sum = (of) => pools.reduce((all, pool) => all + of(pool), 0);
    const tone = first?.fullness === "full" ? "bad" : first?.fullness === "nearlyFull" ? "warn" : "";
    const fills = first === undefined
        ? card("Fills first", "There is no pool", "croft pool create makes one.", "warn")
        : card("Fills first", link(mapOf(first), first.name), `${count(first.open)} of ${count(first.capacity)} open; ${timeToFull(first)}`, tone);
    const waiting = sum((pool) => pool.cooling), bound = sum((pool) => pool.stranded);
    const really = waiting + bound === 0
        ? card("Is free space really free?", "Yes", "Nothing cools, and no node keeps free addresses for itself.")
        : card("Is free space really free?", "Not all of it", `${plural(waiting, "address", "es")} ${waiting === 1 ? "cools" : "cool"}` +
            (strictAffinity ? `; ${count(bound)} are free for one node alone (strict affinity).` : "."));
    const best = reliefs[0];
    const safest = best === undefined
        ? card("Safest relief", "None is needed", "Every pool has room.")
        : card("Safest relief", link(place("relief"), best.title), `${best.pool}: ${best.effect}`);
    const found = card("Findings", link(place("findings"), "Check the register"), "As croft check does, when you ask for it.");
    return el("div", { class: "cards" }, fills, really, safest, found);
}
function poolRow(pool) {
    return el("tr", {}, el("th", { scope: "row" }, link(mapOf(pool), pool.name), el("small", {}, pool.cidr)), el("td", { class: "wide" }, bar(statesOf(pool), pool.capacity)), el("td", { class: "number" }, count(pool.held), el("small", {}, share(pool.held, usable(pool)))), el("td", { class: "number" }, count(pool.cooling)), el("td", { class: "number" }, count(pool.open), el("small", {}, share(pool.open, usable(pool)))), el("td", {}, timeToFull(pool)), el("td", {}, stateOf(pool)));
}
function tableOf(caption, headings, rows) {
    const shown = rows.slice(0, ROWS_MAX);
    const rest = rows.length - shown.length;
    const table = el("table", {}, el("caption", { class: "hidden" }, caption), el("thead", {}, el("tr", {}, ...headings.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, ...shown));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table, rest > 0 ? el("p", {}, `… and ${count(rest)} more`) : null);
}
function swatch(mark) {
    return el("span", { class: `swatch ${mark}` });
}
function legend(marks, texts = MARK_TEXT) {
    return el("ul", { class: "legend" }, ...marks.map((mark) => el("li", {}, swatch(mark), texts[mark])));
}
const pools = async () => {
    const seen = await overview();
    const rows = byUrgency(seen.pools).map(poolRow);
    return [heading("Pools", "The first to fill comes first. A name opens its map."), glance(seen),
        tableOf("Pools", ["Pool", "Use", "Held", "Cooling", "Open to every node", "Time to full", "State"], rows),
        legend(["used", "borrowed", "cooling", "reserved", "free"])];
};
// -- who
function facts(pairs) {
    const list = el("dl", {});
    for (const [name, value] of pairs)
        if (value !== null && value !== "")
            list.append(el("dt", {}, name), el("dd", {}, value));
    return list;
}
function holderFacts(holder) {
    const pod = holder.pod === null ? null : `${holder.namespace ?? ""}/${holder.pod}`;
    return [["Pod", pod], ["Node", holder.node === null ? null : link(place("nodes", { node: holder.node }), holder.node)],
        ["Since", holder.since], ["Free again", holder.until],
        ["Container", holder.containerId], ["Interface", holder.ifname], ["Network", holder.network],
        ["Handle", holder.handle], ["Borrowed", holder.borrowed ? "yes: the block is another node's" : null]];
}
function whoFacts(who) {
    if (who.past !== undefined) {
        const { holders, isSure, knownBy } = who.past;
        const held = isSure ? "Held by" : "Perhaps held by";
        const rows = holders.map((one) => [held, one.node === null ? one.who : `${one.who} on ${one.node}`]);
        const none = ["State", isSure ? "nobody held it" : "it is not known who held it"];
        return facts([...(rows.length === 0 ? [none] : rows), ["Known", knownBy]]);
    }
    const mark = MARKS.find((one) => one === who.state) ?? "outside";
    const owner = who.blockOwner?.replace(/^host:/, "") ?? null;
    return facts([["State", el("span", {}, swatch(mark), MARK_TEXT[mark])],
        ...(who.holder === null ? [] : holderFacts(who.holder)),
        ["Pool", who.pool ?? "none"], ["Block", who.block], ["Block of", owner]]);
}
function spaceOf(seen, address) {
    const wanted = parsePrefix(address);
    const around = [...seen.pools.map((pool) => pool.cidr), ...seen.serviceRanges].find((cidr) => {
        const space = parsePrefix(cidr);
        return wanted !== null && space !== null && contains(space, wanted);
    });
    return around ?? null;
}
const who = async (given) => {
    const address = given["address"] ?? "";
    document.getElementById("address").value = address;
    const [answer, seen] = await Promise.all([ask("who", { address, at: given["at"] ?? "" }), overview()]);
    const space = spaceOf(seen, answer.address);
    const wanted = parsePrefix(answer.address);
    const around = wanted === null ? "" : prefixText(resized(wanted, wanted.bits - 8));
    return [heading(`Who has ${answer.address}?`, given["at"] ? `At ${given["at"]}.` : "As the register says now."),
        whoFacts(answer),
        space === null ? el("p", {}, "No pool and no Service range has it.")
            : el("p", {}, link(place("map", { space, cidr: around, focus: answer.address }), "Show it on the map"))];
};
// -- the map
/** The marks of an earlier time, of which the history knows who held what. */
const PAST_TEXT = { ...MARK_TEXT, used: "held then", cooling: "may have been held then", outside: "not held then" };
/** The panel beside the map: what is in the cell, and of one address who has it. */
class Panel {
    constructor() {
        this.element = el("aside", { id: "cell", "aria-live": "polite" });
        this.turn = 0;
    }
    tell(seen, at) {
        const turn = ++this.turn;
        const name = prefixText(seen.prefix);
        const size = 2 ** (seen.prefix.bits - seen.prefix.length);
        const texts = at === "" ? MARK_TEXT : PAST_TEXT;
        const states = [...tally(seen.cell, size)].map(([mark, number]) => [`${count(number)}`, el("span", {}, swatch(mark), texts[mark])]);
        const title = el("h2", {}, name);
        if (size > 1) {
            this.element.replaceChildren(title, el("p", {}, plural(size, "address", "es")), facts(states));
            return;
        }
        this.element.replaceChildren(title, facts([["State", states[0]?.[1] ?? ""]]));
        setTimeout(async () => {
            if (turn !== this.turn)
                return;
            const answer = await ask("who", { address: name, at }).catch((why) => String(why.message));
            if (turn !== this.turn)
                return;
            const said = typeof answer === "string" ? el("p", { class: "trouble" }, answer) : whoFacts(answer);
            this.element.replaceChildren(title, said);
        }, 80);
    }
}
function steps(space, part, to) {
    const list = el("ol", {});
    for (let length = space.length; length < part.length; length += 4) {
        list.append(el("li", {}, link(to(resized(part, length)), prefixText(resized(part, length)))));
    }
    list.append(el("li", { "aria-current": "location" }, prefixText(part)));
    return el("nav", { class: "steps", "aria-label": "Parts" }, list);
}
function choice(name, label, values, chosen, change) {
    const select = el("select", { id: name }, ...values.map(([value, text]) => el("option", { value }, text)));
    select.value = chosen;
    select.addEventListener("change", () => change(select.value));
    return el("span", { class: "choice" }, el("label", { for: name }, label), select);
}
/** The time that is shown; without a history there is one alone. */
function slider(seen, given, go) {
    const { since, until, trouble } = seen.history ?? {};
    if (since === undefined || until === undefined)
        return el("p", { class: "time" }, trouble ?? "Now. There is no history here.");
    const [first, last] = [Date.parse(since), Date.parse(until)];
    const input = el("input", { type: "range", id: "time", min: "0", max: "1000", step: "1" });
    const part = given["at"] ? (Date.parse(given["at"]) - first) / Math.max(last - first, 1) : 1;
    input.value = given["at"] ? String(Math.min(1000 * part, 999)) : "1000";
    const text = el("output", { for: "time" }, given["at"] ?? "now");
    const chosen = () => (input.value === "1000" ? "" : new Date(first + ((last - first) * Number(input.value)) / 1000).toISOString());
    input.addEventListener("input", () => (text.textContent = chosen() || "now"));
    input.addEventListener("change", () => go({ at: chosen() }));
    return el("p", { class: "time" }, el("label", { for: "time" }, "Time"), input, text);
}
/** The one map of the page, and the place that it shows. */
const panel = new Panel();
let shown = {};
const view = new MapView((what) => {
    panel.tell(what, shown["at"] ?? "");
    if (!what.byMouse && document.activeElement === view.canvas)
        keep({ ...here().given, focus: prefixText(what.prefix) });
}, (prefix) => {
    const text = prefixText(prefix);
    if (prefix.length === prefix.bits)
        location.hash = place("who", { address: text, at: shown["at"] ?? "" });
    else
        location.hash = place("map", { ...here().given, space: shown["space"] ?? "", cidr: text, focus: "" });
}, () => {
    const inside = parsePrefix(shown["cidr"] ?? ""), outer = parsePrefix(shown["space"] ?? "");
    if (inside === null || outer === null || inside.length <= outer.length)
        return;
    const back = resized(inside, Math.max(outer.length, inside.length - 4));
    location.hash = place("map", { ...here().given, cidr: prefixText(back), focus: prefixText(inside) });
});
const map = async (given) => {
    const seen = await overview();
    const spaces = [...byUrgency(seen.pools).map((pool) => [pool.cidr, `${pool.name} ${pool.cidr}`]),
        ...seen.serviceRanges.map((range) => [range, `Services ${range}`])];
    const space = given["space"] ?? spaces[0]?.[0];
    const whole = parsePrefix(space ?? "");
    if (space === undefined || whole === null)
        return [heading("Address map", "There is no pool yet.")];
    const wanted = parsePrefix(given["cidr"] ?? space);
    const part = wanted !== null && contains(whole, wanted) ? wanted : whole;
    const order = given["order"] === "hilbert" ? "hilbert" : "rows";
    const cidr = `${addressText(part.first, part.bits)}/${part.length}`;
    const tile = await ask("map", { cidr, at: given["at"] ?? "" });
    shown = { ...given, space, cidr };
    const go = (more) => (location.hash = place("map", { ...here().given, space, ...more }));
    const pool = seen.pools.find((one) => one.cidr === space);
    const controls = el("div", { class: "controls" }, choice("space", "Space", spaces, space, (value) => (location.hash = place("map", { space: value, order: given["order"] ?? "" }))), choice("order", "Order", [["rows", "rows"], ["hilbert", "Hilbert curve"]], order, (value) => go({ order: value })), pool?.occupied ? link(place("map", { ...given, space, cidr: pool.occupied, focus: "" }), "Zoom to what nodes have") : null, slider(seen, given, go));
    // Once it is in the page, and has its size.
    setTimeout(() => view.show(tile, order, parsePrefix(given["focus"] ?? "")));
    return [
        heading("Address map", "Arrows and Enter, or the mouse, move and zoom in; Backspace goes back. Each cell is ", tile.cellLength === part.bits ? "one address." : `a /${tile.cellLength}.`),
        controls, ...(tile.open === null ? [] : [el("p", { class: "trouble" }, `Others may have been held: ${tile.open}.`)]),
        steps(whole, part, (to) => place("map", { ...given, space, cidr: prefixText(to), focus: "" })),
        el("div", { class: "map" }, view.canvas, panel.element),
        tile.at === null ? legend(["used", "borrowed", "cooling", "reserved", "service", "free", "outside"])
            : legend(["used", "cooling", "outside"], PAST_TEXT)
    ];
};
// -- nodes
async function blocksOf(node) {
    const [rows, seen] = await Promise.all([ask("blocks", { owner: `host:${node}` }), overview()]);
    if (rows.length === 0)
        return el("p", {}, "It has no block of its own.");
    return tableOf(`Blocks of ${node}`, ["Block", "Use", "Used", "Borrowed by others", "Cooling", "Free"], rows.map((row) => {
        const of = (mark) => row.counts[mark] ?? 0;
        const size = MARKS.reduce((sum, mark) => sum + of(mark), 0);
        const to = place("map", { space: spaceOf(seen, row.cidr) ?? row.cidr, cidr: row.cidr });
        return el("tr", {}, el("th", { scope: "row" }, link(to, row.cidr)), el("td", { class: "wide" }, bar(DRAWN.map((mark) => [mark, of(mark)]), size)), ...[of("used"), of("borrowed"), of("cooling"), of("free")].map((number) => el("td", { class: "number" }, count(number))));
    }));
}
const nodes = async (given) => {
    const [rows] = await Promise.all([ask("nodes"), overview()]);
    const chosen = given["node"] ?? "", filter = given["filter"] ?? "";
    const input = el("input", { id: "filter", value: filter, autocomplete: "off" });
    const list = el("div", {});
    const draw = () => {
        const found = rows.filter((row) => row.name.includes(input.value)).sort((a, b) => b.held - a.held);
        const most = Math.max(...rows.map((row) => row.held), 1);
        list.replaceChildren(tableOf("Nodes", ["Node", "Share", "Addresses", "Blocks", "Borrowed"], found.map((row) => el("tr", row.name === chosen ? { "aria-current": "true" } : {}, el("th", { scope: "row" }, link(place("nodes", { node: row.name, filter: input.value }), row.name), row.recorded ? null : el("small", {}, "has no record")), el("td", { class: "wide" }, bar([["used", row.held - row.borrowed], ["borrowed", row.borrowed], ["outside", most - row.held]], most)), el("td", { class: "number" }, count(row.held)), el("td", { class: "number" }, count(row.blocks)), el("td", { class: "number" }, count(row.borrowed))))));
    };
    input.addEventListener("input", () => {
        keep({ ...given, filter: input.value });
        draw();
    });
    draw();
    const detail = chosen === "" ? null : el("section", {}, el("h2", {}, `Blocks of ${chosen}`), await blocksOf(chosen));
    return [heading("Nodes", `${plural(rows.length, "node")}; the most addresses first. A name shows its blocks.`),
        el("p", { class: "controls" }, el("label", { for: "filter" }, "Name has"), input), ...(detail === null ? [] : [detail]), list];
};
// -- findings, relief, explain
/** A check is made when somebody comes here or asks for one, and never beside. */
function checked(at) {
    const button = el("button", { type: "button" }, "Check now");
    button.addEventListener("click", () => {
        button.disabled = true;
        void draw(true);
    });
    return [`Checked at ${at}. `, button];
}
const findings = async () => {
    const [last] = await Promise.all([ask("findings"), overview()]);
    const items = last.findings.map((one) => el("li", {}, el("h2", {}, el("code", {}, one.finding), " ", one.subject), el("p", {}, one.evidence), el("p", { class: "remedy" }, "Remedy: ", withCommands(one.remedy))));
    const rest = last.total - items.length;
    return [heading("Findings", "As croft check says. Nothing is changed from here. ", ...checked(last.checkedAt)),
        items.length === 0 ? el("p", {}, "Nothing found.") : el("ul", { class: "list" }, ...items),
        rest > 0 ? el("p", {}, `… and ${count(rest)} more: croft check lists them.`) : "",
        ...last.notes.map((note) => el("p", { class: "note" }, withCommands(note)))];
};
const RISK = {
    none: "comes by itself",
    proven: "frees what is proven gone",
    routing: "the network has to know of it",
    intent: "takes back what somebody wanted",
};
const relief = async () => {
    const [all] = await Promise.all([ask("reliefs"), overview()]);
    const items = all.reliefs.map((one) => el("li", {}, el("h2", {}, `${one.pool}: ${one.title} `, el("span", { class: `chip ${one.risk}` }, RISK[one.risk])), el("p", {}, el("strong", {}, one.effect)), el("p", {}, one.caution), one.command === null ? null : copyable(one.command)));
    const text = "For each pool that is full or nearly so, the safest first. You run the commands; this page does not. ";
    return [heading("Relief", text, ...(all.checkedAt === null ? [] : checked(all.checkedAt))),
        all.notChecked === null ? "" : el("p", { class: "note" }, `Without what a check finds: ${all.notChecked}.`),
        items.length === 0 ? el("p", {}, "Every pool has room: nothing is needed.") : el("ol", { class: "list" }, ...items)];
};
const FIELDS = [
    ["node", "Node", "where the pod starts"], ["namespace", "Namespace", ""], ["pod", "Pod", ""], ["pool", "Pool", "by name or CIDR; empty: any"],
    ["ip", "Address", "one that is asked for"], ["family", "Family", "4, 6 or 46"], ["label", "Label of the namespace", "KEY=VALUE"],
];
const explain = async (given) => {
    const [names] = await Promise.all([ask("nodes"), overview()]);
    const form = el("form", { class: "form" });
    for (const [name, label, hint] of FIELDS) {
        const input = el("input", { id: `explain-${name}`, name, value: given[name] ?? "", autocomplete: "off", placeholder: hint });
        if (name === "node") {
            input.required = true;
            input.setAttribute("list", "node-names");
        }
        form.append(el("label", { for: `explain-${name}` }, label), input);
    }
    form.append(el("datalist", { id: "node-names" }, ...names.slice(0, 1000).map((row) => el("option", { value: row.name }))), el("button", {}, "Explain"));
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        const values = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
        location.hash = place("explain", Object.fromEntries(values));
    });
    const parts = [heading("Explain", "What an ADD on a node would get, and why: the words of croft explain."), form];
    if (given["node"]) {
        const answer = await ask("explain", given);
        if (answer.note !== null)
            parts.push(el("p", { class: "note" }, answer.note));
        parts.push(el("pre", { class: answer.refused ? "bad" : "", tabindex: "0", role: "region", "aria-label": "Explanation" }, answer.text));
    }
    return parts;
};
// -- the frame
const VIEWS = [
    ["pools", "Pools", pools], ["map", "Map", map], ["nodes", "Nodes", nodes], ["findings", "Findings", findings], ["relief", "Relief", relief],
    ["explain", "Explain", explain],
];
function askForToken(why) {
    const input = el("input", { id: "token", type: "password", autocomplete: "off", required: "" });
    const form = el("form", { class: "form" }, el("label", { for: "token" }, "Token"), input, el("button", {}, "Look"));
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        keepToken(input.value.trim());
        void draw(true);
    });
    main.replaceChildren(heading("A token is needed", `The daemon says: ${why}. This tab keeps it, and forgets it when it is closed.`), form, el("p", { class: "note" }, "On Kubernetes: ", el("code", {}, "kubectl create token NAME -n NAMESPACE"), " for an account that may list ipamblocks and pods. Elsewhere: the content of the file that --desk-token-file names."));
    input.focus();
}
let turn = 0;
/** `isNew`: somebody went here; else the same is read again. */
async function draw(isNew) {
    const mine = ++turn;
    const { view: name, given } = here();
    const found = VIEWS.find((one) => one[0] === name);
    for (const item of document.querySelectorAll("#views a")) {
        if (item.getAttribute("href") === place(name))
            item.setAttribute("aria-current", "page");
        else
            item.removeAttribute("aria-current");
    }
    document.title = `${found?.[1] ?? "Who"} · Croft`;
    const focused = main.contains(document.activeElement) ? document.activeElement : null;
    const same = focused?.id ? `#${focused.id}` : `a[href="${CSS.escape(focused?.getAttribute("href") ?? "")}"]`;
    try {
        const parts = await (name === "who" ? who : found?.[2] ?? pools)(given);
        if (mine !== turn)
            return;
        main.replaceChildren(...parts);
        // Keys go on where they were: what had the focus is another element now, or was taken out and put in again.
        if (document.activeElement === document.body)
            main.querySelector(same)?.focus({ preventScroll: true });
        if (isNew && document.activeElement === document.body)
            main.focus({ preventScroll: true });
    }
    catch (why) {
        if (mine !== turn)
            return;
        if (why instanceof Refused && why.status === 401)
            return askForToken(why.message);
        told = null;
        status.textContent = String(why.message);
        status.classList.add("trouble");
        if (isNew)
            main.replaceChildren(heading("That did not work", String(why.message)));
    }
}
/** Not while somebody types, or reads what would move. */
function mayRedraw() {
    const is_typing = document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLSelectElement;
    return !document.hidden && !is_typing && ["pools", "map", "nodes"].includes(here().view) && getSelection()?.isCollapsed !== false;
}
document.getElementById("views").append(...VIEWS.map(([name, text]) => el("li", {}, link(place(name), text))));
document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const address = document.getElementById("address").value.trim();
    if (address !== "")
        location.hash = place("who", { address });
});
addEventListener("hashchange", () => {
    if (location.hash.startsWith("#/") || location.hash === "")
        void draw(true);
});
setInterval(() => {
    if (mayRedraw())
        void draw(false);
    else
        tellStatus();
}, LOOK_AGAIN);
void draw(true);
