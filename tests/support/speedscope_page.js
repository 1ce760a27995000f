// SPDX-License-Identifier: MIT
// Opens a file in speedscope, in a browser, and prints what its table of functions shows as JSON: the title of the
// page, and a row [total, self, name] for each function, as text.
// Usage: node speedscope_page.js PLAYWRIGHT BROWSER URL WORD SCREENSHOT; the file is open when the title has WORD.
"use strict";
const [playwright, browserPath, url, word, picture] = process.argv.slice(2);
const { chromium } = require(playwright);

(async () => {
	const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
	const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
	const errors = [];
	page.on("pageerror", error => errors.push(String(error)));
	page.on("dialog", dialog => { errors.push(dialog.message()); dialog.dismiss(); });
	await page.goto(url);
	await page.waitForFunction(wanted => document.title.includes(wanted) && document.querySelector("canvas"), word);
	if (picture) {
		await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
		await page.screenshot({ path: picture });
	}
	// "3" is the view with the table.
	await page.keyboard.press("3");
	await page.waitForFunction(() => document.querySelectorAll("tr").length > 1);
	const rows = await page.evaluate(() => [...document.querySelectorAll("tr")].map(row => [...row.querySelectorAll("td")].map(cell => cell.innerText)));
	console.log(JSON.stringify({ title: await page.title(), errors, rows: rows.filter(row => row.length) }));
	await browser.close();
})();
