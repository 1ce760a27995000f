// SPDX-License-Identifier: MIT
// Opens a flame graph page in a browser, uses it as a person does, and prints what was seen as JSON.
// Usage: node flame_page.js PLAYWRIGHT BROWSER PAGE SEARCH SCREENSHOT
"use strict";
const [playwright, browserPath, page_path, searched, picture] = process.argv.slice(2);
const { chromium } = require(playwright);

async function main() {
	const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
	const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
	const seen = { errors: [], requests: [], dialogs: 0 };
	page.on("pageerror", error => seen.errors.push(String(error)));
	page.on("console", message => message.type() === "error" && seen.errors.push(message.text()));
	page.on("request", request => seen.requests.push(request.url()));
	page.on("dialog", dialog => { seen.dialogs++; dialog.dismiss(); });
	const text = id => page.textContent("#" + id);
	const hash = () => page.evaluate(() => location.hash);
	const box = await (async () => {
		await page.goto("file://" + page_path);
		await page.waitForFunction(() => document.documentElement.dataset.ready === "true");
		return page.locator("#scroll").boundingBox();
	})();
	seen.title = await text("title");
	seen.total = await page.evaluate(() => shown.total[0]);
	seen.names = await page.evaluate(() => data.frames.map(frame => frame[0]));
	seen.evil = await page.evaluate(() => typeof window.evil !== "undefined");
	// A click on the second row zooms into what is there; Esc comes back.
	await page.mouse.click(box.x + box.width / 2, box.y + 18 * 1.5);
	seen.zoomed = await hash();
	await page.keyboard.press("Escape");
	seen.back = await hash();
	// The keyboard: down to the largest callee, Enter, back.
	for (const key of ["ArrowDown", "ArrowDown", "Enter"])
		await page.keyboard.press(key);
	seen.keyboard = await hash();
	seen.status = await text("status");
	await page.keyboard.press("c");
	seen.callees = await page.evaluate(() => [state.mode, shown.total[0]]);
	await page.keyboard.press("c");
	seen.callers = await page.evaluate(() => [state.mode, shown.total[0]]);
	await page.keyboard.press("c");
	await page.keyboard.press("i");
	seen.inverted = await page.evaluate(() => [state.mode, shown.total[0]]);
	await page.keyboard.press("i");
	await page.keyboard.press("/");
	await page.keyboard.type(searched);
	seen.matched = await text("matched");
	await page.keyboard.press("Enter");
	seen.first = await text("matched");
	seen.found = await text("status");
	await page.keyboard.press("Escape");
	await page.keyboard.press("t");
	seen.rows = await page.locator("#table tbody tr").count();
	seen.row = await page.locator("#table tbody tr").first().innerText();
	await page.keyboard.press("t");
	// What the link says is what a new page shows.
	const link = await hash();
	await page.goto("about:blank");
	await page.goto("file://" + page_path + link);
	await page.waitForFunction(() => document.documentElement.dataset.ready === "true");
	seen.again = [link, await hash(), await text("matched")];
	await page.keyboard.press("d");
	seen.isDark = await page.evaluate(() => document.documentElement.classList.contains("dark"));
	if (picture)
		await page.screenshot({ path: picture });
	await page.setViewportSize({ width: 400, height: 700 });
	seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	await browser.close();
	process.stdout.write(JSON.stringify(seen));
}

main().catch(error => { console.error(error); process.exit(1); });
