// SPDX-License-Identifier: Apache-2.0
// Chromium looks at the page. Prints one JSON object with what it saw; web/test/boards.js has made-up boards.
//
//     node browser.mjs frozen OUT FILE...      a screenshot of each file: two widths, light and dark
//     node browser.mjs live OUT URL PEERS VICTIM PID STOPPED PIDS
//                                              until PEERS are shown; then kills the one and stops others
//
// PLAYWRIGHT: the folder of playwright-core; CHROMIUM: the program (/usr/bin/chromium).

import { createRequire } from "node:module";
import path from "node:path";

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
const [mode, out, ...rest] = process.argv.slice(2);
const SIZES = [
  { width: 1280, height: 900 },
  { width: 400, height: 860 },
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});

/// A page whose complaints are kept in `complaints`.
async function open(url, size, colorScheme, complaints, reducedMotion = "no-preference") {
  const context = await browser.newContext({ viewport: size, colorScheme, reducedMotion });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()))
      complaints.push(`${path.basename(url)}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`${path.basename(url)}: ${error.stack}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !/^(file|data):/.test(request.url()))
      complaints.push(`${path.basename(url)} asks for ${request.url()}`);
  });
  await page.goto(url);
  return page;
}

async function shoot(page, name) {
  const file = path.join(out, `${name}.png`);
  await page.screenshot({ path: file, fullPage: true });
  return file;
}

/// What does not fit: the page as a whole never scrolls sideways.
const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

/// Contrast of the texts against what lies behind them, and names of what can be used.
const unnamed = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("button, input, [tabindex], [role=img]")]
      .filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.closest("label")))
      .map((one) => one.outerHTML.slice(0, 90)),
  );

async function frozen(files) {
  const seen = { pages: [], complaints: [] };
  for (const file of files) {
    const name = path.basename(file, ".html");
    for (const size of SIZES)
      for (const scheme of ["light", "dark"]) {
        const begun = Date.now();
        const page = await open(`file://${file}`, size, scheme, seen.complaints);
        await page.waitForSelector("main");
        await page.waitForTimeout(150);
        const picture = await shoot(page, `${name}-${size.width}-${scheme}`);
        seen.pages.push({
          name,
          width: size.width,
          scheme,
          picture,
          title: await page.title(),
          sideways: await sideways(page),
          unnamed: await unnamed(page),
          rows: await page.locator("#peers tbody tr").count(),
          took_ms: Date.now() - begun,
        });
        await page.context().close();
      }
  }
  return seen;
}

/// Milliseconds until the expression holds in the page.
async function until(page, expression, limit_ms) {
  const begun = Date.now();
  // Not waitForFunction: it needs eval, which the policy of the page forbids.
  while (!(await page.evaluate(expression))) {
    if (Date.now() - begun > limit_ms) throw new Error(`not within ${limit_ms} ms: ${expression}`);
    await page.waitForTimeout(50);
  }
  return Date.now() - begun;
}

const text = (page, selector) => page.locator(selector).innerText();

async function live([url, peers, victim, pid, stopped, stopped_pids]) {
  const seen = { complaints: [], pictures: [] };
  const page = await open(url, SIZES[0], "light", seen.complaints);
  seen.shown_ms = await until(
    page,
    `document.querySelectorAll("#peers tbody tr").length >= ${peers}`,
    30_000,
  );
  await until(page, `document.querySelector(".chip").innerText === "live"`, 10_000);
  seen.link = await text(page, ".chip");
  await until(page, `/ [1-9]/.test(document.querySelector(".bar .of").textContent)`, 120_000);
  await page.waitForTimeout(20_000);
  await useKeys(page, seen);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(300);
    seen.pictures.push(await shoot(page, `live-1280-${scheme}`));
  }
  await page.emulateMedia({ colorScheme: "light" });
  process.kill(Number(pid), "SIGKILL");
  const row = `document.querySelector('#peers tr[data-peer="${victim}"]')`;
  seen.red_ms = await until(page, `["silent", "lost"].includes(${row}?.dataset.state)`, 30_000);
  seen.red_state = await page.evaluate(`${row}.dataset.state`);
  seen.red_picture = await shoot(page, "live-red");
  await lossReason(page, seen, row);
  seen.pictures.push(await shoot(page, "live-lost"));
  await waitReason(page, seen, stopped.split(","), stopped_pids.split(",").map(Number));
  seen.money = await text(page, ".tiles .tile:nth-child(4)");
  seen.board = await page.evaluate(async () => (await fetch("board.json")).json());
  await page.setViewportSize(SIZES[1]);
  await page.waitForTimeout(400);
  seen.sideways = await sideways(page);
  seen.pictures.push(await shoot(page, "live-400"));
  return seen;
}

/// A loss and its reason stand in the row of the peer.
async function lossReason(page, seen, row) {
  await until(page, `${row}.dataset.state === "lost" && ${row}.lastElementChild.textContent !== ""`, 30_000);
  seen.ended = await page.evaluate(`${row}.lastElementChild.textContent`);
  await page.waitForTimeout(2_500);
}

/// Without a majority the last one waits for those that are stopped, and the page says for whom and why.
async function waitReason(page, seen, stopped, pids) {
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  const begun = Date.now();
  try {
    const states = stopped.map(
      (id) => `document.querySelector('#peers tr[data-peer="${id}"]').dataset.state`,
    );
    await until(page, states.map((one) => `["silent", "lost"].includes(${one})`).join(" && "), 30_000);
    seen.stopped_ms = Date.now() - begun;
    const named = `document.querySelector("#waiting .text").textContent.startsWith("Waiting for peer")`;
    await until(page, named, 30_000);
    seen.waits_ms = Date.now() - begun;
    seen.waits = await text(page, "#waiting");
    seen.pictures.push(await shoot(page, "live-waiting"));
  } finally {
    for (const pid of pids) process.kill(pid, "SIGCONT");
  }
}

/// The lanes and the sliders work without a mouse.
async function useKeys(page, seen) {
  await page.locator("#lanes canvas").first().focus();
  await page.keyboard.press("ArrowLeft");
  seen.lane_words = await page.locator("#lane-words").textContent();
  await page.keyboard.press("Escape");
  await page.locator("details.folded > summary").press("Enter");
  await page.locator("#tab-map").click();
  seen.map = await page.locator("#map-view svg").count();
  await page.locator("#tab-matrix").click();
  await page.locator("#what-if input").first().focus();
  for (let i = 0; i < 5; ++i) await page.keyboard.press("PageUp");
  seen.what_if = await text(page, "#what-if tbody tr:first-child");
  seen.error_so_far = await text(page, "#model-error");
  await page.getByRole("button", { name: "As it is" }).click();
}

const seen = mode === "live" ? await live(rest) : await frozen(rest);
await browser.close();
process.stdout.write(JSON.stringify(seen));
