// SPDX-License-Identifier: MIT
// How long a browser takes until a picture of stacks can be used, and the memory of its page: prints "MS MB".
// Usage: node flame_page_time.js PLAYWRIGHT BROWSER URL WORD; it is ready when the title has WORD and a frame was drawn.
"use strict";
const [playwright, browserPath, url, word] = process.argv.slice(2);
const { chromium } = require(playwright);

(async () => {
	const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"] });
	const page = await browser.newPage();
	page.setDefaultTimeout(300000);
	const begin = Date.now();
	await page.goto(url);
	await page.waitForFunction(wanted => document.title.includes(wanted) && document.querySelector("canvas"), word);
	await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
	const used = await page.evaluate(() => performance.memory.usedJSHeapSize);
	console.log(Date.now() - begin, Math.round(used / 1e5) / 10);
	await browser.close();
})();
