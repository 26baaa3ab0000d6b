// Pages in a real browser, as a reader has them: one comparison, one of several devices, one of a real device; a search,
// a calibration, a validation.
// PAGES is the folder they are in; CHROMIUM the browser's program. tests/browser.rs makes the pages and runs this.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const comparisons = ["one", "several", "real"];
const pages = [...comparisons, "tuned", "calibrated", "validated"];
const address = (name, fragment = "") => pathToFileURL(path.join(process.env.PAGES, `${name}.html`)).href + fragment;

let browser;
before(async () => {
    browser = await chromium.launch({
        executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync"],
    });
});
after(() => browser && browser.close());

// Opens a page; whatever goes wrong in it, or is fetched from elsewhere, fails the test.
async function open(t, name, { width = 1280, fragment = "", ...options } = {}) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, ...options });
    t.after(() => context.close());
    const page = await context.newPage();
    const wrong = [];
    page.on("pageerror", (error) => wrong.push(error.message));
    page.on("console", (said) => { if (said.type() === "error") wrong.push(said.text()); });
    page.on("request", (request) => { if (!request.url().startsWith(address(name))) wrong.push(request.url()); });
    t.after(() => assert.deepEqual(wrong, []));
    await page.goto(address(name, fragment));
    return page;
}

// Every plot is drawn once it has been seen.
async function drawAll(page) {
    for (const box of await page.locator(".picture:has(script.chart):visible").all()) {
        await box.scrollIntoViewIfNeeded();
        await box.locator("canvas").waitFor();
    }
}

// What stands below a plot when the pointer is near its middle.
async function toldAt(page, id) {
    const box = page.locator(`#${id}`);
    await box.scrollIntoViewIfNeeded();
    const over = box.locator(".u-over");
    await over.waitFor();
    const { width, height } = await over.boundingBox();
    await over.hover({ position: { x: width * 0.4, y: height * 0.5 } });
    return box.locator(".told").textContent();
}

const unfold = (page) => page.evaluate(() => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
});

const fragment = (page) => page.evaluate(() => location.hash);

test("every plot with values is drawn again, and everything is in the one file", async (t) => {
    for (const name of pages) {
        const page = await open(t, name);
        await drawAll(page);
        const least = { tuned: 1, validated: 2 }[name] || 8;
        assert.ok(await page.locator("canvas").count() >= least, name);
        assert.equal(await page.locator(".picture.drawn > svg:visible").count(), 0);
    }
});

test("without scripts every plot is there as a picture", async (t) => {
    const page = await open(t, "one", { javaScriptEnabled: false });
    const pictures = page.locator(".picture > svg");
    const count = await pictures.count();
    assert.ok(count > 20);
    assert.equal(await page.locator(".picture > svg:visible").count(), count);
    assert.equal(await page.locator("#switches:visible").count(), 0);
});

for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 400]) {
        test(`nothing stands in anybody's way: ${colorScheme}, ${width} pixels`, async (t) => {
            for (const name of pages) {
                const page = await open(t, name, { colorScheme, width });
                await unfold(page);
                await drawAll(page);
                await page.addScriptTag({ path: axe });
                const { violations } = await page.evaluate(() => axe.run());
                const told = ({ id, nodes: [first] }) => `${id}: ${first.html.slice(0, 200)}; ${first.failureSummary}`;
                assert.deepEqual(violations.map(told), [], name);
            }
        });
    }
}

test("at 400 pixels the page and every table in it fit", async (t) => {
    for (const name of pages) {
        for (const javaScriptEnabled of [true, false]) {
            const page = await open(t, name, { width: 400, javaScriptEnabled });
            if (javaScriptEnabled) {
                await unfold(page);
                await drawAll(page);
            }
            const wide = await page.evaluate(() => [...document.querySelectorAll("table")]
                .filter((table) => table.getBoundingClientRect().right > innerWidth || table.scrollWidth > innerWidth)
                .map((table) => table.className));
            assert.deepEqual(wide, [], name);
            assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 400, name);
        }
    }
});

test("printed are the pictures, on white, without what only a screen needs", async (t) => {
    const page = await open(t, "one", { colorScheme: "dark" });
    await drawAll(page);
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    assert.equal(await page.locator(".live:visible, #switches:visible, .place:visible").count(), 0);
    assert.equal(await page.locator(".picture > svg:visible").count(), await page.locator(".picture > svg").count());
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.ok((await page.pdf()).length > 50_000);
});

test("a setting that is switched off is gone from plots, also for whom the link is given", async (t) => {
    const page = await open(t, "one");
    const before = await page.locator("[data-setting='1']:visible").count();
    assert.ok(before > 3);
    const button = page.locator("#switches button").nth(1);
    await button.click();
    assert.equal(await button.getAttribute("aria-pressed"), "false");
    assert.equal(await page.locator("[data-setting='1']:visible").count(), 0);
    assert.match(await fragment(page), /~off=1\b/);
    await page.locator("#iops-plot").scrollIntoViewIfNeeded();
    const box = page.locator("#iops-plot .u-over");
    await box.hover();
    const told = page.locator("#iops-plot .told");
    await told.filter({ hasText: "deadline" }).waitFor();
    assert.doesNotMatch(await told.textContent(), /cfq/);
    const other = await open(t, "one", { fragment: await fragment(page) });
    assert.equal(await other.locator("[data-setting='1']:visible").count(), 0);
    await other.locator("#switches button").nth(1).click();
    assert.equal(await other.locator("[data-setting='1']:visible").count(), before);
});

test("under the pointer stand the values of every setting", async (t) => {
    const page = await open(t, "one");
    for (const [id, told] of [
        ["latency-sync", /^[\d.]+ %: deadline [\d.]+ [µm]?s · cfq/],
        ["throughput-0", /^[\d.]+ m?s: all (0|[\d.]+ .?B\/s) · reads (0|[\d.]+ .?B\/s)$/],
        ["depth-plot", /^[\d.]+ m?s: deadline [\d.]+ · /],
        ["heat-0", /^[\d.]+ m?s: \d+ of [\d.]+ [µm]?s to [\d.]+ [µm]?s$/],
        ["runs-throughput", /^2: deadline [\d.]+ MB\/s · cfq/],
        ["sizes-reads", /^[\d.]+ KiB: \S+ [\d.]+ [µm]?s to /],
        ["shares-0", /^[\d.]+ m?s: (nothing|\S+ \(\d+\) [\d.]+ %( · |$))/],
    ]) {
        assert.match(await toldAt(page, id), told, id);
    }
});

test("so do those of searches, calibrations and validations", async (t) => {
    for (const [name, id, told] of [
        ["tuned", "front-plot", /^[\d.]+ \S+: \S+ [\d.]+ \S+/],
        ["calibrated", "calibration-depth-iops", /^\d+: model [\d,]+ IOPS · measured(, not fitted)? [\d,]+ IOPS$/],
        ["calibrated", "calibration-depth-p99", /^\d+: model [\d.]+ [µm]s · measured(, not fitted)? [\d.]+ [µm]s$/],
        ["calibrated", "calibration-size-random", /^[\d.]+ [KM]iB: model [\d.]+ [MG]B\/s · measured/],
        ["validated", "curves-all", /^[\d.]+ m?s: measured [\d.]+ % · simulated [\d.]+ %$/],
        ["validated", "differences-all", /^[\d.]+ %: simulated minus measured -?[\d.]+( [nµm]?s)?$/],
    ]) {
        const page = await open(t, name);
        assert.match(await toldAt(page, id), told, id);
    }
});

test("a part that is dragged over is zoomed in all plots of that time; a double click shows all again", async (t) => {
    const page = await open(t, "one");
    const box = page.locator("#throughput-0");
    await box.scrollIntoViewIfNeeded();
    const over = box.locator(".u-over");
    await over.waitFor();
    const { x, y, width, height } = await over.boundingBox();
    await page.mouse.move(x + width * 0.25, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.5, y + height / 2, { steps: 4 });
    await page.mouse.up();
    const kept = (await fragment(page)).match(/~zoom=time\.(\d+)\.(\d+)/);
    assert.ok(kept, await fragment(page));
    const other = page.locator("#throughput-1 .u-over");
    await other.hover({ position: { x: 1, y: 20 } });
    const first = await page.locator("#throughput-1 .told").textContent();
    assert.doesNotMatch(first, /^0: /, "the other plot begins later, too");
    const again = await open(t, "one", { fragment: await fragment(page) });
    await again.locator("#iops-plot").scrollIntoViewIfNeeded();
    await again.locator("#iops-plot .u-over").hover({ position: { x: 1, y: 20 } });
    assert.match(await again.locator("#iops-plot .told").textContent(), /^[1-9]/);
    await over.dblclick();
    assert.doesNotMatch(await fragment(page), /zoom/);
});

test("plots are read and zoomed from the keyboard", async (t) => {
    const page = await open(t, "one");
    const plot = page.locator("#latency-sync .live");
    await page.locator("#latency-sync").scrollIntoViewIfNeeded();
    await page.locator("#latency-sync .u-over").waitFor();
    await page.locator("#latency > h2 > .place").focus();
    let reached = false;
    for (let i = 0; i < 40 && !reached; i += 1) {
        await page.keyboard.press("Tab");
        reached = await plot.evaluate((own) => own === document.activeElement);
    }
    assert.ok(reached, "Tab leads to it");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const told = page.locator("#latency-sync .told");
    const second = await told.textContent();
    assert.match(second, /deadline [\d.]+/);
    await page.keyboard.press("End");
    assert.notEqual(await told.textContent(), second);
    await page.keyboard.press("+");
    assert.match(await fragment(page), /~zoom=latency-sync\./);
    await page.keyboard.press("0");
    assert.doesNotMatch(await fragment(page), /zoom/);
});

test("a table is sorted by value, whatever the unit, downward, upward and not at all", async (t) => {
    const page = await open(t, "one");
    const table = page.locator("#latency table").first();
    await page.locator("#latency summary").first().click();
    const column = table.locator("thead th").last();
    const seconds = async () => {
        const units = { ns: 1e-9, µs: 1e-6, ms: 1e-3, s: 1 };
        const cells = await table.locator("tbody tr td:last-child").allInnerTexts();
        return cells.map((cell) => cell.split(" ")).map(([number, unit]) => Number(number) * units[unit]);
    };
    const first = await seconds();
    const sorted = [...first].sort((a, b) => b - a);
    await column.locator("button").click();
    assert.deepEqual(await seconds(), sorted);
    assert.equal(await column.getAttribute("aria-sort"), "descending");
    const link = await fragment(page);
    assert.match(link, /~sort=\d+\.\d+\.down/);
    await column.locator("button").press("Enter");
    assert.deepEqual(await seconds(), [...sorted].reverse());
    await column.locator("button").click();
    assert.deepEqual(await seconds(), first);
    assert.doesNotMatch(await fragment(page), /sort/);
    const other = await open(t, "one", { fragment: link });
    const same = other.locator("#latency table").first().locator("thead th").last();
    assert.equal(await same.getAttribute("aria-sort"), "descending");
});

test("drawing a plot moves nothing below it", async (t) => {
    const page = await open(t, "one");
    const heights = () => page.locator(".picture").evaluateAll((all) => all.map((box) => box.getBoundingClientRect().height));
    const before = await heights();
    await drawAll(page);
    (await heights()).forEach((height, number) => {
        assert.ok(Math.abs(height - before[number]) < 1, `plot ${number}: ${before[number]} to ${height}`);
    });
});

test("a link leads to its section or plot, and what was folded out is so again", async (t) => {
    const page = await open(t, "one", { fragment: "#head-1" });
    const top = await page.locator("#head-1").evaluate((own) => own.getBoundingClientRect().top);
    assert.ok(top >= 0 && top < 900, `${top}`);
    // Nothing moves under the pointer any more, and the browser reports the change a little later.
    await drawAll(page);
    await page.locator("#throughput details summary").click();
    await page.waitForFunction(() => location.hash.includes("open="));
    const link = (await fragment(page)).replace(/^#[^~]*/, "#head-1");
    assert.match(link, /^#head-1~open=\d+$/);
    const other = await open(t, "one", { fragment: link.replace("head-1", "throughput") });
    assert.ok(await other.locator("#throughput table").isVisible());
    const at = await other.locator("#throughput").evaluate((own) => own.getBoundingClientRect().top);
    assert.ok(at >= 0 && at < 900, `${at}`);
    await other.locator("#throughput > h2 > .place").click();
    // The page adds its state to the address a little after the click.
    await other.waitForFunction(() => location.hash.includes("open="));
    assert.match(await fragment(other), /^#throughput~open=\d+$/);
});
