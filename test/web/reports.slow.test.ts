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

const svg = (content: string) => ({
  name: 'logo.svg',
  mimeType: 'image/svg+xml',
  buffer: Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" viewBox="0 0 40 20">${content}</svg>`,
  ),
});

it('shows the cover while it is typed, why a logo is refused, and stores the rest as typed', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/reports/branding');
  const cover = page.getByRole('figure', { name: 'Preview of the cover' });
  await page.getByLabel('Name on the cover').fill('Northwind Traders');
  await cover.getByText('Northwind Traders').waitFor();
  await page.locator('input[type=file]').setInputFiles(svg('<script>alert(1)</script>'));
  await cover.getByRole('img', { name: 'Logo' }).waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The logo was refused').waitFor();
  expect(await page.getByLabel('Name on the cover').inputValue()).toBe('Northwind Traders');

  await page.locator('input[type=file]').setInputFiles(svg('<rect width="40" height="20" fill="#0b6e4f"/>'));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Reports have the new cover').waitFor();
  const stored = (await api.get('/api/v1/reports/branding')).body;
  expect(stored).toMatchObject({ org_name: 'Northwind Traders', brand_color: '#1F4FD8' });
  expect(stored.logo_url).not.toBe('');
  await close();
});

it('makes, shows and ends a schedule by keyboard', async () => {
  const { page, faults, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/reports/schedules');
  await page.getByRole('button', { name: 'Make monthly reports' }).focus();
  await page.keyboard.press('Enter');
  await page.getByLabel('Time zone').fill('Europe/Berlin');
  await page.keyboard.press('Enter');
  await page.getByText('Next report').waitFor();
  expect((await api.get('/api/v1/reports/schedules')).body).toMatchObject({
    count: 1,
    schedules: [{ cadence: 'monthly', time_zone: 'Europe/Berlin', deliveries: [] }],
  });
  await page.getByRole('button', { name: 'End', exact: true }).click();
  await page.getByRole('button', { name: 'End them' }).click();
  await page.getByRole('button', { name: 'Make monthly reports' }).waitFor();
  expect((await api.get('/api/v1/reports/schedules')).body.schedules).toEqual([]);
  expect(faults).toEqual([]);
  await close();
});
