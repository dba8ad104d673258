// Asks the daemon, and makes elements. Texts of others, as names of pods, become text and never markup.
/** The daemon's refusal, or its absence (status 0). */
export class Refused extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}
const TOKEN = "croft-token";
/** The tab keeps the token, and forgets it when it is closed. */
export function keepToken(token) {
    sessionStorage.setItem(TOKEN, token);
}
async function answerTo(path, parameters) {
    const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
    const token = sessionStorage.getItem(TOKEN);
    try {
        return await fetch(`/api/${path}?${query}`, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" });
    }
    catch {
        throw new Refused(0, "The daemon does not answer.");
    }
}
/** Asks; while the register is read for the first time, again each second. */
export async function ask(path, parameters = {}) {
    for (let tries = 0;; ++tries) {
        const answer = await answerTo(path, parameters);
        const json = await answer.json().catch(() => null);
        if (answer.ok && json !== null)
            return json;
        const why = json !== null && typeof json.error === "string" ? json.error : `The daemon answered ${answer.status}.`;
        if (answer.status !== 503 || tries === 30)
            throw new Refused(answer.status, why);
        await new Promise((go) => setTimeout(go, 1000));
    }
}
/** An element with attributes and children. Links go to this page alone. */
export function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
        made.setAttribute(name, value);
    for (const child of children)
        if (child !== null)
            made.append(child);
    return made;
}
/** The place of a view, as the URL keeps it. */
export function place(view, parameters = {}) {
    const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
    return `#/${view}${query.toString() === "" ? "" : `?${query}`}`;
}
export function link(to, text) {
    return el("a", { href: to }, text);
}
/** "1,234", "1.8e19". */
export function count(number) {
    return number < 1e15 ? number.toLocaleString("en") : number.toExponential(1);
}
export function plural(number, what, ending = "s") {
    return `${count(number)} ${what}${number === 1 ? "" : ending}`;
}
export function share(part, whole) {
    if (whole <= 0)
        return "0 %";
    const percent = (100 * part) / whole;
    return percent > 0 && percent < 0.1 ? "< 0.1 %" : `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}
/** "40 min", "3 h", "2 days". */
export function span(seconds) {
    if (seconds < 90)
        return `${Math.round(seconds)} s`;
    if (seconds < 5400)
        return `${Math.round(seconds / 60)} min`;
    if (seconds < 172800)
        return `${Math.round(seconds / 3600)} h`;
    return `${Math.round(seconds / 86400)} days`;
}
