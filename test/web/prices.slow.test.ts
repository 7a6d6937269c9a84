import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, startBrowser, visit } from '../support/browser.js';

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it('finds prices by a word that stays in the address', async () => {
  const { page, faults, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/prices?search=gpt-4o-mini');
  const { records } = (await api.get('/api/v1/pricing')).body;
  const matches = records.filter((one: { model: string; aliases: string[] }) =>
    [one.model, ...one.aliases].some((name) => name.includes('gpt-4o-mini')),
  );
  await page.getByText(`${matches.length} of ${records.length} prices`).waitFor();
  await page.getByLabel('Search').fill('no such model');
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.getByText(`${records.length} of ${records.length} prices`).waitFor();
  expect(faults).toEqual([]);
  await close();
});

it('enters a contract rate, shows why one is refused and keeps what was typed, and ends it', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/prices/contract-rates?new=1');
  await page.getByLabel('Model', { exact: true }).fill('*');
  await page.getByLabel('Discount in percent').fill('120');
  await page.getByLabel('Document that proves it').fill('Order form 7');
  await page.getByRole('button', { name: 'Enter it' }).click();
  await page.getByText('below 100').first().waitFor();
  expect(await page.getByLabel('Document that proves it').inputValue()).toBe('Order form 7');
  await page.getByLabel('Discount in percent').fill('12.5');
  await page.keyboard.press('Enter');
  await page.getByText('12.5 %').waitFor();
  await page.getByRole('button', { name: 'End the price of openai *' }).click();
  await page.getByRole('button', { name: 'End it' }).click();
  await page.getByText('Ended', { exact: true }).waitFor();
  const { contract_rates } = (await api.get('/api/v1/pricing/contract-rates')).body;
  expect(contract_rates).toMatchObject([{ model: '*', discount_percent: 12.5 }]);
  expect(contract_rates[0].ends_on).not.toBeNull();
  await close();
});
