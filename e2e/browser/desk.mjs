// The browser's part of desk_browser.py: FOLDER-OF-MODULES URL TOKEN FOLDER-FOR-PICTURES ADDRESS POD
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, url, token, pictures, address, pod] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"],
});

/** A page that fails the test by anything that it says or asks of elsewhere. */
async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: false, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  page.on("pageerror", (error) => assert.fail(`the page's script failed: ${error}`));
  page.on("dialog", () => assert.fail("a name was run"));
  page.on("request", (request) => assert.ok(request.url().startsWith(url) || request.url().startsWith("data:"), request.url()));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 40[13]/.test(message.text())) assert.fail(message.text());
  });
  return page;
}

async function go(page, place) {
  await page.evaluate((to) => (location.hash = to), place);
  await page.waitForFunction((to) => location.hash.startsWith(to.split("?")[0]), place);
  await page.waitForLoadState("networkidle");
}

/** axe runs beside the page's own scripts, in a world that the page's policy does not hold. */
async function findsNothing(page, what) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
  await session.send("Runtime.evaluate", { contextId: executionContextId, expression: axe });
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    contextId: executionContextId, awaitPromise: true, returnByValue: true,
    expression: "axe.run().then((found) => found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(' ')}`))",
  });
  assert.equal(exceptionDetails, undefined);
  assert.deepEqual(result.value, [], `axe on ${what}`);
  await session.detach();
}

/** Text that is cut, or wider than its page. */
async function fits(page, what) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(over <= 1, `${what} is ${over} pixels too wide`);
}

const row = address.replace(/\d+$/, "0");
const VIEWS = ["#/pools", "#/map?space=10.10.0.0%2F26&cidr=10.10.0.0%2F26&focus=10.10.0.8", "#/nodes?node=node-1", "#/findings", "#/relief",
               "#/explain?node=node-1&pool=web", `#/who?address=${address}`];

// The token: asked for, refused, taken, kept for this tab.
{
  const page = await open({});
  await page.goto(url);
  await page.getByLabel("Token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("this token is not known").waitFor();
  await findsNothing(page, "the form for a token");
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Pools" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Pools" }).waitFor();
  await page.context().close();
}

for (const colorScheme of ["light", "dark"]) {
  const page = await open({ colorScheme, deviceScaleFactor: 1 });
  await page.addInitScript((given) => sessionStorage.setItem("croft-token", given), token);
  await page.goto(url);
  for (const view of VIEWS) {
    await go(page, view);
    const name = view.slice(2).split("?")[0];
    await page.waitForFunction(() => !document.querySelector("main").textContent.includes("…"));
    await findsNothing(page, `${view}, ${colorScheme}`);
    await fits(page, view);
    // The test's own folder is of no interest to anybody.
    await page.locator("#status").evaluate((status) => (status.textContent = status.textContent.replace(/sqlite:\S*\//, "sqlite:/var/lib/croft/")));
    await page.screenshot({ path: `${pictures}/desk-${name}-${colorScheme}.png` });
  }
  await page.context().close();
}

// Twice the size, on a narrow screen.
{
  const page = await open({ viewport: { width: 640, height: 450 } });
  await page.addInitScript((given) => sessionStorage.setItem("croft-token", given), token);
  await page.goto(url);
  for (const view of VIEWS) {
    await go(page, view);
    await fits(page, `${view} at 200 %`);
  }
  await page.context().close();
}

{
  const page = await open({});
  await page.addInitScript((given) => sessionStorage.setItem("croft-token", given), token);
  await page.goto(url);

  // A pod's name is a text, wherever it comes.
  await go(page, `#/who?address=${address}`);
  await page.getByText(`shop/${pod}`).waitFor();
  assert.equal(await page.locator("main script, header script, footer script").count(), 0);

  // By keys alone: to the map, into a part, to a neighbour, and who has it; the URL keeps it.
  await go(page, `#/map?space=10.64.0.0%2F12&cidr=${row}%2F24`);
  const canvas = page.locator("main canvas[tabindex]");
  await canvas.focus();
  await page.keyboard.press("Home");
  const last = Number(address.split(".")[3]);
  for (let i = 0; i < Math.floor(last / 16); ++i) await page.keyboard.press("ArrowDown");
  for (let i = 0; i < last % 16; ++i) await page.keyboard.press("ArrowRight");
  const is_at = (text) => page.locator("#cell h2").getByText(text, { exact: true }).waitFor();
  await is_at(address);
  await page.locator("#cell").getByText(`shop/${pod}`).waitFor();
  assert.ok(page.url().endsWith(`focus=${address}`), page.url());
  await page.reload();
  await is_at(address);
  await canvas.focus();
  await page.keyboard.press("Backspace");
  const part = (length) => page.locator(".steps [aria-current]", { hasText: `/${length}` }).waitFor();
  await part(20);
  await is_at(row);
  assert.ok(await canvas.evaluate((element) => element === document.activeElement), "the focus stays on the map");
  await page.keyboard.press("Enter");
  await part(24);
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: `Who has ${row.replace(/0$/, "255")}?` }).waitFor();

  // An earlier time, by the slider; the URL keeps it.
  await go(page, `#/map?space=10.64.0.0%2F12&cidr=${row}%2F24`);
  await page.reload();
  const time = page.getByLabel("Time");
  await time.focus();
  await page.keyboard.press("Home");
  await page.locator(".legend", { hasText: "may have been held then" }).waitFor();
  assert.match(page.url(), /at=20/);
  await canvas.hover({ position: { x: 5, y: 5 } });
  await page.locator("#cell").getByText("Known").waitFor();
  await findsNothing(page, "an earlier time");
  assert.equal(await page.evaluate(() => document.activeElement.id), "time", "keys go on where they were");
  await page.reload();
  await page.locator(".legend", { hasText: "may have been held then" }).waitFor();
  await time.focus();
  await page.keyboard.press("End");
  await page.locator(".legend", { hasText: "in no block: a node may claim it" }).waitFor();

  // Of a million addresses: frames in time, each step in 200 ms.
  await go(page, "#/map?space=10.64.0.0%2F12&cidr=10.64.0.0%2F12");
  await canvas.focus();
  // The best of three tries: others may have the machine meanwhile.
  const best = async (measure) => Math.min(await measure(), await measure(), await measure());
  const frame = await best(() => page.evaluate(async () => {
    const element = document.querySelector("main canvas[tabindex]");
    const box = element.getBoundingClientRect();
    const times = [];
    for (let i = 0; i < 60; ++i) {
      const begin = performance.now();
      element.dispatchEvent(new MouseEvent("mousemove", { clientX: box.left + (box.width * i) / 60, clientY: box.top + box.height / 2 }));
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - begin);
    }
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.9)];
  }));
  console.log(`a frame, 9 of 10 within ${frame.toFixed(1)} ms`);
  assert.ok(frame < 34, `a frame takes ${frame} ms`);
  for (const [place, sign] of [["#/map?space=10.64.0.0%2F12&cidr=10.64.0.0%2F16", "10.64.0.0/16"], ["#/nodes", "Nodes"],
                               ["#/map?space=10.64.0.0%2F12&cidr=10.64.0.0%2F12&order=hilbert", "10.64.0.0/12"], ["#/pools", "Pools"]]) {
    const took = await best(async () => {
      await go(page, "#/relief");
      await page.getByRole("heading", { name: "Relief" }).waitFor();
      return page.evaluate(async ([to, text]) => {
        const begin = performance.now();
        location.hash = to;
        const is_there = () => [...document.querySelectorAll("main h1, .steps [aria-current]")].some((one) => one.textContent === text);
        while (!is_there() && performance.now() - begin < 5000) await new Promise(requestAnimationFrame);
        return performance.now() - begin;
      }, [place, sign]);
    });
    console.log(`${place}: ${took.toFixed(0)} ms`);
    assert.ok(took <= 200, `${place} takes ${took} ms`);
  }
  await page.context().close();
}

await browser.close();
